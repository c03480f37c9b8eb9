/* What a job sees of a process of another one that is lost: `serve FILE` and `connect FILE` are the two jobs, told the port by a
   file. Rank 1 of those who connect dies as soon as they have met. With a third word the job of those who serve is one that
   ends when a rank of its own is lost. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
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

static void serve(const char *file, MPI_Comm *inter)
{
    char port[MPI_MAX_PORT_NAME] = "", draft[4096];
    if (rank == 0) {
        GOOD(MPI_Open_port(MPI_INFO_NULL, port));
        snprintf(draft, sizeof draft, "%s.draft", file);
        FILE *stream = fopen(draft, "w");
        CHECK(stream);
        fputs(port, stream);
        fclose(stream);
        CHECK(rename(draft, file) == 0);
    }
    /* The others wait for this one, and meanwhile the other job speaks to the first of them. */
    struct timespec pause = { 0, 300000000 };
    if (rank == size - 1)
        nanosleep(&pause, 0);
    GOOD(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter));
}

static void connect_to(const char *file, MPI_Comm *inter)
{
    char port[MPI_MAX_PORT_NAME] = "";
    FILE *stream = 0;
    struct timespec pause = { 0, 1000000 };
    while (rank == 0 && !(stream = fopen(file, "r")))
        nanosleep(&pause, 0);
    if (stream) {
        CHECK(fgets(port, sizeof port, stream));
        fclose(stream);
    }
    GOOD(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter));
    if (rank == 1)
        kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm inter, less;
    int serves = argc > 2 && !strcmp(argv[1], "serve"), flag = 1, theirs, left;
    int lost = argc > 3 ? MPI_ERR_PROC_ABORTED : MPIX_ERR_PROC_FAILED;
    if (serves)
        serve(argv[2], &inter);
    else
        connect_to(argv[2], &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    /* Nobody has talked to it before, and no launcher tells those who serve. */
    if (serves && rank > 0)
        CHECK(class_of(MPI_Recv(&flag, 1, MPI_INT, 1, 1, inter, MPI_STATUS_IGNORE)) == lost);
    CHECK(class_of(MPI_Barrier(inter)) == lost);
    flag = 3;
    CHECK(class_of(MPIX_Comm_agree(inter, &flag)) == lost && flag == 3);
    GOOD(MPIX_Comm_shrink(inter, &less));
    GOOD(MPI_Comm_remote_size(inter, &theirs));
    GOOD(MPI_Comm_remote_size(less, &left));
    CHECK(left == (serves ? theirs - 1 : theirs));
    GOOD(MPI_Barrier(less));
    GOOD(MPI_Comm_free(&less));
    GOOD(MPI_Comm_free(&inter));
    if (rank == 0)
        printf("ok\n");
    MPI_Finalize();
    return 0;
}
