/* MPI, sockets and the native interface by turns, with messages of many lengths: every byte is looked at. Rank 0 has a
   connection to each other rank; the two others go round in a ring. */
#include "wires.h"

enum { LONGEST = 400000, TURNS = 60 };

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 48, 1000, 5000, 70000, LONGEST};
    static unsigned char a[LONGEST], b[LONGEST], c[LONGEST];
    MPI_Request requests[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    open_native(0);
    connect_all(argv[1]);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int turn = 0; turn < TURNS; turn++) {
        int length = lengths[turn % 6];
        fill(a, length, rank, turn);
        long request = native.post(to, turn, a, length);
        MPI_Irecv(b, length, MPI_BYTE, from, turn, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(a, length, MPI_BYTE, to, turn, MPI_COMM_WORLD, &requests[1]);
        check(native.receive(from, turn, c, LONGEST) == length, "the length of a native message");
        check_bytes(c, length, from, turn, "a native message");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_bytes(b, length, from, turn, "a message of MPI");
        check(native.sent(request) == 0, "a native send");
        by_sockets(c, length, turn);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    native.close();
    MPI_Finalize();
    if (rank == 0)
        printf("ok\n");
    return 0;
}
