/* Room in an attached buffer comes back as soon as the receiver has the message, whatever was called in between. */
#include "check.h"

#define BYTES (1 << 20)
#define MESSAGES 8

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    int room = MESSAGES * (BYTES + MPI_BSEND_OVERHEAD);
    char *data = calloc(1, BYTES), *buffer = malloc(room);
    CHECK(data && buffer);
    OK(MPI_Buffer_attach(buffer, room));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < MESSAGES; i++) {
            if (check_rank == 0)
                OK(MPI_Bsend(data, BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD));
            if (check_rank == 1)
                OK(MPI_Recv(data, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        /* Time for the others to take them and to be at the barrier, so that it keeps rank 0 no moment. */
        for (double start = MPI_Wtime(); check_rank == 0 && MPI_Wtime() < start + 0.02;) {}
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Buffer_detach(&buffer, &room));
    free(buffer);
    free(data);
    return check_end();
}
