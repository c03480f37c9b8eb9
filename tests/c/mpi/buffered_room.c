/* Room in an attached buffer: every byte of it can be used, none twice, and it comes back as soon as the receiver has the
   message, although nothing was called in between. Where WEFT_SINGLE_COPY_BYTES has the messages
   taken out of the sender's memory without its help, the receiver tells that by a signal, since an MPI call would see more
   than that. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <signal.h>
#include <unistd.h>

enum { BYTES = 1 << 20, SMALL = 100000, MESSAGES = 8, ROUNDS = 6, SENDER = 0, RECEIVER = 1 };

static sigset_t signals;

static int sizes[MESSAGES];

/* Different from message to message and from round to round. */
static unsigned char mark(int round, int message, int place)
{
    return (unsigned char)(round * 31 + message * 7 + place / 4096);
}

/* Rounds differ in the sizes of their messages, so that gaps differ; their sum is the same. */
static void deal(int round)
{
    for (int i = 0; i < MESSAGES; i++)
        sizes[i] = (i + round) % 2 ? BYTES + SMALL : BYTES - SMALL;
}

static void told(void)
{
    int signal;
    CHECK(sigwait(&signals, &signal) == 0 && signal == SIGUSR1);
}

static int refused(const char *data, int bytes, int tag)
{
    int class_;
    OK(MPI_Error_class(MPI_Bsend(data, bytes, MPI_BYTE, RECEIVER, tag, MPI_COMM_WORLD), &class_));
    return class_ == MPI_ERR_BUFFER;
}

static void send(pid_t receiver, int room)
{
    char *data = malloc(BYTES + SMALL), *buffer = malloc(room), *back;
    CHECK(data && buffer);
    OK(MPI_Buffer_attach(buffer, room));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int round = 0; round < ROUNDS; round++) {
        deal(round);
        for (int i = 0; i < MESSAGES; i++) {
            for (int place = 0; place < sizes[i]; place++)
                data[place] = (char)mark(round, i, place);
            OK(MPI_Bsend(data, sizes[i], MPI_BYTE, RECEIVER, i, MPI_COMM_WORLD));
        }
        /* What is left are the overheads that nobody needs. */
        CHECK(refused(data, BYTES - SMALL, MESSAGES));
        CHECK(kill(receiver, SIGUSR1) == 0);
        if (getenv("WEFT_SINGLE_COPY_BYTES"))
            told();
        else
            OK(MPI_Recv(data, 0, MPI_BYTE, RECEIVER, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_Buffer_detach(&back, &room));
    CHECK(back == buffer);
    free(buffer);
    free(data);
}

static void receive(pid_t sender)
{
    unsigned char *data = malloc(BYTES + SMALL);
    CHECK(data);
    for (int round = 0; round < ROUNDS; round++) {
        deal(round);
        told();
        for (int i = 0; i < MESSAGES; i++) {
            OK(MPI_Recv(data, sizes[i], MPI_BYTE, SENDER, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int place = 0; place < sizes[i]; place++)
                CHECK(data[place] == mark(round, i, place));
        }
        if (getenv("WEFT_SINGLE_COPY_BYTES"))
            CHECK(kill(sender, SIGUSR1) == 0);
        else
            OK(MPI_Send(data, 0, MPI_BYTE, SENDER, MESSAGES, MPI_COMM_WORLD));
    }
    free(data);
}

int main(int argc, char **argv)
{
    CHECK(sigemptyset(&signals) == 0 && sigaddset(&signals, SIGUSR1) == 0);
    CHECK(sigprocmask(SIG_BLOCK, &signals, NULL) == 0);
    check_begin(&argc, &argv);
    long mine = getpid(), *all = malloc(check_size * sizeof *all);
    OK(MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD));
    if (check_rank == SENDER)
        send((pid_t)all[RECEIVER], MESSAGES * (BYTES + MPI_BSEND_OVERHEAD));
    if (check_rank == RECEIVER)
        receive((pid_t)all[SENDER]);
    free(all);
    return check_end();
}
