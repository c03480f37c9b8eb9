/* Two hosts bounce messages of 64 bytes over TCP and check every byte.
 *
 *   far serve PORT block|poll|select|epoll ROUNDS
 *   far ADDRESS PORT block|poll|select|epoll ROUNDS
 *
 * Both say how often they have slept in these rounds, after some that do not count. Before the end the caller looks whether
 * calls that must not wait do not, with `poll` whether signals get through, with `block` whether calls that want more than a
 * byte, or less, get that, and then whether it is told of the end. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64, FIRST = 32 };
static const char *how;
static int set = -1;

static void die(const char *what)
{
    fprintf(stderr, "far: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(int holds, const char *what)
{
    if (!holds)
        die(what);
}

static void wait_for_byte(int fd)
{
    if (how[0] == 'p') {
        struct pollfd one = { .fd = fd, .events = POLLIN };
        /* As many programs do: a look first, which takes nothing away from the wait. */
        check(poll(&one, 1, 0) >= 0, "poll that does not wait");
        check(poll(&one, 1, -1) == 1 && one.revents & POLLIN, "poll");
    } else if (how[0] == 's') {
        fd_set reading;
        FD_ZERO(&reading);
        FD_SET(fd, &reading);
        check(select(fd + 1, &reading, NULL, NULL, NULL) == 1 && FD_ISSET(fd, &reading), "select");
    } else if (how[0] == 'e') {
        struct epoll_event event[2];
        check(epoll_wait(set, event, 2, 0) >= 0, "epoll_wait that does not wait");
        check(epoll_wait(set, event, 2, -1) == 1 && event[0].data.fd == fd, "epoll_wait");
    }
}

static void prepare(int fd)
{
    int one = 1;
    check(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
    if (how[0] == 'e') {
        struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
        check((set = epoll_create1(0)) >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), "epoll");
    }
    if (how[0] != 'b')
        check(!fcntl(fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
}

static void receive(int fd, unsigned char *into)
{
    size_t have = 0;
    while (have < BYTES) {
        ssize_t n = recv(fd, into + have, BYTES - have, 0);
        if (n < 0 && errno == EAGAIN && how[0] != 'b') {
            wait_for_byte(fd);
            continue;
        }
        check(n > 0, "recv");
        have += (size_t)n;
    }
}

static void fill(unsigned char *bytes, int round, int from)
{
    for (int at = 0; at < BYTES; at++)
        bytes[at] = (unsigned char)(round * 7 + at * 3 + from);
}

static void bounce(int fd, int calls, int from, int to)
{
    unsigned char ours[BYTES], theirs[BYTES], expected[BYTES];
    for (int round = from; round < to; round++) {
        fill(ours, round, calls);
        fill(expected, round, !calls);
        if (calls)
            check(send(fd, ours, BYTES, 0) == BYTES, "send");
        receive(fd, theirs);
        check(!memcmp(theirs, expected, BYTES), "other bytes than were sent");
        if (!calls)
            check(send(fd, ours, BYTES, 0) == BYTES, "send");
    }
}

static long sleeps(void)
{
    struct rusage used;
    check(!getrusage(RUSAGE_SELF, &used), "getrusage");
    return used.ru_nvcsw;
}

static int connection(const char *address, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    check(fd >= 0, "socket");
    if (!strcmp(address, "serve")) {
        check(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "SO_REUSEADDR");
        check(!bind(fd, (struct sockaddr *)&to, sizeof to) && !listen(fd, 1), "listen");
        puts("listening");
        fflush(stdout);
        int taken = accept(fd, NULL, NULL);
        close(fd);
        fd = taken;
    } else {
        check(inet_pton(AF_INET, address, &to.sin_addr) == 1, "address");
        check(!connect(fd, (struct sockaddr *)&to, sizeof to), "connect");
    }
    check(fd >= 0, "connection");
    return fd;
}

static volatile sig_atomic_t rung;

static void ring(int signal)
{
    (void)signal;
    rung++;
}

static double now(void)
{
    struct timespec time;
    check(!clock_gettime(CLOCK_MONOTONIC, &time), "the clock");
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* A wait that looks first lets in the signals that it lets in while it sleeps, and no others, and is no longer for it. No
 * answer comes meanwhile, and looks take up to a second. */
static void wait_with_mask(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };
    struct sigaction action = { .sa_handler = ring };
    sigset_t none, alarm_only;
    check(!sigemptyset(&none) && !sigemptyset(&alarm_only) && !sigaddset(&alarm_only, SIGALRM), "sets of signals");
    check(!sigaction(SIGALRM, &action, NULL), "sigaction");

    struct timespec time = { .tv_sec = 30 };
    check(!sigprocmask(SIG_BLOCK, &alarm_only, NULL) && !raise(SIGALRM) && !rung, "a blocked signal");
    check(send(fd, "?", 1, 0) == 1, "send");
    double begin = now();
    check(ppoll(&one, 1, &time, &none) == -1 && errno == EINTR && rung == 1, "a wait that lets the signal in");
    check(now() - begin < 20, "as soon as it is there");
    check(!sigprocmask(SIG_UNBLOCK, &alarm_only, NULL) && rung == 1, "a signal that comes once");

    struct itimerval soon = { .it_value.tv_usec = 300000 };
    time = (struct timespec){ .tv_sec = 1, .tv_nsec = 200000000 };
    check(send(fd, "?", 1, 0) == 1, "send");
    check(!setitimer(ITIMER_REAL, &soon, NULL), "setitimer");
    begin = now();
    check(ppoll(&one, 1, &time, &alarm_only) == 0, "a wait that keeps the signal out");
    double waited = now() - begin;
    check(waited >= 1.2 && waited < 2.1, "a wait that is as long as it should be");
    check(rung == 2, "the signal, once the wait is over");
}

static const char PARTS[] = "abcdef";

/* The answer to `w`: in two parts, so that who is content with the first gets only that. */
static void answer_in_parts(int fd)
{
    struct timespec between = { .tv_nsec = 5000000 };
    check(send(fd, PARTS, 3, 0) == 3, "send");
    nanosleep(&between, NULL);
    check(send(fd, PARTS + 3, 3, 0) == 3, "send");
}

static void expect(int fd, int flags, ssize_t room, ssize_t bytes, const char *what)
{
    char got[16];
    check(recv(fd, got, (size_t)room, flags) == bytes && !memcmp(got, PARTS, (size_t)bytes), what);
}

/* Receiving calls that are not for whatever has come. A look that took it on their behalf would do them wrong. */
static void receive_in_other_ways(int fd)
{
    const char *ask = "w";
    check(send(fd, ask, 1, 0) == 1, "send");
    expect(fd, MSG_WAITALL, 6, 6, "all of it");

    check(send(fd, ask, 1, 0) == 1, "send");
    expect(fd, MSG_PEEK, 2, 2, "a look ahead");
    expect(fd, MSG_WAITALL, 6, 6, "what was looked at");

    check(send(fd, ask, 1, 0) == 1, "send");
    expect(fd, 0, 0, 0, "no room");
    expect(fd, MSG_DONTWAIT | MSG_PEEK, 2, 2, "a call without room waits as any other");
    expect(fd, MSG_WAITALL, 6, 6, "and takes nothing");

    char got[6], beside[64];
    int on = 1;
    struct iovec piece = { got, 3 };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = beside };
    header.msg_controllen = sizeof beside;
    check(!setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on) && send(fd, ask, 1, 0) == 1, "TCP_INQ");
    check(recvmsg(fd, &header, 0) == 3 && CMSG_FIRSTHDR(&header), "what is told beside the bytes");
    check(CMSG_FIRSTHDR(&header)->cmsg_type == TCP_CM_INQ, "it is the one");
    check(recv(fd, got + 3, 3, MSG_WAITALL) == 3 && !memcmp(got, PARTS, 6), "the rest");
}

int main(int count, char **words)
{
    if (count != 5) {
        fprintf(stderr, "usage: far serve|ADDRESS PORT block|poll|select|epoll ROUNDS\n");
        return 2;
    }
    how = words[3];
    int calls = strcmp(words[1], "serve") != 0, rounds = atoi(words[4]);
    int fd = connection(words[1], atoi(words[2]));
    prepare(fd);
    bounce(fd, calls, 0, FIRST);
    long before = sleeps();
    bounce(fd, calls, FIRST, FIRST + rounds);
    printf("slept %ld\n", sleeps() - before);

    unsigned char byte;
    if (calls) {
        struct pollfd one = { .fd = fd, .events = POLLIN };
        check(send(fd, "?", 1, 0) == 1, "send");
        check(recv(fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN, "a look that found something");
        check(send(fd, "?", 1, 0) == 1, "send");
        check(poll(&one, 1, 0) == 0, "a poll that found something");
        if (how[0] == 'p')
            wait_with_mask(fd);
        if (how[0] == 'b')
            receive_in_other_ways(fd);
        check(send(fd, "!", 1, 0) == 1, "send");
        wait_for_byte(fd);
        check(recv(fd, &byte, 1, 0) == 0, "the end");
    } else {
        do {
            if (how[0] != 'b')
                wait_for_byte(fd);
            check(recv(fd, &byte, 1, 0) == 1, "a byte");
            if (byte == 'w')
                answer_in_parts(fd);
        } while (byte != '!');
        check(byte == '!', "the last byte");
    }
    close(fd);
    return 0;
}
