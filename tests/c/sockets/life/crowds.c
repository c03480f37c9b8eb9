/* More sleepers, processes and cancelled threads than the library has places for. */
#include "life.h"

enum { SETS = 80, RECEIVERS = 530, HOLDERS = 10 };

static volatile int awake;

static void *sleep_on_a_set(void *argument)
{
    struct epoll_event event;
    for (int i = 0; i < 3; i++) {
        char byte;
        must(epoll_wait(*(int *)argument, &event, 1, 10000) == 1);
        must(recv(event.data.fd, &byte, 1, 0) == 1);
        __atomic_add_fetch(&awake, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

/* As many threads as sets, each with a connection. */
void many_sets(void)
{
    static int sets[SETS], ends[SETS];
    static pthread_t threads[SETS];
    for (int i = 0; i < SETS; i++) {
        int end;
        ends[i] = pair(&end);
        must((sets[i] = epoll_create1(0)) >= 0);
        put(sets[i], EPOLL_CTL_ADD, end, EPOLLIN);
        must(!pthread_create(&threads[i], NULL, sleep_on_a_set, &sets[i]));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SETS; i++)
            send_all(ends[i], "x", 1);
        for (int i = 0; i < 5000 && awake < SETS * (round + 1); i++)
            usleep(1000);
        must(awake == SETS * (round + 1));
    }
    for (int i = 0; i < SETS; i++)
        join_in_time(threads[i], NULL);
}

static int crowded;

static void *receive_one_byte(void *argument)
{
    char byte;
    must(recv(crowded, &byte, 1, 0) == 1);
    return argument;
}

/* More threads in one receive than the library has bells. */
void many_receivers(void)
{
    static pthread_t threads[RECEIVERS];
    pthread_attr_t small;
    int a = pair(&crowded);
    must(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 64 << 10));
    for (int i = 0; i < RECEIVERS; i++)
        must(!pthread_create(&threads[i], &small, receive_one_byte, NULL));
    for (int i = 0; i < RECEIVERS; i++)
        send_all(a, "x", 1);
    for (int i = 0; i < RECEIVERS; i++)
        join_in_time(threads[i], NULL);
    must(!close(a) && !close(crowded));
}

static void take_one(int fd)
{
    int set = epoll_create1(0);
    struct epoll_event event;
    char byte;
    ssize_t n = -1;
    put(set, EPOLL_CTL_ADD, fd, EPOLLIN);
    while (n != 1) {
        must(epoll_wait(set, &event, 1, 10000) == 1);
        n = recv(fd, &byte, 1, MSG_DONTWAIT);
        must(n == 1 || (n == -1 && errno == EAGAIN));
    }
}

/* A family of processes waits on one connection, each with a set of its own; each gets one byte. */
void many_processes(void)
{
    int b, a = pair(&b);
    pid_t children[HOLDERS];
    for (int i = 0; i < HOLDERS; i++) {
        children[i] = fork();
        must(children[i] >= 0);
        if (children[i] == 0) {
            alarm(20);
            take_one(b);
            _exit(0);
        }
    }
    for (int i = 0; i < HOLDERS; i++) {
        usleep(2000);
        send_all(a, "x", 1);
    }
    for (int i = 0; i < HOLDERS; i++)
        ended_well(children[i]);
    send_pattern(a, 0, 100000);
    receive_pattern(b, 0, 100000);
    must(!close(a) && !close(b));
}

static int open_numbers(void)
{
    int count = 0;
    for (int fd = 0; fd < 4096; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void *poll_for_ever(void *argument)
{
    struct pollfd one = { .fd = *(int *)argument, .events = POLLIN };
    poll(&one, 1, -1);
    return NULL;
}

static void *select_for_ever(void *argument)
{
    fd_set reading;
    FD_ZERO(&reading);
    FD_SET(*(int *)argument, &reading);
    select(*(int *)argument + 1, &reading, NULL, NULL, NULL);
    return NULL;
}

/* Threads that are cancelled while they wait leave nothing behind. */
void cancelled_often(void)
{
    int b, a = pair(&b), before = 0;
    void *(*bodies[])(void *) = { poll_for_ever, select_for_ever };
    for (int i = 0; i < 60; i++) {
        pthread_t thread;
        void *result;
        must(!pthread_create(&thread, NULL, bodies[i % 2], &b));
        usleep(i < 2 ? 50000 : 2000);
        must(!pthread_cancel(thread));
        join_in_time(thread, &result);
        must(result == PTHREAD_CANCELED);
        if (i == 5)
            before = open_numbers();
    }
    must(open_numbers() <= before + 1);
    send_all(a, "x", 1);
    char byte;
    receive_all(b, &byte, 1);
    must(!close(a) && !close(b));
}

static void *receive_for_ever(void *argument)
{
    char byte;
    recv(*(int *)argument, &byte, 1, 0);
    return NULL;
}

/* A thread is cancelled in a receive, in a program with handlers of both kinds. */
void cancelled_among_handlers(void)
{
    int b, a = pair(&b), before = open_numbers();
    on(SIGUSR1, SA_RESTART);
    on(SIGUSR2, 0);
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        void *result;
        must(!pthread_create(&thread, NULL, receive_for_ever, &b));
        usleep(30000);
        /* Takes all threads of the process. */
        must(!setuid(getuid()));
        must(!pthread_cancel(thread));
        join_in_time(thread, &result);
        must(result == PTHREAD_CANCELED);
    }
    must(open_numbers() <= before + 2);
    send_all(a, "x", 1);
    char byte;
    receive_all(b, &byte, 1);
    must(!close(a) && !close(b));
}

/* A set with its members is used by a process and its child. */
void set_of_two_processes(void)
{
    int b, a = pair(&b), set = epoll_create1(0), told[2];
    struct epoll_event event;
    char byte;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    must(epoll_wait(set, &event, 1, 20) == 0 && !pipe(told));
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        alarm(20);
        for (int i = 0; i < 50; i++) {
            must(epoll_wait(set, &event, 1, 5000) == 1 && event.data.fd == b);
            must(recv(b, &byte, 1, MSG_DONTWAIT) == 1 && write(told[1], &byte, 1) == 1);
        }
        _exit(0);
    }
    for (int i = 0; i < 50; i++) {
        send_all(a, "c", 1);
        must(read(told[0], &byte, 1) == 1);
    }
    ended_well(child);
    /* Now both at once: whoever gets it. */
    child = fork();
    must(child >= 0);
    if (child == 0) {
        for (;;) {
            if (epoll_wait(set, &event, 1, 5000) == 1 && recv(b, &byte, 1, MSG_DONTWAIT) == 1) {
                must(write(told[1], &byte, 1) == 1);
                if (byte == 'e')
                    _exit(0);
            }
        }
    }
    for (int i = 0; i < 50; i++) {
        send_all(a, "b", 1);
        struct pollfd one = { .fd = told[0], .events = POLLIN };
        for (int got = 0; !got;) {
            if (epoll_wait(set, &event, 1, 1) == 1 && recv(b, &byte, 1, MSG_DONTWAIT) == 1)
                got = 1;
            else if (poll(&one, 1, 0) == 1)
                got = read(told[0], &byte, 1) == 1;
        }
    }
    send_all(a, "e", 1);
    must(read(told[0], &byte, 1) == 1 && byte == 'e');
    ended_well(child);
    /* What the child has left behind wakes nobody. */
    must(epoll_wait(set, &event, 1, 50) == 0);
    send_all(a, "p", 1);
    must(epoll_wait(set, &event, 1, 5000) == 1 && recv(b, &byte, 1, 0) == 1 && byte == 'p');
    must(!close(a) && !close(b) && !close(set));
}

/* A child never sleeps on the set that it inherits, but looks again and again. */
void looked_at_by_a_child(void)
{
    int b, a = pair(&b), set = epoll_create1(0);
    struct epoll_event event;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    must(epoll_wait(set, &event, 1, 20) == 0 && epoll_wait(set, &event, 1, 20) == 0);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        alarm(5);
        while (epoll_wait(set, &event, 1, 0) == 0)
            ;
        must(event.data.fd == b);
        _exit(0);
    }
    usleep(10000);
    send_all(a, "x", 1);
    ended_well(child);
    must(epoll_wait(set, &event, 1, 5000) == 1);
    must(!close(a) && !close(b) && !close(set));
}

/* A child holds what its parent has closed: the parent's set still tells of it. */
void closed_and_held(void)
{
    int b, a = pair(&b), set = epoll_create1(0), told[2];
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = 77 };
    char byte;
    must(!epoll_ctl(set, EPOLL_CTL_ADD, b, &event) && !pipe(told));
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        alarm(20);
        must(!close(told[1]) && !close(a));
        must(read(told[0], &byte, 1) == 0 && recv(b, &byte, 1, 0) == 1 && recv(b, &byte, 1, 0) == 0);
        _exit(0);
    }
    must(!close(b));
    send_all(a, "h", 1);
    must(!shutdown(a, SHUT_WR));
    must(epoll_wait(set, &event, 1, 5000) == 1 && event.data.u64 == 77);
    must(!close(told[1]));
    ended_well(child);
    must(!close(a) && epoll_wait(set, &event, 1, 20) == 0 && !close(set));
}

/* The other side sleeps elsewhere, and does not notice that it is called. */
static void sleep_elsewhere(int fd)
{
    struct timespec long_enough = { 0, 30000000 }, rest;
    int nothing[2], set = epoll_create1(0);
    struct epoll_event event;
    fd_set reading;
    send_all(fd, "unread", 6);
    must(!pipe(nothing));
    put(set, EPOLL_CTL_ADD, nothing[0], EPOLLIN);
    struct pollfd one = { .fd = nothing[0], .events = POLLIN };
    for (int i = 0; i < 4; i++) {
        struct timeval time = { 0, 30000 };
        FD_ZERO(&reading);
        FD_SET(nothing[0], &reading);
        must(!nanosleep(&long_enough, &rest) && !clock_nanosleep(CLOCK_MONOTONIC, 0, &long_enough, &rest));
        must(!usleep(30000) && poll(&one, 1, 30) == 0 && epoll_wait(set, &event, 1, 30) == 0);
        must(select(nothing[0] + 1, &reading, NULL, NULL, &time) == 0);
    }
    must(sleep(1) == 0);
    echo(fd);
}

void called_elsewhere(void)
{
    int fd[10];
    pid_t children[10];
    for (int i = 0; i < 10; i++)
        children[i] = peer(&fd[i], sleep_elsewhere);
    for (int i = 0; i < 10; i++) {
        struct pollfd one = { .fd = fd[i], .events = POLLIN };
        must(poll(&one, 1, 5000) == 1);
        /* Standard input is the C library's to read: what was not read must come by the kernel. */
        must(dup2(fd[i], 0) == 0);
        send_all(0, "back", 4);
        must(!close(fd[i]));
        fd[i] = dup(0);
        usleep(30000);
    }
    must(!close(0) && open("/dev/null", O_RDONLY) == 0);
    for (int i = 0; i < 10; i++) {
        char got[10];
        receive_all(fd[i], got, 10);
        must(!memcmp(got, "unreadback", 10) && !shutdown(fd[i], SHUT_WR));
        ended_well(children[i]);
    }
}

/* Programs are started beside connections with bytes on their way, all of which the program inherits. */
void spawned_beside(void)
{
    enum { PAIRS = 12 };
    int ends[PAIRS][2];
    char got[1000], sent[1000];
    memset(sent, 's', sizeof sent);
    for (int i = 0; i < PAIRS; i++) {
        ends[i][0] = pair(&ends[i][1]);
        send_all(ends[i][0], sent, sizeof sent);
        send_all(ends[i][1], sent, sizeof sent);
    }
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pid_t child;
    must(!posix_spawn(&child, "/bin/true", NULL, NULL, (char *[]){ "true", NULL }, environ));
    clock_gettime(CLOCK_MONOTONIC, &end);
    must(exit_status(child) == 0);
    must((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 < 3000);
    for (int i = 0; i < PAIRS; i++) {
        for (int side = 0; side < 2; side++) {
            receive_all(ends[i][side], got, sizeof got);
            must(!memcmp(got, sent, sizeof got));
        }
        send_all(ends[i][0], "after", 5);
        receive_all(ends[i][1], got, 5);
        must(!close(ends[i][0]) && !close(ends[i][1]));
    }
}

static int go[2];

static void read_late(int fd)
{
    char byte, got[1000];
    must(!close(go[1]) && read(go[0], &byte, 1) == 0);
    receive_all(fd, got, sizeof got);
    for (size_t i = 0; i < sizeof got; i++)
        must(got[i] == 'l');
    send_all(fd, "read", 4);
}

/* The same, where nobody reads meanwhile what was sent: that is waited for once, not for each. */
void spawned_before_readers(void)
{
    enum { PEERS = 8 };
    int fd[PEERS];
    pid_t peers[PEERS], child;
    char got[4], sent[1000];
    memset(sent, 'l', sizeof sent);
    must(!pipe(go));
    for (int i = 0; i < PEERS; i++) {
        peers[i] = peer(&fd[i], read_late);
        send_all(fd[i], sent, sizeof sent);
    }
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    must(!posix_spawn(&child, "/bin/true", NULL, NULL, (char *[]){ "true", NULL }, environ));
    clock_gettime(CLOCK_MONOTONIC, &end);
    must(end.tv_sec - start.tv_sec <= 2);
    must(exit_status(child) == 0 && !close(go[0]) && !close(go[1]));
    for (int i = 0; i < PEERS; i++) {
        receive_all(fd[i], got, 4);
        must(!memcmp(got, "read", 4));
        ended_well(peers[i]);
        must(!close(fd[i]));
    }
}
