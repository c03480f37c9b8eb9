/* Probes, and messages taken out of matching. */
#include "point.h"

enum { LONG = 60000 };

static int from, to;

static void probes(int count, int blocking)
{
    int *out = malloc((count + 1) * sizeof *out), *in = malloc((count + 1) * sizeof *in);
    for (int i = 0; i < count; i++) {
        out[i] = mark(rank, to, i & 0xffff);
    }
    MPI_Request request;
    MPI_Status status;
    MPI_Isend(out, count, MPI_INT, to, 5, MPI_COMM_WORLD, &request);
    int flag = 0, seen;
    if (blocking) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    } else {
        MPI_Iprobe(from, 6, MPI_COMM_WORLD, &flag, &status);
        CHECK(!flag, "a message with another tag is seen");
        while (!flag) {
            MPI_Iprobe(from, 5, MPI_COMM_WORLD, &flag, &status);
        }
    }
    MPI_Get_count(&status, MPI_INT, &seen);
    CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 5 && seen == count, "source %d tag %d count %d of %d",
          status.MPI_SOURCE, status.MPI_TAG, seen, count);
    MPI_Recv(in, seen, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        CHECK(in[i] == mark(from, rank, i & 0xffff), "place %d of %d", i, count);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag || size > 1, "the message is still there");
    free(out);
    free(in);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The first message is taken; a receive that would match it gets the second. */
static void matched(int count, int blocking)
{
    int *first = malloc(count * sizeof *first), *taken = malloc(count * sizeof *taken), second = 2, got = 0;
    for (int i = 0; i < count; i++) {
        first[i] = mark(rank, to, i & 0xffff);
    }
    MPI_Request requests[2], receive;
    MPI_Isend(first, count, MPI_INT, to, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&second, 1, MPI_INT, to, 8, MPI_COMM_WORLD, &requests[1]);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int flag = 0, seen;
    if (blocking) {
        MPI_Mprobe(from, 8, MPI_COMM_WORLD, &message, &status);
    } else {
        while (!flag) {
            MPI_Improbe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &flag, &message, &status);
        }
    }
    CHECK(message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC, "no message");
    MPI_Get_count(&status, MPI_INT, &seen);
    CHECK(status.MPI_SOURCE == from && seen == count, "source %d count %d", status.MPI_SOURCE, seen);
    MPI_Recv(&got, 1, MPI_INT, from, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 2, "the second message: %d", got);
    if (blocking) {
        MPI_Mrecv(taken, count, MPI_INT, &message, &status);
    } else {
        MPI_Imrecv(taken, count, MPI_INT, &message, &receive);
        MPI_Wait(&receive, &status);
    }
    CHECK(message == MPI_MESSAGE_NULL, "the message handle stays");
    MPI_Get_count(&status, MPI_INT, &seen);
    CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 8 && seen == count, "count %d", seen);
    for (int i = 0; i < count; i++) {
        CHECK(taken[i] == mark(from, rank, i & 0xffff), "place %d of %d", i, count);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    free(first);
    free(taken);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void nobody(void)
{
    MPI_Status status;
    MPI_Message message;
    int flag = 0, value = 1;
    MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG, "probe");
    MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &status);
    CHECK(flag && status.MPI_SOURCE == MPI_PROC_NULL, "iprobe");
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC, "mprobe");
    memset(&status, 0, sizeof status);
    MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL && value == 1, "mrecv");
    MPI_Improbe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &message, &status);
    CHECK(flag && message == MPI_MESSAGE_NO_PROC, "improbe");
    MPI_Request request;
    MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
    MPI_Wait(&request, &status);
    CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL, "imrecv");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    for (int blocking = 0; blocking < 2; blocking++) {
        probes(0, blocking);
        probes(3, blocking);
        probes(LONG, blocking);
        matched(1, blocking);
        matched(LONG, blocking);
    }
    nobody();
    MPI_Finalize();
    return 0;
}
