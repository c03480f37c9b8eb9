/* Spawns two of itself. They stay until they are ended; with the word `code` they leave their parent, which ends well, and
   the second one fails. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    char me[4096] = "";
    char *words[] = {argc > 1 ? argv[1] : 0, 0};
    MPI_Comm parent, inter;
    CHECK(readlink("/proc/self/exe", me, sizeof me - 1) > 0);
    check_begin(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL)
        OK(MPI_Comm_spawn(me, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    else
        inter = parent;
    OK(MPI_Barrier(inter));
    if (argc < 2)
        for (;;)
            pause();
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Finalize());
    if (parent == MPI_COMM_NULL)
        return 0;
    /* The parent's job is over by then. */
    usleep(300000);
    if (check_rank == 1) {
        puts("a word of a child");
        fflush(stdout);
    }
    return check_rank == 1 ? 7 : 0;
}
