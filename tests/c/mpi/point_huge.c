/* Messages above 2 GiB. Needs 4.1 GiB for two ranks. */
#include "point.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    const MPI_Count bytes = (MPI_Count)(2u << 30) + 12345;
    if (rank > 1 || size == 1) {
        MPI_Finalize();
        return 0;
    }
    unsigned char *data = malloc(bytes);
    CHECK(data != NULL, "no memory");
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        for (MPI_Count i = 0; i < bytes; i += 4093) {
            data[i] = (unsigned char)(i / 4093);
        }
        MPI_Isend_c(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    }
    if (rank == 1) {
        MPI_Status status;
        MPI_Count seen;
        int narrow;
        MPI_Recv_c(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count_c(&status, MPI_BYTE, &seen);
        MPI_Get_count(&status, MPI_BYTE, &narrow);
        CHECK(seen == bytes && narrow == MPI_UNDEFINED, "%lld, %d", (long long)seen, narrow);
        for (MPI_Count i = 0; i < bytes; i += 4093) {
            CHECK(data[i] == (unsigned char)(i / 4093), "byte %lld", (long long)i);
        }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(data);
    MPI_Finalize();
    return 0;
}
