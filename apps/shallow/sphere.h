// Fields on a sphere, over all ranks: on a grid of Gaussian latitudes, and as spherical harmonics.
//
// On the grid a rank has a run of latitudes, each with all its longitudes. Of the harmonics it has some wave numbers m,
// each with all its degrees n, so that on either side its sums are its own. In between are waves: for each latitude and
// each m one number. Ranks trade them, in a personalized all-to-all exchange in either direction; in memory they lie by
// latitude, so that nothing is packed.
//
// All sums are in one fixed order, so results do not depend on the number of ranks.
#ifndef SPHERE_H
#define SPHERE_H

#include "legendre.h"
#include "lines.h"

#include <stddef.h>

// Fields on the grid, made from the harmonics. East and north are those of the wind, by the cosine of the latitude.
enum { EAST, NORTH, VORTICITY, GEOPOTENTIAL, FIELDS };

// On the grid, to be made harmonics: two flows, by the cosine of the latitude, and something else.
enum { FLOW_EAST, FLOW_NORTH, OTHER_EAST, OTHER_NORTH, SCALAR, PRODUCTS };

// Harmonics of those: what goes out of the first flow and how it turns, what goes out of the other one, and the scalar.
enum { OUTFLOW, TURN_OF_FLOW, OTHER_OUTFLOW, SCALAR_ITSELF, RESULTS };

// Harmonics of what moves.
enum { ZETA, DELTA, PHI, STATE };

struct sphere {
    int latitudes, longitudes, most;
    double radius;
    struct gauss gauss;
    int first, here; // latitudes of this rank
    double *fields;   // [latitude here][field][longitude]
    double *products; // [latitude here][product][longitude]
    int *order, *below; // wave numbers by rank, and how many are on the ranks below each
    struct legendre *waves; // of the wave numbers of this rank
    int wave_count;
    size_t count; // harmonics of this rank; of a field first the real parts of all, then the imaginary ones
    struct cell *by_wave, *by_latitude; // what is traded: [latitude][field][wave number of the owner]
    struct lines lines;
};

void sphere_open(struct sphere *sphere, int latitudes, int most, double radius);
void sphere_close(struct sphere *sphere);

// The sine of a latitude; 0 is the northernmost.
double sphere_sine(const struct sphere *sphere, int latitude);

// The share that a point of this latitude has in a mean over the sphere.
double sphere_share(const struct sphere *sphere, int latitude);

// The row of longitudes of a field or a product, at one of the latitudes here.
static inline double *sphere_field(const struct sphere *sphere, int latitude, int field)
{
    return sphere->fields + (size_t)((latitude - sphere->first) * FIELDS + field) * (size_t)sphere->longitudes;
}

static inline double *sphere_product(const struct sphere *sphere, int latitude, int product)
{
    return sphere->products + (size_t)((latitude - sphere->first) * PRODUCTS + product) * (size_t)sphere->longitudes;
}

// The fields on the grid from the harmonics [STATE][2][count]. Collective.
void sphere_to_grid(struct sphere *sphere, const double *state);

// The harmonics [RESULTS][2][count] of the products on the grid. Collective.
void sphere_to_harmonics(struct sphere *sphere, double *results);

#endif
