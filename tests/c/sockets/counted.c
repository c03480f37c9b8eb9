/* One connection to 127.0.0.1, some messages and their echoes on it, and one of several ways to end.
 *
 *   counted PORT ENDING [inq]     with inq: the socket has the option TCP_INQ
 *   counted pair MESSAGES         a connection to a child, which echoes
 *   counted quiet MESSAGES        a connection whose two ends are ours, with as many calls on each as the library waits
 *                                 for; says its number, waits for a line, and then sends messages on another one
 *
 * ENDING: return, _exit (both with code 7), kill, exec (of `true`), term (says "ready", and ends with 3 by SIGTERM), stop (says
 * "ready", stops at SIGTSTP and ends with 4 when it goes on). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef TCP_INQ
#define TCP_INQ 36
#endif

enum { MESSAGES = 200, BYTES = 8 };

static void die(const char *what)
{
    fprintf(stderr, "counted: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void must(int holds, const char *what)
{
    if (!holds)
        die(what);
}

/* As many bytes, or none where the other end is closed. */
static int receive(int fd, char *to)
{
    int came = 0;
    while (came < BYTES) {
        ssize_t more = recv(fd, to + came, BYTES - came, 0);
        must(more >= 0, "recv");
        if (!more)
            return 0;
        came += more;
    }
    return 1;
}

static void talk(int fd, int messages)
{
    char out[BYTES], in[BYTES];
    for (int i = 0; i < messages; i++) {
        memset(out, i, BYTES);
        must(send(fd, out, BYTES, 0) == BYTES, "send");
        must(receive(fd, in) && !memcmp(in, out, BYTES), "the echo");
    }
}

static int call(int port, const char *option)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    must(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof to), "connect");
    must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
    if (option && !strcmp(option, "inq"))
        must(!setsockopt(fd, IPPROTO_TCP, TCP_INQ, &one, sizeof one), "TCP_INQ");
    return fd;
}

static void pair(int messages)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), status;
    must(listener >= 0 && !bind(listener, (struct sockaddr *)&at, length) && !listen(listener, 1), "listen");
    must(!getsockname(listener, (struct sockaddr *)&at, &length), "getsockname");
    pid_t child = fork();
    if (!child) {
        char message[BYTES];
        int fd = accept(listener, NULL, NULL);
        must(fd >= 0, "accept");
        while (receive(fd, message))
            must(send(fd, message, BYTES, 0) == BYTES, "send");
        _exit(0);
    }
    int fd = call(ntohs(at.sin_port), NULL);
    talk(fd, messages);
    must(!close(fd) && waitpid(child, &status, 0) == child && !status, "the child");
}

/* Messages one way, on a connection whose two ends are ours. */
static void one_way(int messages)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof at;
    char message[BYTES] = "message";
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(listener >= 0 && !bind(listener, (struct sockaddr *)&at, length) && !listen(listener, 1), "listen");
    must(!getsockname(listener, (struct sockaddr *)&at, &length), "getsockname");
    int from = call(ntohs(at.sin_port), NULL), to = accept(listener, NULL, NULL);
    must(to >= 0, "accept");
    for (int i = 0; i < messages; i++) {
        must(send(from, message, BYTES, 0) == BYTES && receive(to, message), "a message");
        /* The rendezvous wants the core, too. */
        if (i > 20)
            usleep(100);
    }
}

static void quiet(int messages)
{
    enum { CALLS_UNTIL_SHOWN = 4 };
    char line[2];
    one_way(CALLS_UNTIL_SHOWN);
    printf("%d\n", (int)getpid());
    must(!fflush(stdout) && read(0, line, sizeof line) > 0, "a line");
    one_way(messages);
}

static void by_term(int number)
{
    (void)number;
    _exit(3);
}

static void end(const char *how)
{
    if (!strcmp(how, "_exit"))
        _exit(7);
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    if (!strcmp(how, "exec"))
        execl("/bin/true", "true", NULL);
    if (!strcmp(how, "term"))
        must(signal(SIGTERM, by_term) != SIG_ERR, "signal");
    if (!strcmp(how, "term") || !strcmp(how, "stop"))
        must(write(1, "ready\n", 6) == 6, "write");
    if (!strcmp(how, "term"))
        for (;;)
            pause();
    if (!strcmp(how, "stop")) {
        raise(SIGTSTP);
        exit(4);
    }
}

int main(int count, char **words)
{
    if (count == 3 && !strcmp(words[1], "pair")) {
        pair(atoi(words[2]));
        return 0;
    }
    if (count == 3 && !strcmp(words[1], "quiet")) {
        quiet(atoi(words[2]));
        return 0;
    }
    must(count >= 3, "arguments");
    talk(call(atoi(words[1]), words[3]), MESSAGES);
    end(words[2]);
    return 7;
}
