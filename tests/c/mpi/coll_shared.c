/* Random rows of the collectives that run on shared memory, some members far ahead of others, on several communicators.
   Arguments: seed, steps, threads, memory. The same seed gives the same row; every result is compared with local
   computation. The memory is plain, shown (MPI_Alloc_mem, which others can read in place), now this and now that (mixed),
   or shown while the last rank can open nothing (blind). */
#include "coll.h"
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

/* 7 and 3584 longs fill a slot and a buffer; what is around them is where the ways part. */
static const int counts[] = {0, 1, 2, 6, 7, 8, 33, 255, 256, 257, 1000, 3583, 3584, 3585, 3591, 7200};
#define COUNTS (int)(sizeof counts / sizeof *counts)
#define MOST 7200
/* Of all members together: more than two buffers of a small team. */
#define ALL 40000
#define COMMS 4

typedef struct {
    MPI_Comm comm;
    int rank, size, first, stride; /* world rank of member m: first + m * stride */
} Team;

typedef struct {
    uint64_t common, own; /* random states: alike on all ranks, and not */
    int threads, id, steps, step;
    Team teams[COMMS];
    long *in, *out, *plain, *shown, wide[2 * MOST];
    int lengths[64], places[64], others[64], theirs[64];
    MPI_Datatype spread[COUNTS];
} Worker;

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *state ^ (*state >> 29);
    return (uint32_t)(x >> 21);
}

/* Mostly none; sometimes long enough that the others lie down. */
static void delay(Worker *w)
{
    uint32_t kind = next(&w->own) % 24, length = next(&w->own);
    if (kind == 0) usleep(length % 4000);
    if (kind == 1) for (volatile uint32_t i = 0; i < length % 200000; i++) {}
}

static long element(const Worker *w, int world_rank, int i)
{
    return (long)w->step * 1000003 + world_rank * 7919 + (long)i * (world_rank + 1) + w->id;
}

static long sum(const Worker *w, const Team *t, int i)
{
    long total = 0;
    for (int m = 0; m < t->size; m++) total += element(w, t->first + m * t->stride, i);
    return total;
}

static int me(const Team *t) { return t->first + t->rank * t->stride; }

static void check(const Worker *w, const Team *t, int i, long got, long want)
{
    CHECK(got == want, "thread %d, step %d, %d members: element %d is %ld, not %ld", w->id, w->step, t->size, i, got, want);
}

static void fill_in(Worker *w, const Team *t, int count)
{
    for (int i = 0; i < count; i++) w->in[i] = element(w, me(t), i);
    for (int i = 0; i < count; i++) w->out[i] = -77;
}

static void barrier(Worker *w, const Team *t)
{
    double entered = MPI_Wtime(), last;
    OK(MPI_Barrier(t->comm));
    double left = MPI_Wtime();
    if (next(&w->common) % 2) return;
    OK(MPI_Allreduce(&entered, &last, 1, MPI_DOUBLE, MPI_MAX, t->comm));
    CHECK(last <= left, "thread %d, step %d: out of a barrier before the last one came", w->id, w->step);
}

static void bcast(Worker *w, const Team *t, int kind, int root)
{
    int count = counts[kind], scattered = next(&w->common) % 4 == 0 && (t->rank + w->step) % 2;
    int from = t->first + root * t->stride;
    fill_in(w, t, count);
    if (scattered) {
        for (int i = 0; i < count; i++) w->wide[2 * i] = w->in[i], w->wide[2 * i + 1] = -5;
        OK(MPI_Bcast(w->wide, 1, w->spread[kind], root, t->comm));
        for (int i = 0; i < count; i++) w->in[i] = w->wide[2 * i];
        for (int i = 0; i < count; i++) CHECK(w->wide[2 * i + 1] == -5, "step %d: hole %d is filled", w->step, i);
    } else {
        OK(MPI_Bcast(w->in, count, MPI_LONG, root, t->comm));
    }
    for (int i = 0; i < count; i++) check(w, t, i, w->in[i], element(w, from, i));
}

static void reduce(Worker *w, const Team *t, int count, int root)
{
    int in_place = next(&w->common) % 2;
    fill_in(w, t, count);
    if (t->rank == root && in_place) {
        memcpy(w->out, w->in, (size_t)count * sizeof(long));
        OK(MPI_Reduce(MPI_IN_PLACE, w->out, count, MPI_LONG, MPI_SUM, root, t->comm));
    } else {
        OK(MPI_Reduce(w->in, t->rank == root ? w->out : NULL, count, MPI_LONG, MPI_SUM, root, t->comm));
    }
    for (int i = 0; i < count; i++) {
        check(w, t, i, w->in[i], element(w, me(t), i));
        if (t->rank == root) check(w, t, i, w->out[i], sum(w, t, i));
    }
}

static void allreduce(Worker *w, const Team *t, int count)
{
    fill_in(w, t, count);
    if (next(&w->own) % 2) {
        memcpy(w->out, w->in, (size_t)count * sizeof(long));
        OK(MPI_Allreduce(MPI_IN_PLACE, w->out, count, MPI_LONG, MPI_SUM, t->comm));
    } else {
        OK(MPI_Allreduce(w->in, w->out, count, MPI_LONG, MPI_SUM, t->comm));
    }
    for (int i = 0; i < count; i++) check(w, t, i, w->out[i], sum(w, t, i));
}

/* Element i of what one member has for another. */
static long dealt(const Worker *w, const Team *t, int from, int to, int i)
{
    return element(w, t->first + from * t->stride, i) + (long)(to + 1) * 1000000007;
}

/* Blocks of count elements for all members, as many as fit; uneven ones are in descending places, some empty. */
static int block_of(const Team *t, int kind)
{
    static const int blocks[] = {0, 1, 2, 5, 7, 40, 300, 1000, 2500, 20000};
    int block = blocks[kind % 10];
    return block * t->size > ALL / 2 ? ALL / 2 / t->size : block;
}

static int length_of(const Team *t, int block, int from, int to)
{
    return (from + 2 * to + block) % 3 == 0 ? 0 : block - (from * 7 + to) % t->size * (block / (2 * t->size));
}

static void gather_scatter(Worker *w, const Team *t, int kind, int root, int uneven)
{
    int block = block_of(t, kind), mine = block, at_root = t->rank == root;
    for (int m = t->size - 1, at = 0; m >= 0; m--) {
        w->lengths[m] = uneven ? length_of(t, block, m, root) : block;
        w->places[m] = uneven ? at : m * block;
        at += w->lengths[m];
    }
    mine = w->lengths[t->rank];
    for (int i = 0; i < mine; i++) w->in[i] = dealt(w, t, t->rank, root, i);
    for (int i = 0; i < ALL; i++) w->out[i] = -77;
    if (uneven) OK(MPI_Gatherv(w->in, mine, MPI_LONG, w->out, w->lengths, w->places, MPI_LONG, root, t->comm));
    else OK(MPI_Gather(w->in, mine, MPI_LONG, at_root ? w->out : NULL, block, MPI_LONG, root, t->comm));
    for (int m = 0; at_root && m < t->size; m++)
        for (int i = 0; i < w->lengths[m]; i++) check(w, t, i, w->out[w->places[m] + i], dealt(w, t, m, root, i));
    if (next(&w->common) % 3 == 0) return;
    for (int i = 0; i < mine; i++) w->in[i] = -77;
    for (int m = 0; m < t->size; m++)
        for (int i = 0; i < w->lengths[m]; i++) w->out[w->places[m] + i] = dealt(w, t, root, m, i);
    if (uneven) OK(MPI_Scatterv(w->out, w->lengths, w->places, MPI_LONG, w->in, mine, MPI_LONG, root, t->comm));
    else OK(MPI_Scatter(at_root ? w->out : NULL, block, MPI_LONG, w->in, mine, MPI_LONG, root, t->comm));
    for (int i = 0; i < mine; i++) check(w, t, i, w->in[i], dealt(w, t, root, t->rank, i));
}

static void allgather(Worker *w, const Team *t, int kind, int uneven)
{
    int block = block_of(t, kind), in_place = next(&w->common) % 3 == 0, me_ = t->rank;
    for (int m = t->size - 1, at = 0; m >= 0; m--) {
        w->lengths[m] = uneven ? length_of(t, block, m, 0) : block;
        w->places[m] = uneven ? at : m * block;
        at += w->lengths[m];
    }
    int mine = w->lengths[me_];
    for (int i = 0; i < ALL; i++) w->out[i] = -77;
    for (int i = 0; i < mine; i++) (in_place ? w->out + w->places[me_] : w->in)[i] = dealt(w, t, me_, 0, i);
    void *given = in_place ? MPI_IN_PLACE : w->in;
    if (uneven) OK(MPI_Allgatherv(given, mine, MPI_LONG, w->out, w->lengths, w->places, MPI_LONG, t->comm));
    else OK(MPI_Allgather(given, mine, MPI_LONG, w->out, block, MPI_LONG, t->comm));
    for (int m = 0; m < t->size; m++)
        for (int i = 0; i < w->lengths[m]; i++) check(w, t, i, w->out[w->places[m] + i], dealt(w, t, m, 0, i));
}

static void alltoall(Worker *w, const Team *t, int kind, int uneven)
{
    int block = block_of(t, kind), in_place = !uneven && next(&w->common) % 3 == 0, me_ = t->rank;
    for (int m = t->size - 1, at = 0, from = 0; m >= 0; m--) {
        w->lengths[m] = uneven ? length_of(t, block, me_, m) : block;
        w->others[m] = uneven ? length_of(t, block, m, me_) : block;
        w->places[m] = uneven ? at : m * block, w->theirs[m] = uneven ? from : m * block;
        at += w->lengths[m], from += w->others[m];
    }
    long *given = in_place ? w->out : w->in;
    for (int i = 0; i < ALL; i++) w->out[i] = -77;
    for (int m = 0; m < t->size; m++)
        for (int i = 0; i < w->lengths[m]; i++) given[w->places[m] + i] = dealt(w, t, me_, m, i);
    if (uneven)
        OK(MPI_Alltoallv(w->in, w->lengths, w->places, MPI_LONG, w->out, w->others, w->theirs, MPI_LONG, t->comm));
    else OK(MPI_Alltoall(in_place ? MPI_IN_PLACE : w->in, block, MPI_LONG, w->out, block, MPI_LONG, t->comm));
    for (int m = 0; m < t->size; m++)
        for (int i = 0; i < w->others[m]; i++) check(w, t, i, w->out[w->theirs[m] + i], dealt(w, t, m, me_, i));
}

static void reduce_scatter(Worker *w, const Team *t, int kind, int uneven)
{
    int block = block_of(t, kind), in_place = next(&w->common) % 3 == 0, total = 0, first = 0;
    for (int m = 0; m < t->size; m++) {
        w->lengths[m] = uneven ? length_of(t, block, m, 1) : block;
        if (m == t->rank) first = total;
        total += w->lengths[m];
    }
    for (int i = 0; i < ALL; i++) w->out[i] = -77;
    for (int i = 0; i < total; i++) (in_place ? w->out : w->in)[i] = element(w, me(t), i);
    void *given = in_place ? MPI_IN_PLACE : w->in;
    if (uneven) OK(MPI_Reduce_scatter(given, w->out, w->lengths, MPI_LONG, MPI_SUM, t->comm));
    else OK(MPI_Reduce_scatter_block(given, w->out, block, MPI_LONG, MPI_SUM, t->comm));
    for (int i = 0; i < w->lengths[t->rank]; i++) check(w, t, i, w->out[i], sum(w, t, first + i));
}

/* Traffic by messages beside, some of it begun before a collective on shared memory and ended after. */
static void around(Worker *w, const Team *t, int root)
{
    MPI_Request requests[3];
    long told = t->rank == root ? w->step : -1, got = -1, mine = me(t);
    int to = (t->rank + 1) % t->size, from = (t->rank + t->size - 1) % t->size;
    OK(MPI_Ibcast(&told, 1, MPI_LONG, root, t->comm, &requests[0]));
    OK(MPI_Irecv(&got, 1, MPI_LONG, from, w->id, t->comm, &requests[1]));
    OK(MPI_Isend(&mine, 1, MPI_LONG, to, w->id, t->comm, &requests[2]));
    delay(w);
    allreduce(w, t, 1 + w->step % 8);
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    check(w, t, 0, told, w->step);
    check(w, t, 1, got, t->first + from * t->stride);
}

static void team(Team *t, MPI_Comm comm, int first, int stride)
{
    *t = (Team){.comm = comm, .first = first, .stride = stride};
    OK(MPI_Comm_rank(comm, &t->rank));
    OK(MPI_Comm_size(comm, &t->size));
}

static void make_teams(Worker *w)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    team(&w->teams[0], comm, 0, 1);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm));
    team(&w->teams[1], comm, size - 1, -1);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm));
    team(&w->teams[2], comm, rank % 2, 2);
    int cut = size > 2 ? size - 1 : size; /* 17 ranks: a team of 16 */
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank < cut, rank, &comm));
    team(&w->teams[3], comm, rank < cut ? 0 : cut, 1);
    for (int i = 0; i < COUNTS; i++) {
        OK(MPI_Type_vector(counts[i], 1, 2, MPI_LONG, &w->spread[i]));
        OK(MPI_Type_commit(&w->spread[i]));
    }
}

/* The memory of the next step. */
static void take_memory(Worker *w)
{
    long *in = w->shown && (!w->plain || next(&w->own) % 4) ? w->shown : w->plain;
    long *out = w->shown && (!w->plain || next(&w->own) % 4) ? w->shown : w->plain;
    w->in = in, w->out = out + ALL;
}

static void make_memory(Worker *w, const char *kind)
{
    if (strcmp(kind, "plain")) OK(MPI_Alloc_mem(2 * ALL * sizeof(long), MPI_INFO_NULL, &w->shown));
    if (!strcmp(kind, "plain") || !strcmp(kind, "mixed")) w->plain = malloc(2 * ALL * sizeof(long));
    take_memory(w);
}

static void free_memory(Worker *w)
{
    free(w->plain);
    if (w->shown) OK(MPI_Free_mem(w->shown));
}

/* Counts the bytes that are read where another rank has them; the second call answers how many. */
static unsigned long long single_copies(int ends)
{
    static MPI_T_pvar_session session;
    static MPI_T_pvar_handle handle;
    int provided, index, count;
    unsigned long long bytes = 0;
    if (ends) {
        OK(MPI_T_pvar_read(session, handle, &bytes));
        OK(MPI_T_pvar_handle_free(session, &handle));
        OK(MPI_T_pvar_session_free(&session));
        OK(MPI_T_finalize());
    } else {
        OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
        OK(MPI_T_pvar_get_index("single_copy_bytes", MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_session_create(&session));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
        OK(MPI_T_pvar_start(session, handle));
    }
    return bytes;
}

static void free_teams(Worker *w)
{
    for (int i = 0; i < COMMS; i++) OK(MPI_Comm_free(&w->teams[i].comm));
    for (int i = 0; i < COUNTS; i++) OK(MPI_Type_free(&w->spread[i]));
}

/* A communicator that lives for a few calls; thousands of them come and go. */
static void brief(Worker *w)
{
    Team t;
    MPI_Comm comm;
    OK(MPI_Comm_dup(w->teams[0].comm, &comm));
    team(&t, comm, 0, 1);
    allreduce(w, &t, 1 + w->step % 300);
    bcast(w, &t, w->step % COUNTS, w->step % t.size);
    OK(MPI_Comm_free(&comm));
}

/* A row of one kind on one communicator runs further ahead than a mixed one. */
static void *work(void *argument)
{
    Worker *w = argument;
    while (w->step < w->steps) {
        const Team *t = &w->teams[next(&w->common) % COMMS];
        uint32_t kind = next(&w->common) % 20, row = 1 + next(&w->common) % 14, fixed = next(&w->common);
        for (uint32_t k = 0; k < row && w->step < w->steps; k++, w->step++) {
            uint32_t draw = next(&w->common), what = kind < 10 ? kind : draw % 10, uneven = draw / 64 % 2;
            int size_of = (int)(next(&w->common) % COUNTS);
            int root = (int)((fixed % 2 ? fixed : draw) / 6 % (uint32_t)t->size);
            delay(w);
            take_memory(w);
            switch (what) {
            case 0: barrier(w, t); break;
            case 1: bcast(w, t, size_of, root); break;
            case 2: reduce(w, t, counts[size_of], root); break;
            case 3: allreduce(w, t, counts[size_of]); break;
            case 4: around(w, t, root); break;
            case 5: gather_scatter(w, t, size_of, root, (int)uneven); break;
            case 6: allgather(w, t, size_of, (int)uneven); break;
            case 7: alltoall(w, t, size_of, (int)uneven); break;
            case 8: reduce_scatter(w, t, size_of, (int)uneven); break;
            default: k % 8 ? bcast(w, t, size_of % 6, root) : brief(w);
            }
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int steps = argc > 2 ? atoi(argv[2]) : 300, threads = argc > 3 ? atoi(argv[3]) : 1;
    const char *memory = argc > 4 ? argv[4] : "plain";
    OK(MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    doing = "shared collectives";
    Worker *workers = calloc((size_t)threads, sizeof *workers);
    pthread_t *others = calloc((size_t)threads, sizeof *others);
    for (int i = 0; i < threads; i++) {
        workers[i].common = seed * 1000 + (uint64_t)i;
        workers[i].own = seed * 7777777 + (uint64_t)(rank * 100 + i);
        workers[i].id = i;
        workers[i].steps = steps;
        make_teams(&workers[i]);
        make_memory(&workers[i], memory);
    }
    if (!strcmp(memory, "shown")) single_copies(0);
    if (!strcmp(memory, "blind") && rank == size - 1) OK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3}));
    for (int i = 1; i < threads; i++) pthread_create(&others[i], NULL, work, &workers[i]);
    work(&workers[0]);
    for (int i = 1; i < threads; i++) pthread_join(others[i], NULL);
    for (int i = 0; i < threads; i++) free_teams(&workers[i]), free_memory(&workers[i]);
    if (!strcmp(memory, "shown")) CHECK(single_copies(1) > 0, "nothing was read in place");
    free(workers);
    free(others);
    OK(MPI_Finalize());
    return 0;
}
