/* Children that become another user and start programs in several ways, with a variable of their own beside those they have.
 *
 *   other_user USER */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Whether the variables that the program has beside its list of libraries are all there. */
static char *check[] = { "sh", "-c", "test \"$KEPT\" = yes && test -n \"$PATH\"", NULL };

static int start(int way)
{
    switch (way) {
    case 0: return execve("/bin/sh", check, environ);
    case 1: return execv("/bin/sh", check);
    case 2: return execvp("sh", check);
    default: return execvpe("sh", check, environ);

    }
}

int main(int count, char **words)
{
    int status, user = count == 2 ? atoi(words[1]) : 0;
    setenv("KEPT", "yes", 1);
    for (int way = 0; way < 4; way++) {
        pid_t child = fork();
        if (!child) {
            if (setgid(user) || setuid(user))
                _exit(99);
            start(way);
            _exit(98);
        }
        if (waitpid(child, &status, 0) != child || status) {
            fprintf(stderr, "other_user: way %d: %#x\n", way, status);
            return 1;
        }
    }
    return 0;
}
