/* Cancelling receives and sends that nothing matched; those that were matched, and sends that have left, go on. */
#include "point.h"

/* Longer than what may go without asking. */
enum { LONG = (1 << 20) + 1 };

/* Sends that ask are cancelled where nobody has matched them, and what comes behind them arrives. */
static void sends(int to, int from)
{
    static char out[LONG], in[LONG];
    MPI_Request request[4];
    MPI_Status status;
    int flag;
    for (int turn = 0; turn < 20; turn++) {
        out[0] = (char)turn;
        int length = turn % 2 ? LONG : 4;
        MPI_Issend(out, length, MPI_CHAR, to, 3, MPI_COMM_WORLD, &request[0]);
        MPI_Isend(out, LONG, MPI_CHAR, to, 3, MPI_COMM_WORLD, &request[1]);
        if (turn % 3) MPI_Barrier(MPI_COMM_WORLD);
        MPI_Cancel(&request[0]);
        MPI_Cancel(&request[1]);
        for (int i = 0; i < 2; i++) {
            MPI_Wait(&request[i], &status);
            MPI_Test_cancelled(&status, &flag);
            CHECK(flag, "turn %d: send %d is not cancelled", turn, i);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "turn %d: something of a cancelled send is left", turn);
        /* One that is matched, or is not, but nothing between: either it arrives, or the next one does. */
        MPI_Issend(out, LONG, MPI_CHAR, to, 4, MPI_COMM_WORLD, &request[0]);
        MPI_Irecv(in, LONG, MPI_CHAR, from, 4, MPI_COMM_WORLD, &request[1]);
        MPI_Cancel(&request[0]);
        MPI_Wait(&request[0], &status);
        MPI_Test_cancelled(&status, &flag);
        if (flag) MPI_Send(out, LONG, MPI_CHAR, to, 4, MPI_COMM_WORLD);
        MPI_Wait(&request[1], &status);
        CHECK(in[0] == turn, "turn %d: got %d", turn, in[0]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Request again;
    MPI_Send_init(out, LONG, MPI_CHAR, to, 5, MPI_COMM_WORLD, &again);
    MPI_Start(&again);
    MPI_Cancel(&again);
    MPI_Wait(&again, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && again != MPI_REQUEST_NULL, "a persistent send is cancelled %d", flag);
    MPI_Request_free(&again);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int value = -1, flag;
    MPI_Request request;
    MPI_Status status;
    for (int turn = 0; turn < 100; turn++) {
        MPI_Irecv(&value, 1, MPI_INT, turn % 2 ? from : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        CHECK(request != MPI_REQUEST_NULL, "the handle goes");
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag && request == MPI_REQUEST_NULL, "turn %d is not cancelled", turn);
    }
    /* Nothing of the cancelled ones takes a message. */
    MPI_Barrier(MPI_COMM_WORLD);
    int out = rank;
    MPI_Isend(&out, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &request);
    MPI_Recv(&value, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
    CHECK(value == from, "%d", value);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag, "a receive that was not cancelled");
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag, "a send that was not cancelled");
    /* One that is complete stays so. */
    value = -1;
    MPI_Irecv(&value, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &request);
    MPI_Send(&out, 1, MPI_INT, rank, 2, MPI_COMM_WORLD);
    do {
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    } while (!flag);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag && value == rank, "cancelled %d value %d", flag, value);
    sends(to, from);
    MPI_Finalize();
    return 0;
}
