/* Threads with a communicator each do collectives at the same time. */
#include "coll.h"
#include <pthread.h>

#define THREADS 4
#define ROUNDS 200

static MPI_Comm comms[THREADS];

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static MPI_Op op;

static void *work(void *argument)
{
    int id = (int)(intptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        int in = rank * id + i, out = -1, want = id * size * (size - 1) / 2 + i * size;
        OK(MPI_Allreduce(&in, &out, 1, MPI_INT, i % 2 ? MPI_SUM : op, comms[id]));
        CHECK(out == want, "thread %d, round %d: %d, not %d", id, i, out, want);
        MPI_Request request;
        out = -1;
        OK(MPI_Iallreduce(&in, &out, 1, MPI_INT, i % 2 ? op : MPI_SUM, comms[id], &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(out == want, "thread %d, round %d: %d, not %d", id, i, out, want);
        if (i % 10 == 0) OK(MPI_Barrier(comms[id]));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    doing = "threads";
    CHECK(level == MPI_THREAD_MULTIPLE, "the level is %d", level);
    OK(MPI_Op_create(add, 1, &op));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_free(&comms[i]));
    OK(MPI_Op_free(&op));
    MPI_Finalize();
    return 0;
}
