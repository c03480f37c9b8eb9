// Between harmonics and waves: sums over degrees, or over latitudes, for the wave numbers of this rank. Nothing is said
// to other ranks.
#ifndef HARMONICS_H
#define HARMONICS_H

#include "sphere.h"

// The waves of all FIELDS in sphere->by_wave from the harmonics [STATE][2][count].
void harmonics_to_waves(struct sphere *sphere, const double *state);

// The harmonics [RESULTS][2][count] from the waves of all PRODUCTS there.
void waves_to_harmonics(struct sphere *sphere, double *results);

#endif
