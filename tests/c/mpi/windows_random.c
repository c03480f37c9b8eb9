/* Random operations on a window against a simple model that every rank keeps of all windows. Arguments: seed, rounds.
 *
 * In a round every rank does a few operations. Elements of the first half are put to, each by one rank in a round; those
 * of the second half are combined with, by all. All ranks draw the same numbers, so that each knows what all do. */
#include "check.h"

enum { ELEMENTS = 600, HALF = ELEMENTS / 2, MOST_RANKS = 16, EACH = 4 };

static long model[MOST_RANKS][ELEMENTS];
static unsigned long long state;
static unsigned long seed;
static int round_number;

static unsigned draw(unsigned below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)((state >> 20) % below);
}

#define HOLDS(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: rank %d of %d, seed %lu, round %d: %s\n", __FILE__, __LINE__, check_rank,         \
                    check_size, seed, round_number, #condition);                                                      \
            exit(99);                                                                                                 \
        }                                                                                                             \
    } while (0)

/* Elements first, first + stride, ... at the target. */
struct operation {
    int target, first, stride, count, combines, op, packed;
    long value;
};

static struct operation next_operation(int origin)
{
    struct operation o;
    o.target = (int)draw((unsigned)check_size);
    o.combines = (int)draw(2);
    o.op = (int)draw(3);
    o.packed = (int)draw(2);
    o.value = (long)draw(1000) + 1;
    if (o.combines) {
        o.stride = (int)draw(4) + 1;
        o.count = (int)draw(30) + 1;
        o.first = HALF + (int)draw((unsigned)(HALF - (o.count - 1) * o.stride));
    } else {
        /* Its own elements: every check_size-th from its number on. */
        o.stride = check_size * ((int)draw(2) + 1);
        o.first = origin;
        o.count = (int)draw((unsigned)((HALF - 1 - origin) / o.stride) + 1) + 1;
        if (o.count > 60)
            o.count = 60;
    }
    return o;
}

static long value_of(const struct operation *o, int index)
{
    return o->value + index;
}

static void apply(const struct operation *o)
{
    for (int i = 0; i < o->count; i++) {
        long *at = &model[o->target][o->first + i * o->stride], value = value_of(o, i);
        if (!o->combines)
            *at = value;
        else if (o->op == 0)
            *at += value;
        else if (o->op == 1)
            *at ^= value;
        else
            *at += 2 * value;
    }
}

static void perform(const struct operation *o, MPI_Win win)
{
    long plain[60], spread[120], old[60];
    MPI_Datatype there, here;
    OK(MPI_Type_vector(o->count, 1, o->stride, MPI_LONG, &there));
    OK(MPI_Type_vector(o->count, 1, 2, MPI_LONG, &here));
    OK(MPI_Type_commit(&there));
    OK(MPI_Type_commit(&here));
    for (int i = 0; i < o->count; i++)
        plain[i] = spread[2 * i] = value_of(o, i), spread[2 * i + 1] = -1;
    const void *from = o->packed ? (const void *)plain : (const void *)spread;
    int count = o->packed ? o->count : 1;
    MPI_Datatype type = o->packed ? MPI_LONG : here;
    MPI_Op op = o->op == 1 ? MPI_BXOR : MPI_SUM;
    if (!o->combines)
        OK(MPI_Put(from, count, type, o->target, o->first, 1, there, win));
    else if (o->packed)
        OK(MPI_Accumulate(from, count, type, o->target, o->first, 1, there, op, win));
    else
        OK(MPI_Get_accumulate(from, count, type, old, o->count, MPI_LONG, o->target, o->first, 1, there, op, win));
    if (o->combines && o->op == 2)
        OK(MPI_Accumulate(from, count, type, o->target, o->first, 1, there, op, win));
    /* The buffers are on the stack; two puts of one origin may meet. */
    OK(o->combines ? MPI_Win_flush_local(o->target, win) : MPI_Win_flush(o->target, win));
    OK(MPI_Type_free(&there));
    OK(MPI_Type_free(&here));
}

/* One round of everybody's operations; `sync` says how. */
static void one_round(MPI_Win win)
{
    struct operation mine[EACH];
    int sync = (int)draw(2), operations = (int)draw(EACH) + 1;
    int op_of_round = (int)draw(3);
    for (int r = 0; r < check_size; r++)
        for (int i = 0; i < operations; i++) {
            struct operation o = next_operation(r);
            /* Sums and exclusive ors do not mix. */
            o.op = op_of_round;
            apply(&o);
            if (r == check_rank)
                mine[i] = o;
        }
    if (sync == 0)
        OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < operations; i++) {
        if (sync == 1)
            OK(MPI_Win_lock(mine[i].combines ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, mine[i].target, 0, win));
        perform(&mine[i], win);
        if (sync == 1)
            OK(MPI_Win_unlock(mine[i].target, win));
    }
    if (sync == 0)
        OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void compare(MPI_Win win)
{
    static long seen[ELEMENTS];
    int target = (check_rank + round_number) % check_size;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Get(seen, ELEMENTS, MPI_LONG, target, 0, ELEMENTS, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
    for (int i = 0; i < ELEMENTS; i++)
        HOLDS(seen[i] == model[target][i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    long *base;
    check_begin(&argc, &argv);
    seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 50;
    CHECK(check_size <= MOST_RANKS);
    for (int made = 0; made < 2; made++) {
        state = seed * 0x9e3779b97f4a7c15ULL + 1 + (unsigned)made;
        memset(model, 0, sizeof model);
        if (made == 0) {
            OK(MPI_Win_allocate(sizeof(long) * ELEMENTS, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        } else {
            base = malloc(sizeof(long) * ELEMENTS);
            OK(MPI_Win_create(base, sizeof(long) * ELEMENTS, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        }
        memset(base, 0, sizeof(long) * ELEMENTS);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (round_number = 0; round_number < rounds; round_number++) {
            one_round(win);
            compare(win);
        }
        OK(MPI_Win_free(&win));
        if (made == 1)
            free(base);
    }
    OK(MPI_Finalize());
    return 0;
}
