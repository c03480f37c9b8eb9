/* What is said about wrong uses of partitioned communication, and that the operation goes on after it. */
#include "check.h"

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    handled += *comm == MPI_COMM_WORLD;
}

/* The call fails with this class, and the line has the words. */
static void refused(int line, int code, int class_, const char *words)
{
    char text[MPI_MAX_ERROR_STRING];
    int got = -1, length;
    MPI_Error_class(code, &got);
    MPI_Error_string(code, text, &length);
    if (code == MPI_SUCCESS || got != class_ || strstr(text, words) == NULL) {
        fprintf(stderr, "line %d: class %d instead of %d: `%s` without `%s`\n", line, got, class_, text, words);
        exit(99);
    }
}
#define REFUSED(class_, words, call) refused(__LINE__, (call), (class_), (words))

static int out[8], in[8];

static void making(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL;
    MPI_Request r;
    REFUSED(MPI_ERR_ARG, "partitions -1", MPI_Psend_init(out, -1, 1, MPI_INT, 0, 0, world, none, &r));
    REFUSED(MPI_ERR_ARG, "partitions -1", MPI_Precv_init(in, -1, 1, MPI_INT, 0, 0, world, none, &r));
    REFUSED(MPI_ERR_COUNT, "count -2", MPI_Psend_init(out, 2, -2, MPI_INT, 0, 0, world, none, &r));
    REFUSED(MPI_ERR_COUNT, "2^63-1", MPI_Psend_init(out, 4, INT64_MAX / 2, MPI_INT, 0, 0, world, none, &r));
    REFUSED(MPI_ERR_TYPE, "datatype", MPI_Psend_init(out, 2, 2, MPI_DATATYPE_NULL, 0, 0, world, none, &r));
    REFUSED(MPI_ERR_RANK, "rank -1", MPI_Precv_init(in, 2, 2, MPI_INT, MPI_ANY_SOURCE, 0, world, none, &r));
    REFUSED(MPI_ERR_TAG, "tag -2", MPI_Precv_init(in, 2, 2, MPI_INT, 0, MPI_ANY_TAG, world, none, &r));
    REFUSED(MPI_ERR_RANK, ", but MPI_COMM_WORLD has rank", MPI_Psend_init(out, 2, 2, MPI_INT, check_size, 0, world, none, &r));
    REFUSED(MPI_ERR_TAG, "tag -7", MPI_Psend_init(out, 2, 2, MPI_INT, 0, -7, world, none, &r));
    REFUSED(MPI_ERR_BUFFER, "null pointer", MPI_Psend_init(NULL, 2, 2, MPI_INT, 0, 0, world, none, &r));
    REFUSED(MPI_ERR_COMM, "null handle", MPI_Psend_init(out, 2, 2, MPI_INT, 0, 0, MPI_COMM_NULL, none, &r));
    REFUSED(MPI_ERR_INFO, "info", MPI_Psend_init(out, 2, 2, MPI_INT, 0, 0, world, (MPI_Info)0x7777, &r));
    REFUSED(MPI_ERR_ARG, "request is a null pointer", MPI_Psend_init(out, 2, 2, MPI_INT, 0, 0, world, none, NULL));
}

static void using(void)
{
    int me = check_rank, flag, twice[3] = {1, 0, 1}, high[1] = {4};
    MPI_Request send, receive, plain, none = MPI_REQUEST_NULL;
    OK(MPI_Psend_init(out, 4, 2, MPI_INT, me, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 2, 4, MPI_INT, me, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Send_init(out, 1, MPI_INT, me, 1, MPI_COMM_WORLD, &plain));
    REFUSED(MPI_ERR_REQUEST, "not active", MPI_Pready(0, send));
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    REFUSED(MPI_ERR_REQUEST, "active", MPI_Start(&send));
    REFUSED(MPI_ERR_ARG, "partition 4, but the request has partitions 0 to 3", MPI_Pready(4, send));
    REFUSED(MPI_ERR_ARG, "partition -1", MPI_Pready(-1, send));
    REFUSED(MPI_ERR_ARG, "partition 4, but the request has partitions 0 to 3", MPI_Pready_range(3, 4, send));
    REFUSED(MPI_ERR_ARG, "partition_low 2", MPI_Pready_range(2, 1, send));
    REFUSED(MPI_ERR_ARG, "holds 1 twice", MPI_Pready_list(3, twice, send));
    REFUSED(MPI_ERR_ARG, "partition 4", MPI_Pready_list(1, high, send));
    REFUSED(MPI_ERR_ARG, "length -1", MPI_Pready_list(-1, high, send));
    REFUSED(MPI_ERR_ARG, "null pointer", MPI_Pready_list(1, NULL, send));
    OK(MPI_Pready_list(0, NULL, send));
    REFUSED(MPI_ERR_REQUEST, "partitioned send", MPI_Pready(0, receive));
    REFUSED(MPI_ERR_REQUEST, "partitioned", MPI_Pready(0, plain));
    REFUSED(MPI_ERR_REQUEST, "null handle", MPI_Pready(0, none));
    REFUSED(MPI_ERR_REQUEST, "partitioned receive", MPI_Parrived(send, 0, &flag));
    REFUSED(MPI_ERR_REQUEST, "partitioned", MPI_Parrived(plain, 0, &flag));
    REFUSED(MPI_ERR_REQUEST, "null handle", MPI_Parrived(none, 0, &flag));
    REFUSED(MPI_ERR_ARG, "partition 2, but the request has partitions 0 to 1", MPI_Parrived(receive, 2, &flag));
    REFUSED(MPI_ERR_ARG, "flag is a null pointer", MPI_Parrived(receive, 0, NULL));
    REFUSED(MPI_ERR_REQUEST, "cannot be cancelled", MPI_Cancel(&send));
    /* None of what was refused was done in part. */
    for (int i = 0; i < 8; i++)
        out[i] = i + 1;
    OK(MPI_Pready(3, send));
    REFUSED(MPI_ERR_ARG, "partition 3 is ready already", MPI_Pready(3, send));
    REFUSED(MPI_ERR_ARG, "partition 3 is ready already", MPI_Pready_range(0, 3, send));
    REFUSED(MPI_ERR_REQUEST, "3 partitions are not ready", MPI_Request_free(&send));
    OK(MPI_Pready_range(0, 2, send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    for (int i = 0; i < 8; i++)
        CHECK(in[i] == i + 1);
    REFUSED(MPI_ERR_REQUEST, "not active", MPI_Pready(0, send));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    OK(MPI_Request_free(&plain));
}

/* More is sent than there is room for: an error of the receive, which keeps the beginning. */
static void too_long(void)
{
    int me = check_rank;
    MPI_Request send, receive;
    MPI_Status status;
    int count;
    memset(in, 0, sizeof in);
    OK(MPI_Psend_init(out, 4, 2, MPI_INT, me, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 1, 5, MPI_INT, me, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    OK(MPI_Pready_range(0, 3, send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    REFUSED(MPI_ERR_TRUNCATE, "4 partitions of 8 bytes", MPI_Wait(&receive, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 5 && in[4] == 5 && in[5] == 0);
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

/* Errors of an operation go to its communicator's handler. */
static void handlers(void)
{
    MPI_Errhandler errhandler;
    MPI_Request send, receive;
    OK(MPI_Psend_init(out, 1, 1, MPI_INT, check_rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 1, 1, MPI_INT, check_rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler));
    CHECK(MPI_Pready(0, send) != MPI_SUCCESS && handled == 1);
    CHECK(MPI_Parrived(receive, 1, &(int){0}) != MPI_SUCCESS && handled == 2);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&errhandler));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    making();
    using();
    too_long();
    handlers();
    return check_end();
}
