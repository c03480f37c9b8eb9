/* Two ranks of any MPI library exchange messages of many lengths and compare every byte; rank 0 says "ok". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 3000000 };

static unsigned char byte_at(int rank, int turn, int at) {
    return (unsigned char)(((unsigned)at * 2654435761u >> 11) + (unsigned)turn * 7 + (unsigned)rank);
}

static void check(const unsigned char *bytes, int rank, int turn, int length) {
    for (int at = 0; at < length; at++) {
        if (bytes[at] != byte_at(rank, turn, at)) {
            printf("byte %d of %d of turn %d is wrong\n", at, length, turn);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

int main(int argc, char **argv) {
    static const int lengths[] = {1, 100, 5000, 70000, 1000000, LONGEST};
    unsigned char *mine = malloc(LONGEST), *theirs = malloc(LONGEST);
    int rank, ranks, turns = 60;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int turn = 0; turn < turns; turn++) {
        int length = lengths[turn % 6];
        for (int at = 0; at < length; at++) {
            mine[at] = byte_at(rank, turn, at);
        }
        MPI_Sendrecv(mine, length, MPI_BYTE, 1 - rank, turn, theirs, length, MPI_BYTE, 1 - rank, turn, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check(theirs, 1 - rank, turn, length);
    }
    int sum = 0, one = rank + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != 3) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (rank == 0) {
        printf("ok\n");
    }
    MPI_Finalize();
    return 0;
}
