/* A program that frees no communicators hears of it, in all members, and goes on when it has freed some. */
#include "check.h"

enum { MOST = 100000 };
static MPI_Comm made[MOST];

int main(int argc, char **argv)
{
    int many = 0, least, code = MPI_SUCCESS;
    check_begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    /* The first rank alone has more of them than the others. */
    if (check_rank == 0)
        for (; many < 10; many++)
            OK(MPI_Comm_dup(MPI_COMM_SELF, &made[many]));
    for (; many < MOST; many++)
        if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &made[many])) != MPI_SUCCESS)
            break;
    CHECK(code != MPI_SUCCESS && many > 30000);
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made[many]) != MPI_SUCCESS);
    OK(MPI_Comm_free(&made[--many]));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &made[many++]));
    OK(MPI_Allreduce(&many, &least, 1, MPI_INT, MPI_MIN, made[many - 1]));
    CHECK(many == least + (check_rank == 0 && check_size > 1 ? 10 : 0));
    while (many > 0)
        OK(MPI_Comm_free(&made[--many]));
    return check_end();
}
