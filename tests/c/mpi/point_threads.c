/* Several threads that send, receive, wait and test at the same time. */
#include "point.h"
#include <pthread.h>

enum { THREADS = 4, TURNS = 200, LONG = 20000 };

static void *exchange(void *argument)
{
    int me = *(int *)argument, to = (rank + 1) % size, from = (rank + size - 1) % size;
    int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int turn = 0; turn < TURNS; turn++) {
        int count = turn % 10 == 0 ? LONG : turn % 50 + 1;
        for (int i = 0; i < count; i++) {
            out[i] = mark(rank, me, i & 0x7fff) + turn;
        }
        MPI_Request requests[2];
        MPI_Status status;
        switch (turn % 4) {
        case 0:
            MPI_Sendrecv(out, count, MPI_INT, to, me, in, LONG, MPI_INT, from, me, MPI_COMM_WORLD, &status);
            break;
        case 1:
            MPI_Irecv(in, LONG, MPI_INT, from, me, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out, count, MPI_INT, to, me, MPI_COMM_WORLD, &requests[1]);
            MPI_Wait(&requests[0], &status);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            break;
        case 2: {
            int flag = 0;
            MPI_Irecv(in, LONG, MPI_INT, from, me, MPI_COMM_WORLD, &requests[0]);
            MPI_Issend(out, count, MPI_INT, to, me, MPI_COMM_WORLD, &requests[1]);
            while (!flag) {
                MPI_Test(&requests[0], &flag, &status);
            }
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            break;
        }
        case 3: {
            MPI_Message message;
            MPI_Isend(out, count, MPI_INT, to, me, MPI_COMM_WORLD, &requests[1]);
            MPI_Mprobe(from, me, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv(in, LONG, MPI_INT, &message, &status);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            break;
        }
        }
        int seen;
        MPI_Get_count(&status, MPI_INT, &seen);
        CHECK(seen == count && status.MPI_SOURCE == from && status.MPI_TAG == me, "thread %d turn %d: %d of %d", me, turn,
              seen, count);
        for (int i = 0; i < count; i++) {
            CHECK(in[i] == mark(from, me, i & 0x7fff) + turn, "thread %d turn %d place %d", me, turn, i);
        }
    }
    free(out);
    free(in);
    return NULL;
}

/* One thread sleeps in a receive that another thread of the same process satisfies. */
static void *sleeper(void *argument)
{
    int *value = argument;
    MPI_Recv(value, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static MPI_Request generalized;

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static void *completer(void *argument)
{
    MPI_Request *request = argument;
    MPI_Grequest_complete(*request);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, numbers[THREADS], value = 0;
    pthread_t threads[THREADS], one;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE, "provided %d", provided);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, exchange, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int turn = 1; turn <= 20; turn++) {
        pthread_create(&one, NULL, sleeper, &value);
        MPI_Send(&turn, 1, MPI_INT, rank, 77, MPI_COMM_WORLD);
        pthread_join(one, NULL);
        CHECK(value == turn, "%d in turn %d", value, turn);
        MPI_Grequest_start(query, release, cancel, NULL, &generalized);
        MPI_Request mine = generalized;
        pthread_create(&one, NULL, completer, &mine);
        MPI_Wait(&generalized, MPI_STATUS_IGNORE);
        pthread_join(one, NULL);
    }
    MPI_Finalize();
    return 0;
}
