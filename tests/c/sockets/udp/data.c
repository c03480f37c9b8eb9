/* What is in a datagram and around it. */
#include "udp.h"

void names_and_lengths(void)
{
    struct pair p = pair_of(AF_INET, 0);
    char in[100];
    to_b(&p, "", 0);
    must(recv(p.b, in, sizeof in, 0) == 0);
    to_b(&p, "abcdef", 6);
    must(recv(p.b, in, 3, 0) == 3 && !memcmp(in, "abc", 3));
    to_b(&p, "next", 4);
    struct sockaddr_in from;
    socklen_t size = 4;
    must(recvfrom(p.b, in, 100, 0, (struct sockaddr *)&from, &size) == 4 && size == 16 && from.sin_family == AF_INET);
    to_b(&p, "read", 4);
    must(read(p.b, in, 100) == 4 && !memcmp(in, "read", 4));
    to_b(&p, "zero", 4);
    must(read(p.b, in, 0) == 0 && read(p.b, in, 100) == 4);
    to_b(&p, "gone", 4);
    must(recv(p.b, in, 0, 0) == 0);
    must(recv(p.b, in, 100, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

void six(void)
{
    struct pair p = pair_of(AF_INET6, 1);
    exchange(&p, 50);
    must(send(p.a, "x", 1, 0) == 1 && write(p.a, "y", 1) == 1);
    char in[10];
    must(recv(p.b, in, 10, 0) == 1 && *in == 'x' && recv(p.b, in, 10, 0) == 1 && *in == 'y');
}

void mapped(void)
{
    int server = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 any = { .sin6_family = AF_INET6 }, from;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_storage own, there;
    socklen_t size = sizeof any;
    must(!bind(server, (struct sockaddr *)&any, size) && !getsockname(server, (struct sockaddr *)&any, &size));
    to.sin_port = any.sin6_port;
    int client = on_loopback(AF_INET, &own);
    memcpy(&there, &to, sizeof to);
    must(!connect(client, (struct sockaddr *)&to, sizeof to));
    for (int i = 0; i < 60; i++) {
        char in[10];
        must(send(client, &i, 4, 0) == 4);
        size = sizeof from;
        must(recvfrom(server, in, 10, 0, (struct sockaddr *)&from, &size) == 4 && !memcmp(in, &i, 4));
        must(size == 28 && from.sin6_port == ((struct sockaddr_in *)&own)->sin_port);
        must(IN6_IS_ADDR_V4MAPPED(&from.sin6_addr) && from.sin6_addr.s6_addr[12] == 127);
        must(sendto(server, in, 4, 0, (struct sockaddr *)&from, size) == 4);
        must(recv(client, in, 10, 0) == 4);
        if (i == 10)
            until_by_ring(client, server, &there);
    }
}

void flags(void)
{
    struct pair p = pair_of(AF_INET, 0);
    char in[20];
    int waiting;
    to_b(&p, "0123456789", 10);
    to_b(&p, "abc", 3);
    must(recv(p.b, in, 4, MSG_PEEK) == 4 && recv(p.b, in, 4, MSG_PEEK | MSG_TRUNC) == 10);
    must(!ioctl(p.b, FIONREAD, &waiting) && waiting == 10);
    must(recv(p.b, in, 4, MSG_TRUNC) == 10 && !memcmp(in, "0123", 4));
    must(recv(p.b, in, 20, MSG_WAITALL) == 3);
    must(recv(p.b, in, 20, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    must(recv(p.b, in, 20, MSG_PEEK | MSG_DONTWAIT) == -1 && errno == EAGAIN);
    must(!ioctl(p.b, FIONREAD, &waiting) && waiting == 0);
    errno = 77;
    to_b(&p, "x", 1);
    must(recv(p.b, in, 20, 0) == 1 && errno == 77);
}

void vectors(void)
{
    struct pair p = pair_of(AF_INET, 1);
    char x[3], y[9], control[100];
    struct iovec from[3] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 } }, into[2] = { { x, 3 }, { y, 9 } };
    struct sockaddr_in sender;
    must(writev(p.a, from, 3) == 5 && readv(p.b, into, 2) == 5);
    must(!memcmp(x, "abc", 3) && !memcmp(y, "de", 2));
    struct msghdr out = { .msg_iov = from, .msg_iovlen = 3 };
    must(sendmsg(p.a, &out, 0) == 5);
    struct msghdr in = { .msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = into, .msg_iovlen = 1,
                         .msg_control = control, .msg_controllen = sizeof control };
    must(recvmsg(p.b, &in, 0) == 3 && in.msg_flags == MSG_TRUNC && in.msg_controllen == 0);
    must(in.msg_namelen == 16 && !memcmp(&sender, &p.at_a, 16));
}

void many_at_once(void)
{
    struct pair p = pair_of(AF_INET, 1);
    char in[4][8];
    struct iovec from[3] = { { "one", 3 }, { "three", 5 }, { "", 0 } }, into[4];
    struct mmsghdr out[3], got[4];
    struct timespec limit = { 0, 20000000 };
    memset(out, 0, sizeof out);
    memset(got, 0, sizeof got);
    for (int i = 0; i < 4; i++) {
        into[i] = (struct iovec){ in[i], 8 };
        got[i].msg_hdr = (struct msghdr){ .msg_iov = into + i, .msg_iovlen = 1 };
        if (i < 3)
            out[i].msg_hdr = (struct msghdr){ .msg_iov = from + i, .msg_iovlen = 1 };
    }
    must(sendmmsg(p.a, out, 3, 0) == 3 && out[1].msg_len == 5);
    must(recvmmsg(p.b, got, 4, MSG_WAITFORONE, NULL) == 3 && got[1].msg_len == 5 && got[2].msg_len == 0);
    must(recvmmsg(p.b, got, 4, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
    must(sendmmsg(p.a, out, 2, 0) == 2);
    must(recvmmsg(p.b, got, 2, 0, &limit) == 2 && !memcmp(in[1], "three", 5));
}

void sizes(void)
{
    struct pair p = pair_of(AF_INET, 0);
    static char out[70000], in[70000];
    for (size_t at = 0; at < sizeof out; at++)
        out[at] = at * 7 + at / 251;
    for (size_t length = 1; length <= 65507; length = length * 3 / 2 + 1) {
        to_b(&p, out, length);
        must(recv(p.b, in, sizeof in, 0) == (ssize_t)length && !memcmp(in, out, length));
    }
    to_b(&p, out, 65507);
    must(recv(p.b, in, sizeof in, 0) == 65507 && !memcmp(in, out, 65507));
    must(sendto(p.a, out, 65508, 0, (struct sockaddr *)&p.at_b, 16) == -1 && errno == EMSGSIZE);
}

/* Fewer bytes than any receive buffer: nothing of it may be lost, whoever looks or not. */
void burst_is_kept(void)
{
    struct pair p = pair_of(AF_INET, 0);
    for (int round = 0; round < 50; round++) {
        char in[64];
        for (int i = 0; i < 100; i++)
            to_b(&p, &i, sizeof i);
        if (round & 1)
            usleep(1000);
        for (int i = 0; i < 100; i++) {
            int got;
            must(recv(p.b, in, 64, 0) == 4);
            memcpy(&got, in, 4);
            must(got == i);
        }
        must(recv(p.b, in, 64, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    }
}

static void *counts(void *argument)
{
    struct pair *p = argument;
    int expected = 0;
    while (expected < 20000) {
        int got;
        must(recv(p->b, &got, 4, 0) == 4 && got == expected);
        expected++;
        if (expected % 50 == 0)
            to_a(p, &got, 4);
        if (expected % 5000 == 0)
            usleep(2000);
    }
    return NULL;
}

/* One thread sends, another receives; the sender never has more on the way than fits. Order is not promised by UDP, but
 * loopback keeps it. */
void order_of_a_stream(void)
{
    struct pair p = pair_of(AF_INET, 0);
    pthread_t thread;
    must(!pthread_create(&thread, NULL, counts, &p));
    int answered = 0, got;
    for (int i = 0; i < 20000; i++) {
        to_b(&p, &i, 4);
        while (i + 1 - answered >= 150) {
            must(recv(p.a, &got, 4, 0) == 4);
            answered = got + 1;
        }
        if (i % 3000 == 0)
            usleep(300);
    }
    must(!pthread_join(thread, NULL));
}
