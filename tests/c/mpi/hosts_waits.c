/* Rank 0 sends a MiB to each of the others; then all wait for what never comes. */
#include "check.h"
#include <stdlib.h>

enum { BYTES = 1 << 20 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *place = calloc(BYTES, 1);
    for (int other = 1; rank == 0 && other < size; other++)
        MPI_Send(place, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    if (rank != 0)
        MPI_Recv(place, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(place, BYTES, MPI_BYTE, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
