/* A thread in each interface, at the same time. The second one opens while a thread waits in the first, which was started
   for one thread at a time. Messages come in bursts, so that the threads sleep, watch and wake each other. */
#include "check.h"
#include <pthread.h>
#include <string.h>

enum { ROUNDS = 2000, LONG = 300000 };

static int rank, size, to, from;

/* A ring of messages by MPI: each waits for the one before. */
static void *in_mpi(void *nothing)
{
    static unsigned char bytes[LONG], got[LONG];
    for (int turn = 0; turn < ROUNDS; turn++) {
        int length = turn % 50 == 49 ? LONG : 8;
        if (rank != 0) {
            MPI_Recv(got, length, MPI_BYTE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_bytes(got, length, from, turn, "a message of MPI");
        }
        fill(bytes, length, rank, turn);
        MPI_Send(bytes, length, MPI_BYTE, to, 5, MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Recv(got, length, MPI_BYTE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_bytes(got, length, from, turn, "a message of MPI");
        }
    }
    return nothing;
}

/* The same the other way about. */
static void *in_native(void *nothing)
{
    static unsigned char bytes[LONG], got[LONG];
    for (int turn = 0; turn < ROUNDS; turn++) {
        int length = turn % 40 == 39 ? LONG : 8;
        if (rank != 0) {
            check(native.receive(to, 5, got, LONG) == length, "the length of a native message");
            check_bytes(got, length, to, turn, "a native message");
        }
        fill(bytes, length, rank, turn);
        check(native.send(from, 5, bytes, length) == 0, "a native send");
        if (rank == 0) {
            check(native.receive(to, 5, got, LONG) == length, "the length of a native message");
            check_bytes(got, length, to, turn, "a native message");
        }
    }
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int level, word = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    to = (rank + 1) % size, from = (rank + size - 1) % size;
    check(pthread_create(&thread, NULL, in_mpi, NULL) == 0, "a thread");
    open_native(0);
    in_native(NULL);
    pthread_join(thread, NULL);
    /* Nothing is left that the other one was to receive. */
    MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    native.close();
    MPI_Finalize();
    if (rank == 0)
        printf("ok\n");
    return 0;
}
