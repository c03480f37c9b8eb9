#include "grid.h"
#include "ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t row_of(const struct grid *grid)
{
    return (size_t)grid->n + 2;
}

static size_t plane_bytes(const struct grid *grid)
{
    return row_of(grid) * row_of(grid) * sizeof(double);
}

void grid_open(struct grid *grid, int n, int shared)
{
    *grid = (struct grid){.n = n, .planes = n, .is_shared = shared > 0};
    grid->starts = ranks_memory((size_t)(ranks.count + 1) * sizeof(size_t));
    // A coarse plane and the two fine ones that it becomes are always on the same rank.
    int unit = shared ? n / (shared / 2) : 1, units = n / unit;
    for (int rank = 0; rank <= ranks.count; rank++)
        grid->starts[rank] = ranks_first((size_t)units, rank) * (size_t)unit * plane_bytes(grid);
    if (shared) {
        grid->first = (int)(grid->starts[ranks.me] / plane_bytes(grid));
        grid->planes = (int)(grid->starts[ranks.me + 1] / plane_bytes(grid)) - grid->first;
    }
    grid->numbers = ranks_memory((size_t)(grid->planes + 2) * plane_bytes(grid));
    grid_clear(grid);
}

void grid_close(struct grid *grid)
{
    free(grid->numbers);
    free(grid->starts);
}

void grid_clear(struct grid *grid)
{
    memset(grid->numbers, 0, (size_t)(grid->planes + 2) * plane_bytes(grid));
}

// ---- the border ----

// That of one plane, without any other.
static void close_plane(const struct grid *grid, int z)
{
    size_t row = row_of(grid), n = (size_t)grid->n;
    double *plane = grid_plane(grid, z);
    for (size_t y = 1; y <= n; y++) {
        plane[y * row] = plane[y * row + n];
        plane[y * row + n + 1] = plane[y * row + 1];
    }
    memcpy(plane, plane + n * row, row * sizeof(double));
    memcpy(plane + (n + 1) * row, plane + row, row * sizeof(double));
}

// The planes before and behind, when all others are whole.
static void exchange_planes(struct grid *grid)
{
    int below = (ranks.me + ranks.count - 1) % ranks.count, above = (ranks.me + 1) % ranks.count;
    int first = grid->first, last = first + grid->planes - 1;
    size_t bytes = plane_bytes(grid);
    if (!grid->is_shared) {
        memcpy(grid_plane(grid, first - 1), grid_plane(grid, last), bytes);
        memcpy(grid_plane(grid, last + 1), grid_plane(grid, first), bytes);
        return;
    }
    ranks_swap(below, grid_plane(grid, first), bytes, above, grid_plane(grid, last + 1), bytes);
    ranks_swap(above, grid_plane(grid, last), bytes, below, grid_plane(grid, first - 1), bytes);
}

void grid_exchange(struct grid *grid)
{
    for (int z = grid->first; z < grid->first + grid->planes; z++)
        close_plane(grid, z);
    exchange_planes(grid);
}

// ---- the operators ----

// A row of a grid and its eight neighbours across: `faces` are those that share a face with it, `edges` the others.
struct bundle {
    const double *middle, *faces[4], *edges[4];
};

static struct bundle bundle_at(const struct grid *grid, int z, int y)
{
    size_t row = row_of(grid), at = (size_t)y * row;
    const double *below = grid_plane(grid, z - 1) + at, *here = grid_plane(grid, z) + at;
    const double *above = grid_plane(grid, z + 1) + at;
    return (struct bundle){here, {here - row, here + row, below, above},
                           {below - row, below + row, above - row, above + row}};
}

// The sums of both kinds of neighbours, for a whole row with its border.
static void add_across(const struct bundle *rows, double *restrict faces, double *restrict edges, int length)
{
    const double *f0 = rows->faces[0], *f1 = rows->faces[1], *f2 = rows->faces[2], *f3 = rows->faces[3];
    const double *e0 = rows->edges[0], *e1 = rows->edges[1], *e2 = rows->edges[2], *e3 = rows->edges[3];
    for (int x = 0; x < length; x++) {
        faces[x] = f0[x] + f1[x] + f2[x] + f3[x];
        edges[x] = e0[x] + e1[x] + e2[x] + e3[x];
    }
}

void grid_residual(struct grid *residual, const struct grid *right, const struct grid *u)
{
    int n = u->n;
    size_t row = row_of(u);
    double faces[row], edges[row];
    for (int z = u->first; z < u->first + u->planes; z++) {
        for (int y = 1; y <= n; y++) {
            struct bundle rows = bundle_at(u, z, y);
            const double *restrict middle = rows.middle;
            const double *v = grid_plane(right, z) + (size_t)y * row;
            double *r = grid_plane(residual, z) + (size_t)y * row;
            add_across(&rows, faces, edges, (int)row);
#pragma GCC ivdep // r may be v, but never ahead of it
            for (int x = 1; x <= n; x++)
                r[x] = v[x] + 8.0 / 3 * middle[x] - 1.0 / 6 * (edges[x] + faces[x - 1] + faces[x + 1]) -
                       1.0 / 12 * (edges[x - 1] + edges[x + 1]);
        }
        close_plane(residual, z);
    }
    exchange_planes(residual);
}

void grid_smooth(struct grid *u, const struct grid *residual, const double weights[3])
{
    int n = u->n;
    size_t row = row_of(u);
    double faces[row], edges[row], own = weights[0], face = weights[1], edge = weights[2];
    for (int z = u->first; z < u->first + u->planes; z++) {
        for (int y = 1; y <= n; y++) {
            struct bundle rows = bundle_at(residual, z, y);
            const double *restrict r = rows.middle;
            double *restrict to = grid_plane(u, z) + (size_t)y * row;
            add_across(&rows, faces, edges, (int)row);
            for (int x = 1; x <= n; x++)
                to[x] += own * r[x] + face * (r[x - 1] + r[x + 1] + faces[x]) +
                         edge * (edges[x] + faces[x - 1] + faces[x + 1]);
        }
        close_plane(u, z);
    }
    exchange_planes(u);
}

// A coarse number lies on the fine one with twice its place and one more.
void grid_coarsen(struct grid *coarse, const struct grid *fine)
{
    size_t row = row_of(coarse);
    double faces[row_of(fine)], edges[row_of(fine)];
    for (int z = fine->first / 2; z < (fine->first + fine->planes) / 2; z++) {
        for (int y = 1; y <= coarse->n; y++) {
            struct bundle rows = bundle_at(fine, 2 * z + 1, 2 * y);
            const double *restrict r = rows.middle;
            double *restrict to = grid_plane(coarse, z) + (size_t)y * row;
            add_across(&rows, faces, edges, fine->n + 2);
            for (int x = 1; x <= coarse->n; x++) {
                int i = 2 * x;
                to[x] = 0.5 * r[i] + 0.25 * (r[i - 1] + r[i + 1] + faces[i]) +
                        0.125 * (faces[i - 1] + faces[i + 1] + edges[i]) + 0.0625 * (edges[i - 1] + edges[i + 1]);
            }
        }
        close_plane(coarse, z);
    }
    if (fine->is_shared && !coarse->is_shared)
        ranks_gather(grid_plane(coarse, 0), coarse->starts);
    exchange_planes(coarse);
}

// Row y of plane z of the fine grid, from the one, two or four coarse rows beside it.
static void refine_row(double *restrict to, const struct grid *coarse, int z, int y)
{
    int n = coarse->n, odd_z = z & 1, odd_y = y & 1, z0 = (z + 1) / 2 - 1, y0 = (y + 1) / 2 - 1;
    size_t row = row_of(coarse);
    double sum[row], weight = (odd_z ? 1 : 0.5) * (odd_y ? 1 : 0.5);
    const double *a = grid_plane(coarse, z0) + (size_t)(y0 + 1) * row;
    const double *b = grid_plane(coarse, odd_z ? z0 : z0 + 1) + (size_t)(y0 + 1) * row;
    if (odd_z && odd_y)
        memcpy(sum, a, sizeof sum);
    else if (odd_z || odd_y)
        for (size_t x = 0; x < row; x++)
            sum[x] = a[x] + (odd_z ? a : b)[x + (odd_y ? 0 : row)];
    else
        for (size_t x = 0; x < row; x++)
            sum[x] = a[x] + b[x] + (a[x + row] + b[x + row]);
    for (int x = 0; x < n; x++) {
        to[2 * x + 1] += 0.5 * weight * (sum[x] + sum[x + 1]);
        to[2 * x + 2] += weight * sum[x + 1];
    }
}

void grid_refine(struct grid *fine, const struct grid *coarse)
{
    size_t row = row_of(fine);
    for (int z = fine->first - 1; z <= fine->first + fine->planes; z++) {
        for (int y = 0; y < fine->n; y++)
            refine_row(grid_plane(fine, z) + (size_t)(y + 1) * row, coarse, z, y);
        close_plane(fine, z);
    }
}

// The planes' sums are gathered and added in order.
double grid_norm(const struct grid *grid)
{
    double *sums = ranks_memory((size_t)grid->n * sizeof *sums), sum = 0;
    size_t row = row_of(grid), starts[ranks.count + 1];
    for (int z = grid->first; z < grid->first + grid->planes; z++) {
        sums[z] = 0;
        for (int y = 1; y <= grid->n; y++)
            for (int x = 1; x <= grid->n; x++)
                sums[z] += pow(grid_plane(grid, z)[(size_t)y * row + (size_t)x], 2);
    }
    for (int rank = 0; rank <= ranks.count; rank++)
        starts[rank] = grid->starts[rank] / plane_bytes(grid) * sizeof *sums;
    if (grid->is_shared)
        ranks_gather(sums, starts);
    for (int z = 0; z < grid->n; z++)
        sum += sums[z];
    free(sums);
    return sqrt(sum / ((double)grid->n * grid->n * grid->n));
}
