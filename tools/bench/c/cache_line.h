/*
 * What a cache line takes from one core to another: two processes hand a value back and forth. Part of limits.c and of
 * mpibench.c, so that both mean the same by it.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

enum { ROUNDS = 100 };
static const uint64_t LAST = UINT64_MAX;

/* A message line per direction, as message passing uses them; two lines apart, so that no prefetch pairs them up.
 * Shared between the processes, and all zero before they begin. */
struct lines {
    _Alignas(256) _Atomic uint64_t there[8];
    _Alignas(256) _Atomic uint64_t back[8];
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A whole line is written, its last word says so; the reader reads the whole line. */
static void hand_over(_Atomic uint64_t *line, uint64_t value) {
    for (int i = 0; i < 7; i++) atomic_store_explicit(&line[i], value, memory_order_relaxed);
    atomic_store_explicit(&line[7], value, memory_order_release); /* ORDER: hand-over */
}

/* Waits until a value other than `before` has arrived, and returns it; 0 when the line is torn. */
static uint64_t receive(_Atomic uint64_t *line, uint64_t before, int yield) {
    uint64_t value;
    /* ORDER: hand-over; pairs with the release store above. */
    while ((value = atomic_load_explicit(&line[7], memory_order_acquire)) == before)
        if (yield) sched_yield();
    for (int i = 0; i < 7; i++)
        if (atomic_load_explicit(&line[i], memory_order_relaxed) != value) return 0;
    return value;
}

/* The second process: sends every value back until the last one. Returns 0, or -1 for a torn line. */
static int answer(struct lines *s, int yield) {
    for (uint64_t value = 0; (value = receive(s->there, value, yield)) != LAST; hand_over(s->back, value))
        if (value == 0) return -1;
    return 0;
}

/* The first process: ROUNDS there and back, from the value `i` on. Returns the value reached, 0 for a torn line. The
 * first call waits for the second process to begin. */
static uint64_t exchange(struct lines *s, uint64_t i, int yield) {
    for (uint64_t stop = i + ROUNDS; i < stop; i++) {
        hand_over(s->there, i + 1);
        if (receive(s->back, i, yield) != i + 1) return 0;
    }
    return i;
}

/* Mean seconds of one hand-over, over at least `seconds`; the clock is read once per ROUNDS. Moves `*i` on; -1 for a
 * torn line. */
static double hand_over_s(struct lines *s, uint64_t *i, double seconds, int yield) {
    uint64_t first = *i;
    double start = now_s(), spent = 0;
    for (; spent < seconds; spent = now_s() - start)
        if ((*i = exchange(s, *i, yield)) == 0) return -1;
    return spent / (double)(*i - first) / 2;
}
