/* Cancelling receives that nothing matched; those that were matched, and sends, go on. */
#include "point.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int value = -1, flag;
    MPI_Request request;
    MPI_Status status;
    for (int turn = 0; turn < 100; turn++) {
        MPI_Irecv(&value, 1, MPI_INT, turn % 2 ? from : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        CHECK(request != MPI_REQUEST_NULL, "the handle goes");
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag && request == MPI_REQUEST_NULL, "turn %d is not cancelled", turn);
    }
    /* Nothing of the cancelled ones takes a message. */
    MPI_Barrier(MPI_COMM_WORLD);
    int out = rank;
    MPI_Isend(&out, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &request);
    MPI_Recv(&value, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
    CHECK(value == from, "%d", value);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag, "a receive that was not cancelled");
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag, "a send that was not cancelled");
    /* One that is complete stays so. */
    value = -1;
    MPI_Irecv(&value, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &request);
    MPI_Send(&out, 1, MPI_INT, rank, 2, MPI_COMM_WORLD);
    do {
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    } while (!flag);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag && value == rank, "cancelled %d value %d", flag, value);
    MPI_Finalize();
    return 0;
}
