/*
 * The measuring program of `weft bench`: plain MPI, compiled unchanged by every library's own wrapper.
 *
 *     mpibench start                          MPI_Init and MPI_Finalize, nothing else
 *     mpibench [--corrupt] [--cache-line FILE] SECONDS SPEC...
 *                                             one measurement per SPEC, KIND or KIND:NUMBER; KIND-A-B:NUMBER is
 *                                             one of those between two ranks, for ranks A and B
 *
 * Rank 0 prints one line per measurement: `mpibench: SPEC VALUE UNIT ITERATIONS SECONDS`. With `--cache-line` it also
 * prints before the first and after each of them what a cache line takes between ranks 0 and 1 at that moment, through
 * FILE, a page of zeros: `mpibench: cache-line VALUE s`.
 *
 * How a line is timed: a calibration (which is the warm-up too) finds how many iterations fill a quarter of SECONDS;
 * then batches of that many run until SECONDS are spent. Clocks are read around a batch only, and the decision to go
 * on is taken between batches. Before each batch the buffers get data that no earlier batch used, after it what
 * arrived is checked; wrong data ends the job with status 3. `--corrupt` spoils one byte before the check, which shows
 * that the check can fail.
 */
#define _GNU_SOURCE
#include "cache_line.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 64, TAG = 7, TAG_ACK = 8, SLICES = 5 };

struct work {
    MPI_Comm comm;
    int rank, ranks;
    size_t bytes; /* of one message */
    unsigned char *out, *in;
    size_t out_bytes, in_bytes;
    unsigned seed; /* of the data of this batch */
};

struct kind {
    const char *name, *unit;
    int out_blocks, in_blocks;            /* messages in each buffer; 0: one per rank */
    void (*run)(struct work *, long n);   /* the timed part */
    void (*fill)(struct work *);          /* new data before it */
    const char *(*check)(struct work *);  /* NULL, or what is wrong */
    double (*value)(const struct work *, double seconds_per_iteration);
    int timed_by_rank_0;                  /* else the slowest rank's time counts */
};

static const char *current = "start";
static int corrupt;
static struct lines *lines; /* shared by ranks 0 and 1, NULL: nobody asks for the cache line */

static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Also into a file: a launcher may drop what an aborting rank wrote last. */
static void die(int rank, const char *what) {
    const char *path = getenv("MPIBENCH_ERRORS");
    FILE *file = path ? fopen(path, "a") : NULL;
    fprintf(stderr, "mpibench: error: %s: rank %d: %s\n", current, rank, what);
    if (file) {
        fprintf(file, "mpibench: error: %s: rank %d: %s\n", current, rank, what);
        fclose(file);
    }
    MPI_Abort(MPI_COMM_WORLD, 3);
    exit(3);
}

/* Whole pages, so that every library starts from the same alignment; freed memory really goes back. */
static unsigned char *pages(size_t bytes) {
    void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) die(-1, "out of memory for the buffers");
    return p;
}

/* --- data: a message is known by its sender, its receiver (or -1) and the batch --- */

static uint64_t word(unsigned seed, int from, int to, size_t i) {
    uint64_t x = (uint64_t)seed * 0x9e3779b97f4a7c15u + (uint64_t)(from + 1) * 0xbf58476d1ce4e5b9u +
                 (uint64_t)(to + 2) * 0x94d049bb133111ebu + i;
    return x * 0xff51afd7ed558ccdu;
}

static void write_message(unsigned char *p, size_t bytes, unsigned seed, int from, int to) {
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        uint64_t w = word(seed, from, to, i);
        memcpy(p + i, &w, 8);
    }
    uint64_t w = word(seed, from, to, i);
    memcpy(p + i, &w, bytes - i);
}

static int is_message(const unsigned char *p, size_t bytes, unsigned seed, int from, int to) {
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        uint64_t w = word(seed, from, to, i);
        if (memcmp(p + i, &w, 8) != 0) return 0;
    }
    uint64_t w = word(seed, from, to, i);
    return memcmp(p + i, &w, bytes - i) == 0;
}

/* Sums are of small whole numbers, so the result is exact in every order of adding. */
static double addend(const struct work *w, int rank, size_t i) {
    return (double)((i + w->seed * 7u + (unsigned)rank * 13u) % 1000u);
}

static void fill_sums(struct work *w) {
    for (size_t i = 0; i < w->bytes / 8; i++) ((double *)w->out)[i] = addend(w, w->rank, i);
    memset(w->in, 0xff, w->in_bytes);
}

static const char *check_sums(struct work *w) {
    for (size_t i = 0; i < w->bytes / 8; i++) {
        double want = 0;
        for (int r = 0; r < w->ranks; r++) want += addend(w, r, i);
        if (((double *)w->in)[i] != want) return "a sum is wrong";
    }
    return NULL;
}

static const char *check_sums_at_root(struct work *w) { return w->rank == 0 ? check_sums(w) : NULL; }

/* --- point to point, ranks 0 and 1 --- */

static void fill_pair(struct work *w) {
    write_message(w->out, w->bytes, w->seed, w->rank, -1);
    memset(w->in, 0xff, w->in_bytes);
}

static const char *check_pair(struct work *w) {
    return is_message(w->in, w->bytes, w->seed, 1 - w->rank, -1) ? NULL : "the message received is wrong";
}

static const char *check_window(struct work *w) {
    for (size_t at = 0; w->rank == 1 && at + w->bytes <= w->in_bytes; at += w->bytes)
        if (!is_message(w->in + at, w->bytes, w->seed, 0, -1)) return "a message of the window is wrong";
    return NULL;
}

static void run_pingpong(struct work *w, long n) {
    int count = (int)w->bytes, peer = 1 - w->rank;
    for (long i = 0; i < n; i++) {
        if (w->rank == 0) MPI_Send(w->out, count, MPI_BYTE, peer, TAG, w->comm);
        MPI_Recv(w->in, count, MPI_BYTE, peer, TAG, w->comm, MPI_STATUS_IGNORE);
        if (w->rank == 1) MPI_Send(w->out, count, MPI_BYTE, peer, TAG, w->comm);
    }
}

/* Both send, then both receive. A plain send of a long message would wait for a receive that comes after the other's. */
static void run_exchange(struct work *w, long n) {
    int count = (int)w->bytes, peer = 1 - w->rank;
    for (long i = 0; i < n; i++)
        MPI_Sendrecv(w->out, count, MPI_BYTE, peer, TAG, w->in, count, MPI_BYTE, peer, TAG, w->comm, MPI_STATUS_IGNORE);
}

/* A window of sends from one buffer into as many buffers: receives that overlap in memory would not be correct MPI. */
static void run_window(struct work *w, long n) {
    MPI_Request request[WINDOW];
    int count = (int)w->bytes;
    for (long i = 0; i < n; i++) {
        for (int k = 0; k < WINDOW; k++) {
            if (w->rank == 0)
                MPI_Isend(w->out, count, MPI_BYTE, 1, TAG, w->comm, &request[k]);
            else
                MPI_Irecv(w->in + (size_t)k * w->bytes, count, MPI_BYTE, 0, TAG, w->comm, &request[k]);
        }
        MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
        if (w->rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ACK, w->comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ACK, w->comm);
    }
}

/* --- collectives; roots are rank 0 throughout, calls follow each other without a barrier --- */

static void run_barrier(struct work *w, long n) {
    for (long i = 0; i < n; i++) MPI_Barrier(w->comm);
}

static void fill_nothing(struct work *w) { (void)w; }
static const char *check_nothing(struct work *w) { return (void)w, NULL; }

static void fill_bcast(struct work *w) {
    if (w->rank == 0)
        write_message(w->in, w->bytes, w->seed, 0, -1);
    else
        memset(w->in, 0xff, w->in_bytes);
}

static const char *check_bcast(struct work *w) {
    return is_message(w->in, w->bytes, w->seed, 0, -1) ? NULL : "the message broadcast is wrong";
}

static void run_bcast(struct work *w, long n) {
    for (long i = 0; i < n; i++) MPI_Bcast(w->in, (int)w->bytes, MPI_BYTE, 0, w->comm);
}

static void run_reduce(struct work *w, long n) {
    for (long i = 0; i < n; i++) MPI_Reduce(w->out, w->in, (int)(w->bytes / 8), MPI_DOUBLE, MPI_SUM, 0, w->comm);
}

static void run_allreduce(struct work *w, long n) {
    for (long i = 0; i < n; i++) MPI_Allreduce(w->out, w->in, (int)(w->bytes / 8), MPI_DOUBLE, MPI_SUM, w->comm);
}

static void fill_alltoall(struct work *w) {
    for (int r = 0; r < w->ranks; r++) write_message(w->out + (size_t)r * w->bytes, w->bytes, w->seed, w->rank, r);
    memset(w->in, 0xff, w->in_bytes);
}

static const char *check_alltoall(struct work *w) {
    for (int r = 0; r < w->ranks; r++)
        if (!is_message(w->in + (size_t)r * w->bytes, w->bytes, w->seed, r, w->rank)) return "a block is wrong";
    return NULL;
}

static void run_alltoall(struct work *w, long n) {
    int count = (int)w->bytes;
    for (long i = 0; i < n; i++) MPI_Alltoall(w->out, count, MPI_BYTE, w->in, count, MPI_BYTE, w->comm);
}

static void run_allgather(struct work *w, long n) {
    int count = (int)w->bytes;
    for (long i = 0; i < n; i++) MPI_Allgather(w->out, count, MPI_BYTE, w->in, count, MPI_BYTE, w->comm);
}

static const char *check_allgather(struct work *w) {
    for (int r = 0; r < w->ranks; r++)
        if (!is_message(w->in + (size_t)r * w->bytes, w->bytes, w->seed, r, -1)) return "a block is wrong";
    return NULL;
}

/* --- kernels of many hosts --- */

/* Everybody to the next one at the same time. */
static void run_ring(struct work *w, long n) {
    int count = (int)w->bytes, next = (w->rank + 1) % w->ranks, last = (w->rank + w->ranks - 1) % w->ranks;
    for (long i = 0; i < n; i++)
        MPI_Sendrecv(w->out, count, MPI_BYTE, next, TAG, w->in, count, MPI_BYTE, last, TAG, w->comm, MPI_STATUS_IGNORE);
}

static const char *check_ring(struct work *w) {
    int last = (w->rank + w->ranks - 1) % w->ranks;
    return is_message(w->in, w->bytes, w->seed, last, -1) ? NULL : "the message received is wrong";
}

/* All others to rank 0. */
static void run_incast(struct work *w, long n) {
    MPI_Request *request = malloc((size_t)w->ranks * sizeof *request);
    int count = (int)w->bytes;
    if (!request) die(w->rank, "out of memory");
    for (long i = 0; i < n; i++) {
        for (int r = 1; w->rank == 0 && r < w->ranks; r++)
            MPI_Irecv(w->in + (size_t)r * w->bytes, count, MPI_BYTE, r, TAG, w->comm, &request[r - 1]);
        if (w->rank == 0)
            MPI_Waitall(w->ranks - 1, request, MPI_STATUSES_IGNORE);
        else
            MPI_Send(w->out, count, MPI_BYTE, 0, TAG, w->comm);
    }
    free(request);
}

static const char *check_incast(struct work *w) {
    for (int r = 1; w->rank == 0 && r < w->ranks; r++)
        if (!is_message(w->in + (size_t)r * w->bytes, w->bytes, w->seed, r, -1)) return "a message is wrong";
    return NULL;
}

static double one_way(const struct work *w, double s) { return (void)w, s / 2; }
static double per_call(const struct work *w, double s) { return (void)w, s; }
static double bytes_per_s(const struct work *w, double s) { return WINDOW * (double)w->bytes / s; }
static double bytes_of_all_per_s(const struct work *w, double s) { return (w->ranks - 1) * (double)w->bytes / s; }
static double messages_per_s(const struct work *w, double s) { return (void)w, WINDOW / s; }

static const struct kind kinds[] = {
    {"latency", "s", 1, 1, run_pingpong, fill_pair, check_pair, one_way, 1},
    {"exchange", "s", 1, 1, run_exchange, fill_pair, check_pair, per_call, 1},
    {"bandwidth", "B/s", 1, WINDOW, run_window, fill_pair, check_window, bytes_per_s, 1},
    {"rate", "1/s", 1, WINDOW, run_window, fill_pair, check_window, messages_per_s, 1},
    {"barrier", "s", 1, 1, run_barrier, fill_nothing, check_nothing, per_call, 0},
    {"bcast", "s", 1, 1, run_bcast, fill_bcast, check_bcast, per_call, 0},
    {"reduce", "s", 1, 1, run_reduce, fill_sums, check_sums_at_root, per_call, 0},
    {"allreduce", "s", 1, 1, run_allreduce, fill_sums, check_sums, per_call, 0},
    {"allgather", "s", 1, 0, run_allgather, fill_pair, check_allgather, per_call, 0},
    {"ring", "s", 1, 1, run_ring, fill_pair, check_ring, per_call, 0},
    {"incast", "B/s", 1, 0, run_incast, fill_pair, check_incast, bytes_of_all_per_s, 1},
    {"alltoall", "s", 0, 0, run_alltoall, fill_alltoall, check_alltoall, per_call, 0},
};

static const struct kind *kind_of(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, kinds[i].name) == 0) return &kinds[i];
    return NULL;
}

/* --- timing --- */

/* One batch of n iterations: fresh data, the timed part, the check. Every rank returns the same seconds. */
static double batch(struct work *w, const struct kind *k, long n) {
    w->seed++;
    k->fill(w);
    MPI_Barrier(w->comm);
    double start = now_s();
    k->run(w, n);
    double spent = now_s() - start, slowest;
    if (corrupt && w->in_bytes) w->in[w->in_bytes - 1] ^= 0xff;
    const char *wrong = k->check(w);
    if (wrong) die(w->rank, wrong);
    if (k->timed_by_rank_0 && w->rank != 0) spent = 0;
    MPI_Allreduce(&spent, &slowest, 1, MPI_DOUBLE, MPI_MAX, w->comm);
    return slowest;
}

/* Iterations that fill a quarter of `seconds`. */
static long calibrate(struct work *w, const struct kind *k, double seconds) {
    long n = 1;
    for (;;) {
        double spent = batch(w, k, n);
        if (spent >= seconds / 10) {
            long full = (long)((double)n * (seconds / 4) / spent);
            return full > 1 ? full : 1;
        }
        double grow = spent > 0 ? seconds / 8 / spent : 10;
        n = (long)((double)n * (grow < 10 ? grow : 10)) + 1;
    }
}

static void measure(struct work *w, const struct kind *k, double seconds) {
    w->out_bytes = w->bytes * (size_t)(k->out_blocks ? k->out_blocks : w->ranks);
    w->in_bytes = w->bytes * (size_t)(k->in_blocks ? k->in_blocks : w->ranks);
    w->out = pages(w->out_bytes);
    w->in = pages(w->in_bytes);
    long n = calibrate(w, k, seconds), iterations = 0;
    double spent = 0;
    for (; spent < seconds; iterations += n) spent += batch(w, k, n);
    if (w->rank == 0) {
        double value = k->value(w, spent / (double)iterations);
        printf("mpibench: %s %.9e %s %ld %.6f\n", current, value, k->unit, iterations, spent);
        fflush(stdout);
    }
    munmap(w->out, w->out_bytes ? w->out_bytes : 1);
    munmap(w->in, w->in_bytes ? w->in_bytes : 1);
}

/* --- measurements of another shape --- */

static void report(const char *unit, double value, double seconds) {
    printf("mpibench: %s %.9e %s 1 %.6f\n", current, value, unit, seconds);
    fflush(stdout);
}

static void share_lines(const char *path, int rank) {
    int fd = open(path, O_RDWR);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) die(rank, "cannot map the file of --cache-line");
    close(fd);
    lines = p;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The cache line between ranks 0 and 1, which hand it over themselves because they sit on the cores that matter. The
 * median of short times: a rank that the kernel stops for a moment spoils one of them. */
static void measure_cache_line(struct work *w, double seconds) {
    double time[SLICES], slice = seconds / 100 < 5e-3 ? seconds / 100 : 5e-3;
    int torn = 0;
    current = "cache-line";
    if (w->rank == 0) memset(lines, 0, sizeof *lines);
    MPI_Barrier(w->comm);
    if (w->rank == 1) torn = answer(lines, 0) != 0;
    if (w->rank == 0) {
        uint64_t i = exchange(lines, 0, 0);
        torn = i == 0;
        for (int k = 0; k < SLICES && !torn; k++) torn = (time[k] = hand_over_s(lines, &i, slice, 0)) < 0;
        hand_over(lines->there, LAST);
    }
    if (torn) die(w->rank, "a cache line arrived torn");
    MPI_Barrier(w->comm); /* rank 1 no longer looks at the lines when they are next set to zero */
    if (w->rank != 0) return;
    qsort(time, SLICES, sizeof *time, by_size);
    report("s", time[SLICES / 2], SLICES * slice);
}

/* Two ranks measure while all others sit in one barrier, which these two enter at the end. */
static void measure_between(struct work *w, const struct kind *k, int first, int second, double seconds) {
    MPI_Comm pair;
    int among = w->rank == first || w->rank == second;
    MPI_Comm_split(MPI_COMM_WORLD, among ? 0 : MPI_UNDEFINED, w->rank == second, &pair);
    if (among) {
        struct work two = *w;
        two.comm = pair;
        two.rank = w->rank == second;
        two.ranks = 2;
        measure(&two, k, seconds);
        MPI_Comm_free(&pair);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Share of one core, in per cent, that rank 1 burns while it is blocked in MPI_Recv for `seconds`. */
static void measure_idle(struct work *w, double seconds) {
    double result[2] = {0, 0};
    char byte = 0;
    MPI_Barrier(w->comm);
    if (w->rank == 0) {
        struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
        while (nanosleep(&t, &t) != 0) {}
        MPI_Send(&byte, 1, MPI_BYTE, 1, TAG, w->comm);
        MPI_Recv(result, 2, MPI_DOUBLE, 1, TAG, w->comm, MPI_STATUS_IGNORE);
        report("%", 100 * result[0] / result[1], result[1]);
    } else if (w->rank == 1) {
        double cpu = cpu_s(), wall = now_s();
        MPI_Recv(&byte, 1, MPI_BYTE, 0, TAG, w->comm, MPI_STATUS_IGNORE);
        result[0] = cpu_s() - cpu;
        result[1] = now_s() - wall;
        MPI_Send(result, 2, MPI_DOUBLE, 0, TAG, w->comm);
    }
}

/* Proportional set size of this process in bytes. */
static double pss_bytes(int rank) {
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && kib < 0 && fgets(line, sizeof line, f)) sscanf(line, "Pss: %ld kB", &kib);
    if (f) fclose(f);
    if (kib < 0) die(rank, "no Pss line in /proc/self/smaps_rollup");
    return 1024.0 * (double)kib;
}

/* What a rank holds on average after an alltoall, the program's own buffers given back first. */
static void measure_memory(struct work *w) {
    w->out_bytes = w->in_bytes = w->bytes * (size_t)w->ranks;
    w->out = pages(w->out_bytes);
    w->in = pages(w->in_bytes);
    double spent = batch(w, kind_of("alltoall"), 1), sum = 0;
    munmap(w->out, w->out_bytes);
    munmap(w->in, w->in_bytes);
    MPI_Barrier(w->comm);
    double mine = pss_bytes(w->rank);
    MPI_Barrier(w->comm); /* shared pages count by the processes that map them: all must still be here */
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, w->comm);
    if (w->rank == 0) report("B", sum / w->ranks, spent);
}

static void dispatch(struct work *w, const char *spec, double seconds) {
    char name[64], plain[64];
    int first, second;
    double number = 0;
    current = spec;
    if (sscanf(spec, "%63[^:]:%lf", name, &number) < 1) die(w->rank, "not KIND or KIND:NUMBER");
    w->bytes = (size_t)number;
    if (strcmp(name, "crowded-latency") == 0) {
        measure_between(w, kind_of("latency"), 0, 1, seconds);
        return;
    }
    if (sscanf(name, "%63[a-z]-%d-%d", plain, &first, &second) == 3) {
        const struct kind *kind = kind_of(plain);
        if (!kind || first < 0 || second <= first || second >= w->ranks) die(w->rank, "not KIND-A-B with A < B");
        measure_between(w, kind, first, second, seconds);
        return;
    }
    if (strcmp(name, "idle") == 0) {
        measure_idle(w, number);
        return;
    }
    if (strcmp(name, "memory") == 0) {
        measure_memory(w);
        return;
    }
    const struct kind *kind = kind_of(name);
    if (!kind) die(w->rank, "unknown measurement");
    measure(w, kind, seconds);
}

static void print_library(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = 0;
    printf("mpibench: library %s\n", text);
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct work w = {.comm = MPI_COMM_WORLD};
    MPI_Init(&argc, &argv);
    if (argc == 2 && strcmp(argv[1], "start") == 0) return MPI_Finalize();
    MPI_Comm_rank(w.comm, &w.rank);
    MPI_Comm_size(w.comm, &w.ranks);
    int first = 1;
    if (argc > first && strcmp(argv[first], "--corrupt") == 0) corrupt = first++;
    if (argc > first + 1 && strcmp(argv[first], "--cache-line") == 0) {
        share_lines(argv[first + 1], w.rank);
        first += 2;
    }
    double seconds = argc > first ? atof(argv[first]) : 0;
    if (seconds <= 0) die(w.rank, "usage: mpibench [--corrupt] [--cache-line FILE] SECONDS SPEC...");
    if (w.ranks < 2) die(w.rank, "at least 2 ranks are needed");
    if (w.rank == 0) print_library();
    if (lines) measure_cache_line(&w, seconds);
    for (int i = first + 1; i < argc; i++) {
        dispatch(&w, argv[i], seconds);
        if (lines) measure_cache_line(&w, seconds);
    }
    return MPI_Finalize();
}
