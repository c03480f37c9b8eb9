/* Threads of all ranks use one window at the same time. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 300 };

static MPI_Win win;

static void *count(void *argument)
{
    long one = 1, seen = -1, before, mine = -1;
    int thread = *(int *)argument, at = 1 + check_rank * THREADS + thread;
    for (long i = 0; i < ROUNDS; i++) {
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(before > seen);
        seen = before;
        /* A place of one's own at the last rank. */
        OK(MPI_Put(&i, 1, MPI_LONG, check_size - 1, at, 1, MPI_LONG, win));
        OK(MPI_Win_flush(check_size - 1, win));
        OK(MPI_Get(&mine, 1, MPI_LONG, check_size - 1, at, 1, MPI_LONG, win));
        OK(MPI_Win_flush(check_size - 1, win));
        CHECK(mine == i);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, number[THREADS];
    pthread_t thread[THREADS];
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &check_size));
    long *base, places = 1 + check_size * THREADS;
    MPI_Aint bytes = places * (MPI_Aint)sizeof(long);
    OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, (size_t)bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int t = 0; t < THREADS; t++) {
        number[t] = t;
        CHECK(pthread_create(&thread[t], NULL, count, &number[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_join(thread[t], NULL) == 0);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank == 0)
        CHECK(base[0] == (long)check_size * THREADS * ROUNDS);
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}
