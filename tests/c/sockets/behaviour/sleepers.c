/* What wakes a thread that sleeps on several descriptors, when others use them meanwhile. */
#include "behaviour.h"

static void *sleep_on_set(void *argument)
{
    struct sleeper *sleeper = argument;
    sleeper->id = syscall(SYS_gettid);
    sleeper->count = epoll_wait(sleeper->set, &sleeper->event, 1, sleeper->milliseconds);
    sleeper->done = 1;
    return NULL;
}

void lie_down_for(struct sleeper *sleeper, int set, int milliseconds)
{
    *sleeper = (struct sleeper){ .set = set, .milliseconds = milliseconds };
    must(!pthread_create(&sleeper->thread, NULL, sleep_on_set, sleeper));
    until_asleep(&sleeper->id);
}

void lie_down(struct sleeper *sleeper, int set)
{
    lie_down_for(sleeper, set, 3000);
}

void woken(struct sleeper *sleeper)
{
    must(!pthread_join(sleeper->thread, NULL));
    must(sleeper->count == 1);
}

void two_sleepers(void)
{
    int b, a = pair(&b), d, c = pair(&d), set = epoll_create1(0);
    struct sleeper x, y;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLONESHOT);
    put(set, EPOLL_CTL_ADD, d, EPOLLIN | EPOLLONESHOT);
    lie_down(&x, set);
    lie_down(&y, set);
    send_all(a, "x", 1);
    for (int i = 0; i < 5000 && !x.done && !y.done; i++)
        usleep(1000);
    send_all(c, "x", 1);
    woken(&x);
    woken(&y);
    must(x.event.data.fd + y.event.data.fd == b + d);
}

void registered_beside(void)
{
    int b, a = pair(&b), d, c = pair(&d), set = epoll_create1(0);
    struct epoll_event event;
    struct sleeper x;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLONESHOT);
    send_all(a, "x", 1);
    must(epoll_wait(set, &event, 1, 1000) == 1);
    lie_down(&x, set);
    put(set, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLONESHOT);
    woken(&x);
    /* The first of a set. */
    int other = epoll_create1(0);
    lie_down(&x, other);
    send_all(c, "x", 1);
    put(other, EPOLL_CTL_ADD, d, EPOLLIN);
    woken(&x);
}

void filled_beside(void)
{
    int b, a = pair(&b), set = epoll_create1(0);
    struct epoll_event event;
    struct sleeper x;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLOUT | EPOLLET);
    must(epoll_wait(set, &event, 1, 1000) == 1 && event.events == EPOLLOUT);
    lie_down(&x, set);
    size_t all = fill_up(b);
    drain(a, all);
    woken(&x);
    must(x.event.events & EPOLLOUT);
}

void forked_beside(void)
{
    int b, a = pair(&b), set = epoll_create1(0);
    struct epoll_event event;
    struct sleeper x;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    must(epoll_wait(set, &event, 1, 20) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    ended_well(child);
    int d, c = pair(&d);
    put(set, EPOLL_CTL_ADD, d, EPOLLIN);
    must(epoll_wait(set, &event, 1, 20) == 0);
    lie_down(&x, set);
    send_all(a, "x", 1);
    woken(&x);
    close(c);
}

static void wait_for_the_end(int fd)
{
    (void)fd;
    pause();
}

void killed_behind_a_full_ring(void)
{
    int fd, set = epoll_create1(0);
    struct epoll_event event;
    pid_t child = peer(&fd, wait_for_the_end);
    fill_up(fd);
    put(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLONESHOT);
    must(epoll_wait(set, &event, 1, 50) == 0);
    kill(child, SIGKILL);
    must(epoll_wait(set, &event, 1, 3000) == 1 && event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
}

static void shut_and_wait(int fd)
{
    must(!shutdown(fd, SHUT_WR));
    pause();
}

/* Only room is waited for, by poll (events 0) or by a set with these events, when the one who should make it is killed. */
static void killed_while_room_is_awaited(void (*role)(int), unsigned events)
{
    char byte;
    int fd, set = epoll_create1(0);
    struct epoll_event event;
    pid_t child = peer(&fd, role);
    if (role == shut_and_wait)
        must(recv(fd, &byte, 1, 0) == 0);
    fill_up(fd);
    struct pollfd one = { .fd = events ? set : fd, .events = events ? POLLIN : POLLOUT };
    if (events) {
        put(set, EPOLL_CTL_ADD, fd, events);
        while (epoll_wait(set, &event, 1, 50) > 0)
            fill_up(fd);
    }
    must(poll(&one, 1, 50) == 0);
    kill(child, SIGKILL);
    must((events ? epoll_wait(set, &event, 1, 3000) : poll(&one, 1, 3000)) == 1);
    must(poll(&one, 1, 0) == !(events & EPOLLET));
    must(waitpid(child, NULL, 0) == child && !close(fd) && !close(set));
}

void killed_while_the_ring_is_full(void)
{
    const unsigned ways[] = { 0, EPOLLOUT, EPOLLOUT | EPOLLET };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        killed_while_room_is_awaited(wait_for_the_end, ways[i]);
        killed_while_room_is_awaited(shut_and_wait, ways[i]);
    }
}

/* What the kernel refuses leaves the connection as it was. */
void refused_copies(void)
{
    char bytes[3];
    struct linger linger;
    socklen_t length = sizeof linger;
    int b, a = pair(&b), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    send_all(a, "abc", 3);
    must(recv(b, bytes, 1, MSG_PEEK) == 1);
    must(dup3(null, b, O_APPEND) == -1 && errno == EINVAL);
    must(dup3(b, b, 0) == -1 && errno == EINVAL);
    must(!getsockopt(b, SOL_SOCKET, SO_LINGER, &linger, &length) && !linger.l_onoff);
    must(syscall(SYS_close_range, b, b, 1 << 10) == -1 && errno == EINVAL);
    receive_all(b, bytes, 3);
    must(!memcmp(bytes, "abc", 3));
    send_all(b, "d", 1);
    receive_all(a, bytes, 1);
    close(b);
    must(recv(a, bytes, 1, 0) == 0);
}

void covered_with_bytes_unread(void)
{
    char byte;
    int b, a = pair(&b), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    send_all(a, "abc", 3);
    must(recv(b, &byte, 1, MSG_PEEK) == 1);
    must(dup2(null, b) == b);
    must(recv(a, &byte, 1, 0) == -1 && errno == ECONNRESET);
}

static int crowd, half_closed[1024];

static void *ask_often(void *most)
{
    struct epoll_event events[64];
    for (int i = 0; i < 100000; i++) {
        int count = epoll_wait(crowd, events, *(int *)most, 0);
        for (int at = 0; at < count; at++)
            must(!(events[at].events & EPOLLRDHUP) || half_closed[events[at].data.fd]);
    }
    return NULL;
}

void answers_of_two_threads(void)
{
    pthread_t x, y;
    int many = 64, few = 3;
    crowd = epoll_create1(0);
    for (int i = 0; i < 20; i++) {
        int b, a = pair(&b);
        half_closed[b] = i % 2;
        put(crowd, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLRDHUP);
        send_all(a, "abc", 3);
        if (i % 2)
            must(!shutdown(a, SHUT_WR));
    }
    must(!pthread_create(&x, NULL, ask_often, &many) && !pthread_create(&y, NULL, ask_often, &few));
    must(!pthread_join(x, NULL) && !pthread_join(y, NULL));
}

struct poller {
    volatile pid_t id;
    struct pollfd list[2];
    int count;
};

static void *sleep_on_list(void *argument)
{
    struct poller *poller = argument;
    poller->id = syscall(SYS_gettid);
    poller->count = poll(poller->list, 2, 10000);
    return NULL;
}

void used_beside_poll(void)
{
    int b, a = pair(&b), d, c = connected(&d);
    struct poller poller = { .list = { { .fd = b, .events = POLLIN }, { .fd = d, .events = POLLIN } } };
    pthread_t thread;
    must(!pthread_create(&thread, NULL, sleep_on_list, &poller));
    until_asleep(&poller.id);
    char byte;
    for (int i = 0; i < 60; i++) {
        send_all(d, "y", 1);
        receive_all(c, &byte, 1);
        usleep(1000);
    }
    for (int i = 0; i < 2; i++)
        must(recv(c, &byte, 1, MSG_DONTWAIT) < 0);
    send_all(c, "x", 1);
    join_in_time(thread, NULL);
    must(poller.count == 1 && poller.list[1].revents == POLLIN);
    close(a);
}

/* A program may close all that it has not opened itself, and use the numbers anew. */
void all_else_closed(void)
{
    int b, a = pair(&b), set = epoll_create1(0), old[2];
    struct sleeper x;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLONESHOT);
    lie_down(&x, set);
    put(set, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLONESHOT);
    send_all(a, "x", 1);
    woken(&x);
    drain(b, 1);
    for (int fd = 100; fd < 1024; fd++)
        close(fd);
    must(!pipe(old));
    for (int fd = 900; fd < 910; fd++)
        must(dup2(old[0], fd) == fd);
    lie_down(&x, set);
    send_all(a, "x", 1);
    put(set, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLONESHOT);
    woken(&x);
    drain(b, 1);
    put(set, EPOLL_CTL_MOD, b, EPOLLIN);
    lie_down(&x, set);
    send_all(a, "x", 1);
    woken(&x);
}

/* Numbers that the program was never given are no files to it, whatever the library keeps there for sleepers. */
void numbers_of_nobody(void)
{
    /* What whoever started us has left open. */
    for (int fd = 100; fd < 1024; fd++)
        close(fd);
    int b, a = pair(&b), set = epoll_create1(0);
    struct sleeper x;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    for (int i = 0; i < 3; i++) {
        lie_down(&x, set);
        if (i == 2)
            must(!close_range(100, ~0u, 0));
        for (int fd = 100; fd < 1024; fd++)
            must(close(fd) == -1 && errno == EBADF);
        send_all(a, "x", 1);
        woken(&x);
        drain(b, 1);
    }
    must(!close(a) && !close(b) && !close(set));
}

/* Numbers that the library keeps something under become files of the program's without a word to it: then they are its own
 * to close. */
void numbers_taken_unseen(void)
{
    int b, a = pair(&b), set = epoll_create1(0), from = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct sleeper x;
    for (int fd = 100; fd < 1024; fd++)
        close(fd);
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    for (int i = 0; i < 2; i++) {
        lie_down(&x, set);
        send_all(a, "x", 1);
        woken(&x);
        drain(b, 1);
    }
    for (int fd = 100; fd < 1024; fd++) {
        /* The C library closes what is under its streams by itself. */
        FILE *file = fdopen(fd, "r");
        if (file)
            must(!fclose(file));
        must(fcntl(from, F_DUPFD_CLOEXEC, fd) == fd && !close(fd));
    }
    must(!close(a) && !close(b) && !close(set) && !close(from));
}
