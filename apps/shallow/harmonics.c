// With P_n a Legendre function and H_n its slope, the wave m of a latitude of sine x is
//
//     vorticity, geopotential: the sum over n of their harmonics by P_n
//     wind east:  the sum of  -e (i m delta_n P_n - zeta_n H_n),  with e = radius / n (n + 1)
//     wind north: the sum of  -e (i m zeta_n P_n + delta_n H_n)
//
// and a flow (A, B) by the cosine of the latitude has the harmonics, with weights w by 1 / radius (1 - x x),
//
//     outflow: the sum over latitudes of w (i m A P_n - B H_n)
//     turn:    the sum of                w (i m B P_n + A H_n)
//
// An even function has an odd slope. So what even and odd harmonics add up to is kept apart for the northern half, and
// their sum is the north, their difference the south; on the way back likewise.
#include "harmonics.h"
#include "ranks.h"

#include <string.h>

// Real and imaginary parts of all fields.
enum { PARTS = 2 * FIELDS, INPUTS = 2 * PRODUCTS };

// The eight terms of one degree: what its function and its slope are multiplied with.
struct terms {
    double east_p[2], east_h[2], north_p[2], north_h[2], vorticity[2], geopotential[2];
};

static struct terms terms_of(const struct sphere *sphere, const double *state, size_t at, int m, int n)
{
    size_t count = sphere->count;
    double e = n > 0 ? sphere->radius / ((double)n * (n + 1)) : 0;
    const double *zeta = state + ZETA * 2 * count + at, *delta = state + DELTA * 2 * count + at;
    const double *phi = state + PHI * 2 * count + at;
    return (struct terms){{e * m * delta[count], -e * m * delta[0]}, {e * zeta[0], e * zeta[count]},
                          {e * m * zeta[count], -e * m * zeta[0]},   {-e * delta[0], -e * delta[count]},
                          {zeta[0], zeta[count]},                    {phi[0], phi[count]}};
}

// Adds the terms of one degree to the sums of all latitudes of the northern half. `same` has its parity, `other` not.
static void add_degree(const struct terms *t, const double *restrict p, const double *restrict h, int half,
                       double *restrict same, double *restrict other)
{
    for (int part = 0; part < 2; part++) {
        double *restrict east = same + (2 * EAST + part) * half, *restrict north = same + (2 * NORTH + part) * half;
        double *restrict vorticity = same + (2 * VORTICITY + part) * half;
        double *restrict geopotential = same + (2 * GEOPOTENTIAL + part) * half;
        double *restrict east_h = other + (2 * EAST + part) * half;
        double *restrict north_h = other + (2 * NORTH + part) * half;
        double ep = t->east_p[part], eh = t->east_h[part], np = t->north_p[part], nh = t->north_h[part];
        double v = t->vorticity[part], g = t->geopotential[part];
        for (int j = 0; j < half; j++) {
            east[j] += ep * p[j];
            north[j] += np * p[j];
            vorticity[j] += v * p[j];
            geopotential[j] += g * p[j];
            east_h[j] += eh * h[j];
            north_h[j] += nh * h[j];
        }
    }
}

// The wave number `wave` of this rank, from even and odd sums of the northern half.
static void put_waves(struct sphere *sphere, int wave, const double *even, const double *odd)
{
    int half = sphere->gauss.half;
    for (int j = 0; j < half; j++) {
        for (int field = 0; field < FIELDS; field++) {
            double e[2], o[2];
            for (int part = 0; part < 2; part++) {
                e[part] = even[(2 * field + part) * half + j];
                o[part] = odd[(2 * field + part) * half + j];
            }
            struct cell *to = sphere->by_wave + field * sphere->wave_count + wave;
            to[j * FIELDS * sphere->wave_count] = (struct cell){e[0] + o[0], e[1] + o[1]};
            to[(sphere->latitudes - 1 - j) * FIELDS * sphere->wave_count] = (struct cell){e[0] - o[0], e[1] - o[1]};
        }
    }
}

void harmonics_to_waves(struct sphere *sphere, const double *state)
{
    int half = sphere->gauss.half;
    double sums[2][PARTS * half];
    size_t at = 0;
    for (int wave = 0; wave < sphere->wave_count; wave++) {
        const struct legendre *legendre = &sphere->waves[wave];
        memset(sums, 0, sizeof sums);
        for (int i = 0; i < legendre->count; i++, at++) {
            int odd = i >= legendre->evens;
            struct terms terms = terms_of(sphere, state, at, legendre->m, legendre->degrees[i]);
            add_degree(&terms, legendre->by_degree + i * half, legendre->slopes_by_degree + i * half, half, sums[odd],
                       sums[!odd]);
        }
        put_waves(sphere, wave, sums[0], sums[1]);
    }
}

// The waves of a northern latitude and its mirror, as even and odd parts, by their weights.
static void take_waves(const struct sphere *sphere, int wave, int j, double even[INPUTS], double odd[INPUTS])
{
    double x = sphere->gauss.sines[j], weight = sphere->gauss.weights[j];
    for (int product = 0; product < PRODUCTS; product++) {
        double w = product == SCALAR ? weight : weight / (sphere->radius * (1 - x * x));
        const struct cell *from = sphere->by_wave + product * sphere->wave_count + wave;
        struct cell north = from[j * PRODUCTS * sphere->wave_count];
        struct cell south = from[(sphere->latitudes - 1 - j) * PRODUCTS * sphere->wave_count];
        even[2 * product] = w * (north.re + south.re);
        even[2 * product + 1] = w * (north.im + south.im);
        odd[2 * product] = w * (north.re - south.re);
        odd[2 * product + 1] = w * (north.im - south.im);
    }
}

// Adds one latitude to the results of some degrees of one parity. `same` has their parity, `other` not.
static void add_latitude(const double *same, const double *other, int m, const double *restrict p,
                         const double *restrict h, int degrees, double *results, size_t count)
{
    for (int part = 0; part < 2; part++) {
        // Times i m: the real part comes from the imaginary one, with the other sign.
        double turn = part == 0 ? -m : m;
        double a = turn * same[2 * FLOW_EAST + !part], b = turn * same[2 * FLOW_NORTH + !part];
        double c = turn * same[2 * OTHER_EAST + !part], s = same[2 * SCALAR + part];
        double ah = other[2 * FLOW_EAST + part], bh = other[2 * FLOW_NORTH + part];
        double dh = other[2 * OTHER_NORTH + part];
        double *restrict outflow = results + (2 * OUTFLOW + part) * count;
        double *restrict turning = results + (2 * TURN_OF_FLOW + part) * count;
        double *restrict other_outflow = results + (2 * OTHER_OUTFLOW + part) * count;
        double *restrict scalar = results + (2 * SCALAR_ITSELF + part) * count;
        for (int i = 0; i < degrees; i++) {
            outflow[i] += a * p[i] - bh * h[i];
            turning[i] += b * p[i] + ah * h[i];
            other_outflow[i] += c * p[i] - dh * h[i];
            scalar[i] += s * p[i];
        }
    }
}

void waves_to_harmonics(struct sphere *sphere, double *results)
{
    memset(results, 0, RESULTS * 2 * sphere->count * sizeof *results);
    for (int wave = 0; wave < sphere->wave_count; wave++) {
        const struct legendre *legendre = &sphere->waves[wave];
        int count = legendre->count, evens = legendre->evens;
        for (int j = 0; j < sphere->gauss.half; j++) {
            double even[INPUTS], odd[INPUTS];
            const double *p = legendre->by_place + j * count, *h = legendre->slopes_by_place + j * count;
            take_waves(sphere, wave, j, even, odd);
            add_latitude(even, odd, legendre->m, p, h, evens, results, sphere->count);
            add_latitude(odd, even, legendre->m, p + evens, h + evens, count - evens, results + evens, sphere->count);
        }
        results += count;
    }
}
