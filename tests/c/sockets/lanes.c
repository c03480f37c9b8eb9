/* Short messages between two hosts, every byte checked, up to the end of the connection, whatever that is.
 *
 *   lanes serve PORT KIND BYTES SEED
 *   lanes ADDRESS PORT KIND BYTES SEED
 *
 * KIND: duplex (both send and receive at the same time, by a thread each), stream (the caller sends) or pong (one
 * message, one answer). Each side that sends sends so many bytes and then shuts its direction. At the end each says in a
 * line what it has sent and received, what ended that, and the longest time in ms between two messages that came. What was
 * sent so far stands in the file LANES_COUNT, too, if there is one: who is killed says nothing. When it has sent
 * half, LANES_HALFWAY=loses puts another file in the place of its socket to the rendezvous, LANES_HALFWAY=breaks writes
 * nonsense into the ring by which its lane receives, and ends it, and LANES_HALFWAY=execs starts another program in its
 * place, which does not get the connection. After SIGTERM a side of duplex sends no more, and reads on. With LANES_NETWORK the connection is one of the network
 * namespace of that file, though the program is in another. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_xdp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 600, AHEAD = 4000 };
static int fd, calls, both_send;
static const char *halfway;
static uint64_t all, seed, sent;
static _Atomic uint64_t received;
static _Atomic int is_over;
static volatile uint64_t *count = &sent;
static const char *send_end = "all", *receive_end = "end";
static double longest;
static volatile sig_atomic_t rests;

static void rest(int number)
{
    rests = number;
}

static void die(const char *what)
{
    fprintf(stderr, "lanes: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Byte `at` of what a side sends. */
static unsigned char byte(int caller, uint64_t at)
{
    return (unsigned char)(mix((at >> 3) + (caller ? 0 : 1ull << 60)) >> ((at & 7) * 8));
}

static const char *name_of(int error)
{
    return error == ECONNRESET ? "reset" : error == EPIPE ? "broken" : strerror(error);
}

/* 1 to MOST bytes, mostly few; now and then a pause. */
static size_t next_size(uint64_t *random)
{
    uint64_t roll = mix((*random)++);
    if (roll % 1000 == 0)
        usleep((useconds_t)(roll >> 32) % 3000);
    return 1 + (roll >> 20) % (roll % 4 ? 32 : MOST);
}

/* The library has one such socket to the rendezvous, and two for its lane. */
static int is_of_library(int at, int domain, int kind)
{
    int its[2] = { 0, 0 };
    socklen_t size = sizeof its[0];
    return !getsockopt(at, SOL_SOCKET, SO_DOMAIN, &its[0], &size) && its[0] == domain &&
           !getsockopt(at, SOL_SOCKET, SO_TYPE, &its[1], &size) && its[1] == kind;
}

static void lose_rendezvous(int at)
{
    int nothing = open("/dev/null", O_RDWR);
    if (dup2(nothing, at) != at)
        die("dup2");
    close(nothing);
}

static void break_lane(int at)
{
    struct xdp_mmap_offsets offsets;
    socklen_t size = sizeof offsets;
    if (getsockopt(at, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size))
        die("XDP_MMAP_OFFSETS");
    char *ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, at, XDP_PGOFF_RX_RING);
    if (ring != MAP_FAILED)
        *(volatile uint32_t *)(ring + offsets.rx.consumer) += 1u << 30;
}

static void misbehave(void)
{
    int loses = halfway[0] == 'l', found = 0;
    if (halfway[0] == 'e') {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        execlp("sleep", "sleep", "60", (char *)NULL);
        die("sleep");
    }
    for (int at = 3; at < 1024; at++) {
        if (loses ? is_of_library(at, AF_UNIX, SOCK_SEQPACKET) : is_of_library(at, AF_XDP, SOCK_RAW)) {
            (loses ? lose_rendezvous : break_lane)(at);
            found = 1;
        }
    }
    if (!found)
        die("nothing of the library is found");
    if (!loses)
        raise(SIGKILL);
    halfway = NULL;
}

/* One message; false at the end. */
static int send_one(uint64_t *random)
{
    unsigned char bytes[MOST];
    size_t n = next_size(random);
    if (sent == all)
        return 0;
    if (n > all - sent)
        n = all - sent;
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte(calls, sent + i);
    if (halfway && sent > all / 2)
        misbehave();
    for (size_t done = 0; done < n;) {
        ssize_t went = send(fd, bytes + done, n - done, MSG_NOSIGNAL);
        if (went <= 0) {
            send_end = name_of(errno);
            return 0;
        }
        done += (size_t)went;
        *count = sent += (uint64_t)went;
    }
    return 1;
}

static void *send_all(void *unused)
{
    uint64_t random = seed;
    while (!rests && send_one(&random))
        /* Neither runs far ahead of the other: who is far behind is served by the kernel. */
        while (both_send && !is_over && !rests && sent > received + AHEAD)
            usleep(20);
    if (sent == all && shutdown(fd, SHUT_WR) && errno != ENOTCONN)
        die("shutdown");
    return unused;
}

/* Up to `most` bytes; false at the end. */
static int receive_some(size_t most)
{
    unsigned char bytes[2 * MOST];
    double before = now_ms();
    ssize_t got = recv(fd, bytes, most, 0);
    double took = now_ms() - before;
    if (took > longest)
        longest = took;
    if (got < 0)
        receive_end = name_of(errno);
    for (ssize_t i = 0; i < got; i++)
        if (bytes[i] != byte(!calls, received + (uint64_t)i)) {
            fprintf(stderr, "lanes: wrong byte at %llu\n", (unsigned long long)received + (uint64_t)i);
            exit(3);
        }
    received += got > 0 ? (uint64_t)got : 0;
    return got > 0;
}

static void receive_all(void)
{
    uint64_t random = ~seed;
    while (receive_some(1 + mix(random++) % (2 * MOST)))
        continue;
    is_over = 1;
}

static void bounce(void)
{
    uint64_t random = seed;
    if (!calls && !receive_some(MOST))
        return;
    while (send_one(&random) && receive_some(MOST))
        continue;
    if (sent == all) {
        shutdown(fd, SHUT_WR);
        receive_all();
    }
}

/* What is made by this thread is of that network, until the next one. */
static void enter(const char *network)
{
    int file = open(network, O_RDONLY);
    if (file < 0 || setns(file, CLONE_NEWNET))
        die(network);
    close(file);
}

static void be_connected(const char *address, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
    int one = 1;
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (calls) {
        if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || connect(fd, (struct sockaddr *)&to, sizeof to))
            die("connect");
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, (struct sockaddr *)&to, sizeof to) || listen(fd, 1))
            die("listen");
        puts("listening");
        fflush(stdout);
        int taken = accept(fd, NULL, NULL);
        if (taken < 0)
            die("accept");
        close(fd);
        fd = taken;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int main(int argc, char **words)
{
    if (argc != 6) {
        fprintf(stderr, "usage: lanes serve|ADDRESS PORT duplex|stream|pong BYTES SEED\n");
        return 2;
    }
    calls = strcmp(words[1], "serve") != 0;
    all = strtoull(words[4], NULL, 0);
    both_send = words[3][0] == 'd';
    seed = mix(strtoull(words[5], NULL, 0) * 2 + (uint64_t)calls);
    const char *file = getenv("LANES_COUNT");
    if (file) {
        int memory = open(file, O_RDWR);
        void *mapped = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        if (memory < 0 || mapped == MAP_FAILED)
            die(file);
        close(memory);
        count = mapped;
    }
    halfway = getenv("LANES_HALFWAY");
    signal(SIGTERM, rest);
    const char *network = getenv("LANES_NETWORK");
    int own = open("/proc/self/ns/net", O_RDONLY);
    if (network)
        enter(network);
    be_connected(words[1], atoi(words[2]));
    if (network && setns(own, CLONE_NEWNET))
        die("the own network");
    close(own);
    pthread_t thread;
    if (both_send && pthread_create(&thread, NULL, send_all, NULL))
        die("pthread_create");
    if (words[3][0] == 'p')
        bounce();
    if (words[3][0] == 's' && calls)
        send_all(NULL);
    if (words[3][0] != 'p')
        receive_all();
    if (both_send)
        pthread_join(thread, NULL);
    printf("sent %llu %s received %llu %s longest %.0f\n", (unsigned long long)sent, send_end,
           (unsigned long long)received, receive_end, longest);
    close(fd);
    return 0;
}
