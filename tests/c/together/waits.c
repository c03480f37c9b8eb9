/* Who waits in one interface moves the other: the answer comes only after a long message of the other one was moved, for
   which its sender has work to do. */
#include "check.h"

enum { LONG = 3000000, TURNS = 30 };

static unsigned char mine[LONG], theirs[LONG];

/* A long native message is under way while its sender waits in MPI. */
static void wait_in_mpi(int rank, int turn)
{
    int word = turn, got;
    if (rank == 0) {
        fill(mine, LONG, rank, turn);
        long request = native.post(1, turn, mine, LONG);
        check(!native.is_sent(request), "a long message that needs its sender");
        MPI_Recv(&got, 1, MPI_INT, 1, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(got == word, "the answer by MPI");
        check(native.sent(request) == 0, "the end of a native send");
    } else {
        check(native.receive(0, turn, theirs, LONG) == LONG, "a long native message");
        check_bytes(theirs, LONG, 0, turn, "the bytes of a native message");
        MPI_Send(&word, 1, MPI_INT, 0, turn, MPI_COMM_WORLD);
    }
}

/* The other way round. */
static void wait_in_native(int rank, int turn)
{
    int word = turn, got;
    MPI_Request request;
    if (rank == 0) {
        fill(mine, LONG, rank, turn);
        MPI_Isend(mine, LONG, MPI_BYTE, 1, turn, MPI_COMM_WORLD, &request);
        check(native.receive(1, turn, &got, sizeof got) == sizeof got && got == word, "the native answer");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(theirs, LONG, MPI_BYTE, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_bytes(theirs, LONG, 0, turn, "the bytes of a message of MPI");
        check(native.send(0, turn, &word, sizeof word) == 0, "a native send");
    }
}

/* A collective that nobody waits for goes on, too. */
static void collective(int rank, int turn)
{
    int one = rank + turn, sum = 0, got = -1;
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0) {
        check(native.receive(1, turn, &got, sizeof got) == sizeof got && got == 2 * turn + 1, "the sum of the other");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(native.send(0, turn, &sum, sizeof sum) == 0, "a native send");
    }
    check(rank != 0 || sum == 2 * turn + 1, "a sum");
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(size == 2, "two ranks");
    open_native(0);
    for (int turn = 0; turn < TURNS; turn++) {
        wait_in_mpi(rank, turn);
        wait_in_native(rank, turn);
        collective(rank, turn);
    }
    native.close();
    MPI_Finalize();
    if (rank == 0)
        printf("ok\n");
    return 0;
}
