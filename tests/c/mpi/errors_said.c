/* What is said about wrong arguments: one line with the argument, its value, and what is allowed. */
#include "check.h"

static int failed;

/* The line has each of the words, which stand between bars. */
static void said(int line, int code, int class_, const char *words)
{
    char text[MPI_MAX_ERROR_STRING], word[80];
    int got = -1, length = -1, bad = code == MPI_SUCCESS;
    MPI_Error_class(code, &got);
    MPI_Error_string(code, text, &length);
    bad |= got != class_ || length != (int)strlen(text) || strchr(text, '\n') != NULL;
    for (const char *from = words; *from;) {
        int n = (int)strcspn(from, "|");
        snprintf(word, sizeof word, "%.*s", n, from);
        bad |= strstr(text, word) == NULL;
        from += n + (from[n] == '|');
    }
    if (bad) {
        fprintf(stderr, "line %d: class %d instead of %d: `%s` without `%s`\n", line, got, class_, text, words);
        failed = 1;
    }
}
#define SAYS(class_, words, call) said(__LINE__, (call), (class_), (words))

static int in[8], out[8];

/* What is said of the number behind the last rank. */
static void say_bound(char *bound, size_t room, const char *what, int size)
{
    const char *ranks = size == 1 ? "%s%d|has rank 0 only" : "%s%d|has ranks 0 to %d";
    snprintf(bound, room, ranks, what, size, size - 1);
}

static void point_to_point(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request, requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    int flag, size = check_size;
    char bound[64];
    say_bound(bound, sizeof bound, "rank ", size);
    SAYS(MPI_ERR_RANK, bound, MPI_Send(in, 1, MPI_INT, size, 0, world));
    SAYS(MPI_ERR_RANK, bound, MPI_Ssend(in, 1, MPI_INT, size, 0, world));
    SAYS(MPI_ERR_RANK, bound, MPI_Isend(in, 1, MPI_INT, size, 0, world, &request));
    SAYS(MPI_ERR_RANK, bound, MPI_Send_init(in, 1, MPI_INT, size, 0, world, &request));
    SAYS(MPI_ERR_RANK, bound, MPI_Recv(in, 1, MPI_INT, size, 0, world, &status));
    SAYS(MPI_ERR_RANK, bound, MPI_Probe(size, 0, world, &status));
    SAYS(MPI_ERR_RANK, bound, MPI_Iprobe(size, 0, world, &flag, &status));
    SAYS(MPI_ERR_RANK, bound, MPI_Sendrecv(in, 1, MPI_INT, size, 0, out, 1, MPI_INT, 0, 0, world, &status));
    /* Which of the two ranks, tags, counts, buffers and types it is. */
    SAYS(MPI_ERR_RANK, "dest: rank", MPI_Sendrecv(in, 1, MPI_INT, size, 0, out, 1, MPI_INT, 0, 0, world, &status));
    SAYS(MPI_ERR_RANK, "source: rank", MPI_Sendrecv(in, 1, MPI_INT, 0, 0, out, 1, MPI_INT, size, 0, world, &status));
    SAYS(MPI_ERR_RANK, "source: rank", MPI_Sendrecv_replace(in, 1, MPI_INT, 0, 0, size, 0, world, &status));
    SAYS(MPI_ERR_TAG, "sendtag: tag -5", MPI_Sendrecv(in, 1, MPI_INT, 0, -5, out, 1, MPI_INT, 0, 0, world, &status));
    SAYS(MPI_ERR_TAG, "recvtag: tag -5", MPI_Isendrecv(in, 1, MPI_INT, 0, 0, out, 1, MPI_INT, 0, -5, world, &request));
    SAYS(MPI_ERR_TAG, "sendtag: tag -5", MPI_Isendrecv_replace(in, 1, MPI_INT, 0, -5, 0, 0, world, &request));
    SAYS(MPI_ERR_COUNT, "sendcount: count -3", MPI_Sendrecv(in, -3, MPI_INT, 0, 0, out, 1, MPI_INT, 0, 0, world, &status));
    SAYS(MPI_ERR_COUNT, "recvcount: count -3", MPI_Sendrecv(in, 1, MPI_INT, 0, 0, out, -3, MPI_INT, 0, 0, world, &status));
    SAYS(MPI_ERR_COUNT, "count -3", MPI_Sendrecv_replace(in, -3, MPI_INT, 0, 0, 0, 0, world, &status));
    SAYS(MPI_ERR_BUFFER, "sendbuf: the buffer", MPI_Sendrecv(NULL, 1, MPI_INT, 0, 0, out, 1, MPI_INT, 0, 0, world, &status));
    SAYS(MPI_ERR_BUFFER, "recvbuf: the buffer", MPI_Sendrecv(in, 1, MPI_INT, 0, 0, NULL, 1, MPI_INT, 0, 0, world, &status));
    SAYS(MPI_ERR_TYPE, "datatype|null", MPI_Sendrecv_replace(in, 1, MPI_DATATYPE_NULL, 0, 0, 0, 0, world, &status));
    SAYS(MPI_ERR_TAG, "tag -5", MPI_Send(in, 1, MPI_INT, 0, -5, world));
    SAYS(MPI_ERR_TAG, "tag -5", MPI_Irecv(in, 1, MPI_INT, 0, -5, world, &request));
    SAYS(MPI_ERR_TAG, "tag -5|from 0 to 2147483647", MPI_Sendrecv(in, 1, MPI_INT, 0, 0, out, 1, MPI_INT, 0, -5, world, &status));
    SAYS(MPI_ERR_COUNT, "count -3", MPI_Send(in, -3, MPI_INT, 0, 0, world));
    SAYS(MPI_ERR_COUNT, "count -3", MPI_Bsend(in, -3, MPI_INT, 0, 0, world));
    SAYS(MPI_ERR_COUNT, "count -3", MPI_Recv_c(in, -3, MPI_INT, 0, 0, world, &status));
    SAYS(MPI_ERR_COUNT, "-3", MPI_Sendrecv(in, 1, MPI_INT, 0, 0, out, -3, MPI_INT, 0, 0, world, &status));
    SAYS(MPI_ERR_TYPE, "datatype|null", MPI_Send(in, 1, MPI_DATATYPE_NULL, 0, 0, world));
    SAYS(MPI_ERR_TYPE, "recvtype|null", MPI_Sendrecv(in, 1, MPI_INT, 0, 0, out, 1, MPI_DATATYPE_NULL, 0, 0, world, &status));
    SAYS(MPI_ERR_BUFFER, "null pointer|4 bytes", MPI_Send(NULL, 1, MPI_INT, 0, 0, world));
    SAYS(MPI_ERR_COMM, "comm|null", MPI_Send(in, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    SAYS(MPI_ERR_BUFFER, "no buffer is attached", MPI_Bsend(in, 1, MPI_INT, 0, 0, world));
    SAYS(MPI_ERR_ARG, "size -1", MPI_Buffer_attach(in, -1));
    SAYS(MPI_ERR_REQUEST, "request|null", MPI_Start(&requests[0]));
    SAYS(MPI_ERR_REQUEST, "request|null", MPI_Request_free(&requests[0]));
    SAYS(MPI_ERR_COUNT, "count -2", MPI_Waitall(-2, requests, MPI_STATUSES_IGNORE));
    SAYS(MPI_ERR_COUNT, "count -2", MPI_Testany(-2, requests, &flag, &flag, &status));
    /* A handle that was freed. */
    request = MPI_REQUEST_NULL;
    MPI_Recv_init(in, 1, MPI_INT, 0, 0, world, &request);
    requests[0] = request;
    MPI_Request_free(&request);
    SAYS(MPI_ERR_REQUEST, "request (0x|was freed or never made", MPI_Wait(&requests[0], &status));
}

static void collectives(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int counts[64], size = check_size, places[64] = {0};
    char bound[64];
    for (int i = 0; i < 64; i++)
        counts[i] = 1;
    counts[0] = -4;
    say_bound(bound, sizeof bound, "root ", size);
    SAYS(MPI_ERR_ROOT, bound, MPI_Bcast(in, 1, MPI_INT, size, world));
    SAYS(MPI_ERR_ROOT, bound, MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, size, world));
    SAYS(MPI_ERR_ROOT, bound, MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, size, world));
    SAYS(MPI_ERR_COUNT, "count|-1", MPI_Bcast(in, -1, MPI_INT, 0, world));
    SAYS(MPI_ERR_COUNT, "sendcount|-1", MPI_Allgather(in, -1, MPI_INT, out, 1, MPI_INT, world));
    SAYS(MPI_ERR_COUNT, "recvcounts[0]|-4", MPI_Allgatherv(in, 1, MPI_INT, out, counts, places, MPI_INT, world));
    SAYS(MPI_ERR_TYPE, "recvtype|null", MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, world));
    SAYS(MPI_ERR_OP, "op|null", MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, world));
    SAYS(MPI_ERR_OP, "BAND|DOUBLE", MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, world));
    SAYS(MPI_ERR_OP, "BAND|DOUBLE", MPI_Scan(in, out, 1, MPI_DOUBLE, MPI_BAND, world));
    SAYS(MPI_ERR_BUFFER, "sendbuf and recvbuf", MPI_Allreduce(in, in, 1, MPI_INT, MPI_SUM, world));
    SAYS(MPI_ERR_BUFFER, "null pointer", MPI_Bcast(NULL, 1, MPI_INT, 0, world));
    SAYS(MPI_ERR_COMM, "comm|null", MPI_Barrier(MPI_COMM_NULL));
    SAYS(MPI_ERR_TOPOLOGY, "no topology", MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, world));
}

/* A handle of another kind is no object of the kind that is asked for; the line says which call it was. */
static void other_kinds(void)
{
    MPI_Comm world = MPI_COMM_WORLD, comm;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info info;
    MPI_Group group;
    int flag;
    MPI_Comm_group(world, &group);
    MPI_Info_create(&info);
    SAYS(MPI_ERR_TYPE, "MPI_Send: |datatype", MPI_Send(in, 1, (MPI_Datatype)MPI_COMM_WORLD, 0, 0, world));
    SAYS(MPI_ERR_COMM, "MPI_Bcast: |comm", MPI_Bcast(in, 1, MPI_INT, 0, (MPI_Comm)MPI_INT));
    SAYS(MPI_ERR_COMM, "MPI_Comm_dup: |comm", MPI_Comm_dup((MPI_Comm)group, &comm));
    SAYS(MPI_ERR_OP, "MPI_Allreduce: |op", MPI_Allreduce(in, out, 1, MPI_INT, (MPI_Op)MPI_COMM_WORLD, world));
    SAYS(MPI_ERR_GROUP, "MPI_Group_size: |group", MPI_Group_size((MPI_Group)info, &flag));
    SAYS(MPI_ERR_INFO, "MPI_Info_get_nkeys: |info", MPI_Info_get_nkeys((MPI_Info)group, &flag));
    SAYS(MPI_ERR_WIN, "MPI_Win_fence: |win", MPI_Win_fence(0, (MPI_Win)world));
    SAYS(MPI_ERR_WIN, "MPI_Win_free: |win", MPI_Win_free(&win));
    SAYS(MPI_ERR_FILE, "MPI_File_sync: ", MPI_File_sync((MPI_File)world));
    MPI_Info_free(&info);
    MPI_Group_free(&group);
}

static void communicators(void)
{
    MPI_Comm world = MPI_COMM_WORLD, comm, freed;
    MPI_Group group, other;
    int size = check_size, wrong[1] = {size}, twice[2] = {0, 0}, range[1][3] = {{0, 5, 0}}, flag, key;
    char bound[64];
    say_bound(bound, sizeof bound, "", size);
    MPI_Comm_dup(world, &comm);
    freed = comm;
    MPI_Comm_free(&comm);
    SAYS(MPI_ERR_COMM, "comm (0x|was freed or never made", MPI_Barrier(freed));
    comm = MPI_COMM_WORLD;
    SAYS(MPI_ERR_COMM, "predefined", MPI_Comm_free(&comm));
    SAYS(MPI_ERR_COMM, "predefined", MPI_Comm_disconnect(&comm));
    SAYS(MPI_ERR_ARG, "color -7|MPI_UNDEFINED", MPI_Comm_split(world, -7, 0, &comm));
    SAYS(MPI_ERR_ARG, "split_type 9999", MPI_Comm_split_type(world, 9999, 0, MPI_INFO_NULL, &comm));
    SAYS(MPI_ERR_COMM, "comm (0x101)|intracommunicator", MPI_Comm_remote_size(world, &flag));
    SAYS(MPI_ERR_COMM, "comm (0x101)|intracommunicator", MPI_Intercomm_merge(world, 0, &comm));
    SAYS(MPI_ERR_RANK, "local_leader", MPI_Intercomm_create(world, size, world, 0, 0, &comm));
    MPI_Comm_group(world, &group);
    SAYS(MPI_ERR_RANK, bound, MPI_Group_incl(group, 1, wrong, &other));
    SAYS(MPI_ERR_RANK, "0", MPI_Group_incl(group, 2, twice, &other));
    SAYS(MPI_ERR_ARG, "stride|0", MPI_Group_range_incl(group, 1, range, &other));
    SAYS(MPI_ERR_ARG, "-1", MPI_Group_incl(group, -1, wrong, &other));
    MPI_Group_free(&group);
    SAYS(MPI_ERR_GROUP, "group|null", MPI_Group_rank(MPI_GROUP_NULL, &flag));
    SAYS(MPI_ERR_KEYVAL, "keyval", MPI_Comm_set_attr(world, MPI_KEYVAL_INVALID, in));
    key = MPI_TAG_UB;
    SAYS(MPI_ERR_KEYVAL, "keyval", MPI_Comm_set_attr(world, key, in));
    SAYS(MPI_ERR_ARG, "null pointer", MPI_Comm_set_name(world, NULL));
    SAYS(MPI_ERR_ERRHANDLER, "errhandler", MPI_Comm_set_errhandler(world, MPI_ERRHANDLER_NULL));
}

static void topologies(void)
{
    MPI_Comm world = MPI_COMM_WORLD, comm;
    int dims[2] = {check_size + 1, 2}, periods[2] = {0, 0}, fixed[2] = {-2, 0}, flag, index[1] = {0};
    char bound[64];
    snprintf(bound, sizeof bound, "dims [%d, 2]|%d", check_size + 1, check_size);
    SAYS(MPI_ERR_DIMS, bound, MPI_Cart_create(world, 2, dims, periods, 0, &comm));
    SAYS(MPI_ERR_ARG, "ndims -1", MPI_Cart_create(world, -1, dims, periods, 0, &comm));
    SAYS(MPI_ERR_DIMS, "dims holds -2", MPI_Dims_create(4, 2, fixed));
    SAYS(MPI_ERR_ARG, "nnodes|0", MPI_Dims_create(0, 2, dims));
    SAYS(MPI_ERR_TOPOLOGY, "topology", MPI_Cartdim_get(world, &flag));
    SAYS(MPI_ERR_TOPOLOGY, "topology", MPI_Graph_neighbors_count(world, 0, &flag));
    SAYS(MPI_ERR_ARG, "nnodes", MPI_Graph_create(world, -3, index, index, 0, &comm));
}

static void datatypes(void)
{
    MPI_Datatype type, freed;
    int lengths[2] = {1, -6}, sizes[1] = {4}, parts[1] = {9}, starts[1] = {0}, position = 0;
    MPI_Aint places[2] = {0, 0};
    MPI_Datatype types[2] = {MPI_INT, MPI_DATATYPE_NULL};
    SAYS(MPI_ERR_COUNT, "count|-1", MPI_Type_contiguous(-1, MPI_INT, &type));
    SAYS(MPI_ERR_TYPE, "oldtype|null", MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
    SAYS(MPI_ERR_ARG, "block length|-6", MPI_Type_vector(1, -6, 1, MPI_INT, &type));
    SAYS(MPI_ERR_ARG, "[1]|-6", MPI_Type_indexed(2, lengths, starts, MPI_INT, &type));
    lengths[1] = 1;
    SAYS(MPI_ERR_TYPE, "array_of_types|null", MPI_Type_create_struct(2, lengths, places, types, &type));
    SAYS(MPI_ERR_ARG, "9|4", MPI_Type_create_subarray(1, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
    parts[0] = 1;
    SAYS(MPI_ERR_ARG, "order|77", MPI_Type_create_subarray(1, sizes, parts, starts, 77, MPI_INT, &type));
    MPI_Type_contiguous(2, MPI_INT, &type);
    SAYS(MPI_ERR_TYPE, "not committed", MPI_Send(in, 1, type, 0, 0, MPI_COMM_WORLD));
    freed = type;
    MPI_Type_free(&type);
    SAYS(MPI_ERR_TYPE, "datatype (0x|was freed or never made", MPI_Send(in, 1, freed, 0, 0, MPI_COMM_WORLD));
    type = MPI_INT;
    SAYS(MPI_ERR_TYPE, "predefined", MPI_Type_free(&type));
    SAYS(MPI_ERR_TRUNCATE, "8|4", MPI_Pack(in, 2, MPI_INT, out, 4, &position, MPI_COMM_WORLD));
    SAYS(MPI_ERR_TRUNCATE, "8|4", MPI_Unpack(out, 4, &position, in, 2, MPI_INT, MPI_COMM_WORLD));
}

static void the_rest(void)
{
    MPI_Info info;
    MPI_Op op = MPI_SUM;
    char key[MPI_MAX_INFO_KEY + 2];
    int flag;
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = 0;
    MPI_Info_create(&info);
    SAYS(MPI_ERR_INFO_KEY, "key", MPI_Info_set(info, "", "value"));
    SAYS(MPI_ERR_INFO_KEY, "key", MPI_Info_set(info, key, "value"));
    SAYS(MPI_ERR_INFO_NOKEY, "key|missing", MPI_Info_delete(info, "missing"));
    SAYS(MPI_ERR_ARG, "n 3|has no keys", MPI_Info_get_nthkey(info, 3, key));
    MPI_Info_free(&info);
    SAYS(MPI_ERR_INFO, "info|null", MPI_Info_get_nkeys(MPI_INFO_NULL, &flag));
    SAYS(MPI_ERR_OP, "predefined", MPI_Op_free(&op));
    SAYS(MPI_ERR_ARG, "errorcode|123456789", MPI_Error_class(123456789, &flag));
    SAYS(MPI_ERR_ARG, "errorclass|5", MPI_Remove_error_class(5));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    point_to_point();
    collectives();
    other_kinds();
    communicators();
    topologies();
    datatypes();
    the_rest();
    CHECK(!failed);
    return check_end();
}
