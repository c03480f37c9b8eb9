#include "cube.h"
#include "ranks.h"

#include <stdlib.h>

enum { GAP = LINES };

// The cells of `count` layers of so many rows, with their gaps.
static size_t layers_of(const struct cube *cube, int rows, int count)
{
    return ((size_t)rows * (size_t)cube->nx + GAP) * (size_t)count;
}

static int first_of(int n, int rank)
{
    return (int)ranks_first((size_t)n, rank);
}

struct cell *cube_row(const struct cube *cube, int plane, int y)
{
    int owner = cube->owners[y], first = first_of(cube->ny, owner), rows = first_of(cube->ny, owner + 1) - first;
    struct cell *part = owner == ranks.me ? cube->layers + cube->by_z[owner] / sizeof(struct cell)
                                          : cube->space + cube->by_y[owner] / sizeof(struct cell);
    return part + layers_of(cube, rows, plane) + (size_t)(y - first) * (size_t)cube->nx;
}

void cube_open(struct cube *cube, int nx, int ny, int nz)
{
    int longest = nx > ny ? nx : ny, ends = ranks.count + 1;
    longest = longest > nz ? longest : nz;
    *cube = (struct cube){.nx = nx, .ny = ny, .nz = nz};
    cube->first_z = first_of(nz, ranks.me);
    cube->planes = first_of(nz, ranks.me + 1) - cube->first_z;
    cube->first_y = first_of(ny, ranks.me);
    cube->rows = first_of(ny, ranks.me + 1) - cube->first_y;
    cube->by_y = ranks_memory((size_t)ends * sizeof(size_t));
    cube->by_z = ranks_memory((size_t)ends * sizeof(size_t));
    cube->by_y[0] = 0;
    for (int rank = 0; rank < ends; rank++) {
        int rows = first_of(ny, rank + 1) - first_of(ny, rank);
        size_t part = rank == ranks.me ? 0 : layers_of(cube, rows, cube->planes);
        if (rank < ranks.count)
            cube->by_y[rank + 1] = cube->by_y[rank] + part * sizeof(struct cell);
        cube->by_z[rank] = layers_of(cube, cube->rows, first_of(nz, rank)) * sizeof(struct cell);
    }
    cube->owners = ranks_memory((size_t)ny * sizeof(int));
    for (int rank = 0; rank < ranks.count; rank++)
        for (int y = first_of(ny, rank); y < first_of(ny, rank + 1); y++)
            cube->owners[y] = rank;
    cube->space = ranks_memory(cube->by_y[ranks.count]);
    cube->spectrum = ranks_memory(cube->by_z[ranks.count]);
    cube->layers = ranks_memory(cube->by_z[ranks.count]);
    lines_open(&cube->x, nx);
    lines_open(&cube->y, ny);
    lines_open(&cube->z, nz);
    cube->from = ranks_memory((size_t)longest * sizeof *cube->from);
    cube->to = ranks_memory((size_t)longest * sizeof *cube->to);
}

void cube_close(struct cube *cube)
{
    lines_close(&cube->x);
    lines_close(&cube->y);
    lines_close(&cube->z);
    free(cube->layers);
    free(cube->owners);
    free(cube->space);
    free(cube->spectrum);
    free(cube->by_y);
    free(cube->by_z);
    free(cube->from);
    free(cube->to);
}

static void find_rows(const struct cube *cube, int plane, struct cell **rows)
{
    for (int y = 0; y < cube->ny; y++)
        rows[y] = cube_row(cube, plane, y);
}

// Where the layers of one z are in an array of the spectrum's form.
static void find_layers(const struct cube *cube, struct cell *array, struct cell **layers)
{
    for (int z = 0; z < cube->nz; z++)
        layers[z] = array + layers_of(cube, cube->rows, z);
}

void cube_forward(struct cube *cube)
{
    for (int plane = 0; plane < cube->planes; plane++) {
        find_rows(cube, plane, cube->from);
        for (int y = 0; y < cube->ny; y += LINES) {
            lines_take_rows(&cube->x, cube->from + y);
            lines_forward(&cube->x);
            lines_put_rows(&cube->x, cube->from + y);
        }
        for (int x = 0; x < cube->nx; x += LINES) {
            lines_take(&cube->y, cube->from, x);
            lines_forward(&cube->y);
            lines_put(&cube->y, cube->from, x);
        }
    }
    ranks_trade(cube->space, cube->by_y, cube->layers, cube->by_z);
    find_layers(cube, cube->layers, cube->from);
    find_layers(cube, cube->spectrum, cube->to);
    for (int offset = 0; offset < cube->rows * cube->nx; offset += LINES) {
        lines_take(&cube->z, cube->from, offset);
        lines_forward(&cube->z);
        lines_put(&cube->z, cube->to, offset);
    }
}

static void multiply(struct lines *z, const double *fx, double fy, const double *fz)
{
    for (int e = 0; e < z->n; e++) {
        for (int l = 0; l < LINES; l++) {
            double factor = fx[l] * fy * fz[e];
            z->re[e * LINES + l] *= factor;
            z->im[e * LINES + l] *= factor;
        }
    }
}

void cube_back(struct cube *cube, const double *fx, const double *fy, const double *fz)
{
    find_layers(cube, cube->spectrum, cube->from);
    find_layers(cube, cube->layers, cube->to);
    for (int offset = 0; offset < cube->rows * cube->nx; offset += LINES) {
        lines_take(&cube->z, cube->from, offset);
        multiply(&cube->z, fx + offset % cube->nx, fy[cube->first_y + offset / cube->nx], fz);
        lines_back(&cube->z);
        lines_put(&cube->z, cube->to, offset);
    }
    ranks_trade(cube->layers, cube->by_z, cube->space, cube->by_y);
    for (int plane = 0; plane < cube->planes; plane++) {
        find_rows(cube, plane, cube->from);
        for (int x = 0; x < cube->nx; x += LINES) {
            lines_take(&cube->y, cube->from, x);
            lines_back(&cube->y);
            lines_put(&cube->y, cube->from, x);
        }
        for (int y = 0; y < cube->ny; y += LINES) {
            lines_take_rows(&cube->x, cube->from + y);
            lines_back(&cube->x);
            lines_put_rows(&cube->x, cube->from + y);
        }
    }
}
