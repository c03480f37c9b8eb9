/* A rank that joins, meets the others, and then does what its argument says. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int rank, size, mine, sum = 0, nothing;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(how, "pid") == 0)
        printf("%d\n", (int)getpid());
    else
        printf("rank %d of %d sum %d\n", rank, size, sum);
    fflush(stdout);
    if (strcmp(how, "child") == 0 && rank == 0) {
        /* What a rank starts is a program of its own. */
        if (system(argv[0]) != 0)
            return 3;
    }
    if (strcmp(how, "abort") == 0 && rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(how, "leave") == 0 && rank == size - 1)
        exit(0);
    if (strcmp(how, "abort") == 0 || strcmp(how, "leave") == 0 || strcmp(how, "pid") == 0)
        MPI_Recv(&nothing, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(how, "closed") == 0) {
        /* As some programs do with what they do not know. */
        for (int fd = 3; fd < 256; fd++)
            close(fd);
    }
    if (strcmp(how, "wait") == 0 || strcmp(how, "closed") == 0) {
        if (rank == 1)
            MPI_Recv(&nothing, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
