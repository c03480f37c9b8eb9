/* Ranks that end while others wait for them in the second interface. */
#include "check.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int rank, size, got;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(how, "never opened") == 0) {
        /* The last rank never opens it. */
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank < size - 1)
            open_native(0);
        MPI_Finalize();
        if (rank == size - 1)
            return 0;
        long length = native.receive(size - 1, 1, &got, sizeof got);
        native.close();
        if (length == -1 && rank == 0)
            printf("ok\n");
        return length != -1;
    }
    open_native(0);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (rank != 0)
        check(native.send(0, 1, &rank, sizeof rank) == 0, "a send");
    for (int from = 1; rank == 0 && from < size; from++)
        check(native.receive(from, 1, &got, sizeof got) == sizeof got && got == from, "a message");
    if (strcmp(how, "killed") == 0 && rank == 0)
        kill(getpid(), SIGKILL);
    native.receive(0, 2, &got, sizeof got);
    for (;;)
        pause();
}
