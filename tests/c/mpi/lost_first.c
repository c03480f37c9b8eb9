/* Rank 0 is killed by itself while rank 1 waits for it. */
#include "check.h"
#include <signal.h>

int main(int argc, char **argv)
{
    int word = 0;
    check_begin(&argc, &argv);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank == 0)
        raise(SIGKILL);
    MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return check_end();
}
