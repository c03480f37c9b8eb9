/* Calls that wait, and what ends a wait. */
#include "behaviour.h"

void timeouts(void)
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

void interrupted(void)
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

static void *shut_later(void *argument)
{
    usleep(30000);
    must(!shutdown(*(int *)argument, SHUT_RDWR));
    return NULL;
}

void shut_by_a_thread(void)
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

void cancelled(void)
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

static int busy_a, busy_b, busy_set;

static void *exchange_for_ever(void *argument)
{
    char byte = 'x';
    (void)argument;
    for (;;) {
        send_all(busy_a, &byte, 1);
        receive_all(busy_b, &byte, 1);
    }
    return NULL;
}

static void *poll_for_ever(void *argument)
{
    struct pollfd one = { .fd = busy_b, .events = POLLIN };
    (void)argument;
    for (;;)
        must(poll(&one, 1, 1000) == 1);
    return NULL;
}

static void *wait_for_ever(void *argument)
{
    struct epoll_event event;
    (void)argument;
    for (;;)
        must(epoll_wait(busy_set, &event, 1, 1000) == 1);
    return NULL;
}

/* A thread whose calls always find something at once. */
void cancelled_while_busy(void)
{
    void *(*bodies[])(void *) = { exchange_for_ever, poll_for_ever, wait_for_ever };
    busy_a = pair(&busy_b), busy_set = epoll_create1(0);
    put(busy_set, EPOLL_CTL_ADD, busy_b, EPOLLIN);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        pthread_t thread;
        void *answer;
        if (i == 1)
            send_all(busy_a, "y", 1);
        must(!pthread_create(&thread, NULL, bodies[i], NULL));
        usleep(20000);
        must(!pthread_cancel(thread));
        join_in_time(thread, &answer);
        must(answer == PTHREAD_CANCELED);
        while (i == 0 && recv(busy_b, &answer, 1, MSG_DONTWAIT) == 1)
            ;
    }
    drain(busy_b, 1);
}
