/* The buffered mode: room is taken and given back, flushing and detaching wait, lack of room is an error. */
#include "point.h"

enum { LONG = 40000, MESSAGES = 6 };

static int from, to;

/* More than can leave at once; the partner receives only after everybody has sent. */
static void flood(void)
{
    size_t bytes = MESSAGES * (LONG * sizeof(int) + MPI_BSEND_OVERHEAD);
    char *buffer = malloc(bytes);
    int *data = malloc(LONG * sizeof *data);
    MPI_Buffer_attach(buffer, (int)bytes);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < MESSAGES; i++) {
            for (int j = 0; j < LONG; j++) {
                data[j] = mark(rank, i, j);
            }
            if (i % 2) {
                MPI_Bsend(data, LONG, MPI_INT, to, i, MPI_COMM_WORLD);
            } else {
                MPI_Request request;
                MPI_Ibsend(data, LONG, MPI_INT, to, i, MPI_COMM_WORLD, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            memset(data, 0, LONG * sizeof *data);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Recv(data, LONG, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int j = 0; j < LONG; j++) {
                CHECK(data[j] == mark(from, i, j), "turn %d message %d place %d: %x", turn, i, j, data[j]);
            }
        }
        /* Only now is room for the next turn. */
        MPI_Barrier(MPI_COMM_WORLD);
        void *address = NULL;
        int back = 0;
        MPI_Buffer_detach(&address, &back);
        CHECK(address == buffer && back == (int)bytes, "detached %p %d", address, back);
        MPI_Buffer_attach(buffer, (int)bytes);
    }
    void *address;
    int back;
    MPI_Buffer_detach(&address, &back);
    free(buffer);
    free(data);
}

/* Detaching waits until the messages have left; the receiver comes late. */
static void late(void)
{
    int *data = malloc(LONG * sizeof *data), *in = malloc(LONG * sizeof *in);
    char *buffer = malloc(LONG * sizeof(int) + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(buffer, LONG * sizeof(int) + MPI_BSEND_OVERHEAD);
    for (int j = 0; j < LONG; j++) {
        data[j] = j * 3 + rank;
    }
    MPI_Request request;
    MPI_Bsend(data, LONG, MPI_INT, to, 1, MPI_COMM_WORLD);
    MPI_Irecv(in, LONG, MPI_INT, from, 1, MPI_COMM_WORLD, &request);
    void *address;
    int back;
    MPI_Buffer_detach(&address, &back);
    memset(buffer, 0xff, LONG * sizeof(int));
    free(buffer);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int j = 0; j < LONG; j++) {
        CHECK(in[j] == j * 3 + from, "place %d: %d", j, in[j]);
    }
    free(data);
    free(in);
}

static void wrong(void)
{
    static char small[100 + MPI_BSEND_OVERHEAD], other[10];
    static int data[10000];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Bsend(data, 10000, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    MPI_Buffer_attach(small, sizeof small);
    CHECK_CLASS(MPI_Buffer_attach(other, sizeof other), foreign() ? MPI_ERR_OTHER : MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Bsend(data, 10000, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    int value = 6, got = 0;
    MPI_Bsend(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 6, "after an error: %d", got);
    void *address;
    int back;
    MPI_Buffer_detach(&address, &back);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* A scattered message through the buffer. */
static void scattered(void)
{
    static char buffer[4000 + MPI_BSEND_OVERHEAD];
    int matrix[1000], row[500];
    MPI_Datatype column;
    MPI_Type_vector(500, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < 1000; i++) {
        matrix[i] = mark(rank, 0, i);
    }
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Bsend(matrix, 1, column, to, 2, MPI_COMM_WORLD);
    memset(matrix, 0, sizeof matrix);
    MPI_Recv(row, 500, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 500; i++) {
        CHECK(row[i] == mark(from, 0, 2 * i), "place %d", i);
    }
    void *address;
    int back;
    MPI_Buffer_detach(&address, &back);
    MPI_Type_free(&column);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    flood();
    late();
    wrong();
    scattered();
    MPI_Finalize();
    return 0;
}
