/* What the parts of the order oracle share. */
#include "../cases/cases.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

enum { MOST_CONNECTIONS = 12, MOST_SENDERS = 4, MOST_STEPS = 4000 };

/* By which way the bytes of a connection go. */
enum kind {
    RING,   /* both ends have talked until the library took it over */
    KERNEL, /* it has been given up by the library */
    FRESH   /* nobody has said anything yet */
};
enum mode { LEVEL, EDGE, ONCE };
enum act { SEND, CLOSE };

struct step {
    int connection, act;
};

/* A plan that senders and receiver know. Steps happen one after the other, whoever makes them: each waits for the one
   before, by a word in shared memory, which is the message in between. */
struct plan {
    int connections, senders, processes, steps;
    int kind[MOST_CONNECTIONS], mode[MOST_CONNECTIONS], sender[MOST_CONNECTIONS];
    struct step step[MOST_STEPS];
    struct sockaddr_in address;
    _Atomic int connecting, done, allowed;
};

/* A stream of numbers. */
uint64_t next_number(uint64_t *state);
int below(uint64_t *state, int bound);

/* Makes what belongs to this sender: its connections, and then its steps. */
void play(struct plan *plan, int sender);
void begin_senders(struct plan *plan, pid_t *children);
void end_senders(struct plan *plan, pid_t *children);
/* The receiver's end of the same beginning. */
void accept_all(struct plan *plan, int listener, int *ends);

/* Plays a plan to its end; how many calls have shown something out of order. `batch` steps are allowed at a time, or, where
   it is 0, some at random. */
int judge(struct plan *plan, uint64_t seed, int batch);
