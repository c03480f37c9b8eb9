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

/* Seconds for one hand-over between two processes, `rounds` there and back. */
static double hand_overs(struct shared *s, long rounds, int cpu_a, int cpu_b, int yield) {
    memset(s, 0, sizeof *s);
    pid_t child = fork();
    if (child < 0) fail("limits: fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bind_to(cpu_b);
        for (long i = 1; i <= rounds + 1; i++) {
            receive(s->there, (uint64_t)i, yield);
            hand_over(s->back, (uint64_t)i);
        }
        _exit(0);
    }
    bind_to(cpu_a);
    double start = 0;
    for (long i = 1; i <= rounds + 1; i++) {
        if (i == 2) start = now_s(); /* the first round waits for the child to start */
        hand_over(s->there, (uint64_t)i);
        receive(s->back, (uint64_t)i, yield);
    }
    double spent = now_s() - start;
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) fail("limits: the second process failed");
    return spent / (double)rounds / 2;
}

static double hand_over_s(struct shared *s, double seconds, int cpu_a, int cpu_b, int yield) {
    double trial = hand_overs(s, 1000, cpu_a, cpu_b, yield);
    return hand_overs(s, (long)(seconds / trial / 2) + 1000, cpu_a, cpu_b, yield);
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
