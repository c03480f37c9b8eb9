/* Ranks on one core that wait by asking in loops: each loop leaves the core to the rank that it waits for, and does not
   ask until its time slice ends. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

enum { ROUNDS = 200, WAYS = 8 };

static long asked;

/* Asks until the message, or the request, is there. */
static void wait_by_asking(int way, MPI_Request *request, int from)
{
    MPI_Status status;
    MPI_Message message;
    int flag = 0, index;
    for (asked--; !flag; asked++) {
        switch (way) {
        case 0: OK(MPI_Test(request, &flag, &status)); break;
        case 1: OK(MPI_Testall(1, request, &flag, &status)); break;
        case 2: OK(MPI_Testany(1, request, &index, &flag, &status)); break;
        case 3: OK(MPI_Testsome(1, request, &flag, &index, &status)); break;
        case 4: OK(MPI_Request_get_status(*request, &flag, &status)); break;
        case 5: OK(MPI_Iprobe(from, 0, MPI_COMM_WORLD, &flag, &status)); break;
        case 6: OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status)); break;
        case 7: OK(MPI_Improbe(from, 0, MPI_COMM_WORLD, &flag, &message, &status)); break;
        }
    }
    if (way == 5 || way == 6)
        OK(MPI_Irecv(&index, 1, MPI_INT, from, 0, MPI_COMM_WORLD, request));
    if (way == 7)
        OK(MPI_Imrecv(&index, 1, MPI_INT, &message, request));
    OK(MPI_Wait(request, &status));
}

int main(int argc, char **argv)
{
    cpu_set_t all, one;
    int token = 0, core = 0;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    /* The launcher may have bound each of us to another core. */
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &check_size));
    while (!CPU_ISSET(core, &all)) core++;
    OK(MPI_Bcast(&core, 1, MPI_INT, 0, MPI_COMM_WORLD));
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    int to = (check_rank + 1) % check_size, from = (check_rank + check_size - 1) % check_size;
    for (int way = 0; way < WAYS; way++) {
        asked = 0;
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Request request = MPI_REQUEST_NULL;
            if (way < 5)
                OK(MPI_Irecv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, &request));
            if (check_rank == 0)
                OK(MPI_Send(&round, 1, MPI_INT, to, 0, MPI_COMM_WORLD));
            wait_by_asking(way, &request, from);
            if (check_rank != 0)
                OK(MPI_Send(&round, 1, MPI_INT, to, 0, MPI_COMM_WORLD));
        }
        /* Until a time slice ends there are tens of thousands of questions. */
        if (asked >= 500L * ROUNDS)
            fprintf(stderr, "way %d: %ld questions for %d messages\n", way, asked, ROUNDS);
        CHECK(asked < 500L * ROUNDS);
    }
    return check_end();
}
