/* How much a sender that does not block gets rid of: as much as by the kernel. */
#include "behaviour.h"

enum { PIECE = 100 << 10 };
static char piece[PIECE];

static void do_not_block(int fd)
{
    must(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

/* Sends until there is no room. */
static size_t fill(int fd)
{
    size_t sent = 0;
    for (ssize_t went; (went = send(fd, piece, PIECE, 0)) > 0;)
        sent += went;
    must(errno == EAGAIN);
    return sent;
}

/* What the kernel takes, of a connection that is its own whoever is loaded. */
static size_t taken_by_the_kernel(void)
{
    int b, a = connected(&b), one = 1;
    must(!setsockopt(a, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one));
    do_not_block(a);
    size_t taken = fill(a);
    must(!close(a) && !close(b));
    return taken;
}

/* Whether it is nearly as much as the kernel takes: how it counts depends on how the bytes came. */
static void is_enough(size_t taken)
{
    must(taken >= taken_by_the_kernel() / 4 * 3);
}

static void send_at_once(int fd)
{
    do_not_block(fd);
    must(send(fd, piece, PIECE, 0) == PIECE);
    is_enough(PIECE + fill(fd));
}

/* The other end is another program without the library, which holds the connection and never reads. */
static void send_to_a_stranger(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 4));
    must(!getsockname(listener, (struct sockaddr *)&address, &length));
    pid_t stranger = fork();
    if (stranger == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        must(!connect(fd, (struct sockaddr *)&address, length));
        char *nothing[] = { NULL };
        execle("/bin/sleep", "sleep", "1000", NULL, nothing);
        _exit(1);
    }
    int fd = accept(listener, NULL, NULL);
    send_at_once(fd);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
    must(!close(fd) && !close(listener));
}

/* A first send goes at once, whoever is at the other end. */
void first_sends(void)
{
    for (int i = 0; i < 10; i++) {
        send_to_a_stranger();
        int b, a = connected(&b);
        send_at_once(a);
        must(!close(a) && !close(b));
    }
    /* What has gone arrives, in order, also where it goes on by the ring. */
    int b, a = connected(&b);
    do_not_block(a);
    unsigned sent = 0, came = 0;
    static unsigned numbers[PIECE / sizeof(unsigned)];
    for (int i = 0; i < 200; i++) {
        for (unsigned at = 0; at < PIECE / sizeof(unsigned); at++)
            numbers[at] = sent + at;
        ssize_t went = send(a, numbers, PIECE, 0);
        must(went > 0 && went % sizeof(unsigned) == 0);
        sent += went / sizeof(unsigned);
        while (came < sent) {
            ssize_t got = recv(b, numbers, PIECE, MSG_WAITALL | (sent - came < PIECE / sizeof(unsigned) ? MSG_DONTWAIT : 0));
            must(got > 0 && got % sizeof(unsigned) == 0);
            for (unsigned at = 0; at < got / sizeof(unsigned); at++)
                must(numbers[at] == came + at);
            came += got / sizeof(unsigned);
        }
    }
    must(!close(a) && !close(b));
}
