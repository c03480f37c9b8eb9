/* The senders of a plan, and how its connections begin. */
#include "order.h"

uint64_t next_number(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int below(uint64_t *state, int bound)
{
    return (int)(next_number(state) % (uint64_t)bound);
}

static void await(_Atomic int *word, int least)
{
    for (int looks = 0; atomic_load(word) < least; looks++)
        if (looks > 50)
            sched_yield();
}

/* Until the library has taken the connection over, or it is clear that it does not, and some rounds more. */
static void talk_until_taken(int fd)
{
    enum { PATIENT = 3000, SHORT = 10, MORE = 8 };
    const char *preloaded = getenv("LD_PRELOAD");
    int most = preloaded && strstr(preloaded, "libweft_sockets") ? PATIENT : SHORT, taken = 0;
    for (int round = 0, more = MORE; more > 0; round++) {
        unsigned long long before = moved_by_kernel(fd);
        more -= taken || round >= most;
        char byte = more ? 'w' : 'e';
        send_all(fd, &byte, 1);
        receive_all(fd, &byte, 1);
        taken = taken || moved_by_kernel(fd) == before;
        if (round > 9 && !taken)
            usleep(100);
    }
}

static int begin(struct plan *plan, int connection)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    char byte = 'k';
    must(!connect(fd, (struct sockaddr *)&plan->address, sizeof plan->address));
    must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    if (plan->kind[connection] == RING)
        talk_until_taken(fd);
    if (plan->kind[connection] == KERNEL) {
        must(send(fd, &byte, 1, MSG_ZEROCOPY) == 1);
        receive_all(fd, &byte, 1);
    }
    return fd;
}

void play(struct plan *plan, int sender)
{
    int fds[MOST_CONNECTIONS];
    for (int at = 0; at < plan->connections; at++) {
        if (plan->sender[at] != sender)
            continue;
        await(&plan->connecting, at + 1);
        fds[at] = begin(plan, at);
    }
    for (int at = 0; at < plan->steps; at++) {
        struct step step = plan->step[at];
        int32_t number = at;
        if (plan->sender[step.connection] != sender)
            continue;
        await(&plan->allowed, at + 1);
        await(&plan->done, at);
        if (step.act == SEND)
            send_all(fds[step.connection], &number, sizeof number);
        else
            must(!close(fds[step.connection]));
        atomic_store(&plan->done, at + 1);
    }
    /* What the plan does not close stays open until all has been seen. */
    await(&plan->connecting, plan->connections + 1);
}

void accept_all(struct plan *plan, int listener, int *ends)
{
    for (int at = 0; at < plan->connections; at++) {
        atomic_store(&plan->connecting, at + 1);
        int fd = ends[at] = accept4(listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
        char byte = 0;
        must(fd >= 0 && !setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
        while (plan->kind[at] == RING && byte != 'e') {
            receive_all(fd, &byte, 1);
            send_all(fd, &byte, 1);
        }
        if (plan->kind[at] == KERNEL) {
            receive_all(fd, &byte, 1);
            must(send(fd, &byte, 1, MSG_ZEROCOPY) == 1);
        }
        must(!fcntl(fd, F_SETFL, O_NONBLOCK));
    }
}
