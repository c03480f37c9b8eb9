/* What a program may see of TCP sockets, one case each; run with and without the library, it must see the same.
 *
 *   behaviour CASE... | all
 *
 * Both ends are in this process, or in a child of it. Prints one line per case. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *name = "?";

#define must(condition)                                                                              \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "behaviour: %s: line %d: %s (%s)\n", name, __LINE__, #condition, strerror(errno)); \
            _exit(1);                                                                                \
        }                                                                                            \
    } while (0)

static int connected(int *other)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 4));
    must(!getsockname(listener, (struct sockaddr *)&address, &length));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(!connect(fd, (struct sockaddr *)&address, length));
    *other = accept(listener, NULL, NULL);
    must(*other >= 0 && !close(listener));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(*other, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void send_all(int fd, const void *from, size_t bytes)
{
    must(send(fd, from, bytes, 0) == (ssize_t)bytes);
}

static void receive_all(int fd, void *into, size_t bytes)
{
    must(recv(fd, into, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

/* Enough calls each way for the library to take the connection over. */
static void warm(int a, int b)
{
    char byte = 'w', got;
    for (int i = 0; i < 40; i++) {
        send_all(a, &byte, 1);
        receive_all(b, &got, 1);
        send_all(b, &byte, 1);
        receive_all(a, &got, 1);
        if (i > 8)
            usleep(100);
    }
}

static int pair(int *other)
{
    int fd = connected(other);
    warm(fd, *other);
    return fd;
}

static pid_t peer(int *fd, void (*role)(int))
{
    int other;
    *fd = connected(&other);
    pid_t child = fork();
    if (child == 0) {
        close(*fd);
        char byte;
        for (int i = 0; i < 40; i++) {
            receive_all(other, &byte, 1);
            send_all(other, &byte, 1);
        }
        role(other);
        _exit(0);
    }
    close(other);
    for (int i = 0; i < 40; i++) {
        char byte = 'p';
        send_all(*fd, &byte, 1);
        receive_all(*fd, &byte, 1);
        if (i > 8)
            usleep(100);
    }
    return child;
}

static void ended_well(pid_t child)
{
    int status;
    must(waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void end_follows_data(void)
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

static void closed_peer_gives_epipe(void)
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

static volatile sig_atomic_t signals_seen;

static void on_signal(int number)
{
    (void)number;
    signals_seen++;
}

static void on(int number, int flags)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
    must(!sigaction(number, &action, NULL));
}

static void broken_pipe_signal(void)
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

static void timeouts(void)
{
    int b, a = pair(&b);
    struct timeval time = { .tv_usec = 30000 };
    char byte;
    must(!setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    must(recv(a, &byte, 1, 0) == -1 && errno == EAGAIN);
    send_all(b, "y", 1);
    must(recv(a, &byte, 1, 0) == 1 && byte == 'y');
    must(recv(a, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    must(!fcntl(a, F_SETFL, O_NONBLOCK) && recv(a, &byte, 1, 0) == -1 && errno == EAGAIN);
    int off = 0;
    must(!ioctl(a, FIONBIO, &off) && recv(a, &byte, 1, 0) == -1 && errno == EAGAIN);
    must(!setsockopt(a, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time));
    char *big = calloc(1, 64 << 20);
    ssize_t sent = send(a, big, 64 << 20, 0);
    must(sent > 0 && sent < 64 << 20);
    must(send(a, big, 64 << 20, 0) == -1 && errno == EAGAIN);
    free(big);
    close(a);
    close(b);
}

struct later {
    int fd;
    int microseconds;
    pthread_t thread;
    int signal;
};

static void *send_later(void *argument)
{
    struct later *later = argument;
    usleep(later->microseconds);
    if (later->signal) {
        pthread_kill(later->thread, later->signal);
        usleep(later->microseconds);
    }
    send_all(later->fd, "z", 1);
    return NULL;
}

static ssize_t receive_beside(int fd, int other, int signal)
{
    struct later later = { other, 20000, pthread_self(), signal };
    pthread_t thread;
    char byte;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    must(!pthread_create(&thread, NULL, send_later, &later));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ssize_t n = recv(fd, &byte, 1, 0);
    int error = errno;
    pthread_join(thread, NULL);
    if (n < 0)
        receive_all(fd, &byte, 1);
    errno = error;
    return n;
}

static void interrupted(void)
{
    int b, a = pair(&b);
    signals_seen = 0;
    on(SIGUSR1, SA_RESTART);
    must(receive_beside(a, b, SIGUSR1) == 1 && signals_seen == 1);
    on(SIGUSR2, 0);
    must(receive_beside(a, b, SIGUSR1) == 1 && signals_seen == 2);
    must(receive_beside(a, b, SIGUSR2) == -1 && errno == EINTR && signals_seen == 3);
    must(receive_beside(a, b, SIGUSR1) == 1 && signals_seen == 4);
    signal(SIGUSR1, SIG_DFL);
    must(receive_beside(a, b, SIGUSR2) == -1 && errno == EINTR && signals_seen == 5);
    signal(SIGUSR2, SIG_DFL);
    close(a);
    close(b);
}

static void flags(void)
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

static void urgent(void)
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

static void duplicates(void)
{
    int b, a = pair(&b);
    char buffer[10];
    int copy = dup(a), high = fcntl(a, F_DUPFD, 100);
    must(high >= 100);
    send_all(b, "1234", 4);
    receive_all(copy, buffer, 2);
    receive_all(high, buffer + 2, 2);
    must(!memcmp(buffer, "1234", 4));
    close(a);
    send_all(copy, "from copy", 9);
    receive_all(b, buffer, 9);
    must(!fcntl(high, F_SETFL, O_NONBLOCK) && recv(copy, buffer, 1, 0) == -1 && errno == EAGAIN);
    must(dup2(b, copy) == copy);
    send_all(high, "over", 4);
    receive_all(copy, buffer, 4);
    close(copy);
    close_range(100, 200, 0);
    must(recv(b, buffer, 1, 0) == 0);
    close(b);
}

static void echo(int fd)
{
    char buffer[1000];
    for (;;) {
        ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        must(n >= 0);
        if (n == 0)
            return;
        send_all(fd, buffer, n);
    }
}

static void talk(int fd, int rounds)
{
    char buffer[100], back[100];
    for (int i = 0; i < rounds; i++) {
        snprintf(buffer, sizeof buffer, "round %d of the talk.............\n", i);
        size_t length = strlen(buffer);
        send_all(fd, buffer, length);
        receive_all(fd, back, length);
        must(!memcmp(buffer, back, length));
    }
}

static void forked(void)
{
    int fd;
    pid_t child = peer(&fd, echo);
    talk(fd, 100);
    pid_t second = fork();
    if (second == 0) {
        talk(fd, 100);
        _exit(0);
    }
    ended_well(second);
    talk(fd, 100);
    second = fork();
    if (second == 0) {
        close(fd);
        _exit(0);
    }
    ended_well(second);
    talk(fd, 100);
    must(!shutdown(fd, SHUT_WR));
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
    ended_well(child);
    close(fd);
}

static void run_cat(int fd)
{
    dup2(fd, 0);
    dup2(fd, 1);
    close(fd);
    execl("/bin/cat", "cat", NULL);
    _exit(9);
}

static void executed(void)
{
    int fd;
    pid_t child = peer(&fd, run_cat);
    talk(fd, 100);
    must(!shutdown(fd, SHUT_WR));
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
    ended_well(child);
    close(fd);
}

static void spawn_cat(int fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 0);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    char *arguments[] = { "cat", NULL };
    pid_t cat;
    must(!posix_spawn(&cat, "/bin/cat", &actions, NULL, arguments, environ));
    close(fd);
    ended_well(cat);
}

static void spawned(void)
{
    int fd;
    pid_t child = peer(&fd, spawn_cat);
    talk(fd, 100);
    must(!shutdown(fd, SHUT_WR));
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
    ended_well(child);
    close(fd);
}

static void stdio_echo(int fd)
{
    FILE *file = fdopen(fd, "r+");
    char line[200];
    setvbuf(file, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, file))
        must(dprintf(fd, "%s", line) == (int)strlen(line));
    fclose(file);
}

static void standard_io(void)
{
    int fd;
    pid_t child = peer(&fd, stdio_echo);
    talk(fd, 50);
    must(!shutdown(fd, SHUT_WR));
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
    ended_well(child);
    close(fd);
}

static void pass_on(int fd)
{
    int both[2];
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, both));
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        char byte, room[CMSG_SPACE(sizeof(int))];
        struct iovec piece = { &byte, 1 };
        struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
        must(recvmsg(both[1], &header, 0) == 1);
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
        echo(fd);
        _exit(0);
    }
    char room[CMSG_SPACE(sizeof(int))] = "";
    struct iovec piece = { "x", 1 };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    struct cmsghdr *message = CMSG_FIRSTHDR(&header);
    *message = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd) };
    memcpy(CMSG_DATA(message), &fd, sizeof fd);
    must(sendmsg(both[0], &header, 0) == 1);
    close(fd);
    ended_well(child);
}

static void passed(void)
{
    int fd;
    pid_t child = peer(&fd, pass_on);
    talk(fd, 100);
    must(!shutdown(fd, SHUT_WR));
    ended_well(child);
    close(fd);
}

static void killed(int fd)
{
    char *buffer = malloc(100000);
    memset(buffer, 'k', 100000);
    send_all(fd, buffer, 100000);
    kill(getpid(), SIGKILL);
}

static void peer_killed(void)
{
    int fd;
    pid_t child = peer(&fd, killed);
    char buffer[100000];
    waitpid(child, NULL, 0);
    receive_all(fd, buffer, sizeof buffer);
    for (size_t i = 0; i < sizeof buffer; i++)
        must(buffer[i] == 'k');
    must(recv(fd, buffer, 1, 0) == 0);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 1000 && send(fd, buffer, 100, 0) == 100; i++)
        usleep(1000);
    must(errno == EPIPE || errno == ECONNRESET);
    close(fd);
}

static void *shut_later(void *argument)
{
    usleep(30000);
    must(!shutdown(*(int *)argument, SHUT_RDWR));
    return NULL;
}

static void shut_by_a_thread(void)
{
    int b, a = pair(&b);
    pthread_t thread;
    char byte;
    must(!pthread_create(&thread, NULL, shut_later, &a));
    must(recv(a, &byte, 1, 0) == 0);
    pthread_join(thread, NULL);
    must(recv(b, &byte, 1, 0) == 0);
    close(a);
    close(b);
}

static void *block_for_ever(void *argument)
{
    char byte;
    recv(*(int *)argument, &byte, 1, 0);
    return NULL;
}

static void cancelled(void)
{
    int b, a = pair(&b);
    pthread_t thread;
    void *answer;
    must(!pthread_create(&thread, NULL, block_for_ever, &a));
    usleep(30000);
    must(!pthread_cancel(thread) && !pthread_join(thread, &answer) && answer == PTHREAD_CANCELED);
    talk(a, 0);
    send_all(a, "still", 5);
    char buffer[5];
    receive_all(b, buffer, 5);
    close(a);
    close(b);
}

static size_t fill_up(int fd)
{
    static char buffer[4096];
    size_t all = 0;
    for (;;) {
        ssize_t n = send(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n < 0) {
            must(errno == EAGAIN);
            return all;
        }
        all += n;
    }
}

static void drain(int fd, size_t bytes)
{
    static char buffer[65536];
    while (bytes > 0) {
        ssize_t n = recv(fd, buffer, bytes < sizeof buffer ? bytes : sizeof buffer, 0);
        must(n > 0);
        bytes -= n;
    }
}

static void readiness(void)
{
    int b, a = pair(&b);
    struct pollfd two[2] = { { .fd = a, .events = POLLIN | POLLOUT }, { .fd = b, .events = POLLIN } };
    must(poll(two, 2, 0) == 1 && two[0].revents == POLLOUT && two[1].revents == 0);
    send_all(a, "x", 1);
    must(poll(two + 1, 1, 1000) == 1 && two[1].revents == POLLIN);
    char byte;
    receive_all(b, &byte, 1);
    size_t all = fill_up(a);
    must(poll(two, 1, 20) == 0);
    fd_set reading, writing;
    FD_ZERO(&reading);
    FD_ZERO(&writing);
    FD_SET(b, &reading);
    FD_SET(a, &writing);
    struct timeval time = { .tv_sec = 1 };
    must(select(b + 1 > a ? b + 1 : a + 1, &reading, &writing, NULL, &time) == 1);
    must(FD_ISSET(b, &reading) && !FD_ISSET(a, &writing));
    drain(b, all);
    must(poll(two, 1, 1000) == 1 && two[0].revents == POLLOUT);
    close(b);
    must(poll(two, 1, 1000) == 1 && two[0].revents & POLLIN);
    must(recv(a, &byte, 1, 0) == 0);
    close(a);
}

static int wait_events(int set, struct epoll_event *events, int timeout)
{
    return epoll_wait(set, events, 8, timeout);
}

static void sets(void)
{
    int b, a = connected(&b), set = epoll_create1(0), more[2];
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = 0x1234567890abcdef }, events[8];
    must(!epoll_ctl(set, EPOLL_CTL_ADD, b, &event));
    warm(a, b);
    must(wait_events(set, events, 0) == 0 && wait_events(set, events, 20) == 0);
    send_all(a, "xy", 2);
    for (int i = 0; i < 3; i++)
        must(wait_events(set, events, 1000) == 1 && events[0].events == EPOLLIN && events[0].data.u64 == event.data.u64);
    drain(b, 1);
    must(wait_events(set, events, 1000) == 1);
    drain(b, 1);
    must(wait_events(set, events, 0) == 0);
    /* Beside a descriptor of another kind. */
    must(!pipe(more));
    struct epoll_event other = { .events = EPOLLIN, .data.u64 = 5 };
    must(!epoll_ctl(set, EPOLL_CTL_ADD, more[0], &other));
    must(write(more[1], "p", 1) == 1);
    must(wait_events(set, events, 1000) == 1 && events[0].data.u64 == 5);
    send_all(a, "x", 1);
    int seen = 0;
    for (int i = 0; i < 20 && seen != 3; i++)
        for (int n = wait_events(set, events, 1000); n > 0; n--)
            seen |= events[n - 1].data.u64 == 5 ? 1 : 2;
    must(seen == 3);
    drain(b, 1);
    must(!epoll_ctl(set, EPOLL_CTL_DEL, more[0], NULL));
    /* Room. */
    event.events = EPOLLOUT;
    must(!epoll_ctl(set, EPOLL_CTL_MOD, b, &event));
    must(wait_events(set, events, 0) == 1 && events[0].events == EPOLLOUT);
    size_t all = fill_up(b);
    must(wait_events(set, events, 20) == 0);
    drain(a, all);
    must(wait_events(set, events, 1000) == 1 && events[0].events == EPOLLOUT);
    /* The end. */
    event.events = EPOLLIN | EPOLLRDHUP;
    must(!epoll_ctl(set, EPOLL_CTL_MOD, b, &event));
    send_all(a, "end", 3);
    close(a);
    usleep(1000);
    for (int i = 0; i < 100 && !(events[0].events & EPOLLRDHUP); i++)
        must(wait_events(set, events, 1000) == 1 && events[0].events & EPOLLIN);
    must(events[0].events & EPOLLRDHUP);
    drain(b, 3);
    must(wait_events(set, events, 1000) == 1 && events[0].events & EPOLLIN);
    char byte;
    must(recv(b, &byte, 1, 0) == 0);
    must(!epoll_ctl(set, EPOLL_CTL_DEL, b, &event));
    must(epoll_ctl(set, EPOLL_CTL_DEL, b, &event) == -1 && errno == ENOENT);
    close(b);
    close(set);
}

static void edges(void)
{
    int b, a = pair(&b), set = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, .data.fd = b }, events[8];
    must(!epoll_ctl(set, EPOLL_CTL_ADD, b, &event));
    must(wait_events(set, events, 1000) == 1 && events[0].events == EPOLLOUT);
    must(wait_events(set, events, 20) == 0);
    send_all(a, "one", 3);
    must(wait_events(set, events, 1000) == 1 && events[0].events & EPOLLIN);
    must(wait_events(set, events, 20) == 0);
    send_all(a, "two", 3);
    must(wait_events(set, events, 1000) == 1 && events[0].events & EPOLLIN);
    drain(b, 6);
    must(wait_events(set, events, 20) == 0);
    size_t all = fill_up(b);
    must(wait_events(set, events, 20) == 0);
    drain(a, all);
    must(wait_events(set, events, 1000) == 1 && events[0].events & EPOLLOUT);
    must(wait_events(set, events, 20) == 0);
    /* One shot. */
    event.events = EPOLLIN | EPOLLONESHOT;
    must(!epoll_ctl(set, EPOLL_CTL_MOD, b, &event));
    send_all(a, "x", 1);
    must(wait_events(set, events, 1000) == 1 && events[0].events == EPOLLIN);
    send_all(a, "x", 1);
    must(wait_events(set, events, 20) == 0);
    must(!epoll_ctl(set, EPOLL_CTL_MOD, b, &event));
    must(wait_events(set, events, 1000) == 1 && events[0].events == EPOLLIN);
    must(wait_events(set, events, 20) == 0);
    drain(b, 2);
    must(!epoll_ctl(set, EPOLL_CTL_MOD, b, &event));
    must(wait_events(set, events, 20) == 0);
    close(a);
    must(wait_events(set, events, 1000) == 1 && events[0].events & EPOLLIN);
    close(b);
    close(set);
}

static void nested_sets(void)
{
    int b, a = pair(&b), inner = epoll_create1(0), outer = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = b }, events[8];
    must(!epoll_ctl(inner, EPOLL_CTL_ADD, b, &event));
    event.data.fd = inner;
    must(!epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event));
    struct pollfd one = { .fd = outer, .events = POLLIN };
    must(wait_events(outer, events, 20) == 0 && poll(&one, 1, 20) == 0);
    struct later later = { .fd = a, .microseconds = 20000 };
    pthread_t thread;
    must(!pthread_create(&thread, NULL, send_later, &later));
    must(wait_events(outer, events, 5000) == 1 && events[0].data.fd == inner && events[0].events == EPOLLIN);
    must(poll(&one, 1, 0) == 1);
    must(wait_events(inner, events, 0) == 1 && events[0].data.fd == b);
    pthread_join(thread, NULL);
    drain(b, 1);
    must(wait_events(outer, events, 20) == 0 && poll(&one, 1, 20) == 0);
    must(!pthread_create(&thread, NULL, send_later, &later));
    must(poll(&one, 1, 5000) == 1);
    pthread_join(thread, NULL);
    drain(b, 1);
    close(a);
    close(b);
    close(inner);
    close(outer);
}

static void files(void)
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

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    { "end_follows_data", end_follows_data },
    { "closed_peer_gives_epipe", closed_peer_gives_epipe },
    { "broken_pipe_signal", broken_pipe_signal },
    { "timeouts", timeouts },
    { "interrupted", interrupted },
    { "flags", flags },
    { "urgent", urgent },
    { "duplicates", duplicates },
    { "forked", forked },
    { "executed", executed },
    { "spawned", spawned },
    { "standard_io", standard_io },
    { "passed", passed },
    { "peer_killed", peer_killed },
    { "shut_by_a_thread", shut_by_a_thread },
    { "cancelled", cancelled },
    { "readiness", readiness },
    { "sets", sets },
    { "edges", edges },
    { "nested_sets", nested_sets },
    { "files", files },
};

int main(int argc, char **argv)
{
    int failed = 0, run = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int wanted = argc > 1 && !strcmp(argv[1], "all");
        for (int at = 1; at < argc; at++)
            wanted |= !strcmp(argv[at], cases[i].name);
        if (!wanted)
            continue;
        run++;
        name = cases[i].name;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            cases[i].run();
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        printf("%s: %s (%d)\n", name, status ? "FAILED" : "passed", status);
        failed += status != 0;
    }
    return failed || !run;
}
