// Known answers. A plate between sides that follow a harmonic polynomial, to which the discrete
// equation has the same solution, is the ground; on it:
//
// - the solution itself must stay put, bit for bit (its values are whole numbers, the arithmetic
//   on them is exact);
// - a sine wave on top of it must fade by exactly its own factor per step, which a wrong step shows
//   even when it has the right limit (a halo that is one step old, for example);
// - a plate of zero must come as near as theory says it must;
// - held cells must keep their temperature;
// - all ranks must find what rank 0 finds alone, bit for bit.
#include "plate.h"
#include "run.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

// Buffers of rank 0; elsewhere NULL, as MPI allows.
struct bench {
    int n, rank, failures;
    double *start, *found;
    unsigned char *held;
};

// Harmonic: each value is the mean of its four neighbours. No symmetry hides a swapped neighbour.
static double harmonic(int row, int column)
{
    double x = column, y = row;
    return x * x - y * y + 3 * x * y + 5 * x - 7 * y + 11;
}

// Height of a wave with `p` half periods down and `q` across, zero on all four sides.
static double wave(int n, int p, int q, int row, int column)
{
    return 100 * sin(p * PI * row / (n + 1)) * sin(q * PI * column / (n + 1));
}

// The factor by which one Jacobi step shrinks that wave.
static double fading(int n, int p, int q)
{
    return 0.5 * (cos(p * PI / (n + 1)) + cos(q * PI / (n + 1)));
}

static size_t place(int n, int row, int column)
{
    return (size_t)row * (size_t)(n + 2) + (size_t)column;
}

static void open_bench(struct bench *bench, const struct job *job)
{
    *bench = (struct bench){.n = job->n};
    MPI_Comm_rank(MPI_COMM_WORLD, &bench->rank);
    if (bench->rank != 0)
        return;
    bench->start = malloc(plate_cells(job->n) * sizeof(double));
    bench->found = malloc(plate_cells(job->n) * sizeof(double));
    bench->held = calloc((size_t)job->n, (size_t)job->n);
    if (!bench->start || !bench->found || !bench->held)
        run_fail("--check: no memory for n = %d", job->n);
    for (int row = 0; row < job->n + 2; row++)
        for (int column = 0; column < job->n + 2; column++)
            bench->start[place(job->n, row, column)] = harmonic(row, column);
}

static void close_bench(struct bench *bench)
{
    free(bench->start);
    free(bench->found);
    free(bench->held);
}

// Runs `steps` steps from bench->start into bench->found. Collective over `comm`.
static void relax(struct bench *bench, MPI_Comm comm, long steps)
{
    struct plate plate;
    if (plate_open(&plate, comm, bench->n) != 0 || plate_deal(&plate, bench->start, bench->held) != 0)
        run_fail("--check: no memory for n = %d", bench->n);
    for (long step = 0; step < steps; step++)
        plate_step(&plate);
    if (bench->rank == 0) // the corners are nobody's
        memcpy(bench->found, bench->start, plate_cells(bench->n) * sizeof(double));
    plate_gather(&plate, bench->found);
    plate_close(&plate);
}

static void report(struct bench *bench, int right, const char *what, double value, double allowed)
{
    if (bench->rank != 0)
        return;
    bench->failures += !right;
    printf("heat: check: %-52s %9.2e, allowed %9.2e: %s\n", what, value, allowed, right ? "ok" : "WRONG");
}

// The greatest distance of the found plate from harmonic + height x wave(2, 3).
static double distance(const struct bench *bench, double height)
{
    double greatest = 0;
    for (int row = 1; bench->found && row <= bench->n; row++) {
        for (int column = 1; column <= bench->n; column++) {
            double right = harmonic(row, column) + height * wave(bench->n, 2, 3, row, column);
            double off = fabs(bench->found[place(bench->n, row, column)] - right);
            greatest = off <= greatest ? greatest : off; // not a number counts as far
        }
    }
    return greatest;
}

static void check_solution_stays(struct bench *bench)
{
    relax(bench, MPI_COMM_WORLD, 100);
    double off = distance(bench, 0);
    report(bench, off == 0, "a harmonic plate stays put over 100 steps", off, 0);
}

static void check_wave_fades(struct bench *bench)
{
    enum { STEPS = 60 };
    int n = bench->n;
    double greatest = 100;
    for (int row = 1; bench->start && row <= n; row++) {
        for (int column = 1; column <= n; column++) {
            bench->start[place(n, row, column)] += wave(n, 2, 3, row, column);
            greatest = fmax(greatest, fabs(harmonic(row, column)));
        }
    }
    relax(bench, MPI_COMM_WORLD, STEPS);
    double off = distance(bench, pow(fading(n, 2, 3), STEPS));
    // Each step rounds once or twice: some 60 units in the last place, and room.
    double allowed = 1e-13 * greatest;
    report(bench, off <= allowed, "a wave fades by its own factor in each of 60 steps", off, allowed);
}

// Root of the sum of squares of found - harmonic.
static double error_norm(const struct bench *bench, const double *cells)
{
    double sum = 0;
    for (int row = 1; cells && row <= bench->n; row++) {
        for (int column = 1; column <= bench->n; column++) {
            double off = cells[place(bench->n, row, column)] - harmonic(row, column);
            sum += off * off;
        }
    }
    return sqrt(sum);
}

static void check_zero_converges(struct bench *bench)
{
    int n = bench->n;
    for (int row = 1; bench->start && row <= n; row++)
        for (int column = 1; column <= n; column++)
            bench->start[place(n, row, column)] = 0;
    // No error fades slower than the longest wave: after these steps a millionth is left.
    double slowest = fading(n, 1, 1);
    long steps = (long)ceil(log(1e-6) / log(slowest));
    double before = error_norm(bench, bench->start);
    relax(bench, MPI_COMM_WORLD, steps);
    double after = error_norm(bench, bench->found);
    double allowed = before * 1.000001e-6;
    report(bench, after <= allowed, "a plate of zero converges as fast as it must", after, allowed);
}

// Holds a rectangle in the middle at 100 and lets all ranks and rank 0 alone relax that plate.
static void check_ranks_agree(struct bench *bench)
{
    int n = bench->n;
    double moved = 0;
    uint64_t together = 0, alone = 0;
    for (int row = n / 3; bench->held && row <= n / 2; row++) {
        for (int column = n / 4; column <= n / 2 && row < n && column < n; column++) {
            bench->held[(size_t)row * (size_t)n + (size_t)column] = 1;
            bench->start[place(n, row + 1, column + 1)] = 100;
        }
    }
    relax(bench, MPI_COMM_WORLD, 200);
    for (int row = 1; bench->held && row <= n; row++)
        for (int column = 1; column <= n; column++)
            if (bench->held[(size_t)(row - 1) * (size_t)n + (size_t)column - 1])
                moved = fmax(moved, fabs(bench->found[place(n, row, column)] - 100));
    report(bench, moved == 0, "held cells keep their temperature", moved, 0);
    if (bench->rank == 0) {
        together = plate_checksum(bench->found, n);
        relax(bench, MPI_COMM_SELF, 200);
        alone = plate_checksum(bench->found, n);
    }
    report(bench, together == alone, "all ranks find what rank 0 finds alone", together != alone, 0);
}

int run_check(const struct job *job)
{
    struct bench bench;
    open_bench(&bench, job);
    check_solution_stays(&bench);
    check_wave_fades(&bench);
    check_zero_converges(&bench);
    check_ranks_agree(&bench);
    if (bench.rank == 0 && bench.failures > 0)
        printf("heat: check: %d wrong\n", bench.failures);
    close_bench(&bench);
    return bench.failures > 0;
}
