/* Sets inside of sets, with threads that sleep on both. */
#include "behaviour.h"

/* Who gets up takes nothing from those who sleep on a set that came in later. */
void put_into_a_set_beside(void)
{
    int b, a = pair(&b), d, c = pair(&d), inner = epoll_create1(0), outer = epoll_create1(0);
    struct sleeper x, y;
    put(inner, EPOLL_CTL_ADD, b, EPOLLIN);
    put(outer, EPOLL_CTL_ADD, d, EPOLLIN);
    lie_down_for(&x, outer, 400);
    lie_down_for(&y, inner, 5000);
    put(outer, EPOLL_CTL_ADD, inner, EPOLLIN);
    must(!pthread_join(x.thread, NULL) && x.count == 0);
    send_all(a, "x", 1);
    woken(&y);
    must(y.event.data.fd == b);
    close(c);
}

/* A thread that sleeps on the outer set and one on the inner are both told, and neither takes the byte. */
void told_on_two_levels(void)
{
    int b, a = pair(&b), inner = epoll_create1(0), outer = epoll_create1(0);
    put(inner, EPOLL_CTL_ADD, b, EPOLLIN);
    put(outer, EPOLL_CTL_ADD, inner, EPOLLIN);
    for (int round = 0; round < 20; round++) {
        struct sleeper x, y;
        lie_down_for(&x, outer, 5000);
        lie_down_for(&y, inner, 5000);
        send_all(a, "x", 1);
        woken(&x);
        woken(&y);
        must(x.event.data.fd == inner && y.event.data.fd == b);
        drain(b, 1);
    }
}

static volatile int looked_at = -1;

static void *look_often(void *argument)
{
    (void)argument;
    struct pollfd one = { .fd = looked_at, .events = POLLIN };
    while (looked_at >= 0)
        must(poll(&one, 1, 0) >= 0);
    return NULL;
}

/* One thread looks whether a set has something, and never does anything about it; another sleeps on that set. */
void looked_at_beside(void)
{
    int b, a = pair(&b);
    struct epoll_event event;
    pthread_t looker;
    looked_at = epoll_create1(0);
    put(looked_at, EPOLL_CTL_ADD, b, EPOLLIN);
    must(!pthread_create(&looker, NULL, look_often, NULL));
    for (int round = 0; round < 300; round++) {
        struct later later = { .fd = a, .microseconds = 500 };
        pthread_t sender;
        must(!pthread_create(&sender, NULL, send_later, &later));
        must(epoll_wait(looked_at, &event, 1, 5000) == 1 && event.data.fd == b);
        must(!pthread_join(sender, NULL));
        drain(b, 1);
    }
    looked_at = -1;
    must(!pthread_join(looker, NULL));
}
