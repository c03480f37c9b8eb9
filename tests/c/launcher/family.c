/* A rank with descendants that are hard to find: a child in another session, without environment and orphaned.
   Prints "ready" when all of them run, then waits for ever, like them. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static void stubborn_orphan(int ready)
{
    if (fork() != 0)
        _exit(0);
    setsid();
    clearenv();
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (write(ready, "x", 1) != 1)
        _exit(1);
    wait_for_ever();
}

int main(int argc, char **argv)
{
    int ready[2];
    char byte;
    (void)argv;
    if (pipe(ready) != 0)
        return 1;
    for (int i = 0; i < 3; i++)
        if (fork() == 0)
            stubborn_orphan(ready[1]);
    for (int i = 0; i < 3; i++)
        if (read(ready[0], &byte, 1) != 1)
            return 1;
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (argc > 1)
        return 0;
    wait_for_ever();
}
