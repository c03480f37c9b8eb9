/* What a program is told whose peer, on another host, is killed.
 *
 *   left serve PORT HOW
 *   left ADDRESS PORT HOW
 *
 * One of the two is killed: HOW is `all`, `some` or `bouncing` for it, and for the other one what it does meanwhile: `recv`,
 * `poll`, `select`, `epoll`, `send` or `bounce`. After some messages of 64 bytes to and fro the other one sends one more, and
 * waits, for bytes, or for room behind all that it could send. Who is to be killed reads that message or leaves it in the
 * kernel, says "here", and does nothing more, or bounces messages for ever. The other one says what its calls have
 * answered. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 64, ROUNDS = 200 };
static char bytes[1 << 16];
static const char *how;

static int is(const char *word)
{
    return !strcmp(how, word);
}

static void check(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "left: %s: %s\n", what, strerror(errno));
    exit(1);
}

static ssize_t receive(int fd, int flags)
{
    return recv(fd, bytes, BYTES, MSG_WAITALL | flags);
}

static ssize_t send_one(int fd)
{
    return send(fd, bytes, BYTES, MSG_NOSIGNAL);
}

static void say(const char *line)
{
    puts(line);
    fflush(stdout);
}

static int connection(const char *address, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (strcmp(address, "serve")) {
        check(inet_pton(AF_INET, address, &to.sin_addr) == 1, "address");
        check(!connect(fd, (struct sockaddr *)&to, sizeof to), "connect");
    } else {
        int listener = fd;
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        check(!bind(listener, (struct sockaddr *)&to, sizeof to) && !listen(listener, 1), "listen");
        say("listening");
        check((fd = accept(listener, NULL, NULL)) >= 0, "accept");
    }
    check(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
    return fd;
}

static void tell(const char *what, ssize_t answer)
{
    if (answer < 0)
        printf("%s %s, ", what, strerror(errno));
    else
        printf("%s %zd, ", what, answer);
}

static void be_killed(int fd)
{
    check(receive(fd, is("some") ? MSG_PEEK : 0) == BYTES, "the last one");
    say("here");
    while (is("bouncing") && send_one(fd) == BYTES && receive(fd, 0) == BYTES)
        continue;
    for (;;)
        pause();
}

static void be_left(int fd)
{
    ssize_t answer = 0;
    struct pollfd one = { .fd = fd, .events = POLLIN | POLLRDHUP };
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
    fd_set reading;
    if (is("poll")) {
        tell("poll", poll(&one, 1, -1));
        tell("events", one.revents);
    } else if (is("select")) {
        FD_ZERO(&reading);
        FD_SET(fd, &reading);
        tell("select", select(fd + 1, &reading, NULL, NULL, NULL));
    } else if (is("epoll")) {
        int set = epoll_create1(0);
        check(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), "epoll");
        tell("epoll", epoll_wait(set, &event, 1, -1));
        tell("events", event.events);
    } else if (is("send")) {
        while ((answer = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL)) > 0)
            continue;
        tell("send", answer);
    }
    while ((answer = receive(fd, 0)) == BYTES && is("bounce") && send_one(fd) == BYTES)
        continue;
    tell("recv", answer);
    tell("again", receive(fd, 0));
    say("over");
}

int main(int argc, char **words)
{
    check(argc == 4, "usage: left serve|ADDRESS PORT HOW");
    how = words[3];
    int fd = connection(words[1], atoi(words[2])), dies = is("all") || is("some") || is("bouncing");
    for (int round = 0; round < ROUNDS; round++) {
        check(!dies || receive(fd, 0) == BYTES, "recv");
        check(send_one(fd) == BYTES, "send");
        check(dies || receive(fd, 0) == BYTES, "recv");
    }
    if (dies)
        be_killed(fd);
    check(send_one(fd) == BYTES, "send");
    be_left(fd);
    return 0;
}
