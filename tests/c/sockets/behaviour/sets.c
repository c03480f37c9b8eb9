/* poll, select and epoll. */
#include "behaviour.h"

void readiness(void)
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

void sets(void)
{
    int b, a = connected(&b), set = epoll_create1(0), more[2];
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = 0x1234567890abcdef }, events[8];
    must(!epoll_ctl(set, EPOLL_CTL_ADD, b, &event));
    take_over(a, b);
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

void edges(void)
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

void nested_sets(void)
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

/* Nobody starves, however short the answers and however busy one of them. */
void short_answers(void)
{
    int b, a = pair(&b), set = epoll_create1(0), more[2];
    struct epoll_event event;
    must(!pipe(more) && write(more[1], "p", 1) == 1);
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    put(set, EPOLL_CTL_ADD, more[0], EPOLLIN);
    send_all(a, "x", 1);
    for (int round = 0; round < 10; round++)
        for (int seen = 0, i = 0; seen != 3; i++) {
            must(i < 100 && epoll_wait(set, &event, 1, 1000) == 1);
            seen |= event.data.fd == b ? 1 : 2;
        }
    must(!close(a) && !close(b) && !close(set));
}

/* All that is ready is told of in one call, as far as there is room, however much it is. */
void long_answers(void)
{
    enum { PIPES = 5000 };
    struct rlimit limit;
    int b, a = pair(&b), set = epoll_create1(0), more[2];
    static struct epoll_event events[PIPES + 2];
    static char told[PIPES * 2 + 1000];
    must(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max > PIPES + 100);
    limit.rlim_cur = limit.rlim_max;
    must(!setrlimit(RLIMIT_NOFILE, &limit));
    must(!pipe(more) && write(more[1], "p", 1) == 1);
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    for (int i = 0; i < PIPES; i++)
        put(set, EPOLL_CTL_ADD, dup(more[0]), EPOLLIN);
    must(epoll_wait(set, events, PIPES + 2, 1000) == PIPES);
    send_all(a, "x", 1);
    for (int round = 0; round < 3; round++) {
        memset(told, 0, sizeof told);
        must(epoll_wait(set, events, PIPES + 2, 1000) == PIPES + 1);
        for (int i = 0; i < PIPES + 1; i++)
            must(!told[events[i].data.fd]++ && events[i].events == EPOLLIN);
        must(told[b]);
    }
    must(epoll_wait(set, events, PIPES - 1, 1000) == PIPES - 1);
}

/* A list may have as many places as the process may have descriptors. */
void longest_list(void)
{
    struct rlimit limit;
    struct pollfd list[256];
    int b, a = pair(&b);
    must(!getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = sizeof list / sizeof *list;
    must(!setrlimit(RLIMIT_NOFILE, &limit));
    for (size_t i = 0; i < limit.rlim_cur; i++)
        list[i] = (struct pollfd){ .fd = i ? -1 : b, .events = POLLIN };
    must(poll(list, limit.rlim_cur, 20) == 0);
    struct later later = { .fd = a, .microseconds = 20000 };
    pthread_t thread;
    must(!pthread_create(&thread, NULL, send_later, &later));
    must(poll(list, limit.rlim_cur, 5000) == 1 && list[0].revents == POLLIN);
    must(!pthread_join(thread, NULL));
}

/* An end is nothing that was asked for, and no reason for select to return. */
void select_beside_an_end(void)
{
    int b, a = pair(&b), d, c = pair(&d);
    char byte;
    close(a);
    must(recv(b, &byte, 1, 0) == 0 && !shutdown(b, SHUT_RDWR));
    struct pollfd one = { .fd = b };
    must(poll(&one, 1, 1000) == 1 && one.revents == POLLHUP);
    fd_set reading, other;
    FD_ZERO(&reading);
    FD_ZERO(&other);
    FD_SET(d, &reading);
    FD_SET(b, &other);
    struct later later = { .fd = c, .microseconds = 20000 };
    struct timeval time = { .tv_sec = 5 };
    pthread_t thread;
    must(!pthread_create(&thread, NULL, send_later, &later));
    must(select((b > d ? b : d) + 1, &reading, NULL, &other, &time) == 1);
    must(FD_ISSET(d, &reading) && !FD_ISSET(b, &other));
    must(!pthread_join(thread, NULL));
}

/* Bytes from before the switch to the ring, and behind them some that came before anybody slept on the set. */
void behind_the_kernel(void)
{
    enum { BYTES = 60 };
    int b, a = connected(&b), set = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN }, events[8];
    must(!epoll_ctl(set, EPOLL_CTL_ADD, b, &event));
    for (int i = 0; i < BYTES; i++) {
        char byte;
        send_all(a, "x", 1);
        send_all(b, "y", 1);
        receive_all(a, &byte, 1);
        if (i > 8)
            usleep(100);
    }
    for (int i = 0; i < BYTES; i++) {
        must(wait_events(set, events, 2000) == 1 && events[0].events == EPOLLIN);
        drain(b, 1);
    }
    must(wait_events(set, events, 0) == 0);
}
