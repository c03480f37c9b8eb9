/* Windows and shared file pointers of which a member is lost, by the case that is named; the last argument is a file. */
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

static void send_word(int to)
{
    GOOD(MPI_Send(&rank, 1, MPI_INT, to, 1, MPI_COMM_WORLD));
}

static void await_word(int from)
{
    int word;
    GOOD(MPI_Recv(&word, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* The last rank dies with a lock on rank 0, which others wait for, some already and some later. */
static void lock(void)
{
    int last = size - 1, cell = 0;
    MPI_Win win;
    GOOD(MPI_Win_create(&cell, sizeof cell, sizeof cell, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    GOOD(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    if (rank == last) {
        GOOD(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        send_word(1);
        sleep(1);
        die();
    }
    if (rank == 0)
        for (int from = 1; from < last; from++)
            await_word(from);
    if (rank == 1) {
        await_word(last);
        CHECK(class_of(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win)) == MPIX_ERR_PROC_FAILED);
        for (int to = 2; to < last; to++)
            send_word(to);
        CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win)) == MPIX_ERR_PROC_FAILED);
        /* Others are not concerned. */
        GOOD(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
        GOOD(MPI_Win_unlock(1, win));
        send_word(0);
    }
    if (rank > 1) {
        await_word(1);
        CHECK(class_of(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win)) == MPIX_ERR_PROC_FAILED);
        send_word(0);
    }
}

/* The last rank dies while answers of it are on their way, more than may be; others give theirs all the same. */
static void get(void)
{
    enum { LONG = 8 << 20 };
    int last = size - 1;
    char *mine = malloc(LONG), *got = malloc(LONG);
    memset(mine, rank + 1, LONG);
    MPI_Request requests[2];
    MPI_Win win;
    GOOD(MPI_Win_create(mine, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    GOOD(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    GOOD(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (rank == last) {
        /* Outside of the library: it answers nobody. */
        sleep(1);
        die();
    }
    if (rank == 0) {
        /* By memory it may all be there before it dies. */
        int error = MPI_Rget(got, 100, MPI_CHAR, last, 0, 100, MPI_CHAR, win, &requests[0]);
        if (error == MPI_SUCCESS)
            error = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK(error == MPI_SUCCESS || class_of(error) == MPIX_ERR_PROC_FAILED);
        error = MPI_Get(got, LONG, MPI_CHAR, last, 0, LONG, MPI_CHAR, win);
        if (error == MPI_SUCCESS)
            error = MPI_Win_flush(last, win);
        CHECK(error == MPI_SUCCESS || class_of(error) == MPIX_ERR_PROC_FAILED || class_of(error) == MPI_ERR_RMA_RANGE);
        memset(got, 0, LONG);
        GOOD(MPI_Get(got, LONG, MPI_CHAR, 1, 0, LONG, MPI_CHAR, win));
        GOOD(MPI_Win_flush(1, win));
        for (int i = 0; i < LONG; i++)
            CHECK(got[i] == 2);
        for (int to = 1; to < last; to++)
            send_word(to);
    } else
        await_word(0);
    free(got);
}

/* The rank that keeps the shared pointer dies. */
static void pointer(const char *name)
{
    MPI_File file;
    GOOD(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    GOOD(MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    if (rank) {
        send_word(0);
        int error, times = 0;
        /* It may answer until it dies. */
        while ((error = MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_SUCCESS)
            times++;
        CHECK(class_of(error) == MPIX_ERR_PROC_FAILED);
        CHECK(class_of(MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
        return;
    }
    for (int from = 1; from < size; from++)
        await_word(from);
    sleep(1);
    die();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const char *which = argc > 1 ? argv[1] : "";
    if (!strcmp(which, "lock"))
        lock();
    else if (!strcmp(which, "get"))
        get();
    else if (argc > 2 && !strcmp(which, "pointer"))
        pointer(argv[2]);
    else
        CHECK(!"a known case");
    if (rank == 1)
        printf("ok\n");
    MPI_Finalize();
    return 0;
}
