/* Threads make communicators at the same time, each out of its own; no two may share traffic. */
#include "check.h"
#include <pthread.h>

#define THREADS 4
#define TURNS 40

static MPI_Comm parents[THREADS];

static void *make(void *argument)
{
    int thread = (int)(MPI_Aint)argument, next = (check_rank + 1) % check_size;
    int before = (check_rank + check_size - 1) % check_size;
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Comm comm, half;
        OK(MPI_Comm_dup(parents[thread], &comm));
        int value = thread * 1000 + turn, got = -1;
        OK(MPI_Sendrecv(&value, 1, MPI_INT, next, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE));
        CHECK(got == value && before >= 0);
        OK(MPI_Comm_split(comm, check_rank % 2, thread, &half));
        OK(MPI_Comm_free(&half));
        OK(MPI_Comm_free(&comm));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[THREADS];
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &check_size));
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]));
    /* Ranks start their threads in different orders, so that they race. */
    for (int i = 0; i < THREADS; i++) {
        int thread = (i + check_rank) % THREADS;
        CHECK(pthread_create(&threads[thread], NULL, make, (void *)(MPI_Aint)thread) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_free(&parents[i]));
    return check_end();
}
