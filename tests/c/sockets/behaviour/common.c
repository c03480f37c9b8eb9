/* What the cases share. */
#include "behaviour.h"

volatile sig_atomic_t signals_seen;

int connected(int *other)
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

void send_all(int fd, const void *from, size_t bytes)
{
    must(send(fd, from, bytes, 0) == (ssize_t)bytes);
}

void receive_all(int fd, void *into, size_t bytes)
{
    must(recv(fd, into, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

/* Enough calls each way for the library to take the connection over. */
void warm(int a, int b)
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

int pair(int *other)
{
    int fd = connected(other);
    warm(fd, *other);
    return fd;
}

pid_t peer(int *fd, void (*role)(int))
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

void ended_well(pid_t child)
{
    int status;
    must(waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void on_signal(int number)
{
    (void)number;
    signals_seen++;
}

void on(int number, int flags)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
    must(!sigaction(number, &action, NULL));
}

void *send_later(void *argument)
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

void talk(int fd, int rounds)
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

void echo(int fd)
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

size_t fill_up(int fd)
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

void drain(int fd, size_t bytes)
{
    static char buffer[65536];
    while (bytes > 0) {
        ssize_t n = recv(fd, buffer, bytes < sizeof buffer ? bytes : sizeof buffer, 0);
        must(n > 0);
        bytes -= n;
    }
}
