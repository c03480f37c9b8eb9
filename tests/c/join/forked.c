/* Ranks with forked children that end in every way in which a process ends by itself, while the ranks go on talking.
   What was registered to run at the end of the process runs in the children too; asked for by an argument, it calls
   MPI_Finalize, as libraries do that end MPI behind their program's back. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAYS = 3, MESSAGES = 500 };

static pid_t parent;
static int ran[2], finalizes;

static void at_the_end(void)
{
    int flag = 0;
    if (getpid() == parent)
        return;
    /* A question changes nothing. */
    MPI_Initialized(&flag);
    if (finalizes) {
        int before = 1, after = 0;
        /* Who waits for the others instead is ended and seen. */
        alarm(30);
        MPI_Finalized(&before);
        flag = MPI_Finalize() == MPI_SUCCESS;
        MPI_Finalized(&after);
        flag = flag && !before && after;
    }
    if (write(ran[1], flag ? "x" : "-", 1) != 1)
        _exit(9);
}

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

/* Short and long messages, and a collective operation. */
static void talk(int rank, int size)
{
    static int data[50000], got[50000];
    int sum = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < MESSAGES; i++) {
        int count = i % 100 == 99 ? 50000 : i % 12 + 1;
        memset(got, 0, sizeof got);
        data[0] = rank + i;
        data[count - 1] = rank + i;
        MPI_Sendrecv(data, count, MPI_INT, to, 1, got, count, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(got[0] == from + i && got[count - 1] == from + i, "a message");
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == size * (size - 1) / 2, "a sum");
}

int main(int argc, char **argv)
{
    int rank, size, status, seen = 0;
    pid_t children[WAYS];
    char byte;

    parent = getpid();
    finalizes = argc > 1;
    if (pipe(ran) != 0 || atexit(at_the_end) != 0)
        return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int way = 0; way < WAYS; way++) {
        talk(rank, size);
        children[way] = fork();
        check(children[way] >= 0, "a fork");
        if (children[way] > 0)
            continue;
        if (way == 0)
            exit(0);
        if (way == 1)
            _exit(0);
        return 0;
    }
    /* Some end while the ranks talk, all before the ranks talk again. */
    talk(rank, size);
    for (int way = 0; way < WAYS; way++)
        check(waitpid(children[way], &status, 0) == children[way] && status == 0, "the end of a child");
    close(ran[1]);
    while (read(ran[0], &byte, 1) == 1)
        seen += byte == 'x';
    check(seen == 2, "what runs at the end of children");
    talk(rank, size);
    printf("rank %d of %d goes on\n", rank, size);
    MPI_Finalize();
    return 0;
}
