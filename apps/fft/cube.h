// A field of complex numbers on a box of nx x ny x nz points, over all ranks, and its Fourier transform.
//
// In space a rank has whole planes: a run of z, and all x and y of each. The transform takes x and y within them; then
// the ranks trade, and a rank has a run of y with all x and z of each, where z is transformed. The way back is the same
// in reverse. So each transform costs one personalized all-to-all exchange, of all but what stays.
//
// What is traded lies in memory by the rank that it is for: in space as [rank][z][its y][x], in the spectrum as
// [z][y][x], which is [rank][its z][y][x]. What a rank keeps is always where the spectrum has it. So nothing is packed or
// copied, and x and y are transformed in place.
//
// Behind the rows of one z is a gap: without it they would lie a power of two apart, and the same point of all would
// fall into one set of the cache.
//
// A point is computed by the same operations in the same order whatever the number of ranks.
#ifndef CUBE_H
#define CUBE_H

#include "lines.h"

#include <stddef.h>

struct cube {
    int nx, ny, nz;
    int first_z, planes; // here in space
    int first_y, rows;   // here in the spectrum
    struct cell *space;    // of the planes here what other ranks have in the spectrum; see cube_row
    struct cell *layers;   // what they have traded, and what stays, [z][y][x]
    struct cell *spectrum; // [z][y][x]
    size_t *by_y, *by_z;   // starts of the ranks' parts, in bytes
    struct lines x, y, z;
    int *owners;              // which rank has a y in the spectrum
    struct cell **from, **to; // where the elements of lines are
};

// The points of one y in a plane that is here.
struct cell *cube_row(const struct cube *cube, int plane, int y);

void cube_open(struct cube *cube, int nx, int ny, int nz);
void cube_close(struct cube *cube);

// Fills the spectrum from the space. Collective; what was in space is gone.
void cube_forward(struct cube *cube);

// Fills the space from the spectrum, which stays, each number of it by fx[x] * fy[y] * fz[z]. Collective.
void cube_back(struct cube *cube, const double *fx, const double *fy, const double *fz);

#endif
