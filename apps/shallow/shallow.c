// Shallow water on a rotating sphere by the spectral transform method: five days of two of Williamson's test cases. One
// of them must stay as it is; in the other one mass and energy must.
#include "cases.h"
#include "model.h"
#include "picture.h"
#include "ranks.h"
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAYS = 5, SECONDS_OF_DAY = 86400 };

static const struct problem {
    char class;
    int latitudes, most; // harmonics have degrees up to `most`
    int seconds;         // of a step
} PROBLEMS[] = {{'S', 32, 21, 1200}, {'W', 64, 42, 600}, {'A', 128, 85, 300}, {'B', 256, 170, 150}};

// Nothing but rounding may move the steady flow, or change the mass. The energy of the wave changes a little with each
// step, less with shorter ones.
static const double STEADY_TOLERANCE = 1e-12, MASS_TOLERANCE = 1e-12, ENERGY_TOLERANCE = 1e-6;

// Means over the sphere.
struct means {
    double mass, energy, square, error; // geopotential, energy, squares of the geopotential and of its error
};

static struct means means_of_row(const struct model *model, int j, weather_at known)
{
    const struct sphere *sphere = &model->sphere;
    const double *u = sphere_field(sphere, j, EAST), *v = sphere_field(sphere, j, NORTH);
    const double *phi = sphere_field(sphere, j, GEOPOTENTIAL);
    double x = sphere_sine(sphere, j), share = sphere_share(sphere, j);
    struct means row = {0, 0, 0, 0};
    for (int i = 0; i < sphere->longitudes; i++) {
        double right = known(asin(x), 2 * acos(-1) * i / sphere->longitudes).geopotential;
        row.mass += share * phi[i];
        row.energy += share * phi[i] / 2 * (phi[i] + (u[i] * u[i] + v[i] * v[i]) / (1 - x * x));
        row.square += share * right * right;
        row.error += share * (phi[i] - right) * (phi[i] - right);
    }
    return row;
}

// Of the fields on the grid. `known` is what the geopotential should be.
static struct means find_means(const struct model *model, weather_at known)
{
    const struct sphere *sphere = &model->sphere;
    struct means rows[sphere->latitudes], all = {0, 0, 0, 0};
    size_t starts[ranks.count + 1];
    for (int rank = 0; rank <= ranks.count; rank++)
        starts[rank] = ranks_first((size_t)sphere->latitudes, rank) * sizeof all;
    for (int j = sphere->first; j < sphere->first + sphere->here; j++)
        rows[j] = means_of_row(model, j, known);
    ranks_gather(rows, starts);
    for (int j = 0; j < sphere->latitudes; j++) {
        all.mass += rows[j].mass;
        all.energy += rows[j].energy;
        all.square += rows[j].square;
        all.error += rows[j].error;
    }
    return all;
}

// The height of the fluid, north at the top.
static int paint(const struct sphere *sphere, const char *path)
{
    size_t row = (size_t)sphere->longitudes, starts[ranks.count + 1];
    double *heights = ranks_memory((size_t)sphere->latitudes * row * sizeof *heights);
    for (int rank = 0; rank <= ranks.count; rank++)
        starts[rank] = ranks_first((size_t)sphere->latitudes, rank) * row * sizeof *heights;
    for (int j = sphere->first; j < sphere->first + sphere->here; j++)
        for (size_t i = 0; i < row; i++)
            heights[(size_t)j * row + i] = sphere_field(sphere, j, GEOPOTENTIAL)[i] / GRAVITY;
    ranks_gather(heights, starts);
    int failed = ranks.me == 0 ? picture_write(path, heights, sphere->longitudes, sphere->latitudes) : 0;
    free(heights);
    return failed;
}

// Says what has changed. Returns how much of it is wrong.
static int report(const struct problem *problem, int steady, const struct means *before, const struct means *after)
{
    double mass = fabs(after->mass / before->mass - 1), energy = fabs(after->energy / before->energy - 1);
    double error = sqrt(after->error / after->square);
    if (ranks.me == 0) {
        printf("shallow: T%d, %d x %d points, %d days in steps of %d s\n", problem->most, 2 * problem->latitudes,
               problem->latitudes, DAYS, problem->seconds);
        printf("shallow: mass changed by %.12e of itself, allowed %.0e\n", mass, MASS_TOLERANCE);
        printf("shallow: energy changed by %.12e of itself, allowed %.0e\n", energy, ENERGY_TOLERANCE);
        if (steady)
            printf("shallow: error of the height %.12e of itself, allowed %.0e\n", error, STEADY_TOLERANCE);
    }
    return !(mass <= MASS_TOLERANCE) + !(energy <= ENERGY_TOLERANCE) + (steady && !(error <= STEADY_TOLERANCE));
}

int main(int count, char **words)
{
    static const struct usage USAGE = {.program = "shallow",
                                       .text = "Shallow water on a rotating sphere by spherical harmonics.",
                                       .classes = "SWAB",
                                       .picture = "the height at the end",
                                       .option = "--case",
                                       .about = "which flow",
                                       .words = "steady wave"};
    struct run run = run_begin(&USAGE, count, words);
    int steady = !run.word || strcmp(run.word, "steady") == 0;
    weather_at weather = steady ? cases_steady : cases_wave;
    const struct problem *problem = PROBLEMS;
    while (problem->class != run.class)
        problem++;
    if (ranks.count > problem->most + 1)
        run_fail("shallow: %d ranks: allowed are %d, one for each wave number", ranks.count, problem->most + 1);
    struct model model;
    model_open(&model, problem->latitudes, problem->most, EARTH_RADIUS, weather);
    model_show(&model);
    struct means before = find_means(&model, weather);
    double start = ranks_meet();
    for (int seconds = 0; seconds < DAYS * SECONDS_OF_DAY; seconds += problem->seconds)
        model_step(&model, problem->seconds);
    double seconds = ranks_meet() - start;
    model_show(&model);
    struct means after = find_means(&model, weather);
    int wrong = report(problem, steady, &before, &after);
    if (run.picture && paint(&model.sphere, run.picture) != 0)
        wrong++;
    model_close(&model);
    return run_end(&run, seconds, wrong > 0);
}
