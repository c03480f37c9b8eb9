/*
 * What this machine itself can do: the floor under every figure of `weft bench`. No MPI.
 *
 *     limits SECONDS CPU_A CPU_B
 *
 * One line per measurement on standard output: `limits: NAME VALUE UNIT`.
 */
#define _GNU_SOURCE
#include "cache_line.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Seconds for one hand-over between two processes, there and back for `seconds`. */
static double hand_over_between_s(struct lines *s, double seconds, int cpu_a, int cpu_b, int yield) {
    memset(s, 0, sizeof *s);
    pid_t child = fork();
    if (child < 0) fail("limits: fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bind_to(cpu_b);
        _exit(answer(s, yield) != 0);
    }
    bind_to(cpu_a);
    uint64_t i = exchange(s, 0, yield);
    double mean = i ? hand_over_s(s, &i, seconds, yield) : -1;
    if (mean < 0) fail("limits: a line arrived torn");
    hand_over(s->there, LAST);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) fail("limits: the second process failed");
    return mean;
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
    struct lines *s = pages(sizeof *s, MAP_SHARED);
    if (a != b) printf("limits: cache-line %.9e s\n", hand_over_between_s(s, seconds, a, b, 0));
    printf("limits: switch %.9e s\n", hand_over_between_s(s, seconds, a, a, 1));
    printf("limits: memcpy-1MiB %.9e B/s\n", memcpy_rate((size_t)1 << 20, seconds));
    printf("limits: memcpy-64MiB %.9e B/s\n", memcpy_rate((size_t)64 << 20, seconds));
    printf("limits: system-call %.9e s\n", system_call_s(seconds));
    return 0;
}
