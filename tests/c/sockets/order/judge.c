/* The receiver, who looks at the order in which its set tells of what the plan has done.
 *
 * An event that happened before another one is never reported after it, nor left out of a call that reports the later one
 * and has room. What kernel TCP allows is allowed: a registration that was told keeps a place among those that are to be
 * looked at, so that it may come too early with its next event; and one that is told once has its place from when it was
 * armed again. */
#include "order.h"

struct end {
    int fd, mode, alive;
    /* Its first event that was not received yet; the plan's number of steps where there is none. */
    int first;
    /* Its place in the kernel's list may be of before its first event. */
    int early;
    /* Its last event that was received. Until its sender has come back, it may stand for the next one. */
    int received;
    /* Some of what was told of it is still to be received. */
    int left;
    /* Events before this one may have come while we were inside a call on it, where the kernel keeps them back, or before it
       was armed again. */
    int quiet_from;
    /* It was left out of calls that told of events up to this one. */
    int left_out;
    /* Bytes of a number. */
    unsigned char part[4];
    int parts;
};

static struct plan *plan;
static struct end ends[MOST_CONNECTIONS];
static int wrong, loud;

/* Which connection, of which kind and mode, and what is done there. */
static const char *describe(int step, char *text)
{
    static const char *const kinds[] = { "ring", "kernel", "fresh" }, *const modes[] = { "level", "edge", "once" };
    int at = plan->step[step].connection;
    sprintf(text, "%d, %s, %s%s, sender %d of %d", at, kinds[plan->kind[at]], modes[plan->mode[at]],
            plan->step[step].act == CLOSE ? ", closed" : "", plan->sender[at], plan->senders);
    return text;
}

static void out_of_order(const char *what, int one, int other)
{
    char texts[2][100];
    wrong++;
    if (loud)
        printf("event %d (%s) is %s event %d (%s)\n", one, describe(one, texts[0]), what, other, describe(other, texts[1]));
}

static int event_after(int connection, int step)
{
    do
        step++;
    while (step < plan->steps && plan->step[step].connection != connection);
    return step;
}

static unsigned events_of(int mode)
{
    return EPOLLIN | (mode == EDGE ? EPOLLET : mode == ONCE ? EPOLLONESHOT : 0);
}

/* The plan's next event of the connection has come. */
static void came(struct end *end, int connection)
{
    must(end->first < atomic_load(&plan->done) + 1);
    end->first = event_after(connection, end->first);
}

/* Receives up to `most` events; the last one. */
static int receive(struct end *end, int connection, int set, int most)
{
    int last = -1;
    end->left = 1;
    while (most-- > 0) {
        ssize_t got = recv(end->fd, end->part + end->parts, sizeof end->part - end->parts, 0);
        if (got < 0) {
            must(errno == EAGAIN);
            end->left = 0;
            return last;
        }
        last = end->first;
        if (got == 0) {
            must(end->first < plan->steps && plan->step[end->first].act == CLOSE);
            came(end, connection);
            must(!epoll_ctl(set, EPOLL_CTL_DEL, end->fd, NULL) && !close(end->fd));
            end->alive = 0;
            return last;
        }
        end->parts += got;
        if (end->parts == sizeof end->part) {
            int32_t number;
            memcpy(&number, end->part, sizeof number);
            must(number == end->first);
            end->parts = 0;
            came(end, connection);
        }
    }
    return last;
}

static void look_at_order(const struct epoll_event *told, int count)
{
    for (int later = 1; later < count; later++)
        for (int earlier = 0; earlier < later; earlier++) {
            const struct end *one = &ends[told[earlier].data.fd], *other = &ends[told[later].data.fd];
            int may_be_late = other->left || other->first < other->quiet_from;
            if (other->first < one->first && !one->early && !may_be_late)
                out_of_order("told behind", other->first, one->first);
        }
}

static void look_at_absent(const struct epoll_event *told, int count, int most)
{
    int last = -1, is_told[MOST_CONNECTIONS] = { 0 };
    for (int at = 0; at < count; at++) {
        struct end *end = &ends[told[at].data.fd];
        is_told[told[at].data.fd] = 1;
        last = end->first > last ? end->first : last;
        if (end->first < end->left_out)
            out_of_order("told in a later call than", end->first, end->left_out);
        end->left_out = 0;
    }
    for (int at = 0; at < plan->connections && count < most; at++)
        if (!is_told[at]) {
            ends[at].early = 0;
            if (last > ends[at].left_out)
                ends[at].left_out = last;
        }
}

/* One call, and what it tells of; how many. */
static int look(int set, uint64_t *random)
{
    static const int rooms[] = { 1, 2, 3, 64, 64, 64 };
    struct epoll_event told[64];
    int most = rooms[below(random, 6)], before = atomic_load(&plan->done);
    int count = epoll_wait(set, told, most, below(random, 2) ? 0 : 20);
    must(count >= 0);
    look_at_order(told, count);
    look_at_absent(told, count, most);
    for (int at = 0; at < count; at++) {
        int connection = told[at].data.fd;
        struct end *end = &ends[connection];
        must(end->alive);
        int last = receive(end, connection, set, end->mode == LEVEL && !below(random, 4) ? 1 : INT32_MAX);
        end->received = last > end->received ? last : end->received;
        end->early = end->mode == LEVEL || last >= before;
        if (end->mode == ONCE && end->alive) {
            struct epoll_event again = { .events = events_of(ONCE), .data.fd = connection };
            must(!epoll_ctl(set, EPOLL_CTL_MOD, end->fd, &again));
        }
        /* One more may have happened, and is not counted yet. */
        end->quiet_from = atomic_load(&plan->done) + 1;
    }
    return count;
}

static int first_of_all(void)
{
    int first = plan->steps;
    for (int at = 0; at < plan->connections; at++)
        if (ends[at].alive && ends[at].first < first)
            first = ends[at].first;
    return first;
}

int judge(struct plan *given, uint64_t seed, int batch)
{
    int fds[MOST_CONNECTIONS], set = epoll_create1(EPOLL_CLOEXEC), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t children[MOST_SENDERS];
    socklen_t length = sizeof given->address;
    plan = given;
    wrong = 0;
    loud = getenv("ORDER_LOUD") != NULL;
    plan->address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    must(!bind(listener, (struct sockaddr *)&plan->address, length) && !listen(listener, 64));
    must(!getsockname(listener, (struct sockaddr *)&plan->address, &length));
    begin_senders(plan, children);
    accept_all(plan, listener, fds);
    /* The last ones first: who looks at all in the order of their registration is not right by that. */
    for (int at = plan->connections - 1; at >= 0; at--) {
        ends[at] = (struct end){ .fd = fds[at], .mode = plan->mode[at], .alive = 1, .received = -1, .first = event_after(at, -1) };
        struct epoll_event event = { .events = events_of(plan->mode[at]), .data.fd = at };
        must(!epoll_ctl(set, EPOLL_CTL_ADD, fds[at], &event));
    }
    while (first_of_all() < plan->steps) {
        int allowed = atomic_load(&plan->allowed), idle = first_of_all() >= allowed;
        int more = batch ? (idle ? batch : 0) : (idle || !below(&seed, 3) ? 1 + below(&seed, 7) : 0);
        allowed = allowed + more < plan->steps ? allowed + more : plan->steps;
        atomic_store(&plan->allowed, allowed);
        /* Now and then all of it has happened before the look, or it comes during the look, or behind it. */
        while (below(&seed, 2) && atomic_load(&plan->done) < allowed)
            sched_yield();
        look(set, &seed);
    }
    atomic_store(&plan->connecting, plan->connections + 1);
    end_senders(plan, children);
    for (int at = 0; at < plan->connections; at++)
        if (ends[at].alive)
            close(fds[at]);
    must(!close(set) && !close(listener));
    return wrong;
}
