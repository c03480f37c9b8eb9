/* Buffers of MPI 4.1: of communicators, automatic ones, flushing. */
#include "point.h"

enum { LONG = 50000 };

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int *data = malloc(LONG * sizeof *data), *in = malloc(LONG * sizeof *in);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int automatic = 0; automatic < 2; automatic++) {
        size_t bytes = 2 * (LONG * sizeof(int) + MPI_BSEND_OVERHEAD);
        void *buffer = automatic ? MPI_BUFFER_AUTOMATIC : malloc(bytes), *address = NULL;
        MPI_Comm_attach_buffer(comm, buffer, automatic ? 0 : (int)bytes);
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < LONG; j++) {
                data[j] = mark(rank, i, j);
            }
            MPI_Bsend(data, LONG, MPI_INT, to, i, comm);
        }
        memset(data, 0, LONG * sizeof *data);
        MPI_Request flush, receives[2];
        MPI_Comm_iflush_buffer(comm, &flush);
        for (int i = 0; i < 2; i++) {
            MPI_Irecv(in, LONG, MPI_INT, from, i, comm, &receives[i]);
            MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
            for (int j = 0; j < LONG; j++) {
                CHECK(in[j] == mark(from, i, j), "message %d place %d", i, j);
            }
        }
        MPI_Wait(&flush, MPI_STATUS_IGNORE);
        CHECK(flush == MPI_REQUEST_NULL, "the handle stays");
        MPI_Comm_flush_buffer(comm);
        MPI_Count back = -1;
        MPI_Comm_detach_buffer_c(comm, &address, &back);
        CHECK(address == buffer && (automatic || back == (MPI_Count)bytes), "detached %p %lld", address, (long long)back);
        if (!automatic) {
            free(buffer);
        }
    }
    /* The process's buffer is for communicators without one. */
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    MPI_Bsend(data, LONG, MPI_INT, to, 3, comm);
    MPI_Recv(in, LONG, MPI_INT, from, 3, comm, MPI_STATUS_IGNORE);
    MPI_Buffer_flush();
    MPI_Request flush;
    MPI_Buffer_iflush(&flush);
    MPI_Wait(&flush, MPI_STATUS_IGNORE);
    void *address;
    int back;
    MPI_Buffer_detach(&address, &back);
    CHECK(address == MPI_BUFFER_AUTOMATIC, "detached %p", address);
    MPI_Comm_free(&comm);
    free(data);
    free(in);
    MPI_Finalize();
    return 0;
}
