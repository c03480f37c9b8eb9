/* The completion calls: null and inactive requests, empty statuses, any, some, all, asking without completing. */
#include "point.h"

enum { N = 12 };

static int in[N], out[N];
static MPI_Request receives[N], sends[N];

/* Every rank receives N messages with tags 0..N from its neighbour; the sends wait for `send_all`. */
static void post(void)
{
    int from = (rank + size - 1) % size;
    for (int i = 0; i < N; i++) {
        in[i] = -1;
        out[i] = mark(rank, 0, i);
        MPI_Irecv(&in[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, &receives[i]);
    }
    /* No message of the next round may come before. */
    MPI_Barrier(MPI_COMM_WORLD);
}

static void send_one(int i)
{
    MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD, &sends[i]);
}

static void check_status(const MPI_Status *status, int i)
{
    int from = (rank + size - 1) % size, count;
    MPI_Get_count(status, MPI_INT, &count);
    CHECK(status->MPI_SOURCE == from && status->MPI_TAG == i && count == 1, "message %d: source %d tag %d count %d", i,
          status->MPI_SOURCE, status->MPI_TAG, count);
    CHECK(in[i] == mark(from, 0, i), "message %d: %x", i, in[i]);
}

static void nothing(void)
{
    MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    int flag, index, count, indices[3];
    memset(&status, 0x11, sizeof status);
    MPI_Wait(&none[0], &status);
    CHECK(is_empty(&status), "wait");
    memset(&status, 0x11, sizeof status);
    MPI_Test(&none[0], &flag, &status);
    CHECK(flag && is_empty(&status), "test");
    memset(&status, 0x11, sizeof status);
    MPI_Waitany(3, none, &index, &status);
    CHECK(index == MPI_UNDEFINED && is_empty(&status), "waitany %d", index);
    memset(&status, 0x11, sizeof status);
    MPI_Testany(3, none, &index, &flag, &status);
    CHECK(flag && index == MPI_UNDEFINED && is_empty(&status), "testany %d", index);
    MPI_Waitsome(3, none, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED, "waitsome %d", count);
    MPI_Testsome(3, none, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED, "testsome %d", count);
    memset(statuses, 0x11, sizeof statuses);
    MPI_Waitall(3, none, statuses);
    CHECK(is_empty(&statuses[0]) && is_empty(&statuses[2]), "waitall");
    MPI_Testall(3, none, &flag, statuses);
    CHECK(flag, "testall");
    MPI_Request_get_status(none[0], &flag, &status);
    CHECK(flag && is_empty(&status), "get_status");
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Waitany(0, NULL, &index, MPI_STATUS_IGNORE);
    CHECK(index == MPI_UNDEFINED, "waitany of none: %d", index);
}

static void any(int test)
{
    int seen[N] = {0};
    post();
    for (int turn = 0; turn < N; turn++) {
        /* The order is the sender's: from the last to the first. */
        int index = -1, flag = 0, expected = N - 1 - turn;
        MPI_Status status;
        send_one(expected);
        if (test) {
            while (!flag) {
                MPI_Testany(N, receives, &index, &flag, &status);
                CHECK(flag || index == MPI_UNDEFINED, "index %d without flag", index);
            }
        } else {
            MPI_Waitany(N, receives, &index, &status);
        }
        CHECK(index >= 0 && index < N && !seen[index], "index %d", index);
        seen[index] = 1;
        check_status(&status, index);
        CHECK(receives[index] == MPI_REQUEST_NULL, "the handle stays");
    }
    MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
}

static void some(int test)
{
    int seen[N] = {0}, done = 0;
    post();
    for (int i = 0; i < N; i++) {
        send_one(i);
    }
    while (done < N) {
        int count, indices[N];
        MPI_Status statuses[N];
        if (test) {
            MPI_Testsome(N, receives, &count, indices, statuses);
        } else {
            MPI_Waitsome(N, receives, &count, indices, statuses);
            CHECK(count > 0, "waitsome answers %d", count);
        }
        CHECK(count >= 0 && count <= N - done, "%d of %d", count, N - done);
        for (int i = 0; i < count; i++) {
            CHECK(!seen[indices[i]], "twice %d", indices[i]);
            seen[indices[i]] = 1;
            check_status(&statuses[i], indices[i]);
        }
        done += count;
    }
    MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
}

static void all(int test)
{
    MPI_Status statuses[N];
    int flag;
    post();
    MPI_Testall(N, receives, &flag, statuses);
    CHECK(!flag && receives[0] != MPI_REQUEST_NULL, "complete before it is sent");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) {
        send_one(i);
    }
    if (test) {
        do {
            MPI_Testall(N, receives, &flag, statuses);
            CHECK(flag || receives[N / 2] != MPI_REQUEST_NULL, "a handle goes before all are complete");
        } while (!flag);
    } else {
        MPI_Waitall(N, receives, statuses);
    }
    for (int i = 0; i < N; i++) {
        check_status(&statuses[i], i);
        CHECK(receives[i] == MPI_REQUEST_NULL, "the handle stays");
    }
    MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
}

static void ask(void)
{
    MPI_Status status;
    int flag = 0;
    post();
    MPI_Request_get_status(receives[0], &flag, &status);
    CHECK(!flag, "complete before it is sent");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) {
        send_one(i);
    }
    for (int turn = 0; turn < 3; turn++) {
        do {
            MPI_Request_get_status(receives[1], &flag, &status);
        } while (!flag);
        check_status(&status, 1);
        CHECK(receives[1] != MPI_REQUEST_NULL, "the handle goes");
    }
    MPI_Wait(&receives[1], &status);
    check_status(&status, 1);
    MPI_Waitall(N, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
}

/* Garbage in the statuses of a call, and then no error in so many. */
static void soil(MPI_Status *statuses)
{
    for (int i = 0; i < N; i++)
        statuses[i].MPI_ERROR = 4711;
}

static void clean(const char *call, const MPI_Status *statuses, int count)
{
    for (int i = 0; i < N; i++) {
        int wanted = i < count ? MPI_SUCCESS : 4711;
        CHECK(statuses[i].MPI_ERROR == wanted, "%s: error %d in status %d of %d", call, statuses[i].MPI_ERROR, i, count);
    }
}

/* The error field is the program's while nothing fails, but where there are several, which all libraries set. */
static void error_fields(void)
{
    MPI_Status status, statuses[N];
    int flag = 0, count, indices[N];
    post();
    for (int i = 0; i < N; i++)
        send_one(i);
    status.MPI_ERROR = 4711;
    MPI_Wait(&receives[0], &status);
    CHECK(status.MPI_ERROR == 4711, "wait sets the error field to %d", status.MPI_ERROR);
    soil(statuses);
    do
        MPI_Request_get_status_all(N / 2, receives, &flag, statuses);
    while (!flag);
    clean("get_status_all", statuses, N / 2);
    soil(statuses);
    MPI_Waitsome(N / 2, receives, &count, indices, statuses);
    clean("waitsome", statuses, count);
    soil(statuses);
    do
        MPI_Testall(N - 1, receives, &flag, statuses);
    while (!flag);
    clean("testall", statuses, N - 1);
    soil(statuses);
    do
        MPI_Testsome(N, receives, &count, indices, statuses);
    while (count == 0);
    clean("testsome", statuses, 1);
    soil(statuses);
    MPI_Waitall(N, sends, statuses);
    clean("waitall", statuses, N);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    nothing();
    for (int turn = 0; turn < 20; turn++) {
        any(turn % 2);
        some(turn % 2);
        all(turn % 2);
        ask();
        error_fields();
    }
    MPI_Finalize();
    return 0;
}
