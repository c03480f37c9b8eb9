#include "model.h"
#include "ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TURN = 6.283185307179586476925;

static size_t numbers_of(const struct model *model)
{
    return STATE * 2 * model->sphere.count;
}

// The initial vorticity and divergence are those of the wind, the geopotential is a scalar.
static void start(struct model *model, weather_at weather)
{
    struct sphere *sphere = &model->sphere;
    int longitudes = sphere->longitudes;
    memset(sphere->products, 0, (size_t)(sphere->here * PRODUCTS * longitudes) * sizeof(double));
    for (int j = sphere->first; j < sphere->first + sphere->here; j++) {
        for (int i = 0; i < longitudes; i++) {
            struct weather here = weather(asin(sphere_sine(sphere, j)), TURN * i / longitudes);
            sphere_product(sphere, j, FLOW_EAST)[i] = here.east;
            sphere_product(sphere, j, FLOW_NORTH)[i] = here.north;
            sphere_product(sphere, j, SCALAR)[i] = here.geopotential;
            model->coriolis[(j - sphere->first) * longitudes + i] = here.coriolis;
        }
    }
    sphere_to_harmonics(sphere, model->results);
    size_t field = 2 * sphere->count;
    memcpy(model->state + ZETA * field, model->results + TURN_OF_FLOW * field, field * sizeof(double));
    memcpy(model->state + DELTA * field, model->results + OUTFLOW * field, field * sizeof(double));
    memcpy(model->state + PHI * field, model->results + SCALAR_ITSELF * field, field * sizeof(double));
}

void model_open(struct model *model, int latitudes, int most, double radius, weather_at weather)
{
    sphere_open(&model->sphere, latitudes, most, radius);
    size_t bytes = numbers_of(model) * sizeof(double);
    model->coriolis = ranks_memory((size_t)(model->sphere.here * model->sphere.longitudes) * sizeof(double));
    model->state = ranks_memory(bytes);
    model->start = ranks_memory(bytes);
    model->sum = ranks_memory(bytes);
    model->change = ranks_memory(bytes);
    model->results = ranks_memory(RESULTS * 2 * model->sphere.count * sizeof(double));
    start(model, weather);
}

void model_close(struct model *model)
{
    double *all[] = {model->coriolis, model->state, model->start, model->sum, model->change, model->results};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    sphere_close(&model->sphere);
}

// On the grid, for all latitudes here.
static void multiply(struct model *model)
{
    struct sphere *sphere = &model->sphere;
    for (int j = sphere->first; j < sphere->first + sphere->here; j++) {
        double x = sphere_sine(sphere, j), half = 0.5 / (1 - x * x);
        const double *restrict u = sphere_field(sphere, j, EAST), *restrict v = sphere_field(sphere, j, NORTH);
        const double *restrict zeta = sphere_field(sphere, j, VORTICITY);
        const double *restrict phi = sphere_field(sphere, j, GEOPOTENTIAL);
        const double *restrict f = model->coriolis + (j - sphere->first) * sphere->longitudes;
        double *restrict to = sphere_product(sphere, j, 0);
        int n = sphere->longitudes;
        for (int i = 0; i < n; i++) {
            to[FLOW_EAST * n + i] = u[i] * (zeta[i] + f[i]);
            to[FLOW_NORTH * n + i] = v[i] * (zeta[i] + f[i]);
            to[OTHER_EAST * n + i] = u[i] * phi[i];
            to[OTHER_NORTH * n + i] = v[i] * phi[i];
            to[SCALAR * n + i] = phi[i] + half * (u[i] * u[i] + v[i] * v[i]);
        }
    }
}

// How fast the state changes.
static void find_change(struct model *model)
{
    struct sphere *sphere = &model->sphere;
    size_t count = sphere->count, at = 0;
    double *change = model->change;
    const double *results = model->results;
    sphere_to_grid(sphere, model->state);
    multiply(model);
    sphere_to_harmonics(sphere, model->results);
    for (int wave = 0; wave < sphere->wave_count; wave++) {
        for (int i = 0; i < sphere->waves[wave].count; i++, at++) {
            double n = sphere->waves[wave].degrees[i], laplace = n * (n + 1) / (sphere->radius * sphere->radius);
            for (size_t k = at; k <= at + count; k += count) {
                change[ZETA * 2 * count + k] = -results[OUTFLOW * 2 * count + k];
                change[DELTA * 2 * count + k] =
                    results[TURN_OF_FLOW * 2 * count + k] + laplace * results[SCALAR_ITSELF * 2 * count + k];
                change[PHI * 2 * count + k] = -results[OTHER_OUTFLOW * 2 * count + k];
            }
        }
    }
}

static void advance(size_t numbers, const double *restrict change, double by_all, double by_stage,
                    const double *restrict begun, double *restrict sum, double *restrict state)
{
    for (size_t i = 0; i < numbers; i++) {
        sum[i] += by_all * change[i];
        state[i] = begun[i] + by_stage * change[i];
    }
}

void model_step(struct model *model, double seconds)
{
    static const double WEIGHTS[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}, AHEAD[4] = {0.5, 0.5, 1, 0};
    size_t numbers = numbers_of(model);
    memcpy(model->start, model->state, numbers * sizeof(double));
    memcpy(model->sum, model->state, numbers * sizeof(double));
    for (int stage = 0; stage < 4; stage++) {
        find_change(model);
        advance(numbers, model->change, seconds * WEIGHTS[stage], seconds * AHEAD[stage], model->start, model->sum,
                model->state);
    }
    memcpy(model->state, model->sum, numbers * sizeof(double));
}

void model_show(struct model *model)
{
    sphere_to_grid(&model->sphere, model->state);
}
