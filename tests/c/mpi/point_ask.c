/* Asking for the statuses of several requests without completing them (MPI 4.1 and later). */
#include "point.h"

int main(int argc, char **argv)
{
    enum { N = 4 };
    int in[N], out[N], flag, index, count, indices[N];
    MPI_Request requests[N + 1];
    MPI_Status statuses[N + 1], status;
    begin(&argc, &argv);
    for (int i = 0; i < N; i++) {
        out[i] = i;
        MPI_Irecv(&in[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[i]);
    }
    requests[N] = MPI_REQUEST_NULL;
    MPI_Request_get_status_any(N + 1, requests, &index, &flag, &status);
    CHECK(!flag && index == MPI_UNDEFINED, "index %d", index);
    MPI_Request_get_status_some(N + 1, requests, &count, indices, statuses);
    CHECK(count == 0, "count %d", count);
    MPI_Request_get_status_all(N + 1, requests, &flag, statuses);
    CHECK(!flag, "all");
    MPI_Send(&out[2], 1, MPI_INT, rank, 2, MPI_COMM_WORLD);
    do {
        MPI_Request_get_status_any(N + 1, requests, &index, &flag, &status);
    } while (!flag);
    CHECK(index == 2 && status.MPI_TAG == 2 && requests[2] != MPI_REQUEST_NULL, "index %d tag %d", index, status.MPI_TAG);
    MPI_Request_get_status_some(N + 1, requests, &count, indices, statuses);
    CHECK(count == 1 && indices[0] == 2 && statuses[0].MPI_TAG == 2, "count %d", count);
    for (int i = 0; i < N; i++) {
        if (i != 2) {
            MPI_Send(&out[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD);
        }
    }
    do {
        MPI_Request_get_status_all(N + 1, requests, &flag, statuses);
    } while (!flag);
    for (int i = 0; i < N; i++) {
        CHECK(statuses[i].MPI_TAG == i && requests[i] != MPI_REQUEST_NULL, "tag %d at %d", statuses[i].MPI_TAG, i);
    }
    CHECK(is_empty(&statuses[N]), "the null request");
    MPI_Waitall(N + 1, requests, statuses);
    for (int i = 0; i < N; i++) {
        CHECK(statuses[i].MPI_TAG == i && in[i] == i, "tag %d at %d", statuses[i].MPI_TAG, i);
    }
    MPI_Request_get_status_any(N + 1, requests, &index, &flag, &status);
    CHECK(flag && index == MPI_UNDEFINED && is_empty(&status), "index %d of null requests", index);
    MPI_Request_get_status_some(N + 1, requests, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED, "count %d of null requests", count);
    MPI_Finalize();
    return 0;
}
