// 3D-FFT, after the NAS parallel benchmarks: a field of random numbers on a box diffuses, which is solved by Fourier
// transforms; after each step a checksum of the field is known.
#include "cube.h"
#include "nas.h"
#include "picture.h"
#include "problem.h"
#include "ranks.h"
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Those of the checksum.
enum { POINTS = 1024 };

static const double PI = 3.14159265358979323846, ALPHA = 1e-6, TOLERANCE = 1e-12;

// How much waves of each direction are left after one step or more: exp(-4 ALPHA PI^2 k^2) in one step.
struct fading {
    double *x, *y, *z;
};

static void fade(double *factors, int n, int step)
{
    for (int i = 0; i < n; i++) {
        int k = i < n / 2 ? i : i - n;
        factors[i] = exp(-4 * ALPHA * PI * PI * step * k * k);
    }
}

static void fill(struct cube *cube)
{
    size_t plane = (size_t)cube->nx * (size_t)cube->ny;
    uint64_t x = nas_after(2 * (uint64_t)cube->first_z * plane);
    for (int row = 0; row < cube->planes * cube->ny; row++) {
        struct cell *cells = cube_row(cube, row / cube->ny, row % cube->ny);
        for (int i = 0; i < cube->nx; i++) {
            cells[i].re = nas_fraction(x = nas_next(x));
            cells[i].im = nas_fraction(x = nas_next(x));
        }
    }
}

// The sum over some points, divided by the number of all. The points are added plane by plane, so that the sum does not
// depend on which rank has which plane.
static struct cell checksum(const struct cube *cube)
{
    size_t starts[ranks.count + 1], found = 0;
    struct cell points[POINTS], sum = {0, 0};
    int rank = 0;
    for (int z = 0; z < cube->nz; z++) {
        while (rank < ranks.count && z >= (int)ranks_first((size_t)cube->nz, rank))
            starts[rank++] = found * sizeof sum;
        for (int j = 1; j <= POINTS; j++) {
            if (5 * j % cube->nz != z)
                continue;
            if (z >= cube->first_z && z < cube->first_z + cube->planes)
                points[found] = cube_row(cube, z - cube->first_z, 3 * j % cube->ny)[j % cube->nx];
            found++;
        }
    }
    starts[ranks.count] = found * sizeof sum;
    ranks_gather(points, starts);
    for (int i = 0; i < POINTS; i++) {
        sum.re += points[i].re;
        sum.im += points[i].im;
    }
    double all = (double)cube->nx * cube->ny * cube->nz;
    return (struct cell){sum.re / all, sum.im / all};
}

static void step_forward(struct cube *cube, struct fading *fading, int step)
{
    fade(fading->x, cube->nx, step);
    fade(fading->y, cube->ny, step);
    fade(fading->z, cube->nz, step);
    cube_back(cube, fading->x, fading->y, fading->z);
}

static void run_steps(struct cube *cube, const struct problem *problem, struct cell *found)
{
    struct fading fading = {ranks_memory((size_t)cube->nx * sizeof(double)),
                            ranks_memory((size_t)cube->ny * sizeof(double)),
                            ranks_memory((size_t)cube->nz * sizeof(double))};
    fill(cube);
    cube_forward(cube);
    for (int step = 1; step <= problem->steps; step++) {
        step_forward(cube, &fading, step);
        found[step - 1] = checksum(cube);
    }
    free(fading.x);
    free(fading.y);
    free(fading.z);
}

static int is_wrong(double found, double known)
{
    return !(fabs(found - known) <= TOLERANCE * fabs(known));
}

static int report(const struct problem *problem, const struct cell *found)
{
    int wrong = 0;
    for (int step = 0; step < problem->steps; step++) {
        struct cell known = problem->checksums[step];
        int bad = is_wrong(found[step].re, known.re) || is_wrong(found[step].im, known.im);
        if (ranks.me == 0)
            printf("fft: step %2d: checksum %.17g %+.17gi%s\n", step + 1, found[step].re, found[step].im,
                   bad ? ": WRONG" : "");
        wrong += bad;
    }
    return wrong;
}

// The first plane, which rank 0 has.
static int paint(const struct cube *cube, const char *path)
{
    if (ranks.me != 0)
        return 0;
    size_t count = (size_t)cube->nx * (size_t)cube->ny;
    double *numbers = ranks_memory(count * sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = cube_row(cube, 0, (int)i / cube->nx)[(int)i % cube->nx].re;
    int failed = picture_write(path, numbers, cube->nx, cube->ny);
    free(numbers);
    return failed;
}

int main(int count, char **words)
{
    static const struct usage USAGE = {.program = "fft",
                                       .text = "Diffusion of random numbers in a box by Fourier transforms (NAS FT).",
                                       .classes = PROBLEM_CLASSES,
                                       .picture = "the first plane at the end"};
    struct run run = run_begin(&USAGE, count, words);
    const struct problem *problem = problem_of(run.class);
    if (ranks.count > problem->nz)
        run_fail("fft: %d ranks: allowed are %d, one for each plane", ranks.count, problem->nz);
    struct cell found[PROBLEM_MOST_STEPS];
    struct cube cube;
    cube_open(&cube, problem->nx, problem->ny, problem->nz);
    fill(&cube);
    cube_forward(&cube); // touches all memory once
    double start = ranks_meet();
    run_steps(&cube, problem, found);
    double seconds = ranks_meet() - start;
    int wrong = report(problem, found);
    if (run.picture && paint(&cube, run.picture) != 0)
        wrong++;
    cube_close(&cube);
    return run_end(&run, seconds, wrong > 0);
}
