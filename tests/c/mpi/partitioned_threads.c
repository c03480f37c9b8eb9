/* Threads hand partitions over at the same time, while others ask what has arrived. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, EACH = 16, PARTS = THREADS * EACH, TURNS = 20 };

static MPI_Request send, receive;
static int out[PARTS][3], in[PARTS][3];
static int left, turn;

static int value(int from, int part, int place)
{
    return ((from * 64 + turn) * PARTS + part) * 3 + place;
}

static void *sender(void *number)
{
    int first = *(int *)number;
    for (int i = EACH - 1; i >= 0; i--) {
        int part = first + i * THREADS;
        for (int j = 0; j < 3; j++)
            out[part][j] = value(check_rank, part, j);
        OK(MPI_Pready(part, send));
    }
    return NULL;
}

static void *receiver(void *number)
{
    int first = *(int *)number, flag;
    for (int part = first * EACH; part < (first + 1) * EACH; part++) {
        do
            OK(MPI_Parrived(receive, part, &flag));
        while (!flag);
        for (int j = 0; j < 3; j++)
            CHECK(in[part][j] == value(left, part, j));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, numbers[THREADS];
    pthread_t threads[2 * THREADS];
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &check_size));
    left = (check_rank + check_size - 1) % check_size;
    OK(MPI_Psend_init(out, PARTS, 3, MPI_INT, (check_rank + 1) % check_size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, PARTS, 3, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (turn = 0; turn < TURNS; turn++) {
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        for (int i = 0; i < THREADS; i++) {
            numbers[i] = i;
            CHECK(pthread_create(&threads[i], NULL, sender, &numbers[i]) == 0);
            CHECK(pthread_create(&threads[THREADS + i], NULL, receiver, &numbers[i]) == 0);
        }
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2 * THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    return check_end();
}
