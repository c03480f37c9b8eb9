/* Collectives of all ranks, many of them, then a wait that does not end: the counters say who used the network. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum = 0, told, nothing;
    double many[512] = {0}, all[512];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 100; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != size * (size - 1) / 2) return 1;
        told = rank == 0 ? i : -1;
        MPI_Bcast(&told, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (told != i) return 2;
        MPI_Reduce(many, all, 512, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    }
    printf("done\n");
    fflush(stdout);
    MPI_Recv(&nothing, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
