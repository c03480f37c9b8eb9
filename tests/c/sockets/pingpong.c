/* Two processes bounce messages of one size over TCP on the loopback address and check every byte.
 *
 *   pingpong BYTES ROUNDS [poll|epoll|edge|nonblock]
 *
 * The child connects. Prints the time of one way in nanoseconds. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *how = "block";
static int set = -1;

static void die(const char *what)
{
    fprintf(stderr, "pingpong: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void prepare(int fd)
{
    int one = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
        die("TCP_NODELAY");
    if (strcmp(how, "block") && fcntl(fd, F_SETFL, O_NONBLOCK))
        die("O_NONBLOCK");
    if (!strcmp(how, "epoll") || !strcmp(how, "edge")) {
        struct epoll_event event = { .events = EPOLLIN | (how[1] == 'd' ? EPOLLET | EPOLLOUT : 0), .data.u64 = 77 };
        if ((set = epoll_create1(0)) < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
            die("epoll");
    }
}

static void wait_for(int fd, short events)
{
    if (set >= 0 && events == POLLIN) {
        struct epoll_event event[4];
        int n = epoll_wait(set, event, 4, -1);
        if (n != 1 || event[0].data.u64 != 77)
            die("epoll_wait");
    } else if (strcmp(how, "nonblock")) {
        struct pollfd one = { .fd = fd, .events = events };
        if (poll(&one, 1, -1) != 1)
            die("poll");
    }
}

static void receive_all(int fd, char *into, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = recv(fd, into, bytes, 0);
        if (n == 0) {
            errno = 0;
            die("end");
        }
        if (n < 0 && errno == EAGAIN) {
            wait_for(fd, POLLIN);
            continue;
        }
        if (n < 0)
            die("recv");
        into += n;
        bytes -= n;
    }
}

static void send_all(int fd, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = send(fd, from, bytes, 0);
        if (n < 0 && errno == EAGAIN) {
            wait_for(fd, POLLOUT);
            continue;
        }
        if (n < 0)
            die("send");
        from += n;
        bytes -= n;
    }
}

static void fill(char *buffer, size_t bytes, unsigned round)
{
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = (char)(i * 7 + round);
}

static void check(const char *buffer, size_t bytes, unsigned round)
{
    for (size_t i = 0; i < bytes; i++)
        if (buffer[i] != (char)(i * 7 + round)) {
            fprintf(stderr, "pingpong: round %u byte %zu is wrong\n", round, i);
            exit(1);
        }
}

static void bind_to(int core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 64;
    unsigned rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 1000;
    if (argc > 3)
        how = argv[3];
    char *buffer = malloc(bytes);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1)
        || getsockname(listener, (struct sockaddr *)&address, &length))
        die("listen");
    pid_t child = fork();
    if (child == 0) {
        close(listener);
        bind_to(1);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, length))
            die("connect");
        prepare(fd);
        for (unsigned round = 0; round < rounds; round++) {
            receive_all(fd, buffer, bytes);
            check(buffer, bytes, round);
            send_all(fd, buffer, bytes);
        }
        char last;
        if (strcmp(how, "block"))
            fcntl(fd, F_SETFL, 0);
        if (recv(fd, &last, 1, 0) != 0)
            die("no end");
        exit(0);
    }
    bind_to(0);
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        die("accept");
    prepare(fd);
    struct timespec start, end;
    unsigned warm = rounds / 10;
    for (unsigned round = 0; round < rounds; round++) {
        if (round == warm)
            clock_gettime(CLOCK_MONOTONIC, &start);
        fill(buffer, bytes, round);
        send_all(fd, buffer, bytes);
        memset(buffer, 0, bytes);
        receive_all(fd, buffer, bytes);
        check(buffer, bytes, round);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
    printf("%s %zu B: %.0f ns one way\n", how, bytes, ns / 2 / (rounds - warm));
    close(fd);
    int status;
    waitpid(child, &status, 0);
    return status != 0;
}
