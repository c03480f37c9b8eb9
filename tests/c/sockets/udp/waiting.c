/* Who waits, and is woken. */
#include "udp.h"

static void on_signal(int number)
{
    (void)number;
    signals_seen++;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

struct late_datagram {
    struct pair *pair;
    int microseconds;
    pthread_t signalled;
};

static void *send_late(void *argument)
{
    struct late_datagram *later = argument;
    usleep(later->microseconds);
    if (later->signalled) {
        pthread_kill(later->signalled, SIGUSR1);
        usleep(later->microseconds);
    }
    to_b(later->pair, "late", 4);
    return NULL;
}

void nonblocking(void)
{
    struct pair p = pair_of(AF_INET, 0);
    char in[10];
    must(!fcntl(p.b, F_SETFL, O_NONBLOCK));
    must(recv(p.b, in, 10, 0) == -1 && errno == EAGAIN);
    to_b(&p, "here", 4);
    must(recv(p.b, in, 10, 0) == 4);
    for (int i = 0; i < 1000; i++) {
        to_b(&p, &i, 4);
        int got = -1;
        while (recv(p.b, &got, 4, 0) != 4)
            must(errno == EAGAIN);
        must(got == i);
    }
}

void time_limits(void)
{
    struct pair p = pair_of(AF_INET, 0);
    struct timeval limit = { 0, 50000 };
    char in[10];
    must(!setsockopt(p.b, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    double start = now();
    must(recv(p.b, in, 10, 0) == -1 && errno == EAGAIN && now() - start > 0.04);
    struct late_datagram later = { &p, 10000, 0 };
    pthread_t thread;
    must(!pthread_create(&thread, NULL, send_late, &later));
    must(recv(p.b, in, 10, 0) == 4 && !pthread_join(thread, NULL));
    exchange(&p, 100);
}

void interrupted(void)
{
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
        must(!sigaction(SIGUSR1, &action, NULL));
        struct pair p = pair_of(AF_INET, 0);
        struct late_datagram later = { &p, 20000, pthread_self() };
        pthread_t thread;
        char in[10];
        signals_seen = 0;
        must(!pthread_create(&thread, NULL, send_late, &later));
        if (flags) {
            must(recv(p.b, in, 10, 0) == 4 && signals_seen == 1);
        } else {
            must(recv(p.b, in, 10, 0) == -1 && errno == EINTR && signals_seen == 1);
            must(recv(p.b, in, 10, 0) == 4);
        }
        must(!pthread_join(thread, NULL));
    }
}

void polled(void)
{
    struct pair p = pair_of(AF_INET, 0);
    struct pollfd two[2] = { { p.a, POLLIN, 0 }, { p.b, POLLIN | POLLOUT, 0 } };
    char in[10];
    must(poll(two, 2, 0) == 1 && two[0].revents == 0 && two[1].revents == POLLOUT);
    to_b(&p, "x", 1);
    must(poll(two, 2, 0) == 1 && two[1].revents == (POLLIN | POLLOUT));
    must(recv(p.b, in, 10, 0) == 1);
    two[1].events = POLLIN;
    must(poll(two, 2, 10) == 0);
    for (int i = 0; i < 2000; i++) {
        to_b(&p, &i, 4);
        must(poll(two, 2, 1000) == 1 && two[1].revents == POLLIN && recv(p.b, in, 10, MSG_DONTWAIT) == 4);
        to_a(&p, &i, 4);
        must(poll(two, 2, 1000) == 1 && two[0].revents == POLLIN && recv(p.a, in, 10, MSG_DONTWAIT) == 4);
    }
}

void polled_asleep(void)
{
    struct pair p = pair_of(AF_INET, 0);
    for (int i = 0; i < 20; i++) {
        struct pollfd two[2] = { { p.a, POLLIN, 0 }, { p.b, POLLIN, 0 } };
        struct late_datagram later = { &p, i % 2 ? 3000 : 30, 0 };
        pthread_t thread;
        char in[10];
        must(!pthread_create(&thread, NULL, send_late, &later));
        must(poll(two, 2, 5000) == 1 && two[1].revents == POLLIN && !pthread_join(thread, NULL));
        must(recv(p.b, in, 10, 0) == 4);
    }
}

void selected(void)
{
    struct pair p = pair_of(AF_INET, 0);
    for (int i = 0; i < 20; i++) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(p.a, &set);
        FD_SET(p.b, &set);
        struct late_datagram later = { &p, i % 2 ? 3000 : 30, 0 };
        struct timeval limit = { 5, 0 };
        pthread_t thread;
        char in[10];
        must(!pthread_create(&thread, NULL, send_late, &later));
        must(select(1024, &set, NULL, NULL, &limit) == 1 && FD_ISSET(p.b, &set) && !FD_ISSET(p.a, &set));
        must(!pthread_join(thread, NULL) && recv(p.b, in, 10, 0) == 4);
    }
}

static int set_of(struct pair *p, unsigned events)
{
    int set = epoll_create1(0);
    struct epoll_event of_a = { events, { .fd = p->a } }, of_b = { events, { .fd = p->b } };
    must(!epoll_ctl(set, EPOLL_CTL_ADD, p->a, &of_a) && !epoll_ctl(set, EPOLL_CTL_ADD, p->b, &of_b));
    return set;
}

void sets(void)
{
    struct pair p = pair_of(AF_INET, 0);
    int set = set_of(&p, EPOLLIN);
    struct epoll_event seen[4];
    char in[10];
    must(epoll_wait(set, seen, 4, 10) == 0);
    for (int i = 0; i < 2000; i++) {
        to_b(&p, &i, 4);
        must(epoll_wait(set, seen, 4, 1000) == 1 && seen[0].data.fd == p.b && seen[0].events == EPOLLIN);
        must(epoll_wait(set, seen, 4, 1000) == 1);
        must(recv(p.b, in, 10, MSG_DONTWAIT) == 4);
        to_a(&p, &i, 4);
        must(epoll_wait(set, seen, 4, 1000) == 1 && seen[0].data.fd == p.a && recv(p.a, in, 10, MSG_DONTWAIT) == 4);
    }
    must(epoll_wait(set, seen, 4, 0) == 0);
}

void edges(void)
{
    struct pair p = pair_of(AF_INET, 0);
    int set = set_of(&p, EPOLLIN | EPOLLET);
    struct epoll_event seen[4];
    char in[10];
    epoll_wait(set, seen, 4, 0);
    for (int i = 0; i < 500; i++) {
        to_b(&p, &i, 4);
        must(epoll_wait(set, seen, 4, 1000) == 1 && seen[0].data.fd == p.b);
        must(epoll_wait(set, seen, 4, 0) == 0);
        to_b(&p, &i, 4);
        must(epoll_wait(set, seen, 4, 1000) == 1);
        must(recv(p.b, in, 10, MSG_DONTWAIT) == 4 && recv(p.b, in, 10, MSG_DONTWAIT) == 4);
        must(recv(p.b, in, 10, MSG_DONTWAIT) == -1);
    }
    struct epoll_event once = { EPOLLIN | EPOLLONESHOT, { .fd = p.b } };
    for (int i = 0; i < 500; i++) {
        must(!epoll_ctl(set, EPOLL_CTL_MOD, p.b, &once));
        to_b(&p, &i, 4);
        must(epoll_wait(set, seen, 4, 1000) == 1 && seen[0].data.fd == p.b && recv(p.b, in, 10, 0) == 4);
        to_b(&p, &i, 4);
        must(epoll_wait(set, seen, 4, 0) == 0 && recv(p.b, in, 10, 0) == 4);
    }
}

void sets_asleep(void)
{
    struct pair p = pair_of(AF_INET, 0);
    int set = set_of(&p, EPOLLIN);
    struct epoll_event seen[4];
    for (int i = 0; i < 20; i++) {
        struct late_datagram later = { &p, i % 2 ? 3000 : 30, 0 };
        pthread_t thread;
        char in[10];
        must(!pthread_create(&thread, NULL, send_late, &later));
        must(epoll_wait(set, seen, 4, 5000) == 1 && seen[0].data.fd == p.b && !pthread_join(thread, NULL));
        must(recv(p.b, in, 10, 0) == 4);
        exchange(&p, 3);
    }
}

struct sleeper {
    int set, got;
};

static void *sleeps(void *argument)
{
    struct sleeper *sleeper = argument;
    struct epoll_event seen;
    sleeper->got = epoll_wait(sleeper->set, &seen, 1, 5000);
    return NULL;
}

/* Somebody sleeps on a set when the sockets in it get their rings. */
void registered_later(void)
{
    struct pair p;
    p.a = on_loopback(AF_INET, &p.at_a);
    p.b = on_loopback(AF_INET, &p.at_b);
    int set = epoll_create1(0);
    struct epoll_event edge = { EPOLLIN | EPOLLET, { .fd = p.b } }, seen;
    struct sleeper sleeper = { epoll_create1(0), -1 };
    must(!epoll_ctl(set, EPOLL_CTL_ADD, p.b, &edge));
    int silent = socket(AF_INET, SOCK_DGRAM, 0);
    edge.data.fd = silent;
    edge.events = EPOLLPRI;
    must(!epoll_ctl(sleeper.set, EPOLL_CTL_ADD, silent, &edge));
    pthread_t thread;
    must(!pthread_create(&thread, NULL, sleeps, &sleeper));
    exchange(&p, 10);
    until_by_ring(p.a, p.b, &p.at_b);
    exchange(&p, 20);
    edge.data.fd = p.b;
    edge.events = EPOLLIN;
    must(!epoll_ctl(sleeper.set, EPOLL_CTL_ADD, p.b, &edge));
    usleep(1000);
    to_b(&p, "wake", 4);
    must(!pthread_join(thread, NULL) && sleeper.got == 1);
    must(epoll_wait(set, &seen, 1, 1000) == 1);
}

static int stopped;

static void *echoes(void *argument)
{
    struct pair *p = argument;
    for (;;) {
        int got;
        must(recv(p->b, &got, 4, 0) == 4);
        if (got < 0)
            return NULL;
        __atomic_fetch_add(&stopped, 1, __ATOMIC_SEQ_CST);
        to_a(p, &got, 4);
    }
}

/* Two threads receive on one socket: each datagram reaches one of them, and none waits for the other's next call. */
void two_threads(void)
{
    struct pair p = pair_of(AF_INET, 0);
    pthread_t threads[2];
    int end = -1;
    for (int i = 0; i < 2; i++)
        must(!pthread_create(&threads[i], NULL, echoes, &p));
    for (int i = 0; i < 3000; i++) {
        int got = -1;
        to_b(&p, &i, 4);
        must(recv(p.a, &got, 4, 0) == 4 && got == i);
        if (i % 100 == 0)
            usleep(300);
    }
    for (int i = 0; i < 2; i++) {
        to_b(&p, &end, 4);
    }
    for (int i = 0; i < 2; i++)
        must(!pthread_join(threads[i], NULL));
    must(stopped == 3000);
}
