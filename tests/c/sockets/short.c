/* Short connections as between a web server and its workers (FastCGI): several processes accept on one listener, and
 * each connection is one request and one answer. The client must not block.
 *
 *   short REQUESTS BYTES [ROUNDS]: so many, each with an answer of so many bytes; then, on one more connection of the
 *   same service, so many rounds of a byte each way */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, HEAD = 8, PARAMETERS = 496, PIECE = 16320 };

struct head {
    unsigned bytes, rounds;
};

#define must(holds) ((holds) ? (void)0 : fail(#holds, __LINE__))

static void fail(const char *what, int line)
{
    fprintf(stderr, "short: line %d: %s does not hold (%s)\n", line, what, strerror(errno));
    exit(1);
}

static void take(int fd, void *into, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t n = read(fd, (char *)into + got, bytes - got);
        must(n > 0);
        got += n;
    }
}

static char byte_at(size_t at)
{
    return at * 7 + at / 4096;
}

/* One request: its head and its parameters come in several reads, the answer goes in pieces. */
static void answer(int fd)
{
    static char piece[PIECE];
    char parameters[PARAMETERS];
    struct head heads[2];
    take(fd, &heads[0], sizeof heads[0]);
    take(fd, &heads[1], sizeof heads[1]);
    take(fd, parameters, HEAD);
    take(fd, parameters, PARAMETERS);
    for (size_t at = 0; at < heads[0].bytes;) {
        size_t n = heads[0].bytes - at < PIECE ? heads[0].bytes - at : PIECE;
        for (size_t i = 0; i < n; i++)
            piece[i] = byte_at(at + i);
        must(write(fd, piece, n) == (ssize_t)n);
        at += n;
    }
    for (unsigned round = 0; round < heads[0].rounds; round++) {
        take(fd, piece, 1);
        must(write(fd, piece, 1) == 1);
    }
    must(!shutdown(fd, SHUT_WR));
    must(read(fd, piece, 1) == 0);
    must(!close(fd));
}

static void serve(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        must(fd >= 0);
        answer(fd);
    }
}

static void await(int fd, short what)
{
    struct pollfd entry = { .fd = fd, .events = what };
    must(poll(&entry, 1, 20000) == 1);
}

static void ask(const struct sockaddr_in *to, unsigned bytes, unsigned rounds)
{
    static char got[1 << 16];
    char rest[HEAD + PARAMETERS] = { 0 };
    struct head heads[2] = { { bytes, rounds } };
    struct iovec pieces[2] = { { heads, sizeof heads }, { rest, sizeof rest } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;
    socklen_t length = sizeof error;
    must(!connect(fd, (const struct sockaddr *)to, sizeof *to) || errno == EINPROGRESS);
    await(fd, POLLOUT);
    must(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) && !error);
    must(writev(fd, pieces, 2) == (ssize_t)(sizeof heads + sizeof rest));
    for (size_t at = 0; at < bytes;) {
        await(fd, POLLIN);
        ssize_t n = read(fd, got, bytes - at < sizeof got ? bytes - at : sizeof got);
        must(n > 0 || (n < 0 && errno == EAGAIN));
        for (ssize_t i = 0; i < n; i++, at++)
            must(got[i] == byte_at(at));
    }
    for (unsigned round = 0; round < rounds; round++) {
        must(write(fd, got, 1) == 1);
        await(fd, POLLIN);
        must(read(fd, got, 1) == 1);
    }
    await(fd, POLLIN);
    must(read(fd, got, 1) == 0 && !close(fd));
}

int main(int count, char **words)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    pid_t workers[WORKERS];
    must(count > 2);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(!bind(listener, (struct sockaddr *)&address, length) && !listen(listener, 64));
    must(!getsockname(listener, (struct sockaddr *)&address, &length));
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        must(workers[i] >= 0);
        if (workers[i] == 0)
            serve(listener);
    }
    for (int requests = atoi(words[1]); requests > 0; requests--)
        ask(&address, atoi(words[2]), 0);
    if (count > 3)
        ask(&address, 0, atoi(words[3]));
    for (int i = 0; i < WORKERS; i++)
        must(!kill(workers[i], SIGKILL) && waitpid(workers[i], NULL, 0) == workers[i]);
    return 0;
}
