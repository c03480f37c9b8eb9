/* Several collectives in flight, in different orders, on several communicators, with other traffic beside them. */
#include "coll.h"

#define MANY 40

/* Calls MPI itself, which is allowed. */
static void slow_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int bytes;
    MPI_Type_size(*type, &bytes);
    CHECK(bytes == (int)sizeof(long), "the type has %d bytes", bytes);
    for (int i = 0; i < *count; i++) ((long *)inout)[i] += ((long *)in)[i];
}

/* All are started before any is waited for; completed by the last one first. */
static void many_at_once(MPI_Op op)
{
    static long in[MANY], out[MANY], data[MANY][50];
    static int all[MANY][64];
    MPI_Request requests[3 * MANY];
    doing = "many at once";
    for (int i = 0; i < MANY; i++) {
        in[i] = rank + i;
        for (int k = 0; k < 50; k++) data[i][k] = rank == i % size ? i * 100 + k : -1;
        OK(MPI_Iallreduce(&in[i], &out[i], 1, MPI_LONG, op, MPI_COMM_WORLD, &requests[3 * i]));
        OK(MPI_Ibcast(data[i], 50, MPI_LONG, i % size, MPI_COMM_WORLD, &requests[3 * i + 1]));
        static int mine[MANY];
        mine[i] = rank * 7 + i;
        OK(MPI_Iallgather(&mine[i], 1, MPI_INT, all[i], 1, MPI_INT, MPI_COMM_WORLD, &requests[3 * i + 2]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 3 * MANY - 1; i >= 0; i--) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < MANY; i++) {
        long want = (long)size * (size - 1) / 2 + (long)size * i;
        CHECK(out[i] == want, "sum %d is %ld, not %ld", i, out[i], want);
        for (int k = 0; k < 50; k++) CHECK(data[i][k] == i * 100 + k, "element %d of bcast %d is %ld", k, i, data[i][k]);
        for (int r = 0; r < size; r++) CHECK(all[i][r] == r * 7 + i, "rank %d's part of allgather %d is wrong", r, i);
    }
}

/* Persistent operations may be started in an order that differs between ranks. */
static void persistent_in_any_order(void)
{
    int in[3], out[3];
    MPI_Request requests[3];
    doing = "persistent in any order";
    for (int i = 0; i < 3; i++) {
        OK(MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]));
    }
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++) {
            int k = (i + rank + round) % 3;
            in[k] = 10 * k + round;
            OK(MPI_Start(&requests[k]));
        }
        OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        for (int k = 0; k < 3; k++) CHECK(out[k] == size * (10 * k + round), "sum %d is %d", k, out[k]);
    }
    /* All by one call. */
    for (int k = 0; k < 3; k++) in[k] = rank + k;
    OK(MPI_Startall(3, requests));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    for (int k = 0; k < 3; k++) CHECK(out[k] == size * (size - 1) / 2 + size * k, "sum %d is %d", k, out[k]);
    for (int k = 0; k < 3; k++) OK(MPI_Request_free(&requests[k]));
}

/* A rank that is late finds everything done by the others' progress or does it then. */
static void late_ranks(void)
{
    doing = "late ranks";
    for (int late = 0; late < size; late++) {
        MPI_Request request;
        int token = 0;
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
        if (rank == late) {
            for (int r = 0; r < size; r++) {
                if (r != late) OK(MPI_Recv(&token, 1, MPI_INT, r, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            }
        } else {
            OK(MPI_Send(&rank, 1, MPI_INT, late, 5, MPI_COMM_WORLD));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

/* Wildcard receives of the program never see the collectives' messages. */
static void beside_wildcards(void)
{
    doing = "beside wildcards";
    int token = rank, got = -1, sum = -1;
    MPI_Request receive, reduce;
    OK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive));
    OK(MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &reduce));
    OK(MPI_Wait(&reduce, MPI_STATUS_IGNORE));
    OK(MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    CHECK(got == (rank + size - 1) % size, "the receive got %d", got);
    CHECK(sum == size * (size - 1) / 2, "the sum is %d", sum);
}

/* Communicators do not disturb each other. */
static void on_parts(void)
{
    MPI_Comm half, twin;
    int low = 0, part, members;
    doing = "parts";
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
    OK(MPI_Comm_dup(half, &twin));
    MPI_Comm_rank(half, &part);
    MPI_Comm_size(half, &members);
    MPI_Request requests[3];
    int a = rank, sum_half = 0, sum_world = 0, sum_twin = 0;
    OK(MPI_Iallreduce(&a, &sum_half, 1, MPI_INT, MPI_SUM, half, &requests[0]));
    OK(MPI_Iallreduce(&a, &sum_world, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Iallreduce(&part, &sum_twin, 1, MPI_INT, MPI_MAX, twin, &requests[2]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    for (int r = rank % 2; r < size; r += 2) low += r;
    CHECK(sum_half == low, "the half's sum is %d, not %d", sum_half, low);
    CHECK(sum_world == size * (size - 1) / 2, "the world's sum is %d", sum_world);
    CHECK(sum_twin == members - 1, "the largest rank is %d of %d", sum_twin, members);
    int root_value = part == 0 ? rank : -1;
    OK(MPI_Bcast(&root_value, 1, MPI_INT, 0, half));
    int highest = size - 1 - (size - 1 - rank % 2) % 2;
    CHECK(root_value == highest, "rank 0 of the half is %d, not %d", root_value, highest);
    /* Freed while an operation is under way: it ends all the same. */
    OK(MPI_Ibarrier(twin, &requests[0]));
    OK(MPI_Comm_free(&twin));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&half));
    OK(MPI_Allreduce(&a, &sum_world, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
    CHECK(sum_world == rank, "alone the sum is %d", sum_world);
}

/* The operation and the type are freed while they are still in use. */
static void freed_meanwhile(void)
{
    MPI_Op op;
    MPI_Datatype type;
    long in[4] = {rank, 1, 2, 3}, out[4];
    MPI_Request request;
    doing = "freed meanwhile";
    OK(MPI_Op_create(slow_sum, 1, &op));
    OK(MPI_Type_contiguous(1, MPI_LONG, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Iallreduce(in, out, 4, type, op, MPI_COMM_WORLD, &request));
    OK(MPI_Op_free(&op));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&type));
    CHECK(out[0] == (long)size * (size - 1) / 2 && out[3] == 3L * size, "the sums are %ld and %ld", out[0], out[3]);
}

int main(int argc, char **argv)
{
    MPI_Op op;
    begin(&argc, &argv);
    OK(MPI_Op_create(slow_sum, 1, &op));
    for (int i = 0; i < 10; i++) {
        many_at_once(MPI_SUM);
        many_at_once(op);
    }
    OK(MPI_Op_free(&op));
    persistent_in_any_order();
    late_ranks();
    beside_wildcards();
    on_parts();
    freed_meanwhile();
    MPI_Finalize();
    return 0;
}
