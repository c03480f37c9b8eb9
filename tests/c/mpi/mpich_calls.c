/* Calls through the MPICH ABI: what is converted on the way in comes out as it must, and the program's functions get this
 * ABI's own values. */
#include "check.h"

static void messages(void)
{
    int to = (check_rank + 1) % check_size, from = (check_rank + check_size - 1) % check_size;
    int out = check_rank, in = -7, count, flag;
    MPI_Status status = {1, 2, 3, 4, 5};
    OK(MPI_Sendrecv(&out, 1, MPI_INT, to, 11, &in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    CHECK(in == from && status.MPI_SOURCE == from && status.MPI_TAG == 11 && status.MPI_ERROR == 5);
    CHECK(status.count_lo == 4 && status.count_hi_and_cancelled == 0);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 1);
    OK(MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Send(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Status_set_elements_x(&status, MPI_INT, 1LL << 40));
    CHECK(status.count_lo == 0 && status.count_hi_and_cancelled == 1 << 11);
    OK(MPI_Status_set_cancelled(&status, 1));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag && (status.count_hi_and_cancelled & 1));
}

static void requests(void)
{
    enum { MANY = 70 };
    int to = (check_rank + 1) % check_size, from = (check_rank + check_size - 1) % check_size;
    int out[MANY], in[MANY], indices[2 * MANY], done = 0, some;
    MPI_Request all[2 * MANY];
    MPI_Status statuses[2 * MANY];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            out[i] = i * 3;
            OK(MPI_Irecv(&in[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, &all[i]));
            OK(MPI_Isend(&out[i], 1, MPI_INT, to, i, MPI_COMM_WORLD, &all[MANY + i]));
        }
        if (round == 0) {
            memset(statuses, 0x11, sizeof statuses);
            OK(MPI_Waitall(2 * MANY, all, statuses));
            for (int i = 0; i < 2 * MANY; i++)
                CHECK(statuses[i].MPI_ERROR == MPI_SUCCESS);
            for (int i = 0; i < MANY; i++)
                CHECK(statuses[i].MPI_TAG == i && statuses[i].MPI_SOURCE == from && statuses[i].count_lo == 4);
        } else {
            for (; done < 2 * MANY; done += some)
                OK(MPI_Waitsome(2 * MANY, all, &some, indices, MPI_STATUSES_IGNORE));
        }
        for (int i = 0; i < 2 * MANY; i++)
            CHECK(all[i] == MPI_REQUEST_NULL && (i >= MANY || in[i] == 3 * i));
    }
    OK(MPI_Waitany(1, all, &some, statuses));
    CHECK(some == MPI_UNDEFINED && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE);
}

static MPI_Datatype pair;
static int seen_types;

static void add_pairs(void *in, void *inout, int *length, MPI_Datatype *type)
{
    CHECK(*type == pair || *type == MPI_INT);
    seen_types |= *type == pair ? 1 : 2;
    for (int i = 0; i < *length * (*type == pair ? 2 : 1); i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void collectives(void)
{
    int one[2] = {1, check_rank}, sum[2], *all = malloc(check_size * sizeof *all), total = 0;
    MPI_Op op;
    for (int i = 0; i < check_size; i++)
        total += i;
    OK(MPI_Allreduce(MPI_IN_PLACE, one, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(one[0] == check_size && one[1] == total);
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Op_create(add_pairs, 1, &op));
    one[0] = 1;
    one[1] = check_rank;
    OK(MPI_Allreduce(one, sum, 1, pair, op, MPI_COMM_WORLD));
    CHECK(sum[0] == check_size && sum[1] == total);
    OK(MPI_Reduce_local(one, sum, 2, MPI_INT, op));
    CHECK(sum[0] == check_size + 1 && (seen_types & 2));
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    OK(MPI_Type_free(&pair));
    CHECK(pair == MPI_DATATYPE_NULL);
    for (int i = 0; i < check_size; i++)
        all[i] = i == check_rank ? i : -1;
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < check_size; i++)
        CHECK(all[i] == i);
    free(all);
}

static void every_type(void)
{
    int n = check_size, *counts = malloc(n * sizeof *counts), *places = malloc(n * sizeof *places);
    int *out = malloc(n * sizeof *out), *in = malloc(n * sizeof *in);
    MPI_Datatype *types = malloc(n * sizeof *types);
    MPI_Request request;
    for (int i = 0; i < n; i++) {
        counts[i] = (i + check_rank) % 2 ? 1 : 4;
        places[i] = i * 4;
        out[i] = check_rank * 100 + i;
        in[i] = -1;
        types[i] = counts[i] == 1 ? MPI_INT : MPI_BYTE;
    }
    OK(MPI_Alltoallw(out, counts, places, types, in, counts, places, types, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++)
        CHECK(in[i] == i * 100 + check_rank);
    memset(in, 0, n * sizeof *in);
    OK(MPI_Ialltoallw(out, counts, places, types, in, counts, places, types, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++)
        CHECK(in[i] == i * 100 + check_rank);
    free(counts); free(places); free(out); free(in); free(types);
}

static int key, copies, deletes, refuse;

static int copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copied, int *flag)
{
    CHECK(comm == MPI_COMM_SELF && keyval == key && extra == &copies);
    copies++;
    *(void **)copied = (char *)value + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)value;
    CHECK((comm == MPI_COMM_SELF || comm < 0) && keyval == key && extra == &copies);
    deletes++;
    return refuse ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

static void attributes(void)
{
    MPI_Comm dup;
    char *value;
    int flag, *number, dup_key, place;
    OK(MPI_Comm_create_keyval(copy, drop, &key, &copies));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &place));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, dup_key, &flag));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    OK(MPI_Comm_get_attr(dup, key, &value, &flag));
    CHECK(flag && value == (char *)&place + 1 && copies == 1);
    OK(MPI_Comm_get_attr(dup, dup_key, &value, &flag));
    CHECK(flag && (int *)value == &flag);
    refuse = 1;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_delete_attr(MPI_COMM_SELF, key) == MPI_ERR_TRUNCATE);
    refuse = 0;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
    OK(MPI_Comm_free(&dup));
    CHECK(deletes == 3 && dup == MPI_COMM_NULL);
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &number, &flag));
    CHECK(flag && *number >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &number, &flag));
    CHECK(flag && *number == MPI_ANY_SOURCE);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &number, &flag));
    CHECK(flag && *number == MPI_PROC_NULL);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &number, &flag));
    CHECK(flag && *number >= MPI_ERR_LASTCODE);
}

static MPI_Comm failed_on;
static int failed_with;

static void note(MPI_Comm *comm, int *code, ...)
{
    failed_on = *comm;
    failed_with = *code;
}

static void errors(void)
{
    MPI_Errhandler handler, got;
    MPI_Comm dup;
    char text[MPI_MAX_ERROR_STRING];
    int class, code, length, value = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_create_errhandler(note, &handler));
    OK(MPI_Comm_set_errhandler(dup, handler));
    CHECK(MPI_Send(&value, 1, MPI_INT, check_size, 0, dup) == MPI_ERR_RANK);
    CHECK(failed_on == dup && failed_with == MPI_ERR_RANK);
    CHECK(MPI_Send(&value, 1, MPI_INT, -4, 0, dup) == MPI_ERR_RANK);
    CHECK(MPI_Send(&value, 1, MPI_INT, 0, -2, dup) == MPI_ERR_TAG);
    CHECK(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, dup) == MPI_ERR_TYPE);
    CHECK(MPI_Send(&value, 1, (MPI_Datatype)MPI_SUM, 0, 0, dup) == MPI_ERR_TYPE);
    CHECK(MPI_Bcast(&value, 1, MPI_INT, check_size, dup) == MPI_ERR_ROOT);
    /* Counts of messages in parts are large in every ABI: none of their bits is lost. */
    MPI_Request request;
    CHECK(MPI_Psend_init(&value, 4, 1LL << 62, MPI_BYTE, 0, 0, dup, MPI_INFO_NULL, &request) == MPI_ERR_COUNT);
    CHECK(MPI_Precv_init(&value, 4, 1LL << 62, MPI_BYTE, 0, 0, dup, MPI_INFO_NULL, &request) == MPI_ERR_COUNT);
    OK(MPI_Comm_get_errhandler(dup, &got));
    OK(MPI_Errhandler_free(&got));
    CHECK(got == MPI_ERRHANDLER_NULL);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_rank((MPI_Comm)0x12345, &value) == MPI_ERR_COMM);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    CHECK(class > MPI_ERR_LASTCODE && code > class);
    OK(MPI_Add_error_string(code, "the tank is empty"));
    OK(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "the tank is empty") == 0 && length == (int)strlen(text));
    OK(MPI_Error_class(code, &value));
    CHECK(value == class);
    OK(MPI_Error_class(MPI_ERR_TRUNCATE, &value));
    CHECK(value == MPI_ERR_TRUNCATE);
    OK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
    CHECK(strstr(text, "MPI_ERR_TRUNCATE") != NULL);
    OK(MPI_Error_class(MPI_T_ERR_MEMORY, &value));
    CHECK(value == MPI_T_ERR_MEMORY);
    OK(MPI_Error_string(MPI_T_ERR_PVAR_NO_ATOMIC, text, &length));
    CHECK(strstr(text, "MPI_T_ERR_PVAR_NO_ATOMIC: ") == text);
}

static void objects(void)
{
    MPI_Comm dup, grid, node;
    MPI_Group world, first;
    int result, kind, dims[1] = {check_size}, open[1] = {0}, left, right, ranks[2] = {0, MPI_PROC_NULL}, found[2];
    int degrees[3], level, zero = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, dup, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, open, 0, &grid));
    OK(MPI_Topo_test(grid, &kind));
    CHECK(kind == MPI_CART);
    OK(MPI_Cart_shift(grid, 0, 1, &left, &right));
    CHECK(left == (check_rank ? check_rank - 1 : MPI_PROC_NULL));
    CHECK(right == (check_rank + 1 < check_size ? check_rank + 1 : MPI_PROC_NULL));
    OK(MPI_Comm_free(&grid));
    OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
    CHECK(kind == MPI_UNDEFINED);
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &check_rank, MPI_UNWEIGHTED, 1, &check_rank, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &grid));
    OK(MPI_Dist_graph_neighbors_count(grid, &degrees[0], &degrees[1], &degrees[2]));
    CHECK(degrees[0] == 1 && degrees[1] == 1 && degrees[2] == 0);
    OK(MPI_Comm_free(&grid));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_free(&node));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &node));
    CHECK(node == MPI_COMM_NULL);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &zero, &first));
    OK(MPI_Group_translate_ranks(world, 2, ranks, first, found));
    CHECK(found[0] == 0 && found[1] == MPI_PROC_NULL);
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&world));
    OK(MPI_Query_thread(&level));
    CHECK(level == MPI_THREAD_SINGLE);
}

static void datatypes(void)
{
    int sizes[2] = {4, 5}, sub[2] = {2, 3}, starts[2] = {1, 1}, integers[16], n[4];
    int distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    int procs[2] = {1, 1}, size;
    MPI_Aint addresses[2], extent;
    MPI_Datatype made, types[2], parts[2] = {MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_FORTRAN, MPI_INT, &made));
    OK(MPI_Type_get_envelope(made, &n[0], &n[1], &n[2], &n[3]));
    CHECK(n[0] == 8 && n[2] == 1 && n[3] == MPI_COMBINER_SUBARRAY);
    OK(MPI_Type_get_contents(made, n[0], n[1], n[2], integers, addresses, types));
    CHECK(integers[0] == 2 && integers[7] == MPI_ORDER_FORTRAN && types[0] == MPI_INT);
    OK(MPI_Type_free(&made));
    OK(MPI_Type_create_darray(1, 0, 2, sizes, distribs, dargs, procs, MPI_ORDER_C, MPI_INT, &made));
    OK(MPI_Type_get_envelope(made, &n[0], &n[1], &n[2], &n[3]));
    CHECK(n[0] == 12 && n[3] == MPI_COMBINER_DARRAY);
    OK(MPI_Type_get_contents(made, n[0], n[1], n[2], integers, addresses, types));
    CHECK(integers[5] == MPI_DISTRIBUTE_BLOCK && integers[6] == MPI_DISTRIBUTE_CYCLIC);
    CHECK(integers[7] == MPI_DISTRIBUTE_DFLT_DARG && integers[8] == 2 && integers[11] == MPI_ORDER_C);
    OK(MPI_Type_free(&made));
    /* A block of 56, which is the number of an order: 0..56 and 112..168 of 224. */
    sizes[0] = 224;
    dargs[0] = 56;
    procs[0] = 2;
    distribs[0] = MPI_DISTRIBUTE_CYCLIC;
    OK(MPI_Type_create_darray(2, 0, 1, sizes, distribs, dargs, procs, MPI_ORDER_C, MPI_INT, &made));
    OK(MPI_Type_get_true_extent(made, &addresses[0], &extent));
    CHECK(addresses[0] == 0 && extent == 168 * (MPI_Aint)sizeof(int));
    OK(MPI_Type_get_contents(made, 8, 0, 1, integers, addresses, types));
    CHECK(integers[4] == MPI_DISTRIBUTE_CYCLIC && integers[5] == 56);
    OK(MPI_Type_free(&made));
    dargs[0] = 18;
    OK(MPI_Type_create_darray(2, 0, 1, sizes, distribs, dargs, procs, MPI_ORDER_C, MPI_INT, &made));
    OK(MPI_Type_get_contents(made, 8, 0, 1, integers, addresses, types));
    CHECK(integers[5] == 18);
    OK(MPI_Type_free(&made));
    sub[0] = sub[1] = 1;
    addresses[0] = 0;
    addresses[1] = 8;
    OK(MPI_Type_create_struct(2, sub, addresses, parts, &made));
    OK(MPI_Type_size(made, &size));
    CHECK(size == 12);
    OK(MPI_Type_free(&made));
    /* Names that MPI 3.0 removed. */
    OK(MPI_Type_struct(2, sub, addresses, parts, &made));
    OK(MPI_Type_extent(made, &extent));
    CHECK(extent == 16);
    OK(MPI_Type_ub(made, &extent));
    CHECK(extent == 16);
    OK(MPI_Type_free(&made));
    OK(MPI_Address(&size, &extent));
    CHECK(extent == (MPI_Aint)&size);
    OK(MPI_Type_size(MPI_LONG_DOUBLE_INT, &size));
    CHECK(size == (int)(sizeof(long double) + sizeof(int)));
}

static int queried, freed;

static int query(void *extra, MPI_Status *status)
{
    CHECK(extra == &queried);
    queried++;
    OK(MPI_Status_set_elements(status, MPI_INT, 3));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = 42;
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    (void)extra;
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void generalized(void)
{
    MPI_Request request;
    MPI_Status status;
    int count;
    OK(MPI_Grequest_start(query, release, cancel, &queried, &request));
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3 && queried == 1 && freed == 1 && status.MPI_TAG == 42 && status.MPI_SOURCE == MPI_PROC_NULL);
    CHECK(request == MPI_REQUEST_NULL);
}

/* Handles must not be those of objects that are gone, nor ever one of the predefined. */
static void many_handles(void)
{
    MPI_Request before = MPI_REQUEST_NULL, request;
    int value;
    for (int i = 0; i < 400; i++) {
        OK(MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
        CHECK(request != MPI_REQUEST_NULL && request != before);
        before = request;
        OK(MPI_Request_free(&request));
        CHECK(request == MPI_REQUEST_NULL);
    }
}

static void buffers(void)
{
    void *address;
    int size;
    unsigned short terms[2] = {0x4000, 0x4200}; /* 2 and 3 */
    char room[1024];
    MPI_Datatype half = (MPI_Datatype)0x4c000246; /* MPIX_C_FLOAT16, a real number of two bytes */
    OK(MPI_Buffer_attach(room, sizeof room));
    OK(MPI_Buffer_detach(&address, &size));
    CHECK(address == room && size == sizeof room);
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Buffer_detach(&address, &size));
    CHECK(address == MPI_BUFFER_AUTOMATIC);
    OK(MPI_Type_size(half, &size));
    CHECK(size == 2);
    MPI_Datatype pair, back;
    MPI_Aint none;
    int two, length;
    OK(MPI_Type_contiguous(2, half, &pair));
    OK(MPI_Type_get_contents(pair, 1, 0, 1, &two, &none, &back));
    CHECK(two == 2 && back == half);
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_get_name(half, room, &length));
    CHECK(strcmp(room, "MPIX_C_FLOAT16") == 0);
    OK(MPI_Reduce_local(&terms[0], &terms[1], 1, half, MPI_SUM));
    CHECK(terms[1] == 0x4500);
}

static void fortran(void)
{
    MPI_Fint raw[MPI_F_STATUS_SIZE];
    MPI_Status status = {8, 0, 3, 4, 0}, back;
    int length, major, minor;
    char name[MPI_MAX_PROCESSOR_NAME];
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    /* They are functions besides. */
    MPI_Fint (*convert)(MPI_Comm) = MPI_Comm_c2f;
    CHECK((PMPI_Comm_f2c)(convert(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    OK(MPI_Status_c2f(&status, raw));
    CHECK(raw[MPI_F_SOURCE] == 3 && raw[MPI_F_TAG] == 4);
    OK(MPI_Status_f2c(raw, &back));
    CHECK(memcmp(&status, &back, sizeof back) == 0);
    CHECK(MPI_File_c2f(MPI_FILE_NULL) == 0 && MPI_File_f2c(0) == MPI_FILE_NULL);
    OK(MPI_Get_processor_name(name, &length));
    CHECK(length == (int)strlen(name) && length < MPI_MAX_PROCESSOR_NAME);
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK(major == -1 && minor == -1);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    messages();
    requests();
    collectives();
    every_type();
    attributes();
    errors();
    objects();
    datatypes();
    generalized();
    many_handles();
    buffers();
    fortran();
    return check_end();
}
