/* What the programs here begin with. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include "native.h"

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static inline void open_native(int threads)
{
    native_load();
    if (native.open(NATIVE, threads) != 0) {
        fprintf(stderr, "%s\n", native.error());
        exit(4);
    }
}

/* A byte that depends on the place and on who made it when. */
static inline unsigned char byte_at(int rank, int turn, int at)
{
    return (unsigned char)(((unsigned)at * 2654435761u >> 11) + (unsigned)turn * 7 + (unsigned)rank);
}

static inline void fill(unsigned char *bytes, int length, int rank, int turn)
{
    for (int at = 0; at < length; at++)
        bytes[at] = byte_at(rank, turn, at);
}

static inline void check_bytes(const unsigned char *bytes, int length, int rank, int turn, const char *what)
{
    for (int at = 0; at < length; at++)
        check(bytes[at] == byte_at(rank, turn, at), what);
}

#endif
