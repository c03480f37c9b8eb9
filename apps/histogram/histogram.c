/*
 * A histogram that lies on all processes, by Active Messages: each draws random numbers and has each counted by
 * the process that has its bucket, whose handler adds it. A reply says that it was added; so many may be on their way.
 *
 *     cc -O2 histogram.c -o histogram $(pkg-config --cflags --libs weft-am)
 *     weft run -n 4 ./histogram 200000
 */
#include <amudp_spmd.h>
#include <stdlib.h>

enum { BUCKETS = 40, LONGEST = 50, WINDOW = 64 };
enum { ADD = 1, ADDED };

static long buckets[BUCKETS];
static int on_their_way;

static void on_add(void *token, int bucket, int count)
{
    if (bucket >= 0 && bucket < BUCKETS)
        buckets[bucket] += count;
    AM_Reply0(token, ADDED);
}

static void on_added(void *token)
{
    (void)token;
    on_their_way--;
}

/* The sum of some dice, so that the middle is likely. */
static int draw(unsigned *state)
{
    int sum = 0;
    for (int die = 0; die < 4; die++) {
        *state = *state * 1103515245u + 12345u;
        sum += (int)(*state >> 16) % (BUCKETS / 4);
    }
    return sum;
}

int main(int argc, char **argv)
{
    eb_t bundle;
    ep_t ep;
    AMUDP_SPMDStartup(&argc, &argv, 0, 0, NULL, NULL, &bundle, &ep);
    AM_SetHandler(ep, ADD, on_add);
    AM_SetHandler(ep, ADDED, on_added);
    AMUDP_SPMDBarrier();

    int me = AMUDP_SPMDMyProc(), all = AMUDP_SPMDNumProcs();
    long draws = argc > 1 ? atol(argv[1]) : 100000;
    unsigned state = 7u + (unsigned)me;
    for (long number = 0; number < draws; number++) {
        int bucket = draw(&state);
        while (on_their_way >= WINDOW)
            AM_Poll(bundle);
        on_their_way++;
        AM_Request2(ep, bucket % all, ADD, bucket, 1);
    }
    while (on_their_way > 0)
        AM_Poll(bundle);
    AMUDP_SPMDBarrier();

    long *parts = calloc((size_t)all * BUCKETS, sizeof *parts), sum = 0, highest = 1;
    AMUDP_SPMDAllGather(buckets, parts, sizeof buckets);
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
        long count = buckets[bucket] = parts[bucket % all * BUCKETS + bucket];
        sum += count;
        highest = count > highest ? count : highest;
    }
    for (int bucket = 0; bucket < BUCKETS && me == 0; bucket++)
        printf("%2d %8ld %.*s\n", bucket, buckets[bucket], (int)(buckets[bucket] * LONGEST / highest),
               "##################################################");
    if (me == 0)
        printf("%ld numbers of %d processes\n", sum, all);
    fflush(stdout);
    free(parts);
    AMUDP_SPMDBarrier();
    return AMUDP_SPMDExit(sum != draws * all);
}
