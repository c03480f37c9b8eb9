/* Every send mode, blocking and not, of many sizes around a ring, to itself and to nobody; wildcards and order. */
#include "point.h"

enum { KINDS = 7 };

static void start(int kind, const void *data, int count, int to, int tag, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    switch (kind) {
    case 0: MPI_Isend(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request); break;
    case 1: MPI_Issend(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request); break;
    case 2: MPI_Irsend(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request); break;
    case 3: MPI_Send(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
    case 4: MPI_Ssend(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
    case 5: MPI_Rsend(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
    case 6: MPI_Isend_c(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request); break;
    }
}

/* The receive is posted first, so that no mode can block. */
static void ring(int kind, int bytes)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    unsigned char *out = malloc(bytes + 1), *in = malloc(bytes + 1);
    for (int i = 0; i < bytes; i++) {
        out[i] = (unsigned char)(i * 7 + rank + kind);
    }
    memset(in, 0xee, bytes + 1);
    MPI_Request receive, send;
    MPI_Irecv(in, bytes, MPI_BYTE, from, kind, MPI_COMM_WORLD, &receive);
    MPI_Barrier(MPI_COMM_WORLD);
    start(kind, out, bytes, to, kind, &send);
    MPI_Status status;
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    int count;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(status.MPI_SOURCE == from && status.MPI_TAG == kind && count == bytes, "source %d tag %d count %d of %d",
          status.MPI_SOURCE, status.MPI_TAG, count, bytes);
    for (int i = 0; i < bytes; i++) {
        CHECK(in[i] == (unsigned char)(i * 7 + from + kind), "kind %d, %d bytes, byte %d", kind, bytes, i);
    }
    CHECK(in[bytes] == 0xee, "a byte behind the buffer was written (%d bytes)", bytes);
    CHECK(receive == MPI_REQUEST_NULL && send == MPI_REQUEST_NULL, "handles stay");
    free(out);
    free(in);
}

/* Nothing goes to nobody, and nothing comes from it. */
static void nobody(void)
{
    int value = 5;
    MPI_Status status;
    MPI_Request request;
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        memset(&status, 0x55, sizeof status);
        if (nonblocking) {
            MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
            CHECK(request != MPI_REQUEST_NULL, "a started receive has a handle");
            MPI_Wait(&request, &status);
        } else {
            MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
        }
        int count = -1;
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0 && value == 5,
              "source %d tag %d count %d", status.MPI_SOURCE, status.MPI_TAG, count);
    }
}

/* To ourselves, before and after the receive is posted. */
static void self(void)
{
    enum { LONG = 300000 };
    int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int count = 1; count <= LONG; count *= 17) {
        for (int early = 0; early < 2; early++) {
            MPI_Request send, receive;
            for (int i = 0; i < count; i++) {
                out[i] = i + count + early;
                in[i] = -1;
            }
            if (early) {
                MPI_Isend(out, count, MPI_INT, rank, 9, MPI_COMM_WORLD, &send);
                MPI_Irecv(in, count, MPI_INT, rank, 9, MPI_COMM_WORLD, &receive);
            } else {
                MPI_Irecv(in, count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
                MPI_Issend(out, count, MPI_INT, rank, 9, MPI_COMM_WORLD, &send);
            }
            MPI_Wait(&receive, MPI_STATUS_IGNORE);
            MPI_Wait(&send, MPI_STATUS_IGNORE);
            CHECK(memcmp(in, out, count * sizeof *in) == 0, "%d ints to itself", count);
        }
    }
    free(out);
    free(in);
}

/* Messages of one sender are matched in order, also across tags and wildcards. */
static void order(void)
{
    enum { EACH = 200 };
    if (rank == 0) {
        for (int i = 0; i < EACH * (size - 1); i++) {
            static int next[64];
            int value[2];
            MPI_Status status;
            MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            int from = status.MPI_SOURCE;
            CHECK(value[0] == from && value[1] == next[from] && status.MPI_TAG == next[from] % 3,
                  "from %d: %d %d tag %d, expected %d", from, value[0], value[1], status.MPI_TAG, next[from]);
            next[from]++;
        }
    } else {
        for (int i = 0; i < EACH; i++) {
            int value[2] = {rank, i};
            MPI_Send(value, 2, MPI_INT, 0, i % 3, MPI_COMM_WORLD);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 1, 8, 33, 64, 500, 4096, 70000, 1 << 20};
    begin(&argc, &argv);
    for (int kind = 0; kind < KINDS; kind++) {
        /* A blocking synchronous send to itself would wait for its own receive, which is posted: fine. */
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            ring(kind, sizes[i]);
        }
    }
    nobody();
    MPI_Barrier(MPI_COMM_WORLD);
    self();
    MPI_Barrier(MPI_COMM_WORLD);
    order();
    MPI_Finalize();
    return 0;
}
