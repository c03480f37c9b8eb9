/* Ranks are killed at random moments, by a seed that is given; those who live agree, shrink and go on. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LONG = 120000, LONGEST_US = 12000, BITS_OK = 1, BITS_OVER = 2 };
static const double LEAST_SECONDS = 0.03;

static uint64_t state;

static unsigned next(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 24) % below;
}

static void die(int signal)
{
    (void)signal;
    kill(getpid(), SIGKILL);
}

static void wrong(const char *what)
{
    fprintf(stderr, "wrong: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static int class_of(int code)
{
    int class = MPI_ERR_UNKNOWN;
    MPI_Error_class(code, &class);
    if (code != MPI_SUCCESS && class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        fprintf(stderr, "class %d: %s\n", class, text);
        wrong("an error of another class");
    }
    return class;
}

static char here[LONG], there[LONG];

static int ring(MPI_Comm comm, int rank, int size, int turn)
{
    int bytes = turn % 3 == 0 ? 8 : turn % 3 == 1 ? 20000 : LONG;
    memset(here, rank + turn, (size_t)bytes);
    int code = MPI_Sendrecv(here, bytes, MPI_CHAR, (rank + 1) % size, 5, there, bytes, MPI_CHAR,
                            (rank + size - 1) % size, 5, comm, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && there[bytes - 1] != (char)((rank + size - 1) % size + turn))
        wrong("ring");
    return code;
}

/* The root hears from everybody, in any order. */
static int report(MPI_Comm comm, int rank, int size, int turn)
{
    int root = turn % size;
    if (rank != root)
        return MPI_Send(&rank, 1, MPI_INT, root, 6, comm);
    for (int n = 0; n < size - 1; n++) {
        int from, code = MPI_Recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, 6, comm, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

static int sum(MPI_Comm comm, int rank, int size, int nonblocking)
{
    static int mine[LONG / 4], all[LONG / 4];
    int count = nonblocking ? LONG / 4 : 3, code;
    for (int i = 0; i < count; i++)
        mine[i] = rank + i;
    if (nonblocking) {
        MPI_Request request;
        code = MPI_Iallreduce(mine, all, count, MPI_INT, MPI_SUM, comm, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else
        code = MPI_Allreduce(mine, all, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count && code == MPI_SUCCESS; i++)
        if (all[i] != size * (size - 1) / 2 + i * size)
            wrong("sum");
    return code;
}

static int spread(MPI_Comm comm, int rank, int size, int turn)
{
    int root = turn % size, bytes = turn % 2 ? LONG : 100;
    memset(here, rank == root ? turn : -1, (size_t)bytes);
    int code = MPI_Bcast(here, bytes, MPI_CHAR, root, comm);
    if (code == MPI_SUCCESS && (here[0] != (char)turn || here[bytes - 1] != (char)turn))
        wrong("spread");
    return code;
}

static int swap_all(MPI_Comm comm, int rank, int size)
{
    int out[64], in[64];
    for (int i = 0; i < size; i++)
        out[i] = rank * 100 + i;
    int code = MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
    for (int i = 0; i < size && code == MPI_SUCCESS; i++)
        if (in[i] != i * 100 + rank)
            wrong("swap");
    return code;
}

static int duplicate(MPI_Comm comm)
{
    MPI_Comm copy;
    int code = MPI_Comm_dup(comm, &copy);
    if (code == MPI_SUCCESS)
        MPI_Comm_free(&copy);
    return code;
}

static int work(MPI_Comm comm, int turn)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    switch (turn % 8) {
    case 0: return MPI_Barrier(comm);
    case 1: return ring(comm, rank, size, turn / 8);
    case 2: return sum(comm, rank, size, 0);
    case 3: return spread(comm, rank, size, turn / 8);
    case 4: return sum(comm, rank, size, 1);
    case 5: return swap_all(comm, rank, size);
    case 6: return report(comm, rank, size, turn / 8);
    default: return duplicate(comm);
    }
}

int main(int argc, char **argv)
{
    int world_rank, world_size;
    uint64_t history = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    state = (strtoull(argc > 1 ? argv[1] : "1", NULL, 10) * 2 + 1) * 0x9e3779b97f4a7c15u;
    unsigned dying = 1 + next((unsigned)world_size - 1), first = next((unsigned)world_size);
    unsigned when[64];
    for (int i = 0; i < world_size; i++)
        when[i] = 1 + next(LONGEST_US);
    int turn = (int)next(8);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    if (((unsigned)world_rank + (unsigned)world_size - first) % (unsigned)world_size < dying) {
        struct itimerval timer = { { 0, 0 }, { 0, when[world_rank] } };
        signal(SIGALRM, die);
        setitimer(ITIMER_REAL, &timer, NULL);
    }
    double begin = MPI_Wtime();
    for (;; turn++) {
        int code = work(comm, turn);
        class_of(code);
        if (code != MPI_SUCCESS)
            MPIX_Comm_revoke(comm);
        int size, flag = (code == MPI_SUCCESS ? BITS_OK : 0) | (MPI_Wtime() - begin > LEAST_SECONDS ? BITS_OVER : 0);
        code = MPIX_Comm_agree(comm, &flag);
        class_of(code);
        history = history * 31 + (uint64_t)flag * 2 + (code != MPI_SUCCESS);
        MPI_Comm_size(comm, &size);
        if (code == MPI_SUCCESS && flag == (BITS_OK | BITS_OVER) && size == world_size - (int)dying)
            break;
        if (code != MPI_SUCCESS || !(flag & BITS_OK)) {
            MPI_Comm less;
            MPIX_Comm_revoke(comm);
            if (class_of(MPIX_Comm_shrink(comm, &less)) != MPI_SUCCESS)
                wrong("shrink");
            MPI_Comm_free(&comm);
            comm = less;
        }
    }
    uint64_t both[2] = { history, ~history }, highest[2];
    if (MPI_Allreduce(both, highest, 2, MPI_UINT64_T, MPI_MAX, comm) != MPI_SUCCESS || highest[0] != history
        || highest[1] != ~history)
        wrong("not everybody has agreed on the same");
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        printf("ok\n");
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
