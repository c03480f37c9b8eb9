/* Sides that end with bytes unread, or with bytes of theirs that are unread. */
#include "life.h"

/* How the other side ends, what it did before, and how that is looked at. */
enum { KILLED, TERMINATED, LEFT_AT_ONCE, LEFT, WAYS };
enum { BY_RECEIVE, BY_POLL, BY_SET, BY_SEND, BY_OPTION, LOOKS };
static int way, says_something, reads_all, shuts_first, gate[2];

static void end(int fd)
{
    char bytes[6];
    struct pollfd one = { .fd = fd, .events = POLLIN };
    if (shuts_first)
        must(!shutdown(fd, SHUT_WR));
    must(!close(gate[1]) && read(gate[0], bytes, 1) == 0 && poll(&one, 1, 5000) == 1);
    if (says_something)
        send_all(fd, "last", 4);
    if (reads_all)
        receive_all(fd, bytes, 6);
    if (way == KILLED || way == TERMINATED)
        raise(way == KILLED ? SIGKILL : SIGTERM);
    if (way == LEFT)
        exit(0);
    _exit(0);
}

static int error_of(int fd)
{
    int error;
    socklen_t length = sizeof error;
    must(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    return error;
}

/* Sends until that fails; answers how. */
static int send_in_vain(int fd)
{
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1)
        ;
    return errno;
}

static void last_words(int fd)
{
    char bytes[4];
    if (says_something) {
        receive_all(fd, bytes, 4);
        must(!memcmp(bytes, "last", 4));
    }
}

/* A connection whose other side gets six bytes and ends. */
static pid_t begin(int *fd, int *set)
{
    must(!pipe(gate));
    pid_t child = peer(fd, end);
    must((*set = epoll_create1(0)) >= 0);
    put(*set, EPOLL_CTL_ADD, *fd, EPOLLIN | EPOLLRDHUP);
    send_all(*fd, "unread", 6);
    must(!close(gate[0]) && !close(gate[1]));
    return child;
}

static void await(pid_t child)
{
    must(waitpid(child, NULL, 0) == child);
}

/* Who ends with bytes unread has reset the connection: behind what it has sent there is an error, once. */
static void see_a_reset(int look)
{
    int fd, set, told = 0;
    char byte;
    const int both = POLLERR | POLLHUP;
    pid_t child = begin(&fd, &set);
    struct pollfd one = { .fd = fd, .events = POLLIN };
    struct epoll_event event;
    if (look != BY_RECEIVE)
        await(child);
    if (look == BY_POLL)
        do
            must(poll(&one, 1, 5000) == 1 && one.revents & POLLIN);
        while ((one.revents & both) != both);
    if (look == BY_SET)
        do
            must(epoll_wait(set, &event, 1, 5000) == 1 && event.events & EPOLLIN);
        while ((event.events & both) != both);
    if (look == BY_SEND)
        told = send_in_vain(fd);
    if (look == BY_OPTION)
        told = error_of(fd);
    must(!told || told == ECONNRESET);
    last_words(fd);
    must(told || (recv(fd, &byte, 1, 0) == -1 && errno == ECONNRESET));
    must(recv(fd, &byte, 1, 0) == 0 && recv(fd, &byte, 1, 0) == 0);
    must(send_in_vain(fd) == EPIPE && error_of(fd) == 0);
    if (look == BY_RECEIVE)
        await(child);
    must(!close(fd) && !close(set));
}

void left_unread(void)
{
    for (way = 0; way < WAYS; way++)
        for (says_something = 0; says_something < 2; says_something++)
            for (int look = 0; look < LOOKS; look++)
                see_a_reset(look);
}

/* Who has read everything ends it, also where something is sent to it afterwards. */
void left_in_order(void)
{
    reads_all = 1;
    for (way = LEFT_AT_ONCE; way < WAYS; way++) {
        for (says_something = 0; says_something < 2; says_something++) {
            int fd, set;
            char byte;
            pid_t child = begin(&fd, &set);
            await(child);
            must(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
            last_words(fd);
            must(recv(fd, &byte, 1, 0) == 0 && send_in_vain(fd) == EPIPE);
            must(!close(fd) && !close(set));
        }
    }
}

/* Whose end was known already, that is, who had shut its sending direction, only breaks what is sent to it. */
void left_after_its_end(void)
{
    shuts_first = 1;
    for (way = 0; way < WAYS; way++) {
        int fd, set;
        char byte;
        pid_t child = begin(&fd, &set);
        must(recv(fd, &byte, 1, 0) == 0);
        await(child);
        must(send_in_vain(fd) == EPIPE && recv(fd, &byte, 1, 0) == 0);
        must(!close(fd) && !close(set));
    }
}

/* Our own end does not keep the reset away. */
void left_behind_our_end(void)
{
    for (way = 0; way < WAYS; way++) {
        for (says_something = 0; says_something < 2; says_something++) {
            int fd;
            char byte;
            must(!pipe(gate));
            pid_t child = peer(&fd, end);
            send_all(fd, "unread", 6);
            must(!shutdown(fd, SHUT_WR) && !close(gate[0]) && !close(gate[1]));
            last_words(fd);
            must(recv(fd, &byte, 1, 0) == -1 && errno == ECONNRESET && recv(fd, &byte, 1, 0) == 0);
            await(child);
            must(!close(fd));
        }
    }
}

static int says_how_much, waits[2];

/* Sends much and ends, in each way, without having been read from. */
static void say_much(int fd)
{
    char byte;
    send_pattern(fd, 0, says_how_much);
    must(!close(waits[1]) && read(waits[0], &byte, 1) == 0);
    if (way == KILLED)
        raise(SIGKILL);
    _exit(0);
}

/* A program gets a connection whose other side is gone: what that has sent is there to be read, and then its end. */
void inherited_from_the_dead(void)
{
    static char got[200001], wanted[sizeof got];
    for (int i = 0; i < 16; i++) {
        int fd, out[2], unread = i & 1, passed = i & 4, before = i & 8 ? 1000 : 0;
        char *words[] = { "cat", NULL };
        posix_spawn_file_actions_t actions;
        size_t at = 0;
        way = i & 2 ? KILLED : LEFT_AT_ONCE;
        /* Behind a reset only what had arrived is there. */
        says_how_much = passed || unread ? 4000 : 200000;
        must(!pipe(waits) && !pipe2(out, O_CLOEXEC));
        pid_t dead = peer(&fd, say_much), child;
        receive_pattern(fd, 0, before);
        if (unread)
            send_all(fd, "unread", 6);
        must(!close(waits[0]) && !close(waits[1]));
        await(dead);
        must(!posix_spawn_file_actions_init(&actions));
        if (passed) {
            /* To the C library, which reads past us. */
            FILE *file = fdopen(dup(fd), "r");
            must(file && fread(got, 1, says_how_much - before, file) == (size_t)says_how_much - before);
            must(fread(got, 1, 1, file) == 0 && !ferror(file) == !unread && !fclose(file) && !close(fd));
            must(!close(out[0]) && !close(out[1]));
            continue;
        }
        must(!posix_spawn_file_actions_adddup2(&actions, fd, 0));
        must(!posix_spawn_file_actions_adddup2(&actions, out[1], 1));
        must(!posix_spawnp(&child, "cat", &actions, NULL, words, environ) && !close(out[1]));
        for (ssize_t n; (n = read(out[0], got + at, sizeof got - at)) > 0; at += n)
            ;
        pattern(wanted, before, says_how_much - before);
        must(at == (size_t)says_how_much - before && !memcmp(got, wanted, at));
        must(exit_status(child) == unread && !close(fd) && !close(out[0]));
        must(!posix_spawn_file_actions_destroy(&actions));
    }
}

/* Who reads no more gets what is there, and then an end at once; the other direction goes on. */
void shut_for_reading(void)
{
    char got[3], byte;
    int b, a = pair(&b);
    send_all(b, "abc", 3);
    must(!shutdown(a, SHUT_RD));
    receive_all(a, got, 3);
    must(!memcmp(got, "abc", 3));
    must(recv(a, &byte, 1, MSG_DONTWAIT) == 0 && recv(a, &byte, 1, 0) == 0 && recv(a, &byte, 1, MSG_DONTWAIT) == 0);
    send_all(a, "d", 1);
    receive_all(b, &byte, 1);
    must(byte == 'd' && !close(a) && recv(b, &byte, 1, 0) == 0 && !close(b));
}
