/* Who sends more than a ring holds before anybody reads: the kernel takes it, so nobody may wait for ever. */
#include "behaviour.h"

enum { MUCH = 1 << 20 };

static void read_much(int fd)
{
    receive_pattern(fd, 0, MUCH);
}

void sent_before_it_is_read(void)
{
    int b, a = pair(&b);
    send_pattern(a, 0, MUCH);
    read_much(b);
    send_pattern(b, 0, MUCH);
    read_much(a);
    close(a);
    close(b);
}

static void send_and_read(int fd)
{
    send_pattern(fd, 0, MUCH);
    read_much(fd);
}

void both_send_before_they_read(void)
{
    int fd;
    pid_t child = peer(&fd, send_and_read);
    send_and_read(fd);
    close(fd);
    ended_well(child);
}

/* Sends without blocking; `room` waits for room. */
static void send_as_told(int fd, void (*room)(int))
{
    static char bytes[MUCH];
    pattern(bytes, 0, MUCH);
    for (size_t sent = 0; sent < MUCH;) {
        ssize_t went = send(fd, bytes + sent, MUCH - sent, MSG_DONTWAIT);
        must(went > 0 || errno == EAGAIN);
        if (went > 0)
            sent += went;
        else
            room(fd);
    }
}

static void by_poll(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLOUT };
    must(poll(&one, 1, 5000) == 1 && one.revents == POLLOUT);
}

static int watching;

static void by_set(int fd)
{
    struct epoll_event event;
    must(epoll_wait(watching, &event, 1, 5000) == 1 && event.events == EPOLLOUT);
    (void)fd;
}

static void again(int fd)
{
    (void)fd;
    usleep(1000);
}

void room_for_what_nobody_reads(void)
{
    void (*rooms[])(int) = { by_poll, by_set, again };
    for (int i = 0; i < 3; i++) {
        int b, a = pair(&b);
        watching = epoll_create1(0);
        put(watching, EPOLL_CTL_ADD, a, EPOLLOUT | (i == 1 ? EPOLLET : 0));
        send_as_told(a, rooms[i]);
        read_much(b);
        send_pattern(b, 0, 10);
        receive_pattern(a, 0, 10);
        close(watching);
        close(a);
        close(b);
    }
}
