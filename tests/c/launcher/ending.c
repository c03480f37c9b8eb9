/* An MPI program whose rank 1 ends as the argument says; the others finish in order, or wait for it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const char *number = getenv("PMI_RANK");
    int rank, size, next = -1;

    if (!strcmp(how, "no-init") && number && !strcmp(number, "1"))
        return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 1 && !strcmp(how, "no-finalize"))
        _Exit(0);
    if (rank == 1 && !strcmp(how, "exit"))
        _Exit(9);
    if (rank == 1 && !strcmp(how, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 42);
    if (rank == 1 && !strcmp(how, "crash"))
        *(volatile int *)0 = 1;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &next, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d heard of %d\n", rank, size, next);
    MPI_Finalize();
    return rank == 1 && !strcmp(how, "late") ? 5 : 0;
}
