/* What a tool that defines MPI_Send sees: the program's own calls, and no others. */
#include "check.h"

int main(int argc, char **argv)
{
    int value = 1, sum = 0, sends = -1;
    check_begin(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        MPI_Request request;
        OK(MPI_Irecv(&sum, 1, MPI_INT, check_rank, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Send(&value, 1, MPI_INT, check_rank, 0, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    /* The library's own messages are not the program's. */
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm));
    OK(MPI_Comm_free(&comm));
    CHECK(sum == check_size);
    /* The program's direct call goes past the tool. */
    MPI_Request request;
    OK(MPI_Irecv(&sum, 1, MPI_INT, check_rank, 0, MPI_COMM_WORLD, &request));
    OK(PMPI_Send(&value, 1, MPI_INT, check_rank, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* Answered by the tool; the library's own does nothing. */
    MPI_Pcontrol(7, &sends);
    CHECK(sends == 3);
    return check_end();
}
