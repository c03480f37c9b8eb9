/* How a command that stays beside its program deals with signals and a terminal.
 *
 *   stopping count          counts SIGRTMIN until SIGRTMIN+1 comes, says when the first has come, and at the end how many
 *   stopping alone          stops by itself, as a program does whose keys mean nothing to the terminal, and says that it goes on
 *   stopping apart          the same, in a process group of its own that has the terminal, as a shell does
 *   stopping shell WORDS... is a shell with job control on a terminal of its own, and runs the words there: continues them in
 *                           the foreground when they have stopped, and says how they end */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int terminal;

/* Says a line on the standard error output, which is a pipe. */
static void say(const char *what)
{
    dprintf(2, "%s\n", what);
}

static int count(void)
{
    sigset_t set;
    int signal, times = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    puts("ready");
    fflush(stdout);
    while (!sigwait(&set, &signal) && signal == SIGRTMIN)
        if (++times == 1) {
            puts("one");
            fflush(stdout);
        }
    printf("%d\n", times);
    return 0;
}

static int stop(int apart)
{
    signal(SIGTTOU, SIG_IGN);
    if (apart && (setpgid(0, 0) || tcsetpgrp(0, getpgrp())))
        return 9;
    raise(SIGSTOP);
    say(tcgetpgrp(0) == getpgrp() ? "goes on with the terminal" : "goes on without the terminal");
    return 3;
}

static int shell(char **words)
{
    int status;
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (!job) {
        setpgid(0, 0);
        tcsetpgrp(0, getpgrp());
        signal(SIGTTOU, SIG_DFL);
        execv(words[0], words);
        _exit(98);
    }
    setpgid(job, job);
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        say("stopped");
        tcsetpgrp(0, getpgrp());
        tcsetpgrp(0, job);
        kill(-job, SIGCONT);
    }
    dprintf(2, "code %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}

int main(int argc, char **words)
{
    const char *kind = argc > 1 ? words[1] : "";
    if (!strcmp(kind, "count"))
        return count();
    if (!strcmp(kind, "alone") || !strcmp(kind, "apart"))
        return stop(!strcmp(kind, "apart"));
    if (argc < 3 || strcmp(kind, "shell"))
        return 2;
    int said = dup(2);
    pid_t inside = forkpty(&terminal, NULL, NULL, NULL);
    if (!inside) {
        dup2(said, 2);
        close(said);
        /* Nobody waits for ever where nothing stops. */
        alarm(20);
        return shell(words + 2);
    }
    waitpid(inside, NULL, 0);
    return 0;
}
