/* What goes from one end to the other: bytes, ends, errors, flags. */
#include "behaviour.h"

void end_follows_data(void)
{
    int b, a = pair(&b);
    char buffer[10];
    send_all(a, "hello", 5);
    must(!shutdown(a, SHUT_WR));
    must(recv(b, buffer, 10, 0) == 5 && !memcmp(buffer, "hello", 5));
    must(recv(b, buffer, 10, 0) == 0 && recv(b, buffer, 10, 0) == 0);
    send_all(b, "reply", 5);
    receive_all(a, buffer, 5);
    must(!memcmp(buffer, "reply", 5));
    signal(SIGPIPE, SIG_IGN);
    must(send(a, "x", 1, 0) == -1 && errno == EPIPE);
    close(b);
    must(recv(a, buffer, 10, 0) == 0);
    close(a);
}

void closed_peer_gives_epipe(void)
{
    int b, a = pair(&b);
    signal(SIGPIPE, SIG_IGN);
    send_all(b, "last", 4);
    close(b);
    char buffer[10];
    must(recv(a, buffer, 10, 0) == 4);
    must(recv(a, buffer, 10, 0) == 0);
    send(a, "x", 1, 0);
    usleep(20000);
    must(send(a, "x", 1, 0) == -1 && (errno == EPIPE || errno == ECONNRESET));
    must(send(a, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    close(a);
}

void broken_pipe_signal(void)
{
    int b, a = pair(&b);
    on(SIGPIPE, 0);
    signals_seen = 0;
    must(!shutdown(a, SHUT_WR));
    must(send(a, "x", 1, 0) == -1 && errno == EPIPE && signals_seen == 1);
    must(write(a, "x", 1) == -1 && errno == EPIPE && signals_seen == 2);
    must(send(a, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE && signals_seen == 2);
    signal(SIGPIPE, SIG_IGN);
    close(a);
    close(b);
}

void flags(void)
{
    int b, a = pair(&b), waiting;
    char buffer[20] = "";
    send_all(a, "0123456789", 10);
    struct pollfd one = { .fd = b, .events = POLLIN };
    must(poll(&one, 1, 1000) == 1);
    must(recv(b, buffer, 4, MSG_PEEK) == 4 && !memcmp(buffer, "0123", 4));
    must(!ioctl(b, FIONREAD, &waiting) && waiting == 10);
    must(recv(b, buffer, 3, MSG_TRUNC) == 3);
    must(recv(b, buffer, 20, 0) == 7 && !memcmp(buffer, "3456789", 7));
    must(recv(b, buffer, 20, MSG_PEEK | MSG_DONTWAIT) == -1 && errno == EAGAIN);
    struct iovec pieces[3] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 } };
    must(writev(a, pieces, 3) == 5);
    char x[2], y[9];
    struct iovec into[2] = { { x, 2 }, { y, 9 } };
    must(readv(b, into, 2) == 5 && !memcmp(x, "ab", 2) && !memcmp(y, "cde", 3));
    struct mmsghdr two[2] = { { .msg_hdr = { .msg_iov = pieces, .msg_iovlen = 1 } },
                              { .msg_hdr = { .msg_iov = pieces + 2, .msg_iovlen = 1 } } };
    must(sendmmsg(a, two, 2, 0) == 2 && two[1].msg_len == 3);
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    must(recvfrom(b, buffer, 5, MSG_WAITALL, (struct sockaddr *)&from, &size) == 5 && size == 0);
    must(syscall(SYS_sendto, a, "raw", 3, 0, NULL, 0) == 3 && syscall(SYS_read, b, buffer, 20) == 3);
    must(pwritev2(a, pieces, 1, -1, 0) == 2 && read(b, buffer, 20) == 2);
    must(recv(b, buffer, 0, MSG_DONTWAIT) <= 0 && send(a, buffer, 0, 0) == 0);
    int low = 4;
    must(!setsockopt(b, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low));
    send_all(a, "abc", 3);
    must(poll(&one, 1, 30) == 0);
    send_all(a, "d", 1);
    must(poll(&one, 1, 1000) == 1 && recv(b, buffer, 20, 0) == 4);
    close(a);
    close(b);
}

void urgent(void)
{
    int b, a = pair(&b), marked;
    char buffer[20];
    send_all(a, "abc", 3);
    must(send(a, "!", 1, MSG_OOB) == 1);
    send_all(a, "def", 3);
    usleep(20000);
    receive_all(b, buffer, 3);
    must(!memcmp(buffer, "abc", 3));
    must(!ioctl(b, SIOCATMARK, &marked) && marked);
    must(recv(b, buffer, 1, MSG_OOB) == 1 && *buffer == '!');
    receive_all(b, buffer, 3);
    must(!memcmp(buffer, "def", 3));
    close(a);
    close(b);
}

void files(void)
{
    int b, a = pair(&b), file = open("/proc/self/exe", O_RDONLY), pipes[2];
    char from[50000], into[50000];
    must(pread(file, from, sizeof from, 0) > 10000);
    off_t at = 100;
    must(sendfile(a, file, &at, 10000) == 10000 && at == 10100);
    receive_all(b, into, 10000);
    must(!memcmp(from + 100, into, 10000));
    must(sendfile(a, file, NULL, 500) == 500 && lseek(file, 0, SEEK_CUR) == 500);
    receive_all(b, into, 500);
    must(!memcmp(from, into, 500));
    send_all(a, "before", 6);
    must(!pipe(pipes) && write(pipes[1], "spliced", 7) == 7);
    must(splice(pipes[0], NULL, a, NULL, 7, 0) == 7);
    receive_all(b, into, 13);
    must(!memcmp(into, "beforespliced", 13));
    close(a);
    close(b);
    close(file);
}

/* What a header says after a call, and after one that failed. */
void headers(void)
{
    int b, a = pair(&b);
    char in[10], name[16];
    struct iovec into = { in, sizeof in };
    struct msghdr before = { .msg_namelen = 77, .msg_iov = &into, .msg_iovlen = 1, .msg_flags = 0x5555 }, header = before;
    must(recvmsg(b, &header, MSG_DONTWAIT) == -1 && errno == EAGAIN && !memcmp(&header, &before, sizeof before));
    send_all(a, "x", 1);
    must(recvmsg(b, &header, 0) == 1 && header.msg_namelen == 77 && header.msg_flags == 0);
    send_all(a, "x", 1);
    header.msg_name = name;
    header.msg_namelen = sizeof name;
    must(recvmsg(b, &header, MSG_CMSG_CLOEXEC) == 1 && header.msg_namelen == 0 && header.msg_flags == MSG_CMSG_CLOEXEC);
    must(!close(a) && !close(b));
}

#ifndef TCP_INQ
#define TCP_INQ 36
#endif

/* Receives into `in`, with `room` bytes for control data; what is said to be left, or -1 where nothing is said. */
static int left_behind(int fd, char *in, size_t bytes, size_t room, int flags, struct msghdr *header)
{
    static char control[64];
    struct iovec into = { in, bytes };
    *header = (struct msghdr){ .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room };
    must(recvmsg(fd, header, flags) >= 0);
    struct cmsghdr *said = CMSG_FIRSTHDR(header);
    if (!said)
        return -1;
    must(said->cmsg_level == IPPROTO_TCP && said->cmsg_type == TCP_INQ && said->cmsg_len == CMSG_LEN(sizeof(int)));
    must(header->msg_controllen == CMSG_SPACE(sizeof(int)) && !CMSG_NXTHDR(header, said));
    int left;
    memcpy(&left, CMSG_DATA(said), sizeof left);
    return left;
}

/* What is left is told beside what came, where the program asks for it (TCP_INQ): gRPC reads no further where that is 0.
 * The end counts as one byte. */
void told_what_is_left(void)
{
    int b, a = connected(&b), one = 1, none = 0, set = epoll_create1(0);
    must(!setsockopt(b, IPPROTO_TCP, TCP_INQ, &one, sizeof one));
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };
    must(!epoll_ctl(set, EPOLL_CTL_ADD, b, &event));
    take_over(a, b);
    char in[100];
    struct msghdr header;
    send_all(a, "0123456789", 10);
    must(epoll_wait(set, &event, 1, 5000) == 1);
    must(left_behind(b, in, 4, 64, MSG_PEEK, &header) == 10);
    must(left_behind(b, in, 4, 64, 0, &header) == 6);
    must(left_behind(b, in, 4, 8, 0, &header) == -1 && header.msg_flags & MSG_CTRUNC && header.msg_controllen == 0);
    must(left_behind(b, in, 2, 64, 0, &header) == 0 && header.msg_flags == 0);
    /* Nobody has met EAGAIN: more is an edge all the same. */
    send_all(a, "more", 4);
    must(epoll_wait(set, &event, 1, 5000) == 1 && event.events == EPOLLIN);
    must(!setsockopt(b, IPPROTO_TCP, TCP_INQ, &none, sizeof none));
    must(left_behind(b, in, 1, 64, 0, &header) == -1 && header.msg_flags == 0);
    must(!setsockopt(b, IPPROTO_TCP, TCP_INQ, &one, sizeof one));
    must(left_behind(b, in, 3, 64, 0, &header) == 0);
    send_all(a, "last", 4);
    must(!shutdown(a, SHUT_WR));
    while (epoll_wait(set, &event, 1, 5000) == 1 && !(event.events & EPOLLRDHUP))
        ;
    must(left_behind(b, in, 100, 64, 0, &header) == 1);
    must(left_behind(b, in, 100, 64, 0, &header) == 1);
    must(!close(a) && !close(b) && !close(set));
}
