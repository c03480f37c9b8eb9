/* What a program may see of TCP sockets, one case each; run with and without the library, it must see the same.
 *
 *   behaviour CASE... | all | list
 *
 * Both ends are in this process, or in a child of it. Prints one line per case. */
#include "behaviour.h"

const char *name = "?";

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    { "end_follows_data", end_follows_data },
    { "closed_peer_gives_epipe", closed_peer_gives_epipe },
    { "broken_pipe_signal", broken_pipe_signal },
    { "timeouts", timeouts },
    { "interrupted", interrupted },
    { "flags", flags },
    { "urgent", urgent },
    { "duplicates", duplicates },
    { "forked", forked },
    { "executed", executed },
    { "spawned", spawned },
    { "standard_io", standard_io },
    { "passed", passed },
    { "peer_killed", peer_killed },
    { "shut_by_a_thread", shut_by_a_thread },
    { "cancelled", cancelled },
    { "readiness", readiness },
    { "sets", sets },
    { "edges", edges },
    { "nested_sets", nested_sets },
    { "two_sleepers", two_sleepers },
    { "registered_beside", registered_beside },
    { "filled_beside", filled_beside },
    { "forked_beside", forked_beside },
    { "killed_behind_a_full_ring", killed_behind_a_full_ring },
    { "answers_of_two_threads", answers_of_two_threads },
    { "used_beside_poll", used_beside_poll },
    { "all_else_closed", all_else_closed },
    { "files", files },
};

int main(int argc, char **argv)
{
    int failed = 0, run = 0;
    if (argc == 2 && !strcmp(argv[1], "list")) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            puts(cases[i].name);
        return 0;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int wanted = argc > 1 && !strcmp(argv[1], "all");
        for (int at = 1; at < argc; at++)
            wanted |= !strcmp(argv[at], cases[i].name);
        if (!wanted)
            continue;
        run++;
        name = cases[i].name;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            cases[i].run();
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        printf("%s: %s (%d)\n", name, status ? "FAILED" : "passed", status);
        failed += status != 0;
    }
    return failed || !run;
}
