/* Persistent operations: started again and again, inactive between, scattered, buffered, freed while active. */
#include "point.h"

enum { N = 5, TURNS = 30, ROWS = 700 };

static int from, to;

static void inactive(MPI_Request *requests)
{
    MPI_Status status, statuses[N];
    int flag, index, count, indices[N];
    MPI_Wait(&requests[0], &status);
    CHECK(is_empty(&status) && requests[0] != MPI_REQUEST_NULL, "wait");
    MPI_Test(&requests[0], &flag, &status);
    CHECK(flag && is_empty(&status), "test");
    MPI_Request_get_status(requests[0], &flag, &status);
    CHECK(flag && is_empty(&status), "get_status");
    MPI_Waitany(N, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED && is_empty(&status), "waitany %d", index);
    MPI_Testany(N, requests, &index, &flag, &status);
    CHECK(flag && index == MPI_UNDEFINED, "testany %d", index);
    MPI_Waitsome(N, requests, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED, "waitsome %d", count);
    MPI_Testsome(N, requests, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED, "testsome %d", count);
    MPI_Waitall(N, requests, statuses);
    CHECK(is_empty(&statuses[N - 1]), "waitall");
    MPI_Testall(N, requests, &flag, statuses);
    CHECK(flag && is_empty(&statuses[0]), "testall");
}

static void turns(void)
{
    static int out[N][ROWS], in[N][ROWS * 2];
    MPI_Request receives[N], sends[N];
    MPI_Datatype column;
    MPI_Type_vector(ROWS, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < N; i++) {
        MPI_Recv_init(in[i], 1, column, i == 2 ? MPI_ANY_SOURCE : from, i, MPI_COMM_WORLD, &receives[i]);
    }
    MPI_Type_free(&column);
    MPI_Send_init(out[0], ROWS, MPI_INT, to, 0, MPI_COMM_WORLD, &sends[0]);
    MPI_Ssend_init(out[1], ROWS, MPI_INT, to, 1, MPI_COMM_WORLD, &sends[1]);
    MPI_Rsend_init(out[2], ROWS, MPI_INT, to, 2, MPI_COMM_WORLD, &sends[2]);
    MPI_Bsend_init(out[3], ROWS, MPI_INT, to, 3, MPI_COMM_WORLD, &sends[3]);
    MPI_Send_init_c(out[4], ROWS, MPI_INT, to, 4, MPI_COMM_WORLD, &sends[4]);
    static char buffer[ROWS * sizeof(int) + MPI_BSEND_OVERHEAD];
    MPI_Buffer_attach(buffer, sizeof buffer);
    inactive(receives);
    inactive(sends);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < ROWS; j++) {
                out[i][j] = mark(rank, i, j + turn);
                in[i][2 * j] = in[i][2 * j + 1] = -1;
            }
        }
        MPI_Status statuses[N];
        MPI_Startall(N, receives);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < N; i++) {
            MPI_Start(&sends[i]);
        }
        if (turn % 3 == 0) {
            MPI_Waitall(N, receives, statuses);
        } else if (turn % 3 == 1) {
            for (int done = 0, index; done < N; done++) {
                MPI_Status status;
                MPI_Waitany(N, receives, &index, &status);
                CHECK(index >= 0 && index < N, "index %d after %d", index, done);
                statuses[index] = status;
            }
        } else {
            for (int i = 0; i < N; i++) {
                int flag = 0;
                while (!flag) {
                    MPI_Test(&receives[i], &flag, &statuses[i]);
                }
            }
        }
        MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++) {
            CHECK(receives[i] != MPI_REQUEST_NULL && sends[i] != MPI_REQUEST_NULL, "the handle goes");
            CHECK(statuses[i].MPI_SOURCE == from && statuses[i].MPI_TAG == i, "source %d tag %d",
                  statuses[i].MPI_SOURCE, statuses[i].MPI_TAG);
            for (int j = 0; j < ROWS; j++) {
                CHECK(in[i][2 * j] == mark(from, i, j + turn) && in[i][2 * j + 1] == -1, "turn %d message %d place %d",
                      turn, i, j);
            }
        }
    }
    void *address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
    for (int i = 0; i < N; i++) {
        MPI_Request_free(&receives[i]);
        MPI_Request_free(&sends[i]);
        CHECK(receives[i] == MPI_REQUEST_NULL, "the handle stays");
    }
}

static void nobody(void)
{
    int value = 3;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        CHECK(foreign() || (statuses[1].MPI_SOURCE == MPI_PROC_NULL && statuses[1].MPI_TAG == MPI_ANY_TAG), "source %d tag %d",
              statuses[1].MPI_SOURCE, statuses[1].MPI_TAG);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void wrong(void)
{
    int value = 0;
    MPI_Request request, plain;
    MPI_Recv_init(&value, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(&value, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, &plain);
    CHECK_CLASS(MPI_Start(&plain), MPI_ERR_REQUEST);
    MPI_Cancel(&plain);
    MPI_Wait(&plain, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Cancel(&request);
    MPI_Status status;
    int cancelled;
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled && request != MPI_REQUEST_NULL, "a persistent receive is cancelled, not freed");
    MPI_Start(&request);
    int out = 9;
    MPI_Send(&out, 1, MPI_INT, rank, 6, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(!cancelled && value == 9, "after the cancelled turn: %d", value);
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    turns();
    nobody();
    wrong();
    MPI_Finalize();
    return 0;
}
