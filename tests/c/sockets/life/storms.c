/* Signals and forks in masses, and handlers that use what they have interrupted. */
#include "life.h"

enum { LOAD = 4 << 20, PIECE = 3000 };

/* Every 100 microseconds a signal. */
static void start_ticking(int flags)
{
    struct itimerval often = { { 0, 100 }, { 0, 100 } };
    on(SIGALRM, flags);
    must(!setitimer(ITIMER_REAL, &often, NULL));
}

static void stop_ticking(void)
{
    struct itimerval never = { { 0, 0 }, { 0, 0 } };
    must(!setitimer(ITIMER_REAL, &never, NULL));
    signal(SIGALRM, SIG_DFL);
    alarm(20);
}

static void mirror(int fd)
{
    for (size_t at = 0; at < LOAD; at += PIECE) {
        receive_pattern(fd, at, PIECE);
        send_pattern(fd, at, PIECE);
    }
}

/* What blocks without a limit of time goes on after a handler with SA_RESTART, and stops after one without. */
static void transfer(int fd, int may_stop)
{
    char buffer[PIECE], wanted[PIECE];
    for (size_t at = 0; at < LOAD; at += PIECE) {
        pattern(wanted, at, PIECE);
        for (size_t sent = 0; sent < PIECE;) {
            ssize_t n = send(fd, wanted + sent, PIECE - sent, 0);
            must(n > 0 || (n < 0 && errno == EINTR && may_stop));
            sent += n > 0 ? n : 0;
        }
        for (size_t got = 0; got < PIECE;) {
            ssize_t n = recv(fd, buffer + got, PIECE - got, got % 2 ? MSG_WAITALL : 0);
            must(n > 0 || (n < 0 && errno == EINTR && may_stop));
            got += n > 0 ? n : 0;
        }
        must(!memcmp(buffer, wanted, PIECE));
    }
}

static void storm(int flags, int other_flags)
{
    int fd;
    pid_t child = peer(&fd, mirror);
    signals_seen = 0;
    if (other_flags >= 0)
        on(SIGUSR1, other_flags);
    start_ticking(flags);
    transfer(fd, !(flags & SA_RESTART));
    stop_ticking();
    must(signals_seen > 10);
    ended_well(child);
    must(!close(fd));
}

void signals_that_interrupt(void)
{
    storm(0, -1);
}

void signals_that_restart(void)
{
    storm(SA_RESTART, -1);
}

/* Both kinds of handlers are there; those that come restart. */
void signals_of_both_kinds(void)
{
    storm(SA_RESTART, 0);
}

/* Waits for readiness: they never restart, whatever the handler. */
void signals_under_waits(void)
{
    int fd, set = epoll_create1(0);
    pid_t child = peer(&fd, mirror);
    char buffer[PIECE], wanted[PIECE];
    put(set, EPOLL_CTL_ADD, fd, EPOLLIN);
    start_ticking(SA_RESTART);
    for (size_t at = 0, turn = 0; at < LOAD; at += PIECE) {
        send_pattern(fd, at, PIECE);
        for (size_t got = 0; got < PIECE; turn++) {
            struct epoll_event event;
            struct pollfd one = { .fd = fd, .events = POLLIN };
            int ready = turn % 2 ? epoll_wait(set, &event, 1, -1) : poll(&one, 1, -1);
            must(ready == 1 || (ready == -1 && errno == EINTR));
            ssize_t n = recv(fd, buffer + got, PIECE - got, MSG_DONTWAIT);
            must(n > 0 || (n < 0 && errno == EAGAIN));
            got += n > 0 ? n : 0;
        }
        pattern(wanted, at, PIECE);
        must(!memcmp(buffer, wanted, PIECE));
    }
    stop_ticking();
    ended_well(child);
    must(!close(fd) && !close(set));
}

static void pour(int fd)
{
    send_pattern(fd, 0, LOAD);
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
}

/* A process with connections forks again and again, while the other side sends. */
void forks_in_masses(void)
{
    int fd, other, idle = closing_pair(&other);
    pid_t child = peer(&fd, pour), children[10];
    for (size_t at = 0, step = LOAD / 100; at < 100 * step; at += step) {
        size_t place = at / step % 10;
        children[place] = fork();
        must(children[place] >= 0);
        if (children[place] == 0)
            _exit(0);
        receive_pattern(fd, at, step);
        if (place == 9)
            for (size_t i = 0; i < 10; i++)
                ended_well(children[i]);
    }
    receive_pattern(fd, LOAD / 100 * 100, LOAD % 100);
    send_all(idle, "idle", 4);
    char got[4];
    receive_all(other, got, 4);
    must(!memcmp(got, "idle", 4) && !shutdown(fd, SHUT_WR));
    ended_well(child);
    must(!close(fd) && !close(idle) && !close(other));
}

/* What a handler uses; the main program is in the middle of using the same. */
static int handled_set, handled_end, spare_end;
static volatile sig_atomic_t handled;

static void use_all(int number)
{
    int error = errno;
    struct epoll_event event = { .events = EPOLLIN, .data.fd = spare_end }, found;
    struct pollfd two[2] = { { .fd = handled_set, .events = POLLIN }, { .fd = handled_end, .events = POLLIN } };
    char byte;
    (void)number;
    handled++;
    must(poll(two, 2, 0) >= 0);
    int n = epoll_wait(handled_set, &found, 1, handled % 4 ? 0 : 1);
    must(n >= 0 || errno == EINTR);
    n = recv(handled_end, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    must(n >= 0 || errno == EAGAIN);
    int copy = dup(spare_end);
    must(copy >= 0);
    n = epoll_ctl(handled_set, EPOLL_CTL_ADD, copy, &event);
    must(n == 0 || errno == ENOMEM);
    must(n || !epoll_ctl(handled_set, EPOLL_CTL_DEL, copy, NULL));
    must(!close(copy));
    if (handled % 64 == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        must(child > 0 && waitpid(child, NULL, 0) == child);
    }
    errno = error;
}

/* Handlers do what they may not wait for. */
void handlers_that_use_sets(void)
{
    int b, a = pair(&b), d, c = pair(&d), set = epoll_create1(0);
    struct epoll_event event;
    struct itimerval often = { { 0, 50 }, { 0, 50 } };
    struct sigaction action = { .sa_handler = use_all, .sa_flags = SA_RESTART };
    (handled_set = set, handled_end = b, spare_end = d);
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    must(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
    for (int i = 0; i < 20000 || handled < 500; i++) {
        char byte = (char)i, got;
        put(set, EPOLL_CTL_MOD, b, EPOLLIN);
        while (send(a, &byte, 1, 0) != 1)
            must(errno == EINTR);
        int n;
        do
            n = epoll_wait(set, &event, 1, 1000);
        while ((n == -1 && errno == EINTR) || (n == 1 && event.data.fd != b));
        must(n == 1 && event.data.fd == b);
        while ((n = recv(b, &got, 1, 0)) == -1)
            must(errno == EINTR || errno == EAGAIN);
        must(n == 1 && got == byte);
    }
    stop_ticking();
    must(!close(a) && !close(b) && !close(c) && !close(d) && !close(set));
}
