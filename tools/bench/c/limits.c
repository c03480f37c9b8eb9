/*
 * What this machine itself can do: the floor under every figure of `weft bench`. No MPI.
 *
 *     limits SECONDS CPU_A CPU_B
 *
 * One line per measurement on standard output: `limits: NAME VALUE UNIT`.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 100 };
static const uint64_t LAST = UINT64_MAX;

/* A message line per direction, as message passing uses them; two lines apart, so that no prefetch pairs them up. */
struct shared {
    _Alignas(256) _Atomic uint64_t there[8];
    _Alignas(256) _Atomic uint64_t back[8];
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void bind_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("limits: sched_setaffinity");
}

static void *pages(size_t bytes, int sharing) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) fail("limits: mmap");
    return p;
}

static void wait_for(_Atomic uint64_t *word, uint64_t value, int yield) {
    /* ORDER: hand-over; pairs with the release store below. */
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        if (yield) sched_yield();
}

/* A whole line is written, its last word says so; the reader reads the whole line. */
static void hand_over(_Atomic uint64_t *line, uint64_t value) {
    for (int i = 0; i < 7; i++) atomic_store_explicit(&line[i], value, memory_order_relaxed);
    atomic_store_explicit(&line[7], value, memory_order_release); /* ORDER: hand-over */
}

static void receive(_Atomic uint64_t *line, uint64_t value, int yield) {
    wait_for(&line[7], value, yield);
    for (int i = 0; i < 7; i++)
        if (atomic_load_explicit(&line[i], memory_order_relaxed) != value) fail("limits: a line arrived torn");
}

/* The second process: sends every value back until the last one. */
static void answer(struct shared *s, int cpu, int yield) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bind_to(cpu);
    for (uint64_t i = 1;; i++) {
        while (atomic_load_explicit(&s->there[7], memory_order_relaxed) == i - 1)
            if (yield) sched_yield();
        if (atomic_load_explicit(&s->there[7], memory_order_relaxed) == LAST) _exit(0);
        receive(s->there, i, yield);
        hand_over(s->back, i);
    }
}

/* The clock is read once per so many rounds. */
static uint64_t exchange(struct shared *s, uint64_t i, int yield) {
    for (uint64_t stop = i + ROUNDS; i < stop;) {
        hand_over(s->there, ++i);
        receive(s->back, i, yield);
    }
    return i;
}

/* Seconds for one hand-over between two processes, there and back for `seconds`. */
static double hand_over_s(struct shared *s, double seconds, int cpu_a, int cpu_b, int yield) {
    memset(s, 0, sizeof *s);
    pid_t child = fork();
    if (child < 0) fail("limits: fork");
    if (child == 0) answer(s, cpu_b, yield);
    bind_to(cpu_a);
    uint64_t i = exchange(s, 0, yield); /* the first rounds wait for the child to start */
    double start = now_s(), spent = 0;
    for (; spent < seconds; spent = now_s() - start) i = exchange(s, i, yield);
    hand_over(s->there, LAST);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) fail("limits: the second process failed");
    return spent / (double)(i - ROUNDS) / 2;
}

/* Bytes per second of memcpy between two buffers that were written before. */
static double memcpy_rate(size_t bytes, double seconds) {
    unsigned char *a = pages(bytes, MAP_PRIVATE), *b = pages(bytes, MAP_PRIVATE);
    memset(a, 1, bytes);
    memset(b, 2, bytes);
    long copies = 0;
    double start = now_s(), spent = 0;
    for (; spent < seconds; spent = now_s() - start)
        for (int i = 0; i < 8; i++, copies++) {
            a[(size_t)copies % bytes] ^= 3;
            memcpy(b, a, bytes);
            __asm__ volatile("" : : "r"(b) : "memory");
        }
    if (memcmp(a, b, bytes) != 0) fail("limits: memcpy");
    munmap(a, bytes);
    munmap(b, bytes);
    return (double)bytes * (double)copies / spent;
}

static double system_call_s(double seconds) {
    long calls = 0;
    double start = now_s(), spent = 0;
    for (; spent < seconds; spent = now_s() - start)
        for (int i = 0; i < 1000; i++, calls++) syscall(SYS_getppid);
    return spent / (double)calls;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: limits SECONDS CPU_A CPU_B\n");
        return 2;
    }
    double seconds = atof(argv[1]);
    int a = atoi(argv[2]), b = atoi(argv[3]);
    struct shared *s = pages(sizeof *s, MAP_SHARED);
    if (a != b) printf("limits: cache-line %.9e s\n", hand_over_s(s, seconds, a, b, 0));
    printf("limits: switch %.9e s\n", hand_over_s(s, seconds, a, a, 1));
    printf("limits: memcpy-1MiB %.9e B/s\n", memcpy_rate((size_t)1 << 20, seconds));
    printf("limits: memcpy-64MiB %.9e B/s\n", memcpy_rate((size_t)64 << 20, seconds));
    printf("limits: system-call %.9e s\n", system_call_s(seconds));
    return 0;
}
