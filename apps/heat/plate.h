// The plate: n x n cells in row blocks, one block per rank, relaxed by Jacobi iteration.
//
// A block is stored with one cell of border all round: (rows + 2) x (n + 2) doubles. The border's
// columns are the west and east sides. Its rows are the north and south sides on the first and last
// rank, and everywhere else halos: copies of the neighbour's edge row, renewed in every step.
//
// Invariant: the value of a cell depends on its four neighbours alone, in one fixed order of
// operations, so the plate is the same bit for bit for every number of ranks.
#ifndef HEAT_PLATE_H
#define HEAT_PLATE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

// 2 GiB for a whole plate, and every count fits an int.
#define PLATE_MAX 16384

// A cell whose temperature never changes.
struct held {
    size_t at; // index into the block
    double value;
};

struct plate {
    int n;    // cells per side of the whole plate
    int rows; // rows of this rank's block
    MPI_Comm comm;
    int rank;
    int north, south;         // neighbours, or MPI_PROC_NULL
    double *now, *next;       // the block, and where the next step writes; after a step the last one
    struct held *held;
    size_t held_count;
    int *counts, *starts;     // per rank: its part of the bordered whole plate, in doubles
    int *held_counts, *held_starts; // the same for the n x n marks of held cells
};

// The doubles of a whole plate with its border.
size_t plate_cells(int n);

// Makes this rank's block of an n x n plate, all zero. Collective. Returns 0, or -1 without memory.
int plate_open(struct plate *plate, MPI_Comm comm, int n);

void plate_close(struct plate *plate);

// Deals out rank 0's bordered plate `whole` (plate_cells doubles) and `held` (n x n marks, non-zero:
// the cell keeps its temperature). Both are read on rank 0 only. Collective. Returns 0, or -1
// without memory.
int plate_deal(struct plate *plate, const double *whole, const unsigned char *held);

// One Jacobi step of the whole plate. Collective.
void plate_step(struct plate *plate);

// Collects the plate with its border in rank 0's `whole`. Collective.
void plate_gather(const struct plate *plate, double *whole);

// How far the last step moved the cell it moved most; on rank 0, elsewhere 0. Collective.
double plate_change(const struct plate *plate);

// FNV-1a (64 bits) over the n x n cells of a bordered plate, row by row, each as the eight bytes of
// its IEEE double, lowest first.
uint64_t plate_checksum(const double *whole, int n);

#endif
