// The right side of the equation: ten numbers are 1 and ten are -1, at places that random numbers choose.
#ifndef CHARGES_H
#define CHARGES_H

#include "grid.h"

// Sets them in a grid of zeros. Returns the plane of the first that is 1. Collective.
int charges_place(struct grid *grid);

#endif
