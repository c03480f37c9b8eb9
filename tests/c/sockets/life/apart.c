/* Peers that do not answer, and processes that are numbered in another way. */
#include "life.h"
#include <sched.h>

static void say_and_stop(int fd)
{
    send_all(fd, "x", 1);
    raise(SIGSTOP);
}

static pid_t stopped_peer(int *fd)
{
    int status;
    pid_t child = peer(fd, say_and_stop);
    must(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    return child;
}

static void end(pid_t child)
{
    must(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
}

/* A program that cannot be started was to get a connection whose other side is stopped: the library has undone that, and
 * whatever is looked at later, nobody takes what is missing for an end. On the kernel it goes on. */
void cut_off_for_good(void)
{
    int fd;
    char byte;
    pid_t child = stopped_peer(&fd);
    send_all(fd, "unread", 6);
    must(execl("/nowhere/at/all", "all", NULL) == -1 && errno == ENOENT);
    struct pollfd one = { fd, POLLIN | POLLRDHUP, 0 };
    must(poll(&one, 1, getenv("LD_PRELOAD") ? 5000 : 0) >= 0);
    must(recv(fd, &byte, 1, 0) == 1 && byte == 'x');
    for (int i = 0; i < 3 && getenv("LD_PRELOAD"); i++) {
        must(poll(&one, 1, 5000) == 1);
        must(recv(fd, &byte, 1, 0) == -1);
    }
    end(child);
    must(!close(fd));
}

/* The next child begins a namespace of process numbers. */
static void number_children_anew(void)
{
    must(!unshare(CLONE_NEWPID) || !unshare(CLONE_NEWUSER | CLONE_NEWPID));
}

static int first;

static void say_and_do_something_else(int fd)
{
    must(!close(first));
    send_all(fd, "of second", 9);
    for (;;)
        pause();
}

/* Another program is given a connection, and reads what is expected. */
static void given_away(int fd, const char *expected)
{
    int out[2];
    char got[9], *words[] = { "head", "-c", "9", NULL };
    posix_spawn_file_actions_t actions;
    pid_t child;
    must(!pipe2(out, O_CLOEXEC) && !posix_spawn_file_actions_init(&actions));
    must(!posix_spawn_file_actions_adddup2(&actions, fd, 0));
    must(!posix_spawn_file_actions_adddup2(&actions, out[1], 1));
    must(!posix_spawnp(&child, "head", &actions, NULL, words, environ) && !close(out[1]));
    must(read(out[0], got, 9) == 9 && !memcmp(got, expected, 9) && exit_status(child) == 0);
    must(!posix_spawn_file_actions_destroy(&actions) && !close(out[0]));
}

/* A program gets two connections. The other side of the first one is stopped, that of the second one does something that
 * has nothing to do with it: it has its time to answer all the same. */
void one_is_stopped(void)
{
    int second;
    pid_t one = stopped_peer(&first), other = peer(&second, say_and_do_something_else);
    struct pollfd said = { second, POLLIN, 0 };
    must(poll(&said, 1, 5000) == 1 && first < second);
    given_away(second, "of second");
    end(one);
    end(other);
    must(!close(first) && !close(second));
}

static void nothing_to_do(int number)
{
    (void)number;
}

static void say_and_only_look(int fd)
{
    char byte;
    must(signal(SIGURG, nothing_to_do) != SIG_ERR);
    send_all(fd, "to a head", 9);
    for (;;) {
        must(recv(fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        usleep(100);
    }
}

/* The other side has a use of its own for the signal with which the library calls it, and never waits: it answers when it
 * looks. */
void one_only_looks(void)
{
    int fd;
    pid_t child = peer(&fd, say_and_only_look);
    struct pollfd said = { fd, POLLIN, 0 };
    must(poll(&said, 1, 5000) == 1);
    given_away(fd, "to a head");
    end(child);
    must(!close(fd));
}

static pid_t held_up;

static void say_stop_and_stay(int fd)
{
    send_all(fd, "x", 1);
    raise(SIGSTOP);
    for (;;)
        pause();
}

static void let_it_go_on(int number)
{
    (void)number;
    kill(held_up, SIGCONT);
}

/* This program has a use of its own for the signal with which the library calls it, and answers with its next call. */
static void say_and_let_the_first_go_on(int fd)
{
    struct pollfd nothing = { fd, POLLIN, 0 };
    must(!close(first) && signal(SIGURG, let_it_go_on) != SIG_ERR);
    send_all(fd, "of second", 9);
    for (;;) {
        pause();
        must(poll(&nothing, 1, 1) <= 0);
    }
}

/* The other side of a first connection is stopped, and goes on when that of a second one is called: a fork that takes both
 * back asks both before it waits for one. */
void one_is_stopped_at_a_fork(void)
{
    int second, status;
    char got[9];
    pid_t one = held_up = peer(&first, say_stop_and_stay);
    must(waitpid(one, &status, WUNTRACED) == one && WIFSTOPPED(status));
    pid_t other = peer(&second, say_and_let_the_first_go_on);
    struct pollfd said = { second, POLLIN, 0 };
    must(poll(&said, 1, 5000) == 1 && first < second);
    number_children_anew();
    pid_t child = fork();
    if (child == 0) {
        receive_all(first, got, 1);
        receive_all(second, got, 9);
        must(*got == 'o' && !memcmp(got, "of second", 9));
        exit(0);
    }
    ended_well(child);
    must(recv(first, got, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    must(recv(second, got, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    end(one);
    end(other);
    must(!close(first) && !close(second));
}

/* As two containers that share a network. */
void other_numbers(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 4));
    must(!getsockname(listener, (struct sockaddr *)&address, &length));
    number_children_anew();
    pid_t child = fork();
    if (child == 0) {
        must(getpid() == 1);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        must(!close(listener) && !connect(fd, (struct sockaddr *)&address, length));
        talk(fd, 2000);
        exit(0);
    }
    int fd = accept(listener, NULL, NULL);
    echo(fd);
    ended_well(child);
    must(!close(fd) && !close(listener));
}

/* Both of these use the same socket. */
void forked_into_other_numbers(void)
{
    int b, a = pair(&b);
    number_children_anew();
    send_all(b, "before", 6);
    pid_t child = fork();
    if (child == 0) {
        char got[6];
        must(getpid() == 1 && !close(b));
        receive_all(a, got, 6);
        must(!memcmp(got, "before", 6));
        receive_pattern(a, 0, 1 << 20);
        send_pattern(a, 0, 1 << 20);
        exit(0);
    }
    send_pattern(b, 0, 1 << 20);
    receive_pattern(b, 0, 1 << 20);
    ended_well(child);
    must(!close(a) && !close(b));
}
