/* What the programs with cases share. */
#include "cases.h"

const char *program = "?", *name = "?";

volatile sig_atomic_t signals_seen;

int connected_as(int flags, int *other)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 4));
    must(!getsockname(listener, (struct sockaddr *)&address, &length));
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    must(!connect(fd, (struct sockaddr *)&address, length));
    *other = accept4(listener, NULL, NULL, flags);
    must(*other >= 0 && !close(listener));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(*other, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

int connected(int *other)
{
    return connected_as(0, other);
}

void send_all(int fd, const void *from, size_t bytes)
{
    must(send(fd, from, bytes, 0) == (ssize_t)bytes);
}

void receive_all(int fd, void *into, size_t bytes)
{
    must(recv(fd, into, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

static int has_library(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "libweft_sockets");
}

/* One round of a talk: a byte each way. `other` is the other end, or -1 where another process answers. */
static void round_of(int fd, int other, char byte)
{
    char got;
    send_all(fd, &byte, 1);
    if (other >= 0) {
        receive_all(other, &got, 1);
        send_all(other, &byte, 1);
    }
    receive_all(fd, &got, 1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

void take_over(int fd, int other)
{
    enum { AT_LEAST = 20, MOST = 5000 };
    int rounds = 0, taken = 0;
    double until = seconds() + 3;
    while (!taken && rounds < (has_library() ? MOST : AT_LEAST) && seconds() < until) {
        unsigned long long before = moved_by_kernel(fd);
        round_of(fd, other, 'w');
        taken = moved_by_kernel(fd) == before;
        if (++rounds > 9)
            usleep(100);
    }
    for (int more = taken ? rounds + AT_LEAST : AT_LEAST; more > 0; more--)
        round_of(fd, other, more > 1 ? 'w' : 'e');
}

/* Enough calls each way for the library to take the connection over, if it can. */
void warm(int a, int b)
{
    for (int i = 0; i < 40; i++) {
        round_of(a, b, 'w');
        if (i > 8)
            usleep(100);
    }
}

int pair(int *other)
{
    int fd = connected(other);
    take_over(fd, *other);
    return fd;
}

int closing_pair(int *other)
{
    int fd = connected_as(SOCK_CLOEXEC, other);
    take_over(fd, *other);
    return fd;
}

pid_t peer(int *fd, void (*role)(int))
{
    int other;
    *fd = connected(&other);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(*fd);
        for (char byte = 0; byte != 'e';) {
            receive_all(other, &byte, 1);
            send_all(other, &byte, 1);
        }
        role(other);
        _exit(0);
    }
    close(other);
    take_over(*fd, -1);
    return child;
}

int exit_status(pid_t child)
{
    int status = -1;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

void ended_well(pid_t child)
{
    must(exit_status(child) == 0);
}

void join_in_time(pthread_t thread, void **result)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 5;
    must(!pthread_timedjoin_np(thread, result, &end));
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

void pattern(char *into, size_t at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        into[i] = (char)((at + i) * 2654435761u >> 24);
}

/* As a program does that knows of signals: what was not sent is sent again. */
void send_pattern(int fd, size_t at, size_t bytes)
{
    static char buffer[20000];
    for (size_t end = at + bytes; at < end;) {
        size_t part = end - at < sizeof buffer ? end - at : sizeof buffer;
        pattern(buffer, at, part);
        ssize_t n = send(fd, buffer, part, 0);
        must(n > 0 || (n < 0 && errno == EINTR));
        at += n > 0 ? n : 0;
    }
}

void receive_pattern(int fd, size_t at, size_t bytes)
{
    static char buffer[20000], wanted[sizeof buffer];
    for (size_t end = at + bytes; at < end;) {
        ssize_t n = recv(fd, buffer, end - at < sizeof buffer ? end - at : sizeof buffer, 0);
        must(n > 0 || (n < 0 && errno == EINTR));
        if (n < 0)
            continue;
        pattern(wanted, at, n);
        must(!memcmp(buffer, wanted, n));
        at += n;
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

void until_asleep(volatile pid_t *id)
{
    char path[64], line[200];
    for (int seen = 0; seen < 20; usleep(1000)) {
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", *id);
        FILE *file = *id ? fopen(path, "r") : NULL;
        if (!file)
            continue;
        int there = fgets(line, sizeof line, file) != NULL;
        fclose(file);
        char *state = there ? strrchr(line, ')') : NULL;
        seen = state && state[2] == 'S' ? seen + 1 : 0;
    }
}

void put(int set, int operation, int fd, unsigned events)
{
    struct epoll_event event = { .events = events, .data.fd = fd };
    must(!epoll_ctl(set, operation, fd, &event));
}

int run_cases(int argc, char **argv, const struct a_case *cases, size_t count)
{
    int failed = 0, run = 0;
    program = argv[0];
    if (argc == 2 && !strcmp(argv[1], "list")) {
        for (size_t i = 0; i < count; i++)
            puts(cases[i].name);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
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
