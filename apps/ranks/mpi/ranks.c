#include "ranks.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>

struct ranks ranks;

void ranks_begin(int *count, char ***words)
{
    MPI_Init(count, words);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.count);
}

void ranks_end(void)
{
    MPI_Finalize();
}

void ranks_abort(void)
{
    MPI_Abort(MPI_COMM_WORLD, 1);
    __builtin_unreachable();
}

// MPI counts with an int. The programs' classes stay below on two ranks or more.
static int counted(size_t length)
{
    if (length > INT_MAX) {
        fprintf(stderr, "a part of %zu bytes: allowed are %d; start more ranks\n", length, INT_MAX);
        ranks_abort();
    }
    return (int)length;
}

void ranks_swap(int to, const void *out, size_t out_length, int from, void *in, size_t in_length)
{
    MPI_Sendrecv(out, counted(out_length), MPI_BYTE, to, 0, in, counted(in_length), MPI_BYTE, from, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Starts as MPI has them.
static void split(const size_t *starts, int *lengths, int *offsets)
{
    for (int rank = 0; rank < ranks.count; rank++) {
        lengths[rank] = counted(starts[rank + 1] - starts[rank]);
        offsets[rank] = counted(starts[rank]);
    }
}

void ranks_trade(const void *out, const size_t *out_starts, void *in, const size_t *in_starts)
{
    int out_lengths[ranks.count], out_offsets[ranks.count], in_lengths[ranks.count], in_offsets[ranks.count];
    split(out_starts, out_lengths, out_offsets);
    split(in_starts, in_lengths, in_offsets);
    if (out_lengths[ranks.me] == 0 || in_lengths[ranks.me] == 0)
        out_lengths[ranks.me] = in_lengths[ranks.me] = 0;
    MPI_Alltoallv(out, out_lengths, out_offsets, MPI_BYTE, in, in_lengths, in_offsets, MPI_BYTE, MPI_COMM_WORLD);
}

void ranks_gather(void *all, const size_t *starts)
{
    int lengths[ranks.count], offsets[ranks.count];
    split(starts, lengths, offsets);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all, lengths, offsets, MPI_BYTE, MPI_COMM_WORLD);
}
