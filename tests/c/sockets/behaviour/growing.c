/* A sender whose receiver does not read gets rid of as much as by the kernel, and all of it arrives. */
#include "behaviour.h"

enum { PIECE = 64 << 10, MOST = 16 << 20 };
static char piece[PIECE];

/* Sends the stream from `at` on, as much as there is room for. */
static size_t fill_from(int fd, size_t at)
{
    size_t end = at;
    for (;;) {
        pattern(piece, end, PIECE);
        ssize_t went = send(fd, piece, PIECE, MSG_DONTWAIT);
        if (went < 0) {
            must(errno == EAGAIN);
            return end - at;
        }
        end += went;
        must(end - at < MOST);
    }
}

/* What the kernel takes, of a connection that is its own whoever is loaded; with a buffer of so many bytes, or its own. */
static size_t taken_by_the_kernel(int buffer)
{
    int b, a = connected(&b), one = 1;
    must(!setsockopt(a, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one));
    must(!buffer || !setsockopt(a, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer));
    size_t taken = fill_from(a, 0);
    must(!close(a) && !close(b));
    return taken;
}

static int is_writable(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLOUT };
    must(poll(&one, 1, 0) >= 0);
    return one.revents == POLLOUT;
}

/* How the kernel counts depends on how the bytes lie: two of its own differ by some segments. */
static int is_enough(size_t taken, size_t kernel)
{
    return taken + 2 * PIECE >= kernel;
}

/* Both ends at once, several times: the last time the room must be there again. */
void written_in_a_row(void)
{
    size_t kernel = taken_by_the_kernel(0), ends[2] = { 0, 0 };
    int b, a = pair(&b);
    for (int round = 0; round < 3; round++) {
        size_t sent[2] = { fill_from(a, ends[0]), fill_from(b, ends[1]) };
        must(is_enough(sent[0], kernel) && is_enough(sent[1], kernel));
        must(!is_writable(a) && !is_writable(b));
        int waiting = 0;
        must(!ioctl(b, FIONREAD, &waiting) && waiting > 0);
        receive_pattern(b, ends[0], sent[0]);
        receive_pattern(a, ends[1], sent[1]);
        must(recv(a, piece, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        must(is_writable(a) && is_writable(b));
        ends[0] += sent[0];
        ends[1] += sent[1];
    }
    send_all(a, "a", 1);
    receive_all(b, piece, 1);
    must(*piece == 'a');
    close(a);
    close(b);
}

/* An end that becomes writable says so once. */
void edges_of_a_grown_ring(void)
{
    int b, a = pair(&b), set = epoll_create1(0);
    struct epoll_event event;
    put(set, EPOLL_CTL_ADD, a, EPOLLOUT | EPOLLET);
    must(epoll_wait(set, &event, 1, 5000) == 1 && event.events == EPOLLOUT);
    for (int round = 0; round < 3; round++) {
        size_t sent = fill_up(a);
        must(epoll_wait(set, &event, 1, 50) == 0);
        drain(b, sent);
        must(epoll_wait(set, &event, 1, 5000) == 1 && event.events == EPOLLOUT);
        must(epoll_wait(set, &event, 1, 50) == 0);
    }
    close(a);
    close(b);
}

struct writer {
    int fd;
    pthread_t thread;
};

enum { MUCH = 2 << 20 };

/* Not by `send_pattern`: two threads would share its buffer. */
static void *write_much(void *argument)
{
    char *all = malloc(MUCH);
    pattern(all, 0, MUCH);
    send_all(((struct writer *)argument)->fd, all, MUCH);
    free(all);
    return NULL;
}

/* Two ends, neither of which reads before it has written. */
void written_by_both_first(void)
{
    for (int round = 0; round < 5; round++) {
        int b, a = pair(&b);
        struct writer writers[2] = { { .fd = a }, { .fd = b } };
        for (int i = 0; i < 2; i++)
            must(!pthread_create(&writers[i].thread, NULL, write_much, &writers[i]));
        for (int i = 0; i < 2; i++)
            pthread_join(writers[i].thread, NULL);
        receive_pattern(a, 0, MUCH);
        receive_pattern(b, 0, MUCH);
        close(a);
        close(b);
    }
}

/* The same by who waits for room with `poll`, and writes little at a time. */
void written_by_who_asks_for_room(void)
{
    int b, a = pair(&b);
    must(!fcntl(a, F_SETFL, fcntl(a, F_GETFL) | O_NONBLOCK));
    for (size_t at = 0; at < MUCH; at += PIECE / 4) {
        struct pollfd one = { .fd = a, .events = POLLOUT };
        must(poll(&one, 1, 10000) == 1 && one.revents == POLLOUT);
        pattern(piece, at, PIECE / 4);
        must(send(a, piece, PIECE / 4, 0) == PIECE / 4);
        if (at == PIECE)
            receive_pattern(b, 0, PIECE);
    }
    receive_pattern(b, PIECE, MUCH - PIECE);
    close(a);
    close(b);
}

static void ends_behind_everything(int fd, size_t sent)
{
    receive_pattern(fd, 0, sent);
    must(recv(fd, piece, 1, 0) == 0);
}

void ended_with_much_unread(void)
{
    int b, a = pair(&b);
    size_t sent = fill_from(a, 0);
    must(!close(a));
    ends_behind_everything(b, sent);
    close(b);

    a = pair(&b);
    sent = fill_from(a, 0);
    must(!shutdown(a, SHUT_WR));
    must(send(a, piece, 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    send_all(b, "back", 4);
    receive_all(a, piece, 4);
    ends_behind_everything(b, sent);
    close(a);
    close(b);

    a = pair(&b);
    fill_from(a, 0);
    must(!close(b));
    must(send(a, piece, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == -1 && (errno == EPIPE || errno == ECONNRESET));
    close(a);
}

/* A program that wants a small buffer has one, or that of a ring. */
void bounded_by_the_program(void)
{
    static const int buffers[] = { 16 << 10, 64 << 10, 600 << 10 };
    for (int i = 0; i < 3; i++) {
        int b, a = pair(&b);
        must(!setsockopt(a, SOL_SOCKET, SO_SNDBUF, &buffers[i], sizeof buffers[i]));
        size_t kernel = taken_by_the_kernel(buffers[i]), taken = fill_from(a, 0);
        must(is_enough(taken, kernel) && taken < kernel + 6 * PIECE);
        receive_pattern(b, 0, taken);
        close(a);
        close(b);
    }
}

/* A child writes what follows in the same stream, and ends, or is killed. */
void grown_and_shared(void)
{
    int b, a = pair(&b);
    size_t at = 0;
    for (int round = 0; round < 6; round++) {
        pid_t child = fork();
        if (child == 0) {
            send_pattern(a, at, 300 << 10);
            if (round % 2)
                kill(getpid(), SIGKILL);
            _exit(0);
        }
        must(waitpid(child, NULL, 0) == child);
        send_pattern(a, at + (300 << 10), 50 << 10);
        at += 350 << 10;
    }
    receive_pattern(b, 0, at);
    send_pattern(a, at, PIECE);
    receive_pattern(b, at, PIECE);
    close(a);
    close(b);
}

/* The receiver asks for what only the kernel has, with all of it unread: it comes by the kernel. */
static int sent_it[2];

static void wants_the_kernel(int fd)
{
    int one = 1;
    char byte;
    must(read(sent_it[0], &byte, 1) == 1);
    must(!setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one));
    receive_pattern(fd, 0, MUCH + PIECE);
    send_all(fd, "all", 3);
}

void handed_back_with_much_unread(void)
{
    int fd;
    must(!pipe(sent_it));
    pid_t child = peer(&fd, wants_the_kernel);
    send_pattern(fd, 0, MUCH);
    must(write(sent_it[1], "s", 1) == 1);
    send_pattern(fd, MUCH, PIECE);
    receive_all(fd, piece, 3);
    ended_well(child);
    close(fd);
}

/* Kibibytes of the memory of rings that are there. */
static long of_rings(void)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    must(maps);
    char line[300];
    long all = 0, part, ours = 0;
    while (fgets(line, sizeof line, maps)) {
        if (strstr(line, "weft-streams"))
            ours = 1;
        else if (ours && sscanf(line, "Rss: %ld", &part) == 1) {
            all += part;
            ours = 0;
        }
    }
    fclose(maps);
    return all;
}

/* More connections than there is room of this kind for, one after the other; what was read takes no memory. */
void idle_after_much(void)
{
    enum { PAIRS = 20 };
    size_t kernel = taken_by_the_kernel(0);
    int a[PAIRS], b[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        a[i] = pair(&b[i]);
    for (int i = 0; i < PAIRS; i++) {
        long before = of_rings();
        size_t sent = fill_up(a[i]);
        must(is_enough(sent, kernel));
        drain(b[i], sent);
        /* The ring itself stays, and less than a step of the rest; either end may have mapped it. */
        must(of_rings() - before < 2 * (256 + 64));
    }
    for (int i = 0; i < PAIRS; i++) {
        close(a[i]);
        close(b[i]);
    }
}
