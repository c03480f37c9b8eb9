/* Corners that programs run into: no partner and no type, grids that cannot be, what is known before the start, buffers of
   communicators that are gone, kinds of hardware. */
#include "check.h"

static void nobody_needs_no_type(void)
{
    MPI_Status status;
    MPI_Request request;
    int size;
    MPI_Comm world = MPI_COMM_WORLD;
    OK(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, world));
    OK(MPI_Ssend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, world));
    OK(MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, world, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, world, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, world, &request));
    status.MPI_SOURCE = 5;
    OK(MPI_Waitall(1, &request, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Recv_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, world, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Request_free(&request));
    OK(MPI_Sendrecv(&size, 1, MPI_INT, check_rank, 3, NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 3, world, &status));
    OK(MPI_Recv(&size, 1, MPI_INT, check_rank, 3, world, &status));
    OK(MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, check_rank, 4, NULL, 0, MPI_DATATYPE_NULL, check_rank, 4, world, &status));
    CHECK(status.MPI_SOURCE == check_rank);
    CHECK(MPI_Send(&size, 1, MPI_DATATYPE_NULL, check_rank, 1, world) != MPI_SUCCESS);
    CHECK(MPI_Recv(&size, -1, MPI_INT, MPI_PROC_NULL, 1, world, &status) != MPI_SUCCESS);
}

static void grids(void)
{
    int dims[3] = {0, 0, 0}, large[2] = {check_size + 1, check_size + 1}, periods[2] = {0, 0};
    MPI_Comm grid = MPI_COMM_SELF;
    OK(MPI_Dims_create(7488, 3, dims));
    CHECK(dims[0] == 26 && dims[1] == 18 && dims[2] == 16);
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 2, large, periods, 0, &grid) != MPI_SUCCESS && grid == MPI_COMM_NULL);
}

/* The value of a key, or of none. */
static void value(MPI_Info info, const char *key, char *out)
{
    int flag, length = MPI_MAX_INFO_VAL;
    OK(MPI_Info_get_string(info, key, &length, out, &flag));
    if (!flag) strcpy(out, "-");
}

static void same(MPI_Info a, MPI_Info b)
{
    static const char *const keys[] = {"command", "argv", "maxprocs", "host", "arch", "wdir", "thread_level"};
    static char first[MPI_MAX_INFO_VAL], second[MPI_MAX_INFO_VAL];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        value(a, keys[i], first), value(b, keys[i], second);
        CHECK(!strcmp(first, second));
    }
    value(a, "command", first);
    CHECK(strstr(first, "corners"));
}

/* What waits in the buffer of a communicator that is freed arrives, and the next communicator has no buffer. */
static void buffers_go_with_their_communicator(void)
{
    static char room[2][1 << 20], data[400000];
    MPI_Comm first, freed, second;
    void *at;
    int size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &first));
    OK(MPI_Comm_attach_buffer(first, room[0], sizeof room[0]));
    int to = (check_rank + 1) % check_size;
    MPI_Request request;
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, to, 1, first));
    OK(MPI_Irecv(data, sizeof data, MPI_BYTE, MPI_ANY_SOURCE, 1, first, &request));
    freed = first;
    OK(MPI_Comm_free(&first));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &second));
    /* Handles come round: here the one whose communicator had a buffer. */
    for (int i = 0; second != freed; i++) {
        CHECK(i < 1000);
        OK(MPI_Comm_free(&second));
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &second));
    }
    at = data;
    OK(MPI_Comm_detach_buffer(second, &at, &size));
    CHECK(size == 0);
    OK(MPI_Comm_attach_buffer(second, room[1], sizeof room[1]));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, to, 1, second));
    OK(MPI_Irecv(data, sizeof data, MPI_BYTE, MPI_ANY_SOURCE, 1, second, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_disconnect(&second));
}

static void kinds_of_hardware(void)
{
    MPI_Info info;
    MPI_Comm part;
    int size;
    OK(MPI_Info_create(&info));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &part));
    CHECK(part == MPI_COMM_NULL);
    const int guided[] = {MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED};
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, guided[i], 0, MPI_INFO_NULL, &part));
        CHECK(part == MPI_COMM_NULL);
        OK(MPI_Info_set(info, "mpi_hw_resource_type", "a kind that nobody has"));
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, guided[i], 0, info, &part));
        CHECK(part == MPI_COMM_NULL);
        OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, guided[i], 0, info, &part));
        CHECK(part != MPI_COMM_NULL);
        OK(MPI_Comm_size(part, &size));
        CHECK(size == check_size);
        OK(MPI_Comm_free(&part));
    }
    /* Not everybody has to be in one. */
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, check_rank ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, 0, MPI_INFO_NULL, &part));
    CHECK((part == MPI_COMM_NULL) == (check_rank == 0));
    if (check_rank) OK(MPI_Comm_free(&part));
    part = MPI_COMM_SELF;
    CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, 2, 0, MPI_INFO_NULL, &part) != MPI_SUCCESS);
    OK(MPI_Info_free(&info));
}

/* With MPI_BOTTOM the addresses stand in the types: the buffers are two although both are called the same. */
static void bottom_is_no_buffer(void)
{
    int n = check_size, *out = malloc(n * sizeof *out), *in = malloc(n * sizeof *in), zero = 0, one = 1;
    int *ones = malloc(n * sizeof *ones), *zeros = malloc(n * sizeof *zeros);
    MPI_Datatype *from = malloc(n * sizeof *from), *to = malloc(n * sizeof *to);
    MPI_Aint at;
    for (int i = 0; i < n; i++) {
        out[i] = 10 * check_rank + i;
        in[i] = -1;
        ones[i] = one;
        zeros[i] = zero;
        OK(MPI_Get_address(&out[i], &at));
        OK(MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &from[i]));
        OK(MPI_Type_commit(&from[i]));
        OK(MPI_Get_address(&in[i], &at));
        OK(MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &to[i]));
        OK(MPI_Type_commit(&to[i]));
    }
    OK(MPI_Alltoallw(MPI_BOTTOM, ones, zeros, from, MPI_BOTTOM, ones, zeros, to, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++) {
        CHECK(in[i] == 10 * i + check_rank);
        OK(MPI_Type_free(&from[i]));
        OK(MPI_Type_free(&to[i]));
    }
    free(out); free(in); free(ones); free(zeros); free(from); free(to);
}

/* Both sides of an intercommunicator meet again where they share memory. */
static void both_sides_share_memory(void)
{
    MPI_Comm mine, between, near;
    int side = check_rank % 2, inter, far;
    if (check_size < 2)
        return;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &mine));
    OK(MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - side, 0, &between));
    OK(MPI_Comm_split_type(between, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
    OK(MPI_Comm_test_inter(near, &inter));
    OK(MPI_Comm_remote_size(near, &far));
    CHECK(inter && far == (side ? (check_size + 1) / 2 : check_size / 2));
    OK(MPI_Comm_free(&near));
    OK(MPI_Comm_split_type(between, MPI_UNDEFINED, 0, MPI_INFO_NULL, &near));
    CHECK(near == MPI_COMM_NULL);
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&mine));
}

/* What was waited for by nobody has no error; a handler may be set for a duplicate that is not finished. */
static void nothing_and_not_yet(void)
{
    MPI_Request none = MPI_REQUEST_NULL, request;
    MPI_Status status;
    MPI_Errhandler got;
    MPI_Comm dup;
    int index, flag, class, code;
    status.MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Request_get_status_any(1, &none, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED && status.MPI_ERROR == MPI_SUCCESS && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request));
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_ABORT));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_get_errhandler(dup, &got));
    CHECK(got == MPI_ERRORS_ABORT);
    OK(MPI_Comm_free(&dup));
    /* A class or code goes after its string. */
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "text"));
    CHECK(MPI_Remove_error_code(code) == MPI_ERR_ARG);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
}

int main(int argc, char **argv)
{
    MPI_Info before, between;
    OK(MPI_Info_create_env(argc, argv, &before));
    check_begin(&argc, &argv);
    OK(MPI_Info_create_env(argc, argv, &between));
    same(before, between);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    nobody_needs_no_type();
    grids();
    buffers_go_with_their_communicator();
    kinds_of_hardware();
    bottom_is_no_buffer();
    both_sides_share_memory();
    nothing_and_not_yet();
    check_end();
    MPI_Info after;
    OK(MPI_Info_create_env(argc, argv, &after));
    same(before, after);
    return 0;
}
