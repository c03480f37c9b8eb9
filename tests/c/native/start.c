/* A process starts others, talks to them, signals them and is told how they end. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

enum { PORT = 1, READY = 1, WORK = 2, END = 3 };
enum { LEAVE, FAIL, STAY };

static const char *arguments[] = {"a word", "", NULL};

/* What is started tells on which host it is, and does what it is told. */
static int worker(int count, char **words)
{
    char host[256];
    int parent = weft_parent(), me = weft_me(), work, number;
    CHECK(count == 3 && strcmp(words[1], "a word") == 0 && words[2][0] == 0);
    CHECK(parent == weft_size() && weft_port_open(PORT) == PORT);
    CHECK(weft_host_name(weft_host_of(me), host, sizeof host) == 0);
    CHECK(weft_send(parent, PORT, READY, host, strlen(host) + 1) == 0);
    CHECK(weft_receive(PORT, parent, WORK, &work, sizeof work, NULL) == 0);
    /* They are a job of their own. */
    CHECK(weft_send((me + 1) % weft_size(), PORT, READY, &me, sizeof me) == 0);
    CHECK(weft_receive(PORT, (me + weft_size() - 1) % weft_size(), READY, &number, sizeof number, NULL) == 0);
    CHECK(weft_send(parent, PORT, READY, NULL, 0) == 0);
    while (work == STAY)
        CHECK(weft_select(NULL, 0, NULL, 0, -1, NULL) >= 0);
    CHECK(weft_finish() == 0);
    return work == FAIL ? 3 : 0;
}

/* The next end that is told: of whom, and how. */
static void ends(int process, int how, int code, int number)
{
    struct weft_pick pick = {PORT, weft_me(), END};
    struct weft_message message;
    struct weft_end end;
    CHECK(weft_select(&pick, 1, NULL, 0, 30000, &message) == 1);
    CHECK(weft_receive(PORT, weft_me(), END, &end, sizeof end, &message) == 0 && message.length == sizeof end);
    CHECK(end.process == process && end.how == how && end.code == code && end.signal == number);
}

static void tell(int process, int work)
{
    CHECK(weft_send(process, PORT, WORK, &work, sizeof work) == 0);
}

static void together(const char *program)
{
    int workers[3];
    CHECK(weft_start(program, arguments, 3, NULL, workers) == 0);
    for (int at = 0; at < 3; at++) {
        char host[256];
        CHECK(workers[at] >= weft_size() && weft_notify(workers[at], PORT, END) == 0);
        CHECK(weft_receive(PORT, workers[at], READY, host, sizeof host, NULL) == 0);
        tell(workers[at], at == 0 ? FAIL : STAY);
    }
    for (int at = 0; at < 3; at++)
        CHECK(weft_receive(PORT, workers[at], READY, NULL, 0, NULL) == 0);
    ends(workers[0], WEFT_LOST, 3, 0);
    /* One that is killed does not end the other. */
    CHECK(weft_signal(workers[2], SIGKILL) == 0);
    ends(workers[2], WEFT_LOST, -1, SIGKILL);
    FAILS(weft_signal(workers[2], SIGKILL), WEFT_ERR_LOST, "has ended");
    CHECK(weft_select(NULL, 0, NULL, 0, 100, NULL) == 0 && weft_has_left(workers[1]) == 0);
    FAILS(weft_signal(workers[1], 0), WEFT_ERR_ARGUMENT, "1 to 64");
    FAILS(weft_signal(workers[1], 65), WEFT_ERR_ARGUMENT, "signal 65");
    CHECK(weft_signal(workers[1], SIGTERM) == 0);
    ends(workers[1], WEFT_LOST, -1, SIGTERM);
    while (weft_has_left(workers[1]) == 0)
        CHECK(weft_select(NULL, 0, NULL, 0, 1, NULL) == 0);
    CHECK(weft_has_left(workers[1]) == WEFT_LOST);
    CHECK(weft_notify(workers[1], PORT, END) == 0);
    ends(workers[1], WEFT_LOST, -1, SIGTERM);
}

static void on_each_host(const char *program)
{
    for (int number = 0; number < weft_hosts(); number++) {
        char name[256], host[256];
        int one;
        CHECK(weft_host_name(number, name, sizeof name) == 0);
        CHECK(weft_start(program, arguments, 1, name, &one) == 0 && weft_notify(one, PORT, END) == 0);
        CHECK(weft_receive(PORT, one, READY, host, sizeof host, NULL) == 0 && strcmp(host, name) == 0);
        tell(one, LEAVE);
        CHECK(weft_receive(PORT, one, READY, NULL, 0, NULL) == 0);
        ends(one, WEFT_LEFT, 0, 0);
    }
}

static void wrongly(const char *program)
{
    int one;
    FAILS(weft_start("./no-such-program", NULL, 1, NULL, NULL), WEFT_ERR_START, "no-such-program");
    FAILS(weft_start("/bin/true", NULL, 1, NULL, &one), WEFT_ERR_START, "before");
    FAILS(weft_start(program, NULL, 1, "no such host", &one), WEFT_ERR_START, "host 'no such host'");
    FAILS(weft_start(NULL, NULL, 1, NULL, &one), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_start("", NULL, 1, NULL, &one), WEFT_ERR_ARGUMENT, "empty");
    FAILS(weft_start(program, NULL, 0, NULL, &one), WEFT_ERR_ARGUMENT, "0 processes");
    FAILS(weft_start(program, NULL, -4, NULL, &one), WEFT_ERR_ARGUMENT, "-4 processes");
    FAILS(weft_start(program, NULL, 0x7fffffff, NULL, NULL), WEFT_ERR_START, "2147483647");
    FAILS(weft_parent(), WEFT_ERR_PROCESS, "no process has started");
    FAILS(weft_signal(99, SIGTERM), WEFT_ERR_PROCESS, "no process 99");
    FAILS(weft_notify(weft_me(), PORT, END), WEFT_ERR_ARGUMENT, "is this one");
    FAILS(weft_notify(-1, PORT, END), WEFT_ERR_PROCESS, "no process -1");
}

static volatile sig_atomic_t signalled;

static void note(int number)
{
    signalled = number;
}

/* Processes of one job signal each other, and a process itself; where nobody has launched it, nobody does. */
static void inside(void)
{
    int next = (weft_me() + 1) % weft_size();
    signal(SIGUSR1, note);
    if (!getenv("WEFT_JOB")) {
        FAILS(weft_signal(next, SIGUSR1), WEFT_ERR_PROCESS, "weft run has not started it");
        return;
    }
    CHECK(weft_send(next, PORT, READY, NULL, 0) == 0 && weft_receive(PORT, WEFT_ANY, READY, NULL, 0, NULL) == 0);
    CHECK(weft_signal(next, SIGUSR1) == 0);
    while (signalled != SIGUSR1)
        CHECK(weft_select(NULL, 0, NULL, 0, 1, NULL) == 0);
}

int main(int count, char **words)
{
    CHECK(weft_init(0) == 0);
    if (weft_parent() >= 0)
        return worker(count, words);
    CHECK(weft_port_open(PORT) == PORT);
    wrongly(words[0]);
    inside();
    together(words[0]);
    on_each_host(words[0]);
    /* The end of a process of the same job. */
    if (weft_me() == 0 && weft_size() == 2) {
        CHECK(weft_notify(1, PORT, END) == 0);
        ends(1, WEFT_LEFT, -1, 0);
        puts("ok");
    } else if (weft_size() == 1)
        puts("ok");
    CHECK(weft_finish() == 0);
    return 0;
}
