/* Both ends of a connection send and receive at the same time, by a thread each, and check every byte.
 *
 *   duplex BYTES MEGABYTES [splice]
 *
 * BYTES is the size of a call. With `splice` what is received comes through a pipe. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t piece;
static uint64_t all;
static int fd, by_splice;

static void die(const char *what)
{
    fprintf(stderr, "duplex: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Byte `at` of the stream, with a period that is a prime number. */
static unsigned char byte(uint64_t at)
{
    return (unsigned char)((at % 65521) * 2654435761u >> 13);
}

static void *sender(void *unused)
{
    unsigned char *buffer = malloc(piece);
    int ends[2] = { -1, -1 };
    if (by_splice && pipe(ends))
        die("pipe");
    for (uint64_t at = 0; at < all;) {
        size_t n = piece < all - at ? piece : all - at;
        for (size_t i = 0; i < n; i++)
            buffer[i] = byte(at + i);
        if (by_splice && write(ends[1], buffer, n) != (ssize_t)n)
            die("write");
        for (size_t done = 0; done < n;) {
            ssize_t went = by_splice ? splice(ends[0], NULL, fd, NULL, n - done, 0) : send(fd, buffer + done, n - done, 0);
            if (went <= 0)
                die("send");
            done += went;
        }
        at += n;
    }
    shutdown(fd, SHUT_WR);
    return unused;
}

static void receiver(void)
{
    unsigned char *buffer = malloc(piece);
    uint64_t at = 0;
    int ends[2] = { -1, -1 };
    if (by_splice && pipe(ends))
        die("pipe");
    for (;;) {
        ssize_t n = by_splice ? splice(fd, NULL, ends[1], NULL, piece, 0) : recv(fd, buffer, piece, 0);
        if (n < 0)
            die("recv");
        if (n == 0)
            break;
        if (by_splice && read(ends[0], buffer, n) != n)
            die("read");
        for (ssize_t i = 0; i < n; i++, at++)
            if (buffer[i] != byte(at)) {
                fprintf(stderr, "duplex: wrong byte at %llu\n", (unsigned long long)at);
                exit(1);
            }
    }
    if (at != all) {
        fprintf(stderr, "duplex: %llu bytes came\n", (unsigned long long)at);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    pthread_t thread;
    int status = 0;
    piece = argc > 1 ? strtoul(argv[1], NULL, 0) : 65536;
    all = (argc > 2 ? strtoull(argv[2], NULL, 0) : 64) << 20;
    by_splice = argc > 3;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (void *)&address, &length))
        die("listen");
    pid_t child = fork();
    if (child) {
        fd = accept(listener, NULL, NULL);
    } else {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (void *)&address, length))
            die("connect");
    }
    close(listener);
    if (pthread_create(&thread, NULL, sender, NULL))
        die("thread");
    receiver();
    pthread_join(thread, NULL);
    close(fd);
    if (child)
        waitpid(child, &status, 0);
    return status != 0;
}
