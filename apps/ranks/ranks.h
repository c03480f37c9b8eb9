// What the programs of this folder's neighbours need of MPI or PVM, and no more. One source is built with what is in
// `mpi` or with what is in `pvm`:
//
//     mpicc -O3 -I apps/ranks apps/fft/*.c apps/ranks/*.c apps/ranks/mpi/*.c -lm -o fft
//     cc -O3 -I apps/ranks apps/fft/*.c apps/ranks/*.c apps/ranks/pvm/*.c -lm -o fft LIBRARY
//
// where LIBRARY is $(pkg-config --cflags --libs weft-pvm).
//
// All calls that send are collective, but for ranks_swap. Sums and maxima are deliberately not here: a program gathers
// the parts of a sum and adds them in one fixed order, so that its result does not depend on the number of ranks.
//
// Lengths are bytes. A list of starts has one entry per rank and a last one, the end: rank r's part is from starts[r]
// to starts[r + 1].
#ifndef RANKS_H
#define RANKS_H

#include <stddef.h>

struct ranks {
    int me, count;
};

// Who this process is. Set by ranks_begin.
extern struct ranks ranks;

void ranks_begin(int *count, char ***words);

// The last call. It waits for all.
void ranks_end(void);

// Ends all ranks with a failure.
_Noreturn void ranks_abort(void);

// Sends to one rank and receives from another one, or the same one.
void ranks_swap(int to, const void *out, size_t out_length, int from, void *in, size_t in_length);

// The personalized all-to-all exchange: each rank's part of `out` goes to it, and its part of `in` comes from it. What a
// rank has for itself is copied if it has a place on both sides.
void ranks_trade(const void *out, const size_t *out_starts, void *in, const size_t *in_starts);

// Each rank has its own part of `all`, and afterwards all parts.
void ranks_gather(void *all, const size_t *starts);

// The same with parts of equal length.
void ranks_gather_equal(void *all, size_t length);

// Waits until all are here, and returns the time in seconds.
double ranks_meet(void);

// The first of `n` things that belong to a rank, if each has the same number of them, or one more.
static inline size_t ranks_first(size_t n, int rank)
{
    return n * (size_t)rank / (size_t)ranks.count;
}

// Memory for as many bytes, or the end of all ranks.
void *ranks_memory(size_t length);

#endif
