/* Ranks that pass different lengths to one collective, which the standard forbids: where they meet in shared memory, or in
   the same algorithm by messages, those that can see it say so, nobody hangs, and the next operation works. */
#include "coll.h"

static char *data, *result;
enum { MOST = 300000 };

static int truncated(int code, const char *part, int must_name)
{
    char text[MPI_MAX_ERROR_STRING];
    int class_, length;
    if (code == MPI_SUCCESS) return 0;
    MPI_Error_class(code, &class_);
    MPI_Error_string(code, text, &length);
    CHECK(class_ == MPI_ERR_TRUNCATE, "class %d: %s", class_, text);
    CHECK(!must_name || strstr(text, part), "`%s` does not name `%s`", text, part);
    return 1;
}

/* What comes next goes well. */
static void goes_on(void)
{
    int sum = 0, told = rank == size - 1 ? 7 : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * (size - 1) / 2, "the sum is %d", sum);
    OK(MPI_Bcast(&told, 1, MPI_INT, size - 1, MPI_COMM_WORLD));
    CHECK(told == 7, "%d was broadcast", told);
}

static void bcasts(int root, int brought, int expected)
{
    char both[64];
    MPI_Datatype gaps;
    doing = "MPI_Bcast";
    snprintf(both, sizeof both, "passes %d bytes, this one %d", brought, expected);
    memset(data, rank == root ? 1 : 2, MOST);
    int code = MPI_Bcast(data, rank == root ? brought : expected, MPI_BYTE, root, MPI_COMM_WORLD);
    /* Who expects nothing waits for nobody, and sees nothing; nor does a root that fills no buffer, or has one other rank. */
    int blind = rank == root ? brought <= 28672 || size == 2 : expected == 0;
    CHECK(blind ? code == MPI_SUCCESS : truncated(code, both, rank != root), "%d for %d bytes", brought, expected);
    for (int i = 0; rank != root && i < MOST; i++) CHECK(data[i] == 2, "byte %d was written", i);
    goes_on();

    MPI_Type_vector(2, 1, 2, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    snprintf(both, sizeof both, "passes %d bytes, this one %d", brought / 2 * 2, expected / 2 * 2);
    code = MPI_Bcast(data, (rank == root ? brought : expected) / 2, gaps, root, MPI_COMM_WORLD);
    CHECK(blind || brought / 2 == expected / 2 ? code == MPI_SUCCESS : truncated(code, both, rank != root),
          "%d for %d bytes with gaps", brought, expected);
    MPI_Type_free(&gaps);
    goes_on();
}

/* One rank brings `odd` elements, all the others `even`. */
static void reductions(int who, int odd, int even)
{
    int count = rank == who ? odd : even;
    doing = "MPI_Allreduce";
    int code = MPI_Allreduce(data, result, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    /* With few ranks everybody sees everybody. */
    CHECK(count == 0 ? code == MPI_SUCCESS : truncated(code, "this one", 1), "%d and %d elements", odd, even);
    goes_on();
    doing = "MPI_Reduce";
    code = MPI_Reduce(data, result, count, MPI_INT, MPI_MAX, who, MPI_COMM_WORLD);
    CHECK(rank != who || count == 0 || truncated(code, "this one", 1), "%d and %d elements", odd, even);
    goes_on();
}

/* Messages tell only that there is too much. */
static void messages(void)
{
    int n = rank == 0 ? 20 : 10, code;
    doing = "MPI_Gather";
    code = MPI_Gather(data, n, MPI_INT, result, 10, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(rank != 0 || truncated(code, "80 bytes", 1), "the root's block does not fit");
    goes_on();
    code = MPI_Gather(data, 30 - n, MPI_INT, result, 10, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(rank != 0 || truncated(code, "80 bytes", 1), "a block is too long");
    goes_on();
    doing = "MPI_Alltoall";
    code = MPI_Alltoall(data, n, MPI_INT, result, 10, MPI_INT, MPI_COMM_WORLD);
    CHECK(size > 15 || truncated(code, "80 bytes", 1), "rank 0's blocks are too long");
    goes_on();
    doing = "MPI_Allgather";
    code = MPI_Allgather(data, n, MPI_INT, result, 10, MPI_INT, MPI_COMM_WORLD);
    CHECK(rank != 0 || truncated(code, "80 bytes", 1), "rank 0's block is too long");
    goes_on();
    doing = "MPI_Ibcast";
    MPI_Request request;
    OK(MPI_Ibcast(data, n, MPI_INT, 0, MPI_COMM_WORLD, &request));
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Rank 1 has it from the root, the others what those before them had room for. */
    CHECK(rank != 1 || truncated(code, "has 80 bytes", 1), "the root's message is too long");
    goes_on();
}

/* Where a rank has passed on what it got, those behind it see it too. */
static void shorter(void)
{
    MPI_Request request;
    int here = rank == 0, code;
    for (int more = 0; more < 2; more++) {
        int n = here == more ? 20 : 10;
        doing = "MPI_Ibcast";
        OK(MPI_Ibcast(data, n, MPI_INT, 0, MPI_COMM_WORLD, &request));
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(here || truncated(code, "all ranks have to pass the same", 1), "%d elements", n);
        goes_on();
        doing = "MPI_Ireduce";
        OK(MPI_Ireduce(data, result, n, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD, &request));
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(!here || truncated(code, "all ranks have to pass the same", 1), "%d elements", n);
        goes_on();
        doing = "MPI_Iallreduce";
        OK(MPI_Iallreduce(data, result, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request));
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(truncated(code, "all ranks have to pass the same", 1), "%d elements", n);
        goes_on();
        doing = "MPI_Scatter";
        code = MPI_Scatter(data, 15, MPI_INT, result, n, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(truncated(code, "the same", 1), "%d elements", n);
        goes_on();
        doing = "MPI_Allgather";
        code = MPI_Allgather(data, here ? n : 15, MPI_INT, result, 15, MPI_INT, MPI_COMM_WORLD);
        CHECK(truncated(code, "the same", 1), "%d elements", n);
        goes_on();
    }
}

/* Rows of operations on shared memory: rank 1 expects less of the last rank than all others, and so a shorter row, or one as
 * long. In their slots stands what longer rows have left there. */
static void rows(int expected)
{
    enum { SHORT = 1000, LONG = 200000, TURNS = 70 };
    int counts[32], places[32], code;
    doing = "MPI_Allgatherv";
    if (size > 10) return;
    for (int i = 0; i < size; i++) {
        counts[i] = i == size - 1 ? LONG : SHORT;
        places[i] = i * SHORT;
    }
    for (int i = 0; i < TURNS; i++)
        OK(MPI_Allgatherv(data, counts[rank], MPI_BYTE, result, counts, places, MPI_BYTE, MPI_COMM_WORLD));
    if (rank == 1 && size > 2) counts[size - 1] = expected;
    code = MPI_Allgatherv(data, counts[rank], MPI_BYTE, result, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    CHECK(size == 2 ? code == MPI_SUCCESS : truncated(code, "the same", 1), "the last rank's length differs");
    goes_on();
}

/* A refused call is as if it had not been made: with better arguments it meets those of the others. */
static void repeated(void)
{
    int *numbers = (int *)result, mine = rank, code;
    doing = "MPI_Gather";
    if (rank == 0) {
        code = MPI_Gather(numbers, 1, MPI_INT, numbers, 1, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(code != MPI_SUCCESS, "one buffer for both");
    }
    OK(MPI_Gather(&mine, 1, MPI_INT, numbers, 1, MPI_INT, 0, MPI_COMM_WORLD));
    for (int i = 0; rank == 0 && i < size; i++) CHECK(numbers[i] == i, "block %d has %d", i, numbers[i]);
    goes_on();
}

/* The last rank brings another length than it expects of itself, in long blocks; the memory may be read in place. */
static void own_blocks(char *given, char *room)
{
    int mine = rank == size - 1 ? 9000 : 10000;
    doing = "MPI_Allgather of long blocks";
    int code = MPI_Allgather(given, mine, MPI_BYTE, room, 10000, MPI_BYTE, MPI_COMM_WORLD);
    CHECK(truncated(code, "the same", 1), "nothing was seen");
    goes_on();
    doing = "MPI_Alltoall of long blocks";
    code = MPI_Alltoall(given, mine, MPI_BYTE, room, 10000, MPI_BYTE, MPI_COMM_WORLD);
    CHECK(truncated(code, "the same", 1), "nothing was seen");
    goes_on();
    OK(MPI_Allgather(given, 10000, MPI_BYTE, room, 10000, MPI_BYTE, MPI_COMM_WORLD));
    OK(MPI_Alltoall(given, 10000, MPI_BYTE, room, 10000, MPI_BYTE, MPI_COMM_WORLD));
    goes_on();
}

static void own_long_blocks(void)
{
    char *shown, *room;
    OK(MPI_Alloc_mem(10000 * size, MPI_INFO_NULL, &shown));
    OK(MPI_Alloc_mem(10000 * size, MPI_INFO_NULL, &room));
    for (int again = 0; again < 3; again++) {
        own_blocks(data, result);
        own_blocks(shown, room);
    }
    OK(MPI_Free_mem(shown));
    OK(MPI_Free_mem(room));
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 2, 56, 58, 2048, 28672, 28674, 40000, 72767, MOST};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    begin(&argc, &argv);
    data = calloc(MOST, 64), result = calloc(MOST, 64);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* Before anything has gone well, so that the first operation that does finds the ranks in step. */
    messages();
    shorter();
    repeated();
    own_long_blocks();
    rows(1000);
    rows(199996);
    for (int i = 0; i < LENGTHS; i++) {
        for (int j = 0; j < LENGTHS; j++) {
            if (i == j) continue;
            /* A root that has one other rank sends what is long, and whoever expects nothing takes nothing. */
            if (size == 2 && lengths[i] > 28672 && lengths[j] == 0) continue;
            bcasts((i + j) % size, lengths[i], lengths[j]);
            reductions((i + j) % size, lengths[i], lengths[j]);
        }
    }
    MPI_Finalize();
    return 0;
}
