#include "plate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_NORTHWARD = 1, TAG_SOUTHWARD = 2 };

size_t plate_cells(int n)
{
    return (size_t)(n + 2) * (size_t)(n + 2);
}

// Rows of `rank`: as even as can be, the first ranks take one more when n does not divide.
static int rows_of(int rank, int ranks, int n)
{
    return n / ranks + (rank < n % ranks ? 1 : 0);
}

// Each rank's part of the whole plate. The north side travels with the first block and the south
// side with the last, so that the parts tile the bordered plate without a gap.
static void lay_out(struct plate *plate, int ranks)
{
    int stride = plate->n + 2;
    int start = 0;
    int held_start = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int rows = rows_of(rank, ranks, plate->n);
        int sides = (rank == 0) + (rank == ranks - 1);
        plate->counts[rank] = (rows + sides) * stride;
        plate->starts[rank] = start;
        plate->held_counts[rank] = rows * plate->n;
        plate->held_starts[rank] = held_start;
        start += plate->counts[rank];
        held_start += plate->held_counts[rank];
    }
}

int plate_open(struct plate *plate, MPI_Comm comm, int n)
{
    int ranks;
    *plate = (struct plate){.n = n, .comm = comm};
    MPI_Comm_rank(comm, &plate->rank);
    MPI_Comm_size(comm, &ranks);
    plate->rows = rows_of(plate->rank, ranks, n);
    plate->north = plate->rank > 0 ? plate->rank - 1 : MPI_PROC_NULL;
    plate->south = plate->rank < ranks - 1 ? plate->rank + 1 : MPI_PROC_NULL;

    size_t block = (size_t)(plate->rows + 2) * (size_t)(n + 2);
    plate->now = calloc(block, sizeof(double));
    plate->next = calloc(block, sizeof(double));
    plate->counts = calloc(4 * (size_t)ranks, sizeof(int));
    if (!plate->now || !plate->next || !plate->counts) {
        plate_close(plate);
        return -1;
    }
    plate->starts = plate->counts + ranks;
    plate->held_counts = plate->starts + ranks;
    plate->held_starts = plate->held_counts + ranks;
    lay_out(plate, ranks);
    return 0;
}

void plate_close(struct plate *plate)
{
    free(plate->now);
    free(plate->next);
    free(plate->counts);
    free(plate->held);
    *plate = (struct plate){0};
}

// Where this rank's part of the whole plate begins in its block: the north side is row 0.
static double *own_part(const struct plate *plate)
{
    return plate->now + (plate->north == MPI_PROC_NULL ? 0 : plate->n + 2);
}

// Turns the marks of this block into a list: held cells are few, and a list leaves the inner loop
// free of a test.
static int list_held(struct plate *plate, const unsigned char *marks)
{
    size_t cells = (size_t)plate->rows * (size_t)plate->n;
    size_t count = 0;
    for (size_t i = 0; i < cells; i++)
        count += marks[i] != 0;
    free(plate->held);
    plate->held_count = 0;
    plate->held = malloc((count + 1) * sizeof(struct held));
    if (!plate->held)
        return -1;
    for (size_t i = 0; i < cells; i++) {
        if (!marks[i])
            continue;
        size_t row = i / (size_t)plate->n + 1;
        size_t at = row * (size_t)(plate->n + 2) + i % (size_t)plate->n + 1;
        plate->held[plate->held_count++] = (struct held){at, plate->now[at]};
    }
    return 0;
}

int plate_deal(struct plate *plate, const double *whole, const unsigned char *held)
{
    MPI_Scatterv(whole, plate->counts, plate->starts, MPI_DOUBLE, own_part(plate),
                 plate->counts[plate->rank], MPI_DOUBLE, 0, plate->comm);
    // Steps write inner cells only: the four sides must stand in both buffers.
    size_t block = (size_t)(plate->rows + 2) * (size_t)(plate->n + 2);
    memcpy(plate->next, plate->now, block * sizeof(double));

    int count = plate->held_counts[plate->rank];
    unsigned char *marks = malloc((size_t)count);
    if (!marks)
        return -1;
    MPI_Scatterv(held, plate->held_counts, plate->held_starts, MPI_BYTE, marks, count, MPI_BYTE, 0,
                 plate->comm);
    int result = list_held(plate, marks);
    free(marks);
    return result;
}

// Both edge rows go to the neighbours, theirs come into the halos. At the ends of the plate the
// neighbour is MPI_PROC_NULL and the "halo", the side itself, stays.
static void exchange_halos(struct plate *plate)
{
    size_t stride = (size_t)plate->n + 2;
    double *first = plate->now + stride;
    double *last = plate->now + stride * (size_t)plate->rows;
    int width = (int)stride;
    MPI_Sendrecv(first, width, MPI_DOUBLE, plate->north, TAG_NORTHWARD, last + stride, width,
                 MPI_DOUBLE, plate->south, TAG_NORTHWARD, plate->comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, width, MPI_DOUBLE, plate->south, TAG_SOUTHWARD, first - stride, width,
                 MPI_DOUBLE, plate->north, TAG_SOUTHWARD, plate->comm, MPI_STATUS_IGNORE);
}

// The order of the additions is part of the answer: (up + down) + (left + right), for every cell.
static inline double average(const double *up, const double *mid, const double *down, int j)
{
    return 0.25 * ((up[j] + down[j]) + (mid[j - 1] + mid[j + 1]));
}

// Columns 1 to n of one row. In blocks of a fixed length and through a local array, because then a
// compiler knows count and aliasing and makes vectors of it already at -O2.
static void relax_row(double *out, const double *up, const double *mid, const double *down, int n)
{
    enum { BLOCK = 8 };
    int j = 1;
    for (; j + BLOCK <= n + 1; j += BLOCK) {
        double block[BLOCK];
        for (int k = 0; k < BLOCK; k++)
            block[k] = average(up, mid, down, j + k);
        memcpy(out + j, block, sizeof block);
    }
    for (; j <= n; j++)
        out[j] = average(up, mid, down, j);
}

void plate_step(struct plate *plate)
{
    size_t stride = (size_t)plate->n + 2;
    exchange_halos(plate);
    for (int row = 1; row <= plate->rows; row++) {
        const double *mid = plate->now + stride * (size_t)row;
        relax_row(plate->next + stride * (size_t)row, mid - stride, mid, mid + stride, plate->n);
    }
    for (size_t i = 0; i < plate->held_count; i++)
        plate->next[plate->held[i].at] = plate->held[i].value;
    double *last = plate->now;
    plate->now = plate->next;
    plate->next = last;
}

void plate_gather(const struct plate *plate, double *whole)
{
    MPI_Gatherv(own_part(plate), plate->counts[plate->rank], MPI_DOUBLE, whole, plate->counts,
                plate->starts, MPI_DOUBLE, 0, plate->comm);
}

double plate_change(const struct plate *plate)
{
    size_t stride = (size_t)plate->n + 2;
    double mine = 0, all = 0;
    for (size_t i = stride; i < stride * (size_t)(plate->rows + 1); i++)
        mine = fmax(mine, fabs(plate->now[i] - plate->next[i]));
    MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, 0, plate->comm);
    return all;
}

uint64_t plate_checksum(const double *whole, int n)
{
    size_t stride = (size_t)n + 2;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int row = 1; row <= n; row++) {
        for (int column = 1; column <= n; column++) {
            uint64_t bits;
            memcpy(&bits, &whole[stride * (size_t)row + (size_t)column], sizeof bits);
            for (int shift = 0; shift < 64; shift += 8)
                hash = (hash ^ (bits >> shift & 0xff)) * UINT64_C(0x100000001b3);
        }
    }
    return hash;
}
