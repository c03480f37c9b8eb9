/* MPI and ports in one process: who waits in one of them moves the other. */
#include "check.h"
#include <mpi.h>

enum { PORT = 1, LONG = 3000000 };

static char out[LONG], in[LONG];

int main(void)
{
    int rank;
    MPI_Request request;
    CHECK(MPI_Init(NULL, NULL) == 0 && MPI_Comm_rank(MPI_COMM_WORLD, &rank) == 0);
    CHECK(weft_init(0) == 0 && weft_me() == rank && weft_port_open(PORT) == PORT);
    int other = rank ^ 1;
    for (int round = 0; round < 20; round++) {
        memset(out, round + 1, LONG);
        if (rank == 0) {
            /* The other one asks for it while this one waits elsewhere. */
            CHECK(MPI_Isend(out, LONG, MPI_CHAR, other, 3, MPI_COMM_WORLD, &request) == 0);
            CHECK(weft_receive(PORT, other, round, in, 8, NULL) == 0);
            CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == 0);
        } else {
            CHECK(MPI_Recv(in, LONG, MPI_CHAR, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == 0);
            CHECK(memcmp(in, out, LONG) == 0);
            CHECK(weft_send(other, PORT, round, "1234567", 8) == 0);
        }
    }
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == 0);
    finish();
    return MPI_Finalize();
}
