// A field of complex numbers on a box of nx x ny x nz points, over all ranks, and its Fourier transform.
//
// In space a rank has whole planes: a run of z, and all x and y of each. The transform takes x and y within them; then
// the ranks trade, and a rank has a run of y with all x and z of each, where z is transformed. The way back is the same
// in reverse. So each transform costs one personalized all-to-all exchange, of all but what stays.
//
// What is traded lies in memory by the rank that it is for: in space as [rank][z][its y][x], in the spectrum as
// [z][y][x], which is [rank][its z][y][x]. No copy is made for it.
//
// Behind each such layer of one z is a gap: without it the layers would lie a power of two apart, and the same point of
// all would fall into one set of the cache.
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
    struct cell *space;    // [z][y][x], see cube_plane
    struct cell *spectrum; // [z][y][x]
    struct cell *traded;   // what was traded; on one rank it is `space`
    size_t *by_y, *by_z;   // starts of the ranks' parts, in bytes
    struct lines x, y, z;
    struct cell **from, **to; // where the elements of lines are
};

// The points of a plane that is here, [y][x].
struct cell *cube_plane(const struct cube *cube, int plane);

void cube_open(struct cube *cube, int nx, int ny, int nz);
void cube_close(struct cube *cube);

// Fills the spectrum from the space. Collective; what was in space is gone.
void cube_forward(struct cube *cube);

// Fills the space from the spectrum, which stays, each number of it by fx[x] * fy[y] * fz[z]. Collective.
void cube_back(struct cube *cube, const double *fx, const double *fy, const double *fz);

#endif
