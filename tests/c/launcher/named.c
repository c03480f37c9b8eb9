/* A program that is started by its own name: says which rank it is, and what it was given. With `again` rank 0 starts it
 * once more, as a program of its own: that is alone. With `fail` the last rank ends with 7. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d, given '%s'\n", rank, size, argc > 1 ? argv[1] : "");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "read") == 0 && rank == 0) {
        char line[80];
        if (fgets(line, sizeof line, stdin)) printf("read %s", line);
    }
    if (argc > 1 && strcmp(argv[1], "again") == 0 && rank == 0) {
        char command[4096];
        snprintf(command, sizeof command, "'%s' inner", argv[0]);
        if (system(command) != 0) return 1;
    }
    MPI_Finalize();
    return argc > 1 && strcmp(argv[1], "fail") == 0 && rank == size - 1 ? 7 : 0;
}
