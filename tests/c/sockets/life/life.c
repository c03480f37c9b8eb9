/* Ends, forks, programs started and threads cancelled in the middle of a connection. */
#include "life.h"

/* Children that fail to become another program, in each way of saying so: the parent's bytes are untouched, and those of
 * the child that stays. */
void failed_exec(void)
{
    static char sent[100000], got[sizeof sent];
    const char *nowhere = "/nonexistent/program";
    for (int way = 0; way < 4; way++) {
        int b, a = closing_pair(&b);
        memset(sent, 'Q', sizeof sent);
        send_all(a, sent, sizeof sent);
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            int failed = way == 0 ? execl(nowhere, "1", "2", "3", "4", "5", "6", "7", "8", "9", (char *)NULL)
                       : way == 1 ? execlp(nowhere, "x", (char *)NULL)
                       : way == 2 ? execle(nowhere, "x", (char *)NULL, environ)
                                  : execv(nowhere, (char *[]){ "x", NULL });
            must(failed == -1 && errno == ENOENT);
            _exit(7);
        }
        must(exit_status(child) == 7);
        must(!close(a));
        receive_all(b, got, sizeof got);
        must(!memcmp(sent, got, sizeof got) && read(b, got, 1) == 0 && !close(b));
    }
}

/* The words of execl and execle come over whole, from registers and from the stack. */
void listed_words(void)
{
    const char *script = "test \"$#,$1,$9\" = 9,1,9 && test \"${WORD-none}\" = \"$0\"";
    char *environment[] = { "WORD=there", NULL };
    pid_t child = fork();
    if (child == 0)
        execl("/bin/sh", "sh", "-c", script, "none", "1", "2", "3", "4", "5", "6", "7", "8", "9", (char *)NULL);
    must(exit_status(child) == 0);
    child = fork();
    if (child == 0)
        execle("/bin/sh", "sh", "-c", script, "there", "1", "2", "3", "4", "5", "6", "7", "8", "9", (char *)NULL,
               environment);
    must(exit_status(child) == 0);
    child = fork();
    if (child == 0)
        execlp("sh", "sh", "-c", "exit 5", (char *)NULL);
    must(exit_status(child) == 5);
}

static int shared_fd, shared_set;
static ssize_t shared_answer;
static int shared_error;

static void *receive_one(void *argument)
{
    char byte;
    shared_answer = recv(shared_fd, &byte, 1, 0);
    shared_error = errno;
    return argument;
}

static void *read_one(void *argument)
{
    char byte;
    shared_answer = read(shared_fd, &byte, 1);
    return argument;
}

static void *poll_one(void *argument)
{
    struct pollfd one = { shared_fd, POLLIN, 0 };
    poll(&one, 1, -1);
    return argument;
}

static void *wait_set(void *argument)
{
    struct epoll_event event;
    epoll_wait(shared_set, &event, 1, -1);
    return argument;
}

static void *send_much(void *argument)
{
    static char much[4 << 20];
    shared_answer = send(shared_fd, much, sizeof much, MSG_NOSIGNAL);
    return argument;
}

/* Starts a thread that is going to block; there is nothing to wait for but time. */
static pthread_t blocked(void *(*body)(void *))
{
    pthread_t thread;
    must(!pthread_create(&thread, NULL, body, NULL));
    usleep(100000);
    return thread;
}

/* A thread is cancelled in each call that blocks, and the connection works on. */
void cancelled_calls(void)
{
    void *(*bodies[])(void *) = { receive_one, read_one, poll_one, wait_set, send_much };
    int pipe_ends[2];
    must(!pipe(pipe_ends));
    for (int plain = 0; plain < 2; plain++) {
        for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
            if (plain && (bodies[i] == receive_one || bodies[i] == send_much))
                continue;
            int b, a = closing_pair(&b);
            char byte = 'c';
            void *result;
            struct epoll_event event = { .events = EPOLLIN };
            shared_fd = plain ? pipe_ends[0] : a;
            must((shared_set = epoll_create1(0)) >= 0 && !epoll_ctl(shared_set, EPOLL_CTL_ADD, shared_fd, &event));
            for (int again = 0; again < 2; again++) {
                pthread_t thread = blocked(bodies[i]);
                must(!pthread_cancel(thread));
                join_in_time(thread, &result);
                must(result == PTHREAD_CANCELED);
            }
            send_all(b, &byte, 1);
            receive_all(a, &byte, 1);
            must(!close(a) && !close(b) && !close(shared_set));
        }
    }
    must(!close(pipe_ends[0]) && !close(pipe_ends[1]));
}

/* A receive without room waits for a byte and leaves it; a read without room does not. */
void no_room(void)
{
    int b, a = closing_pair(&b);
    char byte = 'n';
    must(read(a, &byte, 0) == 0);
    must(recv(a, &byte, 0, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        send_all(b, &byte, 1);
        _exit(0);
    }
    must(recv(a, &byte, 0, 0) == 0);
    must(recv(a, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'n');
    must(exit_status(child) == 0 && !close(a) && !close(b));
}

/* A low-water mark above what the library holds at once. */
void high_low_water(void)
{
    int b, a = closing_pair(&b), mark = 400000, room = 4 << 20;
    must(!setsockopt(a, SOL_SOCKET, SO_RCVBUF, &room, sizeof room));
    must(!setsockopt(a, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    shared_fd = b;
    pthread_t sender = blocked(send_much);
    static char got[65536];
    for (size_t left = 4 << 20; left > 0;) {
        struct pollfd one = { a, POLLIN, 0 };
        if (left < (size_t)mark) {
            mark = 1;
            must(!setsockopt(a, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
        }
        must(poll(&one, 1, 5000) == 1);
        ssize_t came = recv(a, got, sizeof got, MSG_DONTWAIT);
        must(came > 0);
        left -= came;
    }
    join_in_time(sender, NULL);
    must(shared_answer == 4 << 20 && !close(a) && !close(b));
}

/* The standard output of this process is a connection for a while. */
void standard_output(void)
{
    int b, a = closing_pair(&b), before = dup(1);
    char got[6] = "";
    must(dup2(a, 1) == 1);
    printf("hello");
    must(!fflush(stdout) && dup2(before, 1) == 1 && !close(before));
    receive_all(b, got, 5);
    must(!strcmp(got, "hello") && !close(a) && !close(b));
}

/* A thread is in a receive when another shuts the connection down, closes it, and gets the number for another file. */
void closed_under_a_call(void)
{
    for (int i = 0; i < 10; i++) {
        int b, pair[2];
        shared_fd = closing_pair(&b);
        pthread_t thread = blocked(receive_one);
        must(!shutdown(shared_fd, SHUT_RDWR) && !close(shared_fd));
        must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        join_in_time(thread, NULL);
        must(shared_answer == 0);
        must(!close(b) && !close(pair[0]) && !close(pair[1]));
    }
}

/* A thread is blocked in a send when another shuts that direction. */
void shut_under_a_send(void)
{
    int b;
    shared_fd = closing_pair(&b);
    pthread_t thread = blocked(send_much);
    must(!shutdown(shared_fd, SHUT_WR));
    join_in_time(thread, NULL);
    must(shared_answer > 0 && shared_answer < 4 << 20);
    must(!close(shared_fd) && !close(b));
}

/* A program is started with a connection as its standard input, which would close on exec under its own number. */
void spawned_with_actions(void)
{
    int b, a = closing_pair(&b), out[2];
    char got[6] = "", *words[] = { "head", "-c", "5", NULL };
    posix_spawn_file_actions_t actions;
    pid_t child;
    must(!pipe2(out, O_CLOEXEC) && !posix_spawn_file_actions_init(&actions));
    must(!posix_spawn_file_actions_adddup2(&actions, a, 0));
    must(!posix_spawn_file_actions_adddup2(&actions, out[1], 1));
    must(!posix_spawnp(&child, "head", &actions, NULL, words, environ));
    must(!posix_spawn_file_actions_destroy(&actions));
    send_all(b, "hello", 5);
    must(read(out[0], got, 5) == 5 && !strcmp(got, "hello") && exit_status(child) == 0);
    must(!close(a) && !close(b) && !close(out[0]) && !close(out[1]));
}

/* Who closes with unread bytes resets the connection; who has read everything ends it. */
void closed_unread(void)
{
    char byte = 'u';
    for (int unread = 0; unread < 2; unread++) {
        int b, a = closing_pair(&b);
        if (unread)
            send_all(a, &byte, 1);
        must(!close(b));
        struct pollfd one = { a, POLLIN, 0 };
        must(poll(&one, 1, 5000) == 1);
        ssize_t came = recv(a, &byte, 1, 0);
        must(unread ? came == -1 && errno == ECONNRESET : came == 0);
        must(!close(a));
    }
}

static void *fork_often(void *argument)
{
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0)
            _exit(0);
        must(exit_status(child) == 0);
    }
    return argument;
}

/* Two threads fork at once, again and again, while the connection lives. */
void two_forkers(void)
{
    int b, a = closing_pair(&b);
    char got[5] = "";
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        must(!pthread_create(&threads[i], NULL, fork_often, NULL));
    for (int i = 0; i < 2; i++)
        must(!pthread_join(threads[i], NULL));
    for (int i = 0; i < 40; i++) {
        send_all(a, "ring", 4);
        receive_all(b, got, 4);
        must(!strcmp(got, "ring"));
    }
    must(!close(a) && read(b, got, 1) == 0 && !close(b));
}
