/* What those who live see of a rank that is lost, by the case that is named. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #condition);                                    \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                                             \
        }                                                                                                             \
    } while (0)
#define GOOD(call) CHECK((call) == MPI_SUCCESS)

static int class_of(int code)
{
    int class;
    GOOD(MPI_Error_class(code, &class));
    return class;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
}

static int lost_members(MPI_Comm comm)
{
    MPI_Group group;
    int lost;
    GOOD(MPIX_Comm_get_failed(comm, &group));
    GOOD(MPI_Group_size(group, &lost));
    GOOD(MPI_Group_free(&group));
    return lost;
}

static void await_loss(MPI_Comm comm, int count)
{
    while (lost_members(comm) < count)
        ;
}

/* The rank that is to die waits until all the others have left the barrier before: it may be that it leaves it first. */
static void all_have_begun(MPI_Comm comm, int victim)
{
    char word = 0;
    if (rank != victim)
        GOOD(MPI_Send(&word, 0, MPI_CHAR, victim, 90, comm));
    for (int from = 0; rank == victim && from < size; from++)
        if (from != victim)
            GOOD(MPI_Recv(&word, 0, MPI_CHAR, from, 90, comm, MPI_STATUS_IGNORE));
}

/* The last rank dies while a long and a short receive, a synchronous send and a probe wait for it. */
static void point(MPI_Comm comm)
{
    enum { LONG = 1 << 20 };
    static char place[2][LONG];
    int last = size - 1;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    if (rank == last) {
        char word = 1;
        for (int to = 0; to < last; to++)
            GOOD(MPI_Send(&word, 1, MPI_CHAR, to, 9, comm));
        die();
    }
    GOOD(MPI_Irecv(place[0], LONG, MPI_CHAR, last, 1, comm, &requests[0]));
    GOOD(MPI_Irecv(place[1], 4, MPI_CHAR, last, 2, comm, &requests[1]));
    GOOD(MPI_Issend(place[1], 4, MPI_CHAR, last, 3, comm, &requests[2]));
    CHECK(MPI_Waitall(3, requests, statuses) == MPI_ERR_IN_STATUS);
    for (int i = 0; i < 3; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL && class_of(statuses[i].MPI_ERROR) == MPIX_ERR_PROC_FAILED);
    /* What it sent before is still there. */
    char word = 0;
    GOOD(MPI_Recv(&word, 1, MPI_CHAR, last, 9, comm, MPI_STATUS_IGNORE));
    CHECK(word == 1);
    int flag;
    CHECK(class_of(MPI_Recv(place[0], LONG, MPI_CHAR, last, 1, comm, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Probe(last, 1, comm, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Iprobe(last, 1, comm, &flag, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Send(place[0], LONG, MPI_CHAR, last, 1, comm)) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Send(place[0], 1, MPI_CHAR, last, 1, comm)) == MPIX_ERR_PROC_FAILED);
    /* Others are there as before. */
    int next = (rank + 1) % last, before = (rank + last - 1) % last;
    GOOD(MPI_Sendrecv(&rank, 1, MPI_INT, next, 4, &flag, 1, MPI_INT, before, 4, comm, MPI_STATUS_IGNORE));
    CHECK(flag == before);
}

/* Receives from anybody stall until the loss is acknowledged, and then go on. */
static void anybody(MPI_Comm comm)
{
    int last = size - 1, word = rank, flag, index, number;
    MPI_Status status;
    MPI_Request request, persistent;
    if (rank == last)
        die();
    GOOD(MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &request));
    GOOD(MPI_Recv_init(&index, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &persistent));
    GOOD(MPI_Start(&persistent));
    CHECK(class_of(MPI_Wait(&request, &status)) == MPIX_ERR_PROC_FAILED_PENDING && request != MPI_REQUEST_NULL);
    CHECK(class_of(MPI_Test(&request, &flag, &status)) == MPIX_ERR_PROC_FAILED_PENDING && request != MPI_REQUEST_NULL);
    CHECK(class_of(MPI_Waitany(1, &request, &index, &status)) == MPIX_ERR_PROC_FAILED_PENDING);
    CHECK(request != MPI_REQUEST_NULL);
    CHECK(MPI_Waitall(1, &request, &status) == MPI_ERR_IN_STATUS && request != MPI_REQUEST_NULL);
    CHECK(class_of(status.MPI_ERROR) == MPIX_ERR_PROC_FAILED_PENDING);
    CHECK(class_of(MPI_Wait(&persistent, &status)) == MPIX_ERR_PROC_FAILED_PENDING);
    CHECK(class_of(MPI_Recv(&flag, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &status)) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Probe(MPI_ANY_SOURCE, 3, comm, &status)) == MPIX_ERR_PROC_FAILED);
    GOOD(MPIX_Comm_ack_failed(comm, 0, &number));
    CHECK(number == 0);
    GOOD(MPIX_Comm_ack_failed(comm, 5, &number));
    CHECK(number == 1);
    GOOD(MPI_Test(&request, &flag, &status));
    int next = (rank + 1) % last;
    /* Nobody sends before all have seen the receives stall. */
    int all = 1;
    GOOD(MPIX_Comm_agree(comm, &all));
    number = rank + 7;
    GOOD(MPI_Send(&number, 1, MPI_INT, next, 1, comm));
    GOOD(MPI_Send(&number, 1, MPI_INT, next, 2, comm));
    if (!flag)
        GOOD(MPI_Wait(&request, &status));
    CHECK(word == (rank + last - 1) % last + 7);
    GOOD(MPI_Wait(&persistent, &status));
    GOOD(MPI_Request_free(&persistent));
    MPI_Group group;
    GOOD(MPIX_Comm_failure_get_acked(comm, &group));
    GOOD(MPI_Group_size(group, &number));
    CHECK(number == 1);
    GOOD(MPI_Group_free(&group));
    CHECK(class_of(MPIX_Comm_ack_failed(comm, -1, &number)) == MPI_ERR_ARG);
}

/* Who revokes dies at once; all the others are in calls that nobody else ends. */
static void revoked(MPI_Comm comm)
{
    int word, flag;
    MPI_Request request;
    if (rank == 0) {
        MPIX_Comm_revoke(comm);
        die();
    }
    GOOD(MPI_Irecv(&word, 1, MPI_INT, rank, 1, comm, &request));
    if (rank % 2)
        CHECK(class_of(MPI_Recv(&word, 1, MPI_INT, rank, 2, comm, MPI_STATUS_IGNORE)) == MPIX_ERR_REVOKED);
    else {
        int class = class_of(MPI_Barrier(comm));
        CHECK(class == MPIX_ERR_REVOKED || class == MPIX_ERR_PROC_FAILED);
        CHECK(class_of(MPI_Probe(rank, 2, comm, MPI_STATUS_IGNORE)) == MPIX_ERR_REVOKED);
    }
    CHECK(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPIX_ERR_REVOKED);
    CHECK(class_of(MPI_Send(&word, 1, MPI_INT, rank, 1, comm)) == MPIX_ERR_REVOKED);
    CHECK(class_of(MPI_Iallreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, comm, &request)) == MPIX_ERR_REVOKED);
    MPI_Comm copy;
    CHECK(class_of(MPI_Comm_dup(comm, &copy)) == MPIX_ERR_REVOKED);
    GOOD(MPIX_Comm_is_revoked(comm, &flag));
    CHECK(flag);
    GOOD(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag));
    CHECK(!flag);
}

/* Agreement and shrinking, blocking and not, with ranks lost before and in between. */
static void shrunk(MPI_Comm comm)
{
    MPI_Comm less, again;
    MPI_Request requests[2];
    if (rank == 1)
        die();
    await_loss(comm, 1);
    int flag = rank == 0 ? 6 : 3, other = 12;
    CHECK(class_of(MPIX_Comm_agree(comm, &flag)) == MPIX_ERR_PROC_FAILED && flag == (size > 2 ? 2 : 6));
    GOOD(MPIX_Comm_failure_ack(comm));
    flag = 5;
    GOOD(MPIX_Comm_agree(comm, &flag));
    CHECK(flag == 5);
    GOOD(MPIX_Comm_iagree(comm, &other, &requests[0]));
    GOOD(MPIX_Comm_ishrink(comm, &less, &requests[1]));
    GOOD(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(other == 12);
    for (int turn = 0; turn < 100; turn++) {
        int now, sum, all;
        GOOD(MPI_Comm_size(less, &now));
        CHECK(now == size - 1);
        GOOD(MPI_Allreduce(&now, &sum, 1, MPI_INT, MPI_SUM, less));
        CHECK(sum == now * now);
        GOOD(MPI_Reduce(&now, &all, 1, MPI_INT, MPI_SUM, 0, less));
        GOOD(MPI_Bcast(&sum, 1, MPI_INT, 0, less));
        GOOD(MPI_Barrier(less));
    }
    GOOD(MPIX_Comm_shrink(less, &again));
    int same;
    GOOD(MPI_Comm_compare(less, again, &same));
    CHECK(same == MPI_CONGRUENT);
    GOOD(MPI_Comm_free(&less));
    GOOD(MPI_Comm_free(&again));
}

/* A communicator of one that aborts ends one. */
static void aborted(MPI_Comm comm)
{
    if (rank == 1) {
        GOOD(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT));
        MPI_Send(&rank, 1, MPI_INT, 7, 1, MPI_COMM_SELF);
        CHECK(0);
    }
    await_loss(comm, 1);
    /* One of two that aborts ends two. */
    MPI_Comm pair = MPI_COMM_NULL;
    if (rank == 2 || rank == 3) {
        MPI_Group world, two;
        GOOD(MPI_Comm_group(MPI_COMM_WORLD, &world));
        GOOD(MPI_Group_incl(world, 2, (int[]){ 2, 3 }, &two));
        GOOD(MPI_Comm_create_group(MPI_COMM_WORLD, two, 0, &pair));
        if (rank == 3)
            MPI_Abort(pair, 9);
        MPI_Recv(&size, 1, MPI_INT, 0, 1, pair, MPI_STATUS_IGNORE);
        CHECK(0);
    }
    await_loss(comm, 3);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    GOOD(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    GOOD(MPI_Barrier(comm));
    const char *which = argc > 1 ? argv[1] : "";
    int first = !strcmp(which, "revoked"), last = !strcmp(which, "point") || !strcmp(which, "anybody");
    all_have_begun(comm, first ? 0 : last ? size - 1 : 1);
    if (!strcmp(which, "point"))
        point(comm);
    else if (!strcmp(which, "anybody"))
        anybody(comm);
    else if (!strcmp(which, "revoked"))
        revoked(comm);
    else if (!strcmp(which, "shrunk"))
        shrunk(comm);
    else if (!strcmp(which, "aborted"))
        aborted(comm);
    else
        CHECK(!"a known case");
    MPI_Comm_free(&comm);
    if (rank == (strcmp(which, "revoked") ? 0 : 1))
        printf("ok\n");
    MPI_Finalize();
    return 0;
}
