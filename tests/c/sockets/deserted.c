/* Two hosts bounce numbers over TCP until an error ends that.
 *
 *   deserted serve PORT block|poll|epoll|busy
 *   deserted ADDRESS PORT block|poll|epoll|busy
 *
 * Each says "going" after two seconds of it, and "reset" when the connection is. An end of the stream, another number
 * than the next one, and other errors are failures. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *how;
static int set = -1;

static void check(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "deserted: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec time;
    check(!clock_gettime(CLOCK_MONOTONIC, &time), "the clock");
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void say(const char *what)
{
    puts(what);
    fflush(stdout);
}

/* Of a call that has failed: whether that is the reset. Who sends may be told in this way or that. */
static void judge(const char *call)
{
    check(errno == ECONNRESET || (errno == EPIPE && !strcmp(call, "send")), call);
    say("reset");
    exit(0);
}

static void wait_for_byte(int fd)
{
    if (how[0] == 'p') {
        struct pollfd one = { .fd = fd, .events = POLLIN };
        check(poll(&one, 1, -1) == 1 && one.revents & POLLIN, "poll");
    } else if (how[0] == 'e') {
        struct epoll_event event;
        check(epoll_wait(set, &event, 1, -1) == 1 && event.events & EPOLLIN, "epoll_wait");
    }
}

static void receive(int fd, uint64_t *number)
{
    int flags = strcmp(how, "block") ? MSG_DONTWAIT : 0;
    size_t have = 0;
    while (have < sizeof *number) {
        ssize_t n = recv(fd, (char *)number + have, sizeof *number - have, flags);
        if (n < 0 && errno == EAGAIN) {
            wait_for_byte(fd);
            continue;
        }
        if (n < 0)
            judge("recv");
        check(n > 0, "an end in the place of an error");
        have += (size_t)n;
    }
}

static int connection(const char *address, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    check(fd >= 0, "socket");
    if (!strcmp(address, "serve")) {
        check(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "SO_REUSEADDR");
        check(!bind(fd, (struct sockaddr *)&to, sizeof to) && !listen(fd, 1), "listen");
        say("listening");
        int taken = accept(fd, NULL, NULL);
        close(fd);
        fd = taken;
    } else {
        check(inet_pton(AF_INET, address, &to.sin_addr) == 1, "address");
        check(!connect(fd, (struct sockaddr *)&to, sizeof to), "connect");
    }
    check(fd >= 0 && !setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "connection");
    return fd;
}

int main(int count, char **words)
{
    if (count != 4) {
        fprintf(stderr, "usage: deserted serve|ADDRESS PORT block|poll|epoll|busy\n");
        return 2;
    }
    how = words[3];
    int calls = strcmp(words[1], "serve") != 0, going = 0;
    int fd = connection(words[1], atoi(words[2]));
    if (how[0] == 'e') {
        struct epoll_event event = { .events = EPOLLIN };
        check((set = epoll_create1(0)) >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), "epoll");
    }
    double begin = now();
    for (uint64_t round = 0;; round++) {
        uint64_t number;
        if (!calls)
            receive(fd, &number);
        uint64_t ours = calls ? 2 * round : 2 * round + 1;
        if (send(fd, &ours, sizeof ours, MSG_NOSIGNAL) != sizeof ours)
            judge("send");
        if (calls)
            receive(fd, &number);
        check(number == (calls ? 2 * round + 1 : 2 * round), "another number than the next one");
        if (!going && now() - begin > 2) {
            going = 1;
            say("going");
        }
    }
}
