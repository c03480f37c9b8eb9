// Test cases of Williamson et al. (1992), "A standard test set for numerical approximations to the shallow water
// equations in spherical geometry".
#ifndef CASES_H
#define CASES_H

#include "model.h"

extern const double EARTH_RADIUS, GRAVITY;

// Case 2: a steady zonal flow, inclined by half a right angle against the equator. It must stay as it is.
struct weather cases_steady(double latitude, double longitude);

// Case 6: a Rossby-Haurwitz wave of wave number 4, which turns eastward.
struct weather cases_wave(double latitude, double longitude);

#endif
