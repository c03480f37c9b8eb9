/* Spawns two of itself. When all have met, the first of the parents is killed by itself, and everybody else waits for a word of
   it: the parents in their world, or with the word `inter`, as the children, in what connects the two jobs. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char me[4096] = "";
    char *words[] = {argc > 1 ? argv[1] : 0, 0};
    int word = 0;
    MPI_Comm parent, inter;
    CHECK(readlink("/proc/self/exe", me, sizeof me - 1) > 0);
    check_begin(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL)
        OK(MPI_Comm_spawn(me, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    else
        inter = parent;
    OK(MPI_Barrier(inter));
    if (parent != MPI_COMM_NULL)
        MPI_Recv(&word, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    else if (check_rank == 0)
        raise(SIGKILL);
    else if (argc > 1)
        MPI_Barrier(inter);
    else
        MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return check_end();
}
