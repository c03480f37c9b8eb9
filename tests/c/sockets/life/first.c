/* The first bytes of a connection, which are many. */
#include "life.h"

/* How often this thread has gone to sleep by itself, whatever the machine does besides. */
static long sleeps(void)
{
    struct rusage use;
    must(!getrusage(RUSAGE_THREAD, &use));
    return use.ru_nvcsw;
}

/* Connects, and does nothing with it. */
static pid_t silent(int *fd)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 1));
    must(!getsockname(listener, (struct sockaddr *)&address, &length));
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        must(!connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, length));
        for (;;)
            pause();
    }
    must((*fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0 && !close(listener));
    return child;
}

/* A call that does not block hardly pauses for an end that does not come, and room that there is is told again. */
void sent_to_nobody(void)
{
    static char bytes[1 << 20];
    for (int by_edges = 0; by_edges < 2; by_edges++) {
        int fd, set = epoll_create1(0);
        pid_t child = silent(&fd);
        put(set, EPOLL_CTL_ADD, fd, EPOLLOUT | (by_edges ? EPOLLET : 0));
        for (size_t all = 0; all < 100000;) {
            struct epoll_event event;
            must(epoll_wait(set, &event, 1, 5000) == 1 && event.events & EPOLLOUT);
            long before = sleeps();
            ssize_t n = send(fd, bytes, sizeof bytes, 0);
            must(n > 0 && sleeps() - before <= 8);
            all += n;
        }
        must(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child && !close(fd) && !close(set));
    }
}

/* Of several messages none goes before the rest of the one before it. */
void sent_in_messages(void)
{
    static char bytes[100000];
    int fd;
    pid_t child = silent(&fd);
    struct iovec pieces[2] = { { bytes, sizeof bytes }, { bytes, sizeof bytes } };
    struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &pieces[0], .msg_iovlen = 1 } },
                                   { .msg_hdr = { .msg_iov = &pieces[1], .msg_iovlen = 1 } } };
    int sent = sendmmsg(fd, messages, 2, 0);
    must(sent == 1 || (sent == 2 && messages[0].msg_len == sizeof bytes));
    must(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child && !close(fd));
}

/* The only thread sends much to itself, and does not wait for anybody to read. */
void sent_to_itself(void)
{
    static char bytes[100000], got[sizeof bytes];
    for (int from_accepted = 0; from_accepted < 2; from_accepted++) {
        int ends[2];
        ends[0] = connected(&ends[1]);
        pattern(bytes, 0, sizeof bytes);
        long before = sleeps();
        send_all(ends[from_accepted], bytes, sizeof bytes);
        must(sleeps() - before <= 10);
        receive_all(ends[!from_accepted], got, sizeof got);
        must(!memcmp(bytes, got, sizeof got) && !close(ends[0]) && !close(ends[1]));
    }
}
