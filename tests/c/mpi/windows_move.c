/* Put, get and the accumulate family on windows of every flavor, under every kind of synchronisation, with plain and
 * derived datatypes: every value is checked. */
#include "check.h"

enum { FLAVORS = 5, COUNT = 300 };

/* Ints of an allocated block before the window over it begins. */
enum { BEFORE = 3 };

struct memory {
    MPI_Win win;
    int *base;
    /* Displacement of the first element as an origin gives it, for each target. */
    MPI_Aint *first;
};

static struct memory make(int flavor, int count)
{
    struct memory m;
    MPI_Aint bytes = (MPI_Aint)count * (MPI_Aint)sizeof(int), mine = 0;
    m.first = calloc((size_t)check_size, sizeof(MPI_Aint));
    if (flavor == 0) {
        OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &m.base, &m.win));
    } else if (flavor == 1) {
        m.base = malloc((size_t)bytes);
        OK(MPI_Win_create(m.base, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &m.win));
    } else if (flavor == 2) {
        m.base = malloc((size_t)bytes);
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &m.win));
        OK(MPI_Win_attach(m.win, m.base, bytes));
        OK(MPI_Get_address(m.base, &mine));
        OK(MPI_Allgather(&mine, 1, MPI_AINT, m.first, 1, MPI_AINT, MPI_COMM_WORLD));
    } else if (flavor == 3) {
        int *block;
        OK(MPI_Alloc_mem(bytes + BEFORE * (MPI_Aint)sizeof(int), MPI_INFO_NULL, &block));
        memset(block, 0x55, BEFORE * sizeof(int));
        m.base = block + BEFORE;
        OK(MPI_Win_create(m.base, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &m.win));
    } else {
        OK(MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &m.base, &m.win));
    }
    for (int i = 0; i < count; i++)
        m.base[i] = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return m;
}

static void unmake(struct memory *m, int flavor)
{
    if (flavor == 2)
        OK(MPI_Win_detach(m->win, m->base));
    OK(MPI_Win_free(&m->win));
    CHECK(m->win == MPI_WIN_NULL);
    if (flavor == 1 || flavor == 2)
        free(m->base);
    if (flavor == 3) {
        for (int i = 1; i <= BEFORE; i++)
            CHECK(m->base[-i] == 0x55555555);
        OK(MPI_Free_mem(m->base - BEFORE));
    }
    free(m->first);
}

/* Displacement of element `index` at `target`: dynamic windows count in bytes. */
static MPI_Aint place(const struct memory *m, int flavor, int target, int index)
{
    return flavor == 2 ? m->first[target] + (MPI_Aint)index * (MPI_Aint)sizeof(int) : index;
}

static void fences(struct memory *m, int flavor)
{
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    int out[COUNT], in[COUNT];
    for (int i = 0; i < COUNT; i++)
        out[i] = check_rank * 1000 + i, in[i] = -2;
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, m->win));
    OK(MPI_Put(out, COUNT, MPI_INT, right, place(m, flavor, right, 0), COUNT, MPI_INT, m->win));
    OK(MPI_Win_fence(0, m->win));
    for (int i = 0; i < COUNT; i++)
        CHECK(m->base[i] == left * 1000 + i);
    OK(MPI_Win_fence(0, m->win));
    OK(MPI_Get(in, COUNT, MPI_INT, right, place(m, flavor, right, 0), COUNT, MPI_INT, m->win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, m->win));
    for (int i = 0; i < COUNT; i++)
        CHECK(in[i] == out[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Every other element of the origin to every third of the target, and back. */
static void strided(struct memory *m, int flavor)
{
    enum { N = 40 };
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    int out[2 * N], in[2 * N];
    MPI_Datatype second, third;
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &second));
    OK(MPI_Type_vector(N, 1, 3, MPI_INT, &third));
    OK(MPI_Type_commit(&second));
    OK(MPI_Type_commit(&third));
    for (int i = 0; i < COUNT; i++)
        m->base[i] = -1;
    for (int i = 0; i < 2 * N; i++)
        out[i] = check_rank * 1000 + i, in[i] = -2;
    OK(MPI_Win_fence(0, m->win));
    OK(MPI_Put(out, 1, second, right, place(m, flavor, right, 2), 1, third, m->win));
    OK(MPI_Win_fence(0, m->win));
    for (int i = 0; i < COUNT; i++) {
        int hit = i >= 2 && (i - 2) % 3 == 0 && (i - 2) / 3 < N;
        CHECK(m->base[i] == (hit ? left * 1000 + 2 * ((i - 2) / 3) : -1));
    }
    OK(MPI_Win_fence(0, m->win));
    OK(MPI_Get(in, 1, second, right, place(m, flavor, right, 2), 1, third, m->win));
    OK(MPI_Win_fence(0, m->win));
    for (int i = 0; i < 2 * N; i++)
        CHECK(in[i] == (i % 2 == 0 ? out[i] : -2));
    /* Everybody adds to the same strided elements of rank 0. */
    OK(MPI_Accumulate(out, 1, second, 0, place(m, flavor, 0, 0), 1, third, MPI_SUM, m->win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, m->win));
    if (check_rank == 0)
        for (int i = 0; i < N; i++) {
            int sum = 0;
            for (int r = 0; r < check_size; r++)
                sum += r * 1000 + 2 * i;
            CHECK(m->base[3 * i] == sum - 1);
        }
    OK(MPI_Type_free(&second));
    OK(MPI_Type_free(&third));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void post_start(struct memory *m, int flavor)
{
    MPI_Group world, others;
    int flag = 0, value = 500 + check_rank;
    OK(MPI_Win_get_group(m->win, &world));
    OK(MPI_Group_excl(world, 1, &check_rank, &others));
    for (int i = 0; i < check_size; i++)
        m->base[i] = -1;
    for (int round = 0; round < 5; round++) {
        OK(MPI_Win_post(others, 0, m->win));
        OK(MPI_Win_start(others, 0, m->win));
        for (int r = 0; r < check_size; r++)
            if (r != check_rank)
                OK(MPI_Put(&value, 1, MPI_INT, r, place(m, flavor, r, check_rank), 1, MPI_INT, m->win));
        OK(MPI_Win_complete(m->win));
        if (round % 2 == 0)
            OK(MPI_Win_wait(m->win));
        else
            for (flag = 0; !flag;)
                OK(MPI_Win_test(m->win, &flag));
        for (int r = 0; r < check_size; r++)
            CHECK(m->base[r] == (r == check_rank ? -1 : 500 + r + round));
        value++;
    }
    OK(MPI_Group_free(&world));
    if (others != MPI_GROUP_EMPTY)
        OK(MPI_Group_free(&others));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A counter at rank 0 that everybody increments, in each way that is atomic. */
static void counters(struct memory *m, int flavor)
{
    enum { ROUNDS = 1000 };
    int one = 1, got = -1, seen = -1;
    if (check_rank == 0)
        m->base[0] = m->base[1] = m->base[2] = m->base[3] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, m->win));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Fetch_and_op(&one, &got, MPI_INT, 0, place(m, flavor, 0, 0), MPI_SUM, m->win));
        OK(MPI_Win_flush(0, m->win));
        CHECK(got > seen && got < ROUNDS * check_size);
        seen = got;
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, place(m, flavor, 0, 1), 1, MPI_INT, MPI_SUM, m->win));
        for (;;) {
            int next, before;
            OK(MPI_Fetch_and_op(NULL, &got, MPI_INT, 0, place(m, flavor, 0, 2), MPI_NO_OP, m->win));
            OK(MPI_Win_flush(0, m->win));
            next = got + 1;
            OK(MPI_Compare_and_swap(&next, &got, &before, MPI_INT, 0, place(m, flavor, 0, 2), m->win));
            OK(MPI_Win_flush(0, m->win));
            if (before == got)
                break;
        }
    }
    OK(MPI_Win_unlock_all(m->win));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, m->win));
        OK(MPI_Get(&got, 1, MPI_INT, 0, place(m, flavor, 0, 3), 1, MPI_INT, m->win));
        OK(MPI_Win_flush(0, m->win));
        got++;
        OK(MPI_Put(&got, 1, MPI_INT, 0, place(m, flavor, 0, 3), 1, MPI_INT, m->win));
        OK(MPI_Win_unlock(0, m->win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, m->win));
    int all[4] = { -1, -1, -1, -1 };
    OK(MPI_Get(all, 4, MPI_INT, 0, place(m, flavor, 0, 0), 4, MPI_INT, m->win));
    OK(MPI_Win_unlock(0, m->win));
    for (int i = 0; i < 4; i++)
        CHECK(all[i] == ROUNDS * check_size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void requests(struct memory *m, int flavor)
{
    int right = (check_rank + 1) % check_size;
    int out[10], in[10], old[10], sum[10];
    MPI_Request request[3];
    for (int i = 0; i < 10; i++)
        out[i] = check_rank + i, in[i] = old[i] = -7, sum[i] = 100;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, m->win));
    OK(MPI_Rput(out, 10, MPI_INT, right, place(m, flavor, right, 0), 10, MPI_INT, m->win, &request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(right, m->win));
    OK(MPI_Raccumulate(sum, 10, MPI_INT, right, place(m, flavor, right, 0), 10, MPI_INT, MPI_SUM, m->win, &request[0]));
    OK(MPI_Rget_accumulate(NULL, 0, MPI_INT, old, 10, MPI_INT, right, place(m, flavor, right, 0), 10, MPI_INT,
                           MPI_NO_OP, m->win, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush_all(m->win));
    OK(MPI_Rget(in, 10, MPI_INT, right, place(m, flavor, right, 0), 10, MPI_INT, m->win, &request[2]));
    OK(MPI_Wait(&request[2], MPI_STATUS_IGNORE));
    CHECK(request[2] == MPI_REQUEST_NULL);
    OK(MPI_Rget(in, 10, MPI_INT, MPI_PROC_NULL, 0, 10, MPI_INT, m->win, &request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    for (int i = 0; i < 10; i++)
        CHECK(old[i] == check_rank + i + 100 && in[i] == old[i]);
    OK(MPI_Win_flush_local_all(m->win));
    OK(MPI_Win_unlock_all(m->win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Longer than any message, and with nothing in it. */
static void long_ones(int flavor)
{
    enum { LONG = 500000 };
    struct memory m = make(flavor, LONG);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    int *buffer = malloc(LONG * sizeof(int));
    for (int i = 0; i < LONG; i++)
        buffer[i] = check_rank + i;
    OK(MPI_Win_fence(0, m.win));
    OK(MPI_Put(buffer, LONG, MPI_INT, right, place(&m, flavor, right, 0), LONG, MPI_INT, m.win));
    OK(MPI_Put(buffer, 0, MPI_INT, right, place(&m, flavor, right, 0), 0, MPI_INT, m.win));
    OK(MPI_Win_fence(0, m.win));
    OK(MPI_Accumulate(buffer, LONG, MPI_INT, right, place(&m, flavor, right, 0), LONG, MPI_INT, MPI_SUM, m.win));
    OK(MPI_Win_fence(0, m.win));
    for (int i = 0; i < LONG; i++)
        CHECK(m.base[i] == 2 * (left + i));
    memset(buffer, 0, LONG * sizeof(int));
    OK(MPI_Win_fence(0, m.win));
    OK(MPI_Get(buffer, LONG, MPI_INT, right, place(&m, flavor, right, 0), LONG, MPI_INT, m.win));
    OK(MPI_Win_fence(0, m.win));
    for (int i = 0; i < LONG; i++)
        CHECK(buffer[i] == 2 * (check_rank + i));
    free(buffer);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unmake(&m, flavor);
}

/* One after the other looks at its memory, and calls nothing else, until its neighbour has put something there. */
static void looked_at(struct memory *m, int flavor)
{
    volatile int *mine = m->base;
    int mark = 4711 + flavor;
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, m->win));
    *mine = -1;
    OK(MPI_Win_sync(m->win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    while (check_rank > 0 && *mine != mark)
        OK(MPI_Win_sync(m->win));
    if (check_rank + 1 < check_size) {
        int right = check_rank + 1;
        OK(MPI_Accumulate(&mark, 1, MPI_INT, right, place(m, flavor, right, 0), 1, MPI_INT, MPI_REPLACE, m->win));
        OK(MPI_Win_flush(right, m->win));
    }
    OK(MPI_Win_unlock_all(m->win));
}

/* Pairs have gaps in memory. */
static void pairs(void)
{
    struct pair {
        double value;
        int index;
    } *base, mine = { check_rank % 3, check_rank }, old = { -1, -1 };
    MPI_Win win;
    OK(MPI_Win_allocate(2 * sizeof(struct pair), sizeof(struct pair), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    base[0].value = base[1].value = -1, base[0].index = base[1].index = 77;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, 0, 1, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, &old, 1, MPI_DOUBLE_INT, 0, 1, 1, MPI_DOUBLE_INT, MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    int best = check_size < 3 ? check_size - 1 : 2;
    CHECK(old.value == best && old.index == best);
    if (check_rank == 0)
        CHECK(base[0].value == -1 && base[0].index == 77);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    int flavors = FLAVORS;
    MPI_Comm near;
    int together;
    check_begin(&argc, &argv);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
    OK(MPI_Comm_size(near, &together));
    OK(MPI_Comm_free(&near));
    if (together < check_size)
        flavors = FLAVORS - 1; /* Memory cannot be shared between hosts. */
    for (int flavor = 0; flavor < flavors; flavor++) {
        struct memory m = make(flavor, COUNT);
        fences(&m, flavor);
        strided(&m, flavor);
        post_start(&m, flavor);
        counters(&m, flavor);
        requests(&m, flavor);
        looked_at(&m, flavor);
        unmake(&m, flavor);
        long_ones(flavor);
    }
    pairs();
    OK(MPI_Finalize());
    return 0;
}
