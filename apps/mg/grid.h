// A grid of n x n x n numbers on a periodic box, and what multigrid does with grids.
//
// A rank has whole planes, a run of z, or all of them if the grid is too small to be shared: then all ranks have the
// same. Each plane has a border of one number all round, and there is a plane before and one behind those of the rank:
// copies of what lies beyond, as everything is periodic.
//
// Every number is computed by the same operations in the same order wherever it lies, so results do not depend on the
// number of ranks.
#ifndef GRID_H
#define GRID_H

#include <stddef.h>

struct grid {
    int n;
    int first, planes; // of this rank
    int is_shared;     // others have the other planes
    size_t *starts;    // of all ranks' planes, in bytes
    double *numbers;
};

// The plane z, from first - 1 to first + planes, with its border.
static inline double *grid_plane(const struct grid *grid, int z)
{
    size_t row = (size_t)grid->n + 2;
    return grid->numbers + (size_t)(z - grid->first + 1) * row * row;
}

// Makes a grid of zeros. If `shared` is not 0, a rank has its planes of a grid of that size, scaled up to n.
void grid_open(struct grid *grid, int n, int shared);

void grid_close(struct grid *grid);
void grid_clear(struct grid *grid);

// residual = right - A u. `residual` may be `right`. Collective, as are all that follow.
void grid_residual(struct grid *residual, const struct grid *right, const struct grid *u);

// u += S residual, where S is an approximate inverse of A with these weights: of the number itself, of the six
// neighbours at its faces and of the twelve at its edges.
void grid_smooth(struct grid *u, const struct grid *residual, const double weights[3]);

// Makes the grid of half the size from the weighted means of `fine`.
void grid_coarsen(struct grid *coarse, const struct grid *fine);

// Adds what lies between the numbers of the grid of half the size. Without any message: the border is computed, too.
void grid_refine(struct grid *fine, const struct grid *coarse);

// The root of the mean square.
double grid_norm(const struct grid *grid);

// Makes the border right again after numbers were set.
void grid_exchange(struct grid *grid);

#endif
