/*
 * One-sided operations one by one, for `weft bench imb`: plain MPI, two ranks, compiled by every library's own wrapper.
 *
 *     rmabench SECONDS
 *
 * Rank 0 works on the window of rank 1, which waits in a barrier; both take part in a fence, and in post, start,
 * complete and wait. Prints `rmabench: WINDOW/OPERATION VALUE s`. What the operations leave is checked; a wrong value
 * ends the job with status 3.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 65536, ELEMENTS = LONG / 8, BYTES = 2 * LONG };

static MPI_Win window;
static MPI_Group partner;
static int rank;
static double least_seconds;
static int64_t *memory, out[ELEMENTS], in[ELEMENTS];
static const char *kind;

static void put(MPI_Aint bytes) { MPI_Put(out, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window); }
static void get(MPI_Aint bytes) { MPI_Get(in, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window); }
static void add(int count) { MPI_Accumulate(out, count, MPI_INT64_T, 1, LONG, count, MPI_INT64_T, MPI_SUM, window); }
static void flush(void) { MPI_Win_flush(1, window); }

static void put_8(void) { put(8); flush(); }
static void get_8(void) { get(8); flush(); }
static void add_8(void) { add(1); flush(); }
static void put_long(void) { put(LONG); flush(); }
static void get_long(void) { get(LONG); flush(); }
static void add_long(void) { add(ELEMENTS); flush(); }
static void fetch(void) { MPI_Fetch_and_op(out, in, MPI_INT64_T, 1, LONG, MPI_SUM, window); flush(); }
/* Compares with what is never there. */
static void swap(void) { static const int64_t never = -1; MPI_Compare_and_swap(out, &never, in, MPI_INT64_T, 1, LONG, window); flush(); }
static void locked(void) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    put(8);
    MPI_Win_unlock(1, window);
}
static void fence(void) { MPI_Win_fence(0, window); }
static void both_ways(void) {
    MPI_Win_post(partner, 0, window);
    MPI_Win_start(partner, 0, window);
    MPI_Put(out, 8, MPI_BYTE, 1 - rank, 0, 8, MPI_BYTE, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
}

static void check(const char *what, int64_t got, int64_t expected) {
    if (got == expected) return;
    fprintf(stderr, "rmabench: error: %s/%s: %lld instead of %lld\n", kind, what, (long long)got, (long long)expected);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static long done; /* how often the last operation was carried out */

static double repeat(void (*operation)(void), long n) {
    double from = MPI_Wtime();
    for (long i = 0; i < n; i++) operation();
    done += n;
    return MPI_Wtime() - from;
}

/* Seconds of one. Both ranks repeat alike, if both do. */
static void measure(const char *what, void (*operation)(void), int both) {
    double took = 0;
    long n = 8;
    done = 0;
    for (;;) {
        if (both || rank == 0) took = repeat(operation, n);
        if (both) MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (took >= least_seconds || (!both && rank != 0)) break;
        n = took < least_seconds / 16 ? n * 8 : n * 2;
    }
    if (rank == 0) printf("rmabench: %s/%s %.9e s\n", kind, what, took / (double)n), fflush(stdout);
}

/* A row of operations of rank 0 in one epoch. */
static void measure_passive(void) {
    int64_t *sum = memory + ELEMENTS; /* of rank 1, where accumulates go */
    memset(memory, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        int64_t seen = 0;
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        measure("put-8", put_8, 0);
        measure("get-8", get_8, 0);
        check("get-8", in[0], out[0]);
        measure("accumulate-8", add_8, 0);
        seen += done * out[0];
        measure("fetch-and-op", fetch, 0);
        seen += done * out[0];
        measure("compare-and-swap", swap, 0);
        check("compare-and-swap", in[0], seen);
        measure("put-64k", put_long, 0);
        measure("get-64k", get_long, 0);
        check("get-64k", in[ELEMENTS - 1], out[ELEMENTS - 1]);
        measure("accumulate-64k", add_long, 0);
        seen += done * out[0];
        MPI_Get(in, 8, MPI_BYTE, 1, LONG, 8, MPI_BYTE, window);
        MPI_Win_unlock(1, window);
        check("accumulate-64k", in[0], seen);
        measure("lock-put-unlock", locked, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        check("put-64k", memory[ELEMENTS - 1], out[ELEMENTS - 1]);
        check("accumulate", sum[0] != 0, 1);
        MPI_Win_unlock(1, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int other;
    MPI_Group world;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    least_seconds = argc > 1 ? atof(argv[1]) : 0.1;
    other = 1 - rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &partner);
    for (int i = 0; i < ELEMENTS; i++) out[i] = i + 3;

    kind = "allocate";
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    measure_passive();
    MPI_Win_fence(0, window);
    measure("fence", fence, 1);
    measure("post-start-complete-wait", both_ways, 1);
    MPI_Win_free(&window);

    kind = "create";
    int64_t *own = malloc(BYTES);
    memory = own;
    MPI_Win_create(own, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    measure_passive();
    MPI_Win_free(&window);
    free(own);

    MPI_Group_free(&partner);
    MPI_Group_free(&world);
    MPI_Finalize();
    return 0;
}
