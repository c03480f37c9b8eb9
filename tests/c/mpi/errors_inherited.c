/* The handlers of objects that the program gave none: that of MPI_COMM_SELF or MPI_COMM_WORLD, whenever it was set; the
 * initial one of an object that was given it stays. With an argument the last word is the one that ends the job. */
#include "check.h"

static int class_of(int code)
{
    int class_ = -1;
    OK(MPI_Error_class(code, &class_));
    return class_;
}

int main(int argc, char **argv)
{
    MPI_Comm before, twice;
    MPI_Win win;
    MPI_Errhandler handler;
    int value = 0;
    check_begin(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &before));
    OK(MPI_Comm_dup(before, &twice));
    OK(MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, before, &win));
    OK(MPI_Comm_get_errhandler(before, &handler));
    CHECK(handler == MPI_ERRORS_ARE_FATAL);
    if (argc > 1)
        OK(MPI_Comm_set_errhandler(twice, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, check_size, 0, before)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Put(&value, 1, MPI_INT, check_size, 0, 1, MPI_INT, win)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, check_size, 0, twice)) == MPI_ERR_RANK);
    /* What is made now has the handler of what it is made from. */
    OK(MPI_Comm_free(&twice));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twice));
    OK(MPI_Comm_get_errhandler(twice, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&twice));
    OK(MPI_Comm_free(&before));
    return check_end();
}
