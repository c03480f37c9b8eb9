/* Sockets that come, go, and change hands. */
#include "udp.h"

/* A connected socket that talks with a child. */
static int talk_with(struct sockaddr_storage *there, int rounds)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    must(!connect(fd, (struct sockaddr *)there, 16));
    for (int i = 0; i < rounds; i++) {
        int got = -1;
        must(send(fd, &i, 4, 0) == 4 && recv(fd, &got, 4, 0) == 4 && got == i);
        if (i == 10)
            until_answered_by_ring(fd);
    }
    return fd;
}

static void is_refused(int fd)
{
    struct timeval limit = { 3, 0 };
    char in[10];
    must(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    must(send(fd, "anybody?", 8, 0) == 8 || errno == ECONNREFUSED);
    must(recv(fd, in, 10, 0) == -1 && errno == ECONNREFUSED);
}

void closed_peer_refuses(void)
{
    struct sockaddr_storage there;
    pid_t child = echo_datagrams(&there);
    int fd = talk_with(&there, 500);
    must(send(fd, "", 0, 0) == 0);
    ended_well(child);
    is_refused(fd);
    struct pair p = pair_of(AF_INET, 1);
    close(p.b);
    is_refused(p.a);
}

void killed_peer_refuses(void)
{
    for (int i = 0; i < 10; i++) {
        struct sockaddr_storage there;
        pid_t child = echo_datagrams(&there);
        int fd = talk_with(&there, 200);
        kill(child, SIGKILL);
        must(waitpid(child, NULL, 0) == child);
        is_refused(fd);
        close(fd);
    }
}

void killed_while_asleep(void)
{
    struct sockaddr_storage there, own;
    pid_t child = echo_datagrams(&there);
    int fd = talk_with(&there, 200);
    kill(child, SIGKILL);
    must(waitpid(child, NULL, 0) == child);
    socklen_t size = sizeof own;
    must(!getsockname(fd, (struct sockaddr *)&own, &size));
    /* Somebody else takes the address: what is sent reaches him. */
    int heir = socket(AF_INET, SOCK_DGRAM, 0), got = 0;
    must(!bind(heir, (struct sockaddr *)&there, 16));
    for (int i = 0; i < 50; i++) {
        struct timeval limit = { 3, 0 };
        must(!setsockopt(heir, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
        usleep(i < 20 ? 1000 : 0);
        while (send(fd, &i, 4, 0) != 4)
            must(errno == ECONNREFUSED);
        if (i == 0)
            continue;
        must(recv(heir, &got, 4, 0) == 4);
    }
}

void connected_hears_one(void)
{
    struct pair p = pair_of(AF_INET, 0);
    struct sockaddr_storage other;
    int third = on_loopback(AF_INET, &other);
    char in[10];
    struct pair q = { third, p.b, other, p.at_b };
    exchange(&q, 40);
    must(!connect(p.b, (struct sockaddr *)&p.at_a, 16));
    must(sendto(third, "no", 2, 0, (struct sockaddr *)&p.at_b, 16) == 2);
    to_b(&p, "yes", 3);
    must(recv(p.b, in, 10, 0) == 3 && recv(p.b, in, 10, MSG_DONTWAIT) == -1);
    must(send(p.b, "back", 4, 0) == 4 && recv(p.a, in, 10, 0) == 4);
    exchange(&p, 60);
}

void disconnected(void)
{
    struct pair p = pair_of(AF_INET, 1);
    struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
    must(!connect(p.a, &nowhere, sizeof nowhere));
    must(send(p.a, "x", 1, 0) == -1 && errno == EDESTADDRREQ);
    /* A port that the kernel chose is given back with the connection. */
    char in[10];
    socklen_t size = sizeof p.at_a;
    to_b(&p, "new", 3);
    must(recvfrom(p.b, in, 10, 0, (struct sockaddr *)&p.at_a, &size) == 3);
    exchange(&p, 40);
}

/* A plain kernel socket beside rings: by calls that the library does not see as a pair, from an address that it leaves
 * alone. */
void strangers_are_heard(void)
{
    struct pair p = pair_of(AF_INET, 0);
    int server = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0), got, heard = 0;
    struct sockaddr_in any = { .sin_family = AF_INET }, two = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002) };
    socklen_t size = sizeof any;
    must(!bind(server, (struct sockaddr *)&any, sizeof any) && !getsockname(server, (struct sockaddr *)&any, &size));
    must(!bind(client, (struct sockaddr *)&two, sizeof two));
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct pair q = { p.a, server, p.at_a, { 0 } };
    memcpy(&q.at_b, &any, sizeof any);
    exchange(&q, 60);
    /* The ring is never empty, and the stranger is heard all the same. */
    for (int i = 0; i < 64; i++)
        to_b(&q, &i, 4);
    int stranger = 77777;
    must(sendto(client, &stranger, 4, 0, (struct sockaddr *)&any, sizeof any) == 4);
    for (int i = 0; i < 2000; i++) {
        must(recv(server, &got, 4, 0) == 4);
        heard += got == stranger;
        if (heard)
            break;
        to_b(&q, &i, 4);
    }
    must(heard == 1);
}

void forked(void)
{
    struct pair p = pair_of(AF_INET, 0);
    char in[10];
    to_b(&p, "before", 6);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    ended_well(child);
    must(recv(p.b, in, 10, 0) == 6);
    child = fork();
    if (child == 0) {
        must(recv(p.b, in, 10, 0) == 5);
        to_a(&p, "child", 5);
        _exit(0);
    }
    usleep(5000);
    to_b(&p, "after", 5);
    must(recv(p.a, in, 10, 0) == 5);
    ended_well(child);
}

void shut(void)
{
    struct pair p = pair_of(AF_INET, 1);
    char in[10];
    must(!shutdown(p.a, SHUT_RD) && recv(p.a, in, 10, 0) == 0);
    must(send(p.a, "x", 1, 0) == 1 && recv(p.b, in, 10, 0) == 1);
    must(!shutdown(p.a, SHUT_WR));
    signal(SIGPIPE, SIG_IGN);
    must(send(p.a, "x", 1, 0) == -1 && errno == EPIPE);
}

void options(void)
{
    struct pair p = pair_of(AF_INET, 0);
    int one = 1;
    char in[10], control[200];
    struct iovec into = { in, 10 };
    struct msghdr got = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    must(!setsockopt(p.b, IPPROTO_IP, IP_PKTINFO, &one, sizeof one));
    to_b(&p, "info", 4);
    must(recvmsg(p.b, &got, 0) == 4 && got.msg_controllen > 0);
    exchange(&p, 60);
    got.msg_controllen = sizeof control;
    to_b(&p, "info", 4);
    must(recvmsg(p.b, &got, 0) == 4 && got.msg_controllen > 0);
}

void duplicates(void)
{
    struct pair p = pair_of(AF_INET, 0);
    char in[10];
    int copy = dup(p.b);
    to_b(&p, "one", 3);
    must(recv(copy, in, 10, 0) == 3);
    must(!close(p.b));
    p.b = copy;
    exchange(&p, 60);
    must(dup2(copy, 50) == 50 && !close(copy));
    p.b = 50;
    exchange(&p, 60);
}

/* Handed to a process that may not know of rings. */
void passed_on(void)
{
    struct pair p = pair_of(AF_INET, 0);
    int ends[2], got;
    char space[CMSG_SPACE(sizeof(int))], byte = 'x', in[10];
    must(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    struct iovec one = { &byte, 1 };
    struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &p.b, sizeof p.b);
    must(sendmsg(ends[0], &message, 0) == 1 && recvmsg(ends[1], &message, 0) == 1);
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
    to_b(&p, "passed", 6);
    must(recv(got, in, 10, 0) == 6);
}
