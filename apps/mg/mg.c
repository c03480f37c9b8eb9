// Multigrid, after the NAS parallel benchmarks: Poisson's equation on a periodic box, by V-cycles.
#include "charges.h"
#include "grid.h"
#include "picture.h"
#include "ranks.h"
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEVELS = 10 };

static const double TOLERANCE = 1e-8;

// Of the smoother. The second is for the problems with many cycles.
static const double WEIGHTS[2][3] = {{-3.0 / 8, 1.0 / 32, -1.0 / 64}, {-3.0 / 17, 1.0 / 33, -1.0 / 61}};

// The norms of the residual are published with the benchmarks.
static const struct problem {
    char class;
    int n, cycles, smoother;
    double norm;
} PROBLEMS[] = {
    {'S', 32, 4, 0, 0.5307707005734e-4},  {'W', 128, 4, 0, 0.6467329375339e-5}, {'A', 256, 4, 0, 0.2433365309069e-5},
    {'B', 256, 20, 1, 0.1800564401355e-5}, {'C', 512, 20, 1, 0.5706732285740e-6},
};

// Level 0 is the coarsest, of 2 x 2 x 2 numbers.
struct multigrid {
    int levels;
    struct grid u[MOST_LEVELS], residual[MOST_LEVELS];
    struct grid right; // of the finest
    const double *weights;
};

// Each rank must have two planes of a shared grid.
static void open_grids(struct multigrid *grids, const struct problem *problem)
{
    int shared = 0;
    grids->weights = WEIGHTS[problem->smoother];
    grids->levels = 0;
    for (int n = 2; n <= problem->n; n *= 2) {
        if (ranks.count > 1 && !shared && n >= 2 * ranks.count)
            shared = n;
        grid_open(&grids->u[grids->levels], n, shared);
        grid_open(&grids->residual[grids->levels], n, shared);
        grids->levels++;
    }
    grid_open(&grids->right, problem->n, shared);
}

static void close_grids(struct multigrid *grids)
{
    for (int level = 0; level < grids->levels; level++) {
        grid_close(&grids->u[level]);
        grid_close(&grids->residual[level]);
    }
    grid_close(&grids->right);
}

static void residual_of_finest(struct multigrid *grids)
{
    int finest = grids->levels - 1;
    grid_residual(&grids->residual[finest], &grids->right, &grids->u[finest]);
}

// The residual goes down to the coarsest grid. From there on each grid has the correction of the one below, and its
// own.
static void cycle(struct multigrid *grids)
{
    int finest = grids->levels - 1;
    struct grid *u = grids->u, *residual = grids->residual;
    for (int level = finest; level > 0; level--)
        grid_coarsen(&residual[level - 1], &residual[level]);
    grid_clear(&u[0]);
    grid_smooth(&u[0], &residual[0], grids->weights);
    for (int level = 1; level <= finest; level++) {
        if (level < finest)
            grid_clear(&u[level]);
        grid_refine(&u[level], &u[level - 1]);
        grid_residual(&residual[level], level < finest ? &residual[level] : &grids->right, &u[level]);
        grid_smooth(&u[level], &residual[level], grids->weights);
    }
}

static double solve(struct multigrid *grids, int cycles)
{
    residual_of_finest(grids);
    for (int done = 0; done < cycles; done++) {
        cycle(grids);
        residual_of_finest(grids);
    }
    return grid_norm(&grids->residual[grids->levels - 1]);
}

// One plane of u, which one rank has and rank 0 writes.
static int paint(const struct grid *u, int z, const char *path)
{
    size_t count = (size_t)u->n * (size_t)u->n, starts[ranks.count + 1];
    double *numbers = ranks_memory(count * sizeof *numbers);
    int owner = 0, failed = 0;
    while (u->is_shared && u->starts[owner + 1] <= (size_t)z * (u->starts[ranks.count] / (size_t)u->n))
        owner++;
    for (int rank = 0; rank <= ranks.count; rank++)
        starts[rank] = rank > owner ? count * sizeof *numbers : 0;
    if (ranks.me == owner)
        for (size_t y = 0; y < (size_t)u->n; y++)
            memcpy(numbers + y * (size_t)u->n, grid_plane(u, z) + (y + 1) * ((size_t)u->n + 2) + 1,
                   (size_t)u->n * sizeof *numbers);
    ranks_gather(numbers, starts);
    for (size_t i = 0; i < count; i++)
        numbers[i] = cbrt(numbers[i]); // what is weak is seen, too
    if (ranks.me == 0)
        failed = picture_write(path, numbers, u->n, u->n);
    free(numbers);
    return failed;
}

int main(int count, char **words)
{
    static const struct usage USAGE = {.program = "mg",
                                       .text = "Poisson's equation on a periodic box by multigrid (NAS MG).",
                                       .classes = "SWABC",
                                       .picture = "the solution in the plane of one charge"};
    struct run run = run_begin(&USAGE, count, words);
    const struct problem *problem = PROBLEMS;
    while (problem->class != run.class)
        problem++;
    if (ranks.count > problem->n / 2)
        run_fail("mg: %d ranks: allowed are %d, with two planes each", ranks.count, problem->n / 2);
    struct multigrid grids;
    open_grids(&grids, problem);
    int plane = charges_place(&grids.right);
    solve(&grids, 1); // touches all memory once
    grid_clear(&grids.u[grids.levels - 1]);
    double start = ranks_meet();
    double norm = solve(&grids, problem->cycles);
    double seconds = ranks_meet() - start;
    int wrong = !(fabs(norm - problem->norm) <= TOLERANCE * problem->norm);
    if (ranks.me == 0)
        printf("mg: %d cycles on %d^3 points: norm of the residual %.16e, known is %.13e\n", problem->cycles,
               problem->n, norm, problem->norm);
    if (run.picture && paint(&grids.u[grids.levels - 1], plane, run.picture) != 0)
        wrong = 1;
    close_grids(&grids);
    return run_end(&run, seconds, wrong);
}
