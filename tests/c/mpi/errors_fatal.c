/* Ends by an error that nobody handles; the argument says which. */
#include "check.h"

int main(int argc, char **argv)
{
    int value = 0;
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "early") == 0)
        return MPI_Barrier(MPI_COMM_WORLD);
    check_begin(&argc, &argv);
    if (strcmp(what, "rank") == 0)
        MPI_Send(&value, 1, MPI_INT, 7, 0, MPI_COMM_WORLD);
    if (strcmp(what, "port") == 0)
        MPI_Close_port("nowhere");
    if (strcmp(what, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 42);
    if (strcmp(what, "late") == 0) {
        MPI_Finalize();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return 0;
}
