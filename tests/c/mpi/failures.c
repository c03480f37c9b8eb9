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

/* Who asks in a loop goes on sending: what it waits for may wait for that. Each idiom has its ranks. */
static void told(MPI_Comm comm)
{
    enum { LONG = 1 << 20 };
    static char words[LONG];
    int known = 0, flag = 0, number;
    MPI_Group group;
    MPI_Request request;
    for (int from = 0; rank == 1 && from < size; from++)
        if (from != rank)
            GOOD(MPI_Recv(words, LONG, MPI_CHAR, from, 1, comm, MPI_STATUS_IGNORE));
    if (rank == 1)
        die();
    GOOD(MPI_Isend(words, LONG, MPI_CHAR, 1, 1, comm, &request));
    while (rank % 3 == 0 && lost_members(comm) == 0)
        ;
    while (rank % 3 == 1 && known == 0)
        GOOD(MPIX_Comm_ack_failed(comm, 1, &known));
    while (rank % 3 == 2 && known == 0) {
        GOOD(MPIX_Comm_failure_ack(comm));
        GOOD(MPIX_Comm_failure_get_acked(comm, &group));
        GOOD(MPI_Group_size(group, &known));
        GOOD(MPI_Group_free(&group));
    }
    /* All was received, but who was to say so is gone. */
    number = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(number == MPI_SUCCESS || class_of(number) == MPIX_ERR_PROC_FAILED);
    for (int from = 2; rank == 0 && from < size; from++)
        GOOD(MPI_Recv(words, LONG, MPI_CHAR, from, 2, comm, MPI_STATUS_IGNORE));
    if (rank == 0)
        GOOD(MPIX_Comm_revoke(comm));
    else
        GOOD(MPI_Isend(words, LONG, MPI_CHAR, 0, 2, comm, &request));
    while (!flag)
        GOOD(MPIX_Comm_is_revoked(comm, &flag));
    number = rank == 0 ? MPI_SUCCESS : MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(number == MPI_SUCCESS || class_of(number) == MPIX_ERR_REVOKED);
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

/* A leader that has lost the other one tells its group, which waits for it; one that has lost another member tells the other
   leader. */
static void bridge(MPI_Comm comm, int victim)
{
    MPI_Comm half, inter;
    GOOD(MPI_Comm_split(comm, rank / 2, 0, &half));
    all_have_begun(comm, victim);
    if (rank == victim)
        die();
    CHECK(class_of(MPI_Intercomm_create(half, 0, comm, rank < 2 ? 2 : 0, 5, &inter)) == MPIX_ERR_PROC_FAILED);
    GOOD(MPI_Comm_free(&half));
}

/* A loss is seen whatever stands before it in the list. The last rank dies; rank 0 waits for rank 1, which waits for it. */
static void every(MPI_Comm comm)
{
    int last = size - 1, words[3] = { 0 }, flag = 0, indices[2], count;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (rank == last)
        die();
    for (int turn = 0; rank == 0 && turn < 3; turn++) {
        GOOD(MPI_Irecv(&words[0], 1, MPI_INT, 1, 1, comm, &requests[0]));
        GOOD(MPI_Irecv(&words[1], 1, MPI_INT, last, 1, comm, &requests[1]));
        int error = MPI_SUCCESS;
        if (turn == 0)
            error = MPI_Waitall(2, requests, statuses);
        while (turn == 1 && !flag && error == MPI_SUCCESS)
            error = MPI_Testall(2, requests, &flag, statuses);
        if (turn == 2) {
            error = MPI_Waitsome(2, requests, &count, indices, statuses);
            CHECK(count == 1 && indices[0] == 1 && class_of(statuses[0].MPI_ERROR) == MPIX_ERR_PROC_FAILED);
        } else
            CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_PENDING &&
                  class_of(statuses[1].MPI_ERROR) == MPIX_ERR_PROC_FAILED);
        CHECK(error == MPI_ERR_IN_STATUS && requests[0] != MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
        GOOD(MPI_Send(&rank, 1, MPI_INT, 1, 2, comm));
        GOOD(MPI_Wait(&requests[0], &statuses[0]));
        CHECK(words[0] == 7 + turn);
    }
    for (int turn = 0; rank == 1 && turn < 3; turn++) {
        int word = 7 + turn;
        GOOD(MPI_Recv(&flag, 1, MPI_INT, 0, 2, comm, &statuses[0]));
        GOOD(MPI_Send(&word, 1, MPI_INT, 0, 1, comm));
    }
    /* The receiving half of an exchange stalls as a receive does. */
    await_loss(comm, 1);
    CHECK(class_of(MPI_Sendrecv(&rank, 1, MPI_INT, rank, 3, words, 1, MPI_INT, MPI_ANY_SOURCE, 4, comm, statuses)) ==
          MPIX_ERR_PROC_FAILED);
    GOOD(MPI_Isendrecv(&rank, 1, MPI_INT, rank, 5, words, 1, MPI_INT, MPI_ANY_SOURCE, 6, comm, &requests[0]));
    CHECK(class_of(MPI_Wait(&requests[0], statuses)) == MPIX_ERR_PROC_FAILED_PENDING && requests[0] != MPI_REQUEST_NULL);
    GOOD(MPIX_Comm_failure_ack(comm));
    GOOD(MPI_Send(&last, 1, MPI_INT, rank, 6, comm));
    GOOD(MPI_Wait(&requests[0], statuses));
    CHECK(words[0] == last);
}

/* An agreement and a shrink under way at once: ranks come to the parts of the shrink at different times. */
static void overlapped(MPI_Comm comm)
{
    int last = size - 1, done = 0, sum, all;
    MPI_Comm less;
    MPI_Request requests[2];
    if (rank == last)
        die();
    await_loss(comm, 1);
    GOOD(MPIX_Comm_failure_ack(comm));
    for (int turn = 0; turn < 20; turn++) {
        int flag = ~(1 << rank), expected = ~((1 << last) - 1);
        GOOD(MPIX_Comm_ishrink(comm, &less, &requests[0]));
        for (double end = MPI_Wtime() + 0.02; rank == turn % last && !done && MPI_Wtime() < end;)
            GOOD(MPI_Request_get_status(requests[0], &done, MPI_STATUS_IGNORE));
        done = 0;
        GOOD(MPIX_Comm_iagree(comm, &flag, &requests[1]));
        GOOD(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(flag == expected);
        GOOD(MPI_Comm_size(less, &all));
        GOOD(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, less));
        CHECK(all == last && sum == last * (last - 1) / 2);
        GOOD(MPI_Comm_free(&less));
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    int threads;
    if (argc > 1 && !strcmp(argv[1], "overlapped"))
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    GOOD(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    GOOD(MPI_Barrier(comm));
    const char *which = argc > 1 ? argv[1] : "";
    int first = !strcmp(which, "revoked"), last = strchr("paeo", which[0]) && strcmp(which, "aborted");
    all_have_begun(comm, first ? 0 : last ? size - 1 : 1);
    if (!strcmp(which, "point"))
        point(comm);
    else if (!strcmp(which, "anybody"))
        anybody(comm);
    else if (!strcmp(which, "revoked"))
        revoked(comm);
    else if (!strcmp(which, "shrunk"))
        shrunk(comm);
    else if (!strcmp(which, "told"))
        told(comm);
    else if (!strcmp(which, "aborted"))
        aborted(comm);
    else if (!strcmp(which, "bridge"))
        bridge(comm, 2);
    else if (!strcmp(which, "bridge_end"))
        bridge(comm, 3);
    else if (!strcmp(which, "every"))
        every(comm);
    else if (!strcmp(which, "overlapped"))
        overlapped(comm);
    else
        CHECK(!"a known case");
    MPI_Comm_free(&comm);
    if (rank == (strcmp(which, "revoked") ? 0 : 1))
        printf("ok\n");
    MPI_Finalize();
    return 0;
}
