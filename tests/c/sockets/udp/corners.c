/* What a ring cannot know by itself: what was shown, what is not whole, who else is there. */
#include "udp.h"
#include <linux/sockios.h>

/* Two with rings and one without send to p.b in any order: what was shown is what is taken, by every way to look. */
void shown_is_taken(void)
{
    struct pair p = pair_of(AF_INET, 0);
    struct sockaddr_storage other;
    struct sockaddr_in any = { .sin_family = AF_INET }, two = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002) };
    int third = on_loopback(AF_INET, &other), server = socket(AF_INET, SOCK_DGRAM, 0);
    int stranger = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t size = sizeof any;
    must(!bind(server, (struct sockaddr *)&any, sizeof any) && !getsockname(server, (struct sockaddr *)&any, &size));
    must(!bind(stranger, (struct sockaddr *)&two, sizeof two));
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int senders[3] = { p.a, third, stranger };
    struct pair q = { p.a, server, p.at_a, { 0 } }, r = { third, server, other, { 0 } };
    memcpy(&q.at_b, &any, sizeof any);
    r.at_b = q.at_b;
    exchange(&q, 10);
    exchange(&r, 10);
    until_by_ring(p.a, server, &q.at_b);
    until_by_ring(third, server, &q.at_b);
    unsigned state = 1;
    for (int round = 0; round < 3000; round++) {
        char in[200];
        int waiting, order = (state = state * 1103515245 + 12345) >> 16 & 0x7fff;
        for (int i = 0; i < 3; i++) {
            /* Lengths tell who sent it. */
            int from = (order + i * (1 + order % 2)) % 3;
            must(sendto(senders[from], in, 10 + from, 0, (struct sockaddr *)&any, 16) == 10 + from);
            if (i > 0)
                continue;
            waiting = 0;
            if (order & 4)
                must(!ioctl(server, FIONREAD, &waiting));
            else
                waiting = recv(server, in, 1, MSG_PEEK | MSG_TRUNC);
            must(waiting == 10 + from);
        }
        must(recv(server, in, sizeof in, 0) == waiting);
        must((waiting = recv(server, in, 3, MSG_PEEK | MSG_TRUNC)) >= 10);
        must(recv(server, in, 3, MSG_PEEK | MSG_TRUNC) == waiting && recv(server, in, sizeof in, 0) == waiting);
        must(recv(server, in, sizeof in, 0) >= 10 && recv(server, in, sizeof in, MSG_DONTWAIT) == -1);
    }
}

void corked(void)
{
    struct pair p = pair_of(AF_INET, 1);
    char in[20];
    must(send(p.a, "ab", 2, MSG_MORE) == 2 && send(p.a, "cd", 2, 0) == 2);
    must(recv(p.b, in, 20, 0) == 4 && !memcmp(in, "abcd", 4));
    exchange(&p, 20);
}

void one_way(void)
{
    struct pair p = pair_of(AF_INET, 0);
    struct sockaddr_storage here;
    struct sockaddr_in from;
    int sink = on_loopback(AF_INET, &here), source = socket(AF_INET, SOCK_DGRAM, 0);
    must(!connect(source, (struct sockaddr *)&here, 16));
    for (int i = 0; i < 10; i++) {
        socklen_t size = sizeof from;
        char in[10];
        must(send(source, &i, 4, 0) == 4);
        must(recvfrom(sink, in, 10, 0, (struct sockaddr *)&from, &size) == 4 && size == 16);
    }
    until_by_ring(source, sink, &here);
    close(p.a);
    close(p.b);
}

/* Nothing of a peer that the kernel never brought us comes by a ring: it may be that it never would. */
void unheard(void)
{
    struct pair p = pair_of(AF_INET, 0), q;
    char in[10];
    q.a = on_loopback(AF_INET, &q.at_a);
    q.b = on_loopback(AF_INET, &q.at_b);
    for (int i = 0; i < 10; i++) {
        to_b(&q, &i, 4);
        to_a(&q, &i, 4);
        must(recv(q.a, in, 10, 0) == 4);
    }
    until_by_ring(q.b, q.a, &q.at_a);
    /* All that has come to q.b waits in the kernel, and so must what comes now: q.b looks, but has heard nobody. */
    must(recv(q.b, in, 10, MSG_PEEK) == 4);
    to_b(&q, "last", 4);
    for (int i = 0; i < 10; i++)
        must(recv(q.b, in, 10, 0) == 4);
    must(kernel_has(q.b) && recv(q.b, in, 10, 0) == 4 && !memcmp(in, "last", 4));
    must(recv(q.b, in, 10, MSG_DONTWAIT) == -1);
    exchange(&p, 10);
}

/* The one that came last to an address gets what is sent to it. */
void address_is_shared(void)
{
    int options[2] = { SO_REUSEADDR, SO_REUSEPORT }, one = 1;
    for (int i = 0; i < 2; i++) {
        struct pair p = pair_of(AF_INET, 0);
        char in[10];
        must(!setsockopt(p.b, SOL_SOCKET, options[i], &one, sizeof one));
        to_b(&p, "first", 5);
        must(recv(p.b, in, 10, 0) == 5);
        int second = socket(AF_INET, SOCK_DGRAM, 0);
        must(!setsockopt(second, SOL_SOCKET, options[i], &one, sizeof one));
        /* A port with SO_REUSEPORT is shared by those who say so before they take it. */
        int shares = !bind(second, (struct sockaddr *)&p.at_b, 16);
        must(shares || options[i] == SO_REUSEPORT);
        to_b(&p, "shared", 6);
        struct pollfd two[2] = { { p.b, POLLIN, 0 }, { second, POLLIN, 0 } };
        must(poll(two, 2, 5000) == 1 && kernel_has(p.b));
        must(!shares || options[i] == SO_REUSEPORT || two[1].revents == POLLIN);
        close(second);
        close(p.a);
        close(p.b);
    }
}

static void on_io(int number)
{
    (void)number;
    signals_seen++;
}

void asks_for_signals(void)
{
    struct pair p = pair_of(AF_INET, 0), q = pair_of(AF_INET, 0);
    char in[10];
    int one = 1;
    signal(SIGIO, on_io);
    must(!fcntl(p.b, F_SETOWN, getpid()) && !fcntl(p.b, F_SETFL, O_ASYNC | O_NONBLOCK));
    to_b(&p, "x", 1);
    must(signals_seen == 1 && recv(p.b, in, 10, 0) == 1);
    must(!fcntl(q.b, F_SETOWN, getpid()) && !ioctl(q.b, FIOASYNC, &one));
    to_b(&q, "x", 1);
    must(signals_seen == 2 && recv(q.b, in, 10, 0) == 1);
}

/* The first question only turns the clock on; each datagram has a later time from then on. */
void asks_for_times(void)
{
    struct pair p = pair_of(AF_INET, 0);
    struct timeval when[2];
    char in[10];
    ioctl(p.b, SIOCGSTAMP, &when[0]);
    for (int i = 0; i < 2; i++) {
        usleep(1000);
        to_b(&p, "x", 1);
        must(recv(p.b, in, 10, 0) == 1 && !ioctl(p.b, SIOCGSTAMP, &when[i]));
    }
    must(timercmp(&when[0], &when[1], <));
}

/* More peers than a socket has places: those that have gone make room. */
void many_come_and_go(void)
{
    struct pair p = pair_of(AF_INET, 0);
    for (int i = 0; i < 300; i++) {
        struct pair q = { -1, p.b, { 0 }, p.at_b };
        q.a = on_loopback(AF_INET, &q.at_a);
        exchange(&q, 6);
        until_by_ring(q.a, q.b, &q.at_b);
        to_a(&q, "end", 3);
        close(q.a);
    }
    exchange(&p, 10);
}

void errors_are_told(void)
{
    struct pair p = pair_of(AF_INET, 1);
    int came = 0, refused = 0;
    to_a(&p, "one", 3);
    to_a(&p, "two", 3);
    close(p.b);
    must(send(p.a, "anybody?", 8, 0) == 8);
    for (int i = 0; i < 5; i++) {
        char in[4][8];
        struct iovec into[4];
        struct mmsghdr got[4];
        memset(got, 0, sizeof got);
        for (int k = 0; k < 4; k++) {
            into[k] = (struct iovec){ in[k], 8 };
            got[k].msg_hdr = (struct msghdr){ .msg_iov = into + k, .msg_iovlen = 1 };
        }
        int n = recvmmsg(p.a, got, 4, MSG_DONTWAIT, NULL);
        must(n > 0 || errno == EAGAIN || errno == ECONNREFUSED);
        refused += n < 0 && errno == ECONNREFUSED;
        came += n > 0 ? n : 0;
    }
    must(came == 2 && refused == 1);
}

static void *sends_two(void *argument)
{
    usleep(20000);
    to_b(argument, "three", 5);
    to_b(argument, "four", 4);
    return NULL;
}

/* With a time limit that is far away all are waited for. */
void all_in_time(void)
{
    struct pair p = pair_of(AF_INET, 0);
    char in[4][8];
    struct iovec into[4];
    struct mmsghdr got[4];
    struct timespec limit = { 20, 0 };
    pthread_t thread;
    memset(got, 0, sizeof got);
    for (int k = 0; k < 4; k++) {
        into[k] = (struct iovec){ in[k], 8 };
        got[k].msg_hdr = (struct msghdr){ .msg_iov = into + k, .msg_iovlen = 1 };
    }
    to_b(&p, "one", 3);
    to_b(&p, "two", 3);
    must(!pthread_create(&thread, NULL, sends_two, &p));
    must(recvmmsg(p.b, got, 4, 0, &limit) == 4 && got[0].msg_len == 3 && got[3].msg_len == 4);
    must(!memcmp(in[2], "three", 5) && !pthread_join(thread, NULL));
}

/* The kernel moves bytes by itself. */
void spliced(void)
{
    struct pair p = pair_of(AF_INET, 1);
    int ends[2];
    char in[20];
    must(!pipe(ends) && !fcntl(p.b, F_SETFL, O_NONBLOCK));
    must(splice(p.b, NULL, ends[1], NULL, 20, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    to_b(&p, "by pipe", 7);
    must(splice(p.b, NULL, ends[1], NULL, 20, SPLICE_F_NONBLOCK) == 7 && read(ends[0], in, 20) == 7);
    must(write(ends[1], "back", 4) == 4 && splice(ends[0], NULL, p.a, NULL, 4, 0) == 4);
    must(recv(p.b, in, 20, 0) == 4);
}

void to_itself(void)
{
    struct pair p = pair_of(AF_INET, 0);
    struct sockaddr_storage own;
    int fd = on_loopback(AF_INET, &own);
    must(!connect(fd, (struct sockaddr *)&own, 16));
    for (int i = 0; i < 200; i++) {
        int got = -1;
        must(send(fd, &i, 4, 0) == 4 && recv(fd, &got, 4, 0) == 4 && got == i);
    }
    exchange(&p, 10);
}

/* What nobody has read when a process forks is for the first that reads, parent or child, and once. */
void left_at_a_fork(void)
{
    struct pair p = pair_of(AF_INET, 0);
    char in[20];
    int waiting;
    to_b(&p, "first", 5);
    to_b(&p, "second", 6);
    to_b(&p, "", 0);
    to_b(&p, "fourth", 6);
    pid_t child = fork();
    if (child == 0) {
        struct sockaddr_storage from;
        struct pollfd one = { p.b, POLLIN, 0 };
        socklen_t size = sizeof from;
        must(poll(&one, 1, 5000) == 1 && recv(p.b, in, 3, MSG_PEEK | MSG_TRUNC) == 5);
        must(recvfrom(p.b, in, 20, 0, (struct sockaddr *)&from, &size) == 5 && !memcmp(in, "first", 5));
        must(size == 16 && !memcmp(&from, &p.at_a, 16));
        must(!ioctl(p.b, FIONREAD, &waiting) && waiting == 6);
        _exit(0);
    }
    ended_well(child);
    must(recv(p.b, in, 20, 0) == 6 && !memcmp(in, "second", 6));
    child = fork();
    if (child == 0) {
        int set = epoll_create1(0);
        struct epoll_event in_b = { EPOLLIN, { .fd = p.b } }, seen;
        must(!epoll_ctl(set, EPOLL_CTL_ADD, p.b, &in_b) && epoll_wait(set, &seen, 1, 5000) == 1);
        must(recv(p.b, in, 20, 0) == 0 && recv(p.b, in, 20, 0) == 6 && !memcmp(in, "fourth", 6));
        must(epoll_wait(set, &seen, 1, 0) == 0 && recv(p.b, in, 20, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        _exit(0);
    }
    ended_well(child);
    must(recv(p.b, in, 20, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    exchange(&p, 20);
}

/* A socket that had a ring hears its new peer only. */
void connected_elsewhere(void)
{
    struct pair p = pair_of(AF_INET, 0);
    struct sockaddr_storage other;
    int third = on_loopback(AF_INET, &other);
    char in[10];
    must(!connect(p.b, (struct sockaddr *)&other, 16));
    to_b(&p, "no", 2);
    must(sendto(third, "yes", 3, 0, (struct sockaddr *)&p.at_b, 16) == 3);
    must(recv(p.b, in, 10, 0) == 3 && recv(p.b, in, 10, MSG_DONTWAIT) == -1);
    struct pair q = { third, p.b, other, p.at_b };
    exchange(&q, 10);
    until_by_ring(third, p.b, &p.at_b);
}

/* A process that ends by itself: what is sent afterwards is refused at once. */
void exits(void)
{
    struct pair p = pair_of(AF_INET, 0);
    for (int way = 0; way < 2; way++) {
        struct sockaddr_storage there;
        int pipes[2];
        char in[10];
        must(!pipe(pipes));
        pid_t child = fork();
        if (child == 0) {
            struct sockaddr_storage from;
            int fd = on_loopback(AF_INET, &there), known = 0;
            must(write(pipes[1], &there, sizeof there) == sizeof there);
            for (;;) {
                socklen_t size = sizeof from;
                ssize_t n = recvfrom(fd, in, sizeof in, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
                if (n == 0)
                    break;
                if (n > 0)
                    must(sendto(fd, in, n, 0, (struct sockaddr *)&from, size) == n);
                known++;
            }
            if (way)
                _exit(0);
            exit(0);
        }
        must(read(pipes[0], &there, sizeof there) == sizeof there);
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        must(!connect(fd, (struct sockaddr *)&there, 16));
        for (int i = 0; i < 10; i++)
            must(send(fd, "hello", 5, 0) == 5 && recv(fd, in, 10, 0) == 5);
        until_answered_by_ring(fd);
        must(send(fd, "", 0, 0) == 0);
        ended_well(child);
        must(send(fd, "x", 1, 0) == 1 && send(fd, "y", 1, 0) == -1 && errno == ECONNREFUSED);
        close(fd);
    }
    exchange(&p, 10);
}

/* A port is free once its socket is closed, also where that was shown to somebody just before. */
void bound_again(void)
{
    enum { ROUNDS = 300 };
    struct pair lasting = pair_of(AF_INET, 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct pair p;
        p.a = on_loopback(AF_INET, &p.at_a);
        p.b = on_loopback(AF_INET, &p.at_b);
        /* With the second answer both have made as many calls as it takes. */
        exchange(&p, 2);
        must(!close(p.a));
        int again = socket(AF_INET, SOCK_DGRAM, 0);
        must(!bind(again, (struct sockaddr *)&p.at_a, 16));
        must(!close(again) && !close(p.b));
    }
    exchange(&lasting, 10);
}
