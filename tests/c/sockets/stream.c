/* One process sends messages of one size, the other receives them as they come and checks every byte.
 *
 *   stream BYTES MEGABYTES [epoll]
 *
 * Prints messages per second and megabytes per second. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Byte `at` of the stream. The pattern repeats after a prime number of bytes, so that a piece in a wrong place shows. */
enum { PERIOD = 65521 };
static unsigned char pattern[2 * PERIOD + (1 << 20)];

static void receive(int fd, int by_epoll)
{
    static unsigned char buffer[1 << 20];
    uint64_t at = 0;
    int set = -1;
    if (by_epoll) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLET };
        fcntl(fd, F_SETFL, O_NONBLOCK);
        if ((set = epoll_create1(0)) < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
            die("epoll");
    }
    for (;;) {
        ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        if (n == 0)
            break;
        if (n < 0 && errno == EAGAIN) {
            struct epoll_event event;
            if (epoll_wait(set, &event, 1, -1) != 1)
                die("epoll_wait");
            continue;
        }
        if (n < 0)
            die("recv");
        if (memcmp(buffer, pattern + at % PERIOD, n)) {
            fprintf(stderr, "stream: wrong bytes after %llu\n", (unsigned long long)at);
            exit(1);
        }
        at += n;
    }
    fprintf(stderr, "received %llu\n", (unsigned long long)at);
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
    uint64_t all = (argc > 2 ? strtoull(argv[2], NULL, 0) : 10) << 20;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)((i % PERIOD) * 2654435761u >> 13);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1)
        || getsockname(listener, (struct sockaddr *)&address, &length))
        die("listen");
    pid_t child = fork();
    if (child == 0) {
        bind_to(1);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, length))
            die("connect");
        char byte = 1;
        for (int i = 0; i < 50; i++)
            if (send(fd, &byte, 1, 0) != 1 || recv(fd, &byte, 1, 0) != 1)
                die("greeting");
        receive(fd, argc > 3);
        exit(0);
    }
    bind_to(0);
    int fd = accept(listener, NULL, NULL);
    char byte;
    for (int i = 0; i < 50; i++)
        if (recv(fd, &byte, 1, 0) != 1 || send(fd, &byte, 1, 0) != 1)
            die("greeting");
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t at = 0, calls = 0;
    for (; at < all; calls++) {
        ssize_t n = send(fd, pattern + at % PERIOD, bytes, 0);
        if (n <= 0)
            die("send");
        at += n;
    }
    close(fd);
    int status;
    waitpid(child, &status, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double s = (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) * 1e-9;
    printf("%zu B: %.2f million messages/s, %.0f MB/s\n", bytes, calls / s / 1e6, at / s / 1e6);
    return status != 0;
}
