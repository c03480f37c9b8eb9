/* Another user holds names of Unix sockets while a program runs:
 *
 *   squatter USER HOW NAME... -- PROGRAM ARGUMENT...
 *
 * HOW: listen, or bind only. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(99);
    }
}

static void hold(const char *name, int listens)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    size_t length = strlen(name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    memcpy(at.sun_path + 1, name, length);
    must(!bind(fd, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + 1 + length), name);
    must(!listens || !listen(fd, 8), "listen");
}

int main(int count, char **words)
{
    int ready[2], at = 3, user = atoi(words[1]);
    char byte;
    must(count > 4 && !pipe(ready), "pipe");
    pid_t child = fork();
    if (!child) {
        must(!setgid(user) && !setuid(user) && !prctl(PR_SET_PDEATHSIG, SIGKILL), "another user");
        for (; strcmp(words[at], "--"); at++)
            hold(words[at], !strcmp(words[2], "listen"));
        must(write(ready[1], "", 1) == 1, "write");
        for (;;)
            pause();
    }
    close(ready[1]);
    must(read(ready[0], &byte, 1) == 1, "the other user");
    close(ready[0]);
    while (strcmp(words[at], "--"))
        at++;
    /* The names go with this process, whatever it becomes. */
    execvp(words[at + 1], words + at + 1);
    must(0, words[at + 1]);
}
