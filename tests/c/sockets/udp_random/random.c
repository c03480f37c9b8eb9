/* Random datagrams from several processes to one that receives them in every way there is: each must come once, whole,
 * and none may be lost, because never more is on the way than the kernel's buffer would hold.
 *
 *   random SEED DATAGRAMS
 *
 * Senders and receiver are processes of their own. The receiver answers each datagram with its number; a sender waits
 * when too many of its own are not answered. Exits with 0 when all is well. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDERS 3
#define ON_THE_WAY 20
#define LONGEST 1200

#define must(condition)                                                                                  \
    do {                                                                                                 \
        if (!(condition)) {                                                                              \
            fprintf(stderr, "random: %s %d: line %d: %s (%s)\n", who, which, __LINE__, #condition, strerror(errno)); \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

static const char *who;
static int which;
static uint64_t state;

static uint32_t any(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

struct heading {
    uint32_t sender, number, length;
};

/* The bytes of a datagram are known by its heading. */
static void fill(unsigned char *bytes, struct heading *heading)
{
    memcpy(bytes, heading, sizeof *heading);
    for (uint32_t at = sizeof *heading; at < heading->length; at++)
        bytes[at] = heading->number * 31 + heading->sender * 7 + at;
}

static void pause_now_and_then(void)
{
    if (any(400) == 0)
        usleep(any(3000));
}

static int bound(struct sockaddr_in *own)
{
    socklen_t size = sizeof *own;
    struct timeval limit = { 10, 0 };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    *own = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    must(!bind(fd, (struct sockaddr *)own, size) && !getsockname(fd, (struct sockaddr *)own, &size));
    must(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    return fd;
}

static void send_somehow(int fd, struct sockaddr_in *to, int connected, unsigned char *bytes, size_t length)
{
    size_t middle = any(length + 1);
    struct iovec two[2] = { { bytes, middle }, { bytes + middle, length - middle } };
    struct mmsghdr many = { .msg_hdr = { .msg_iov = two, .msg_iovlen = 2 } };
    if (!connected || any(3) == 0)
        many.msg_hdr.msg_name = to, many.msg_hdr.msg_namelen = sizeof *to;
    switch (any(connected ? 5 : 3)) {
    case 0: must(sendto(fd, bytes, length, 0, (struct sockaddr *)to, sizeof *to) == (ssize_t)length); break;
    case 1: must(sendmsg(fd, &many.msg_hdr, MSG_DONTWAIT) == (ssize_t)length); break;
    case 2: must(sendmmsg(fd, &many, 1, 0) == 1 && many.msg_len == length); break;
    case 3: must(send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length); break;
    default: must(writev(fd, two, 2) == (ssize_t)length); break;
    }
}

static void sender(int port, uint32_t datagrams)
{
    struct sockaddr_in own, to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port };
    int fd = bound(&own), connected = which != 0;
    unsigned char bytes[LONGEST], *answered = calloc(datagrams, 1);
    if (connected)
        must(!connect(fd, (struct sockaddr *)&to, sizeof to));
    uint32_t waiting = 0;
    for (uint32_t number = 0; number < datagrams || waiting > 0;) {
        while (waiting >= ON_THE_WAY || (waiting > 0 && (number == datagrams || any(8) == 0))) {
            uint32_t answer;
            ssize_t came = recv(fd, &answer, sizeof answer, 0);
            if (came < 0)
                fprintf(stderr, "random: sender %d: %u sent, %u not answered\n", which, number, waiting);
            must(came == sizeof answer && answer < number && !answered[answer]);
            answered[answer] = 1;
            waiting--;
        }
        if (number < datagrams) {
            struct heading heading = { which, number++, sizeof heading + any(any(4) ? 80 : LONGEST - sizeof heading) };
            fill(bytes, &heading);
            send_somehow(fd, &to, connected, bytes, heading.length);
            waiting++;
        }
        pause_now_and_then();
    }
}

/* Waits for a datagram in some way, or not at all. */
static void wait_somehow(int fd, int set)
{
    struct pollfd one = { fd, POLLIN, 0 };
    struct epoll_event event;
    fd_set bits;
    FD_ZERO(&bits);
    FD_SET(fd, &bits);
    switch (any(6)) {
    case 0: must(poll(&one, 1, 10000) == 1); break;
    case 1: must(epoll_wait(set, &event, 1, 10000) == 1); break;
    case 2: must(select(fd + 1, &bits, NULL, NULL, NULL) == 1); break;
    default: break;
    }
}

static ssize_t receive_somehow(int fd, unsigned char *bytes, struct sockaddr_in *from)
{
    socklen_t size = sizeof *from;
    unsigned char seen[LONGEST];
    struct iovec two[2] = { { bytes, 5 }, { bytes + 5, LONGEST - 5 } };
    struct msghdr header = { .msg_name = from, .msg_namelen = size, .msg_iov = two, .msg_iovlen = 2 };
    struct mmsghdr many = { .msg_hdr = header };
    ssize_t came;
    switch (any(5)) {
    case 0:
        if (recv(fd, seen, sizeof seen, MSG_PEEK) < 0)
            return -1;
        break;
    case 1:
        came = recvmsg(fd, &header, 0);
        must(came < 0 || (header.msg_namelen == sizeof *from && !(header.msg_flags & MSG_TRUNC)));
        return came;
    case 2:
        return recvmmsg(fd, &many, 1, MSG_WAITFORONE, NULL) == 1 ? (ssize_t)many.msg_len : -1;
    case 3:
        while ((came = recvfrom(fd, bytes, LONGEST, MSG_DONTWAIT, (struct sockaddr *)from, &size)) < 0 && errno == EAGAIN)
            if (any(50) == 0)
                break;
        if (came >= 0)
            return came;
        break;
    default:
        break;
    }
    return recvfrom(fd, bytes, LONGEST, MSG_TRUNC, (struct sockaddr *)from, &size);
}

static void receiver(int fd, uint32_t datagrams)
{
    int set = epoll_create1(0);
    struct epoll_event event = { EPOLLIN, { .fd = fd } };
    unsigned char bytes[LONGEST], expected[LONGEST], *seen = calloc(SENDERS, datagrams);
    must(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    for (uint32_t all = 0; all < SENDERS * datagrams; all++) {
        struct sockaddr_in from;
        struct heading heading;
        wait_somehow(fd, set);
        ssize_t came = receive_somehow(fd, bytes, &from);
        if (came < 0)
            fprintf(stderr, "random: receiver: %u of %u came\n", all, SENDERS * datagrams);
        must(came >= (ssize_t)sizeof heading);
        memcpy(&heading, bytes, sizeof heading);
        must(heading.length == came && heading.sender < SENDERS && heading.number < datagrams);
        fill(expected, &heading);
        must(!memcmp(bytes, expected, came));
        must(!seen[heading.sender * datagrams + heading.number]);
        seen[heading.sender * datagrams + heading.number] = 1;
        must(sendto(fd, &heading.number, 4, 0, (struct sockaddr *)&from, sizeof from) == 4);
        pause_now_and_then();
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint32_t datagrams = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000;
    int pipes[2], port, failed = 0;
    who = "main";
    must(!pipe(pipes));
    for (int n = 0; n <= SENDERS; n++) {
        pid_t child = fork();
        must(child >= 0);
        if (child > 0)
            continue;
        state = seed * 1000 + n;
        any(2);
        if (n == 0) {
            struct sockaddr_in own;
            who = "receiver";
            int fd = bound(&own);
            for (int i = 0; i < SENDERS; i++)
                must(write(pipes[1], &own.sin_port, 2) == 2);
            receiver(fd, datagrams);
        } else {
            who = "sender";
            which = n - 1;
            port = 0;
            must(read(pipes[0], &port, 2) == 2);
            sender(port, datagrams);
        }
        exit(0);
    }
    for (int n = 0; n <= SENDERS; n++) {
        int status;
        must(wait(&status) > 0);
        failed |= status != 0;
    }
    printf("random: seed %llu: %s\n", (unsigned long long)seed, failed ? "FAILED" : "passed");
    return failed;
}
