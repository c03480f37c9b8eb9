/* The order in which a set tells of events, by plans that are known to senders and receiver.
 *
 *   order variant KIND,KIND ACT MODE process|thread ROUNDS   two connections: always something on the first, then on the second
 *   order random OPERATIONS SEED                             as many as there may be, of all kinds, from all senders
 *   order strangers OPERATIONS SEED                          the same, also from processes that have no ring
 *
 * Prints how many calls have shown something out of order; 1 is answered where some have. */
#include "order.h"

#include <sys/prctl.h>

struct player {
    struct plan *plan;
    int sender;
    pthread_t thread;
};
static struct player players[MOST_SENDERS];

static void *play_in_thread(void *argument)
{
    struct player *player = argument;
    play(player->plan, player->sender);
    return NULL;
}

/* The first `processes` of the senders are processes, the others threads of the receiver's. */
void begin_senders(struct plan *plan, pid_t *children)
{
    for (int at = 0; at < plan->processes; at++) {
        children[at] = fork();
        must(children[at] >= 0);
        if (children[at] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            play(plan, at);
            exit(0);
        }
    }
    for (int at = plan->processes; at < plan->senders; at++) {
        players[at] = (struct player){ .plan = plan, .sender = at };
        must(!pthread_create(&players[at].thread, NULL, play_in_thread, &players[at]));
    }
}

void end_senders(struct plan *plan, pid_t *children)
{
    for (int at = 0; at < plan->processes; at++)
        ended_well(children[at]);
    for (int at = plan->processes; at < plan->senders; at++)
        must(!pthread_join(players[at].thread, NULL));
}

static struct plan *new_plan(void)
{
    struct plan *plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(plan != MAP_FAILED);
    return plan;
}

static int word(const char *given, const char *const *words)
{
    for (int at = 0; words[at]; at++)
        if (!strcmp(given, words[at]))
            return at;
    fprintf(stderr, "'%s' is not known\n", given);
    exit(2);
}

static const char *const kinds[] = { "ring", "kernel", "fresh", NULL };
static const char *const modes[] = { "level", "edge", "once", NULL };
static const char *const acts[] = { "send", "close", NULL };
static const char *const places[] = { "thread", "process", NULL };

static int play_variant(char **words)
{
    char *first = strtok(words[0], ","), *second = strtok(NULL, ",");
    int rounds = atoi(words[4]), closes = word(words[1], acts) == CLOSE, mode = word(words[2], modes), wrong = 0;
    /* What is closed is a new connection each time. */
    int plans = closes ? rounds : 1, in_each = rounds / plans;
    must(first && second && rounds * 2 <= MOST_STEPS);
    for (int at = 0; at < plans; at++) {
        struct plan *plan = new_plan();
        plan->connections = 2;
        plan->senders = 1;
        plan->processes = word(words[3], places);
        plan->steps = 2 * in_each;
        plan->kind[0] = word(first, kinds);
        plan->kind[1] = word(second, kinds);
        for (int step = 0; step < plan->steps; step++)
            plan->step[step] = (struct step){ step % 2, step % 2 == 0 && closes ? CLOSE : SEND };
        plan->mode[0] = plan->mode[1] = mode;
        wrong += judge(plan, at + 1, 2);
        must(!munmap(plan, sizeof *plan));
    }
    printf("%d of %d\n", wrong, rounds);
    return wrong > 0;
}

/* Who shares no memory with the receiver cannot tell it when things happened. */
static void give_each_a_ring(struct plan *plan)
{
    for (int sender = 0; sender < plan->processes; sender++) {
        int its = -1, rings = 0;
        for (int at = 0; at < plan->connections; at++) {
            if (plan->sender[at] != sender)
                continue;
            its = at;
            rings += plan->kind[at] == RING;
        }
        if (its >= 0 && rings == 0)
            plan->kind[its] = RING;
    }
}

static void make_up(struct plan *plan, int steps, int strangers, uint64_t *random)
{
    int alive[MOST_CONNECTIONS];
    plan->connections = 2 + below(random, MOST_CONNECTIONS - 1);
    plan->senders = 1 + below(random, MOST_SENDERS);
    plan->processes = below(random, plan->senders + 1);
    plan->steps = steps;
    for (int at = 0; at < plan->connections; at++) {
        alive[at] = 1;
        plan->kind[at] = below(random, 4) ? RING : 1 + below(random, 2);
        plan->mode[at] = below(random, 3);
        plan->sender[at] = below(random, plan->senders);
    }
    if (!strangers)
        give_each_a_ring(plan);
    for (int step = 0, ended = 0; step < steps; step++) {
        int at = below(random, plan->connections), closes = !below(random, 40) && ended + 2 < plan->connections;
        while (!alive[at])
            at = (at + 1) % plan->connections;
        plan->step[step] = (struct step){ at, closes ? CLOSE : SEND };
        alive[at] = !closes;
        ended += closes;
    }
}

static int play_random(int operations, int strangers, uint64_t seed)
{
    int wrong = 0;
    uint64_t random = seed;
    for (int done = 0; done < operations;) {
        struct plan *plan = new_plan();
        int steps = 20 + below(&random, 400);
        make_up(plan, steps, strangers, &random);
        wrong += judge(plan, next_number(&random), 0);
        must(!munmap(plan, sizeof *plan));
        done += steps;
    }
    printf("%d wrong of %d, seed %llu\n", wrong, operations, (unsigned long long)seed);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    program = argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 7 && !strcmp(argv[1], "variant"))
        return play_variant(argv + 2);
    if (argc == 4 && (!strcmp(argv[1], "random") || !strcmp(argv[1], "strangers")))
        return play_random(atoi(argv[2]), argv[1][0] == 's', strtoull(argv[3], NULL, 0));
    fprintf(stderr, "order variant KIND,KIND ACT MODE process|thread ROUNDS | random|strangers OPERATIONS SEED\n");
    return 2;
}
