/* 8 bytes each way by MPI and by the native interface, by turns; each rank says where it is in both. What the first
   argument says opens first, or ends first. */
#include "check.h"
#include <string.h>

enum { TURNS = 200 };

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int rank, size;
    long got;

    if (strcmp(how, "native first") == 0)
        open_native(0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(how, "native first") != 0)
        open_native(0);
    check(native.rank() == rank && native.size() == size, "the place in the job");
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (long turn = 0; turn < TURNS; turn++) {
        long mine = rank * 1000 + turn, other = -mine;
        check(native.send(to, 1, &mine, 8) == 0, "a send");
        MPI_Send(&other, 1, MPI_LONG, to, 1, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_LONG, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(got == -(from * 1000 + turn), "a message of MPI");
        check(native.receive(from, 1, &got, 8) == 8 && got == from * 1000 + turn, "a native message");
    }
    if (strcmp(how, "MPI ends first") == 0) {
        MPI_Finalize();
        check(native.send(to, 2, &rank, sizeof rank) == 0, "a send after MPI");
        int who;
        check(native.receive(from, 2, &who, sizeof who) == sizeof who && who == from, "a native message after MPI");
    }
    if (strcmp(how, "native stays open") != 0)
        native.close();
    if (strcmp(how, "MPI ends first") != 0)
        MPI_Finalize();
    if (rank == 0)
        printf("ok\n");
    return 0;
}
