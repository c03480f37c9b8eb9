/* Signal handlers that come at an inconvenient time, or do not return. */
#include "behaviour.h"
#include <setjmp.h>

static sigjmp_buf begin;
static volatile sig_atomic_t may_jump;

static void jump(int number)
{
    (void)number;
    if (may_jump)
        siglongjmp(begin, 1);
}

/* A handler that leaves by a jump leaves nothing locked, wherever it came. */
void jumped_out(void)
{
    int b, a = pair(&b), set = epoll_create1(0);
    static volatile int jumps;
    struct epoll_event event;
    struct sigaction action = { .sa_handler = jump };
    struct itimerspec often = { .it_interval.tv_nsec = 100000, .it_value.tv_nsec = 100000 };
    struct sigevent way = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    timer_t timer;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    must(!sigaction(SIGUSR1, &action, NULL));
    must(!timer_create(CLOCK_MONOTONIC, &way, &timer) && !timer_settime(timer, 0, &often, NULL));
    if (sigsetjmp(begin, 1)) {
        may_jump = 0;
        jumps++;
        put(set, EPOLL_CTL_MOD, b, EPOLLIN);
    }
    while (jumps < 3000) {
        may_jump = 1;
        int count = epoll_wait(set, &event, 1, 0);
        may_jump = 0;
        must(count == 0);
    }
    must(!timer_delete(timer));
    struct sleeper x;
    lie_down(&x, set);
    send_all(a, "x", 1);
    woken(&x);
    must(x.event.data.fd == b);
}

static char state_of(pid_t process)
{
    char path[64], line[200];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    must(file && fgets(line, sizeof line, file));
    fclose(file);
    return strrchr(line, ')')[2];
}

/* A child that sends both signals to this process when it sleeps, so that they come at once; then a byte. */
static pid_t interrupt_together(int one, int other, int fd)
{
    pid_t parent = getpid(), child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int seen = 0; seen < 20; usleep(1000))
        seen = state_of(parent) == 'S' ? seen + 1 : 0;
    must(!kill(parent, SIGSTOP));
    while (state_of(parent) != 'T')
        usleep(1000);
    must(!kill(parent, one) && !kill(parent, other) && !kill(parent, SIGCONT));
    for (int seen = 0; seen < 20; usleep(1000))
        seen = state_of(parent) == 'S' ? seen + 1 : 0;
    if (fd >= 0)
        send_all(fd, "z", 1);
    _exit(0);
}

/* A signal that nobody handles, and that the library may have a use for, hides no other one. */
void two_signals(void)
{
    int b, a = pair(&b), set = epoll_create1(0);
    struct pollfd one = { .fd = b, .events = POLLIN };
    struct timespec time = { .tv_sec = 5 };
    struct epoll_event event;
    char byte;
    put(set, EPOLL_CTL_ADD, b, EPOLLIN);
    on(SIGIO, 0);
    for (int call = 0; call < 4; call++) {
        pid_t child = interrupt_together(SIGIO, SIGURG, -1);
        signals_seen = 0;
        int answer = call == 0   ? poll(&one, 1, 5000)
                     : call == 1 ? epoll_wait(set, &event, 1, 5000)
                     : call == 2 ? nanosleep(&time, NULL)
                                 : poll(NULL, 0, 5000);
        must(answer == -1 && errno == EINTR && signals_seen == 1);
        ended_well(child);
    }
    for (int restart = 0; restart < 2; restart++) {
        on(SIGIO, restart ? SA_RESTART : 0);
        pid_t child = interrupt_together(SIGIO, SIGURG, a);
        signals_seen = 0;
        ssize_t n = recv(b, &byte, 1, 0);
        must(signals_seen == 1 && (restart ? n == 1 : n == -1 && errno == EINTR));
        if (n < 0)
            receive_all(b, &byte, 1);
        ended_well(child);
    }
}
