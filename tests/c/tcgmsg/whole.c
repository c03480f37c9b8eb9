/* TCGMSG through its C interface: messages of all lengths, from one and from any, both ways at once, asynchronous ones,
   what all do together, the shared counter, a file that is copied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "msgtypesc.h"
#include "tcgmsg.h"

static long me, nodes;

#define NEED(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            tcg_error("not so: " #what ", line", __LINE__);                                                            \
    } while (0)

static void fill(char *bytes, long length, long seed) {
    for (long i = 0; i < length; i++)
        bytes[i] = (char)(i * 7 + i / 251 + seed);
}

static int is_filled(const char *bytes, long length, long seed) {
    for (long i = 0; i < length; i++)
        if (bytes[i] != (char)(i * 7 + i / 251 + seed))
            return 0;
    return 1;
}

static const long LENGTHS[] = {0, 1, 8, 48, 49, 64, 4096, 65536, 65537, 3000000};
enum { KINDS = sizeof LENGTHS / sizeof LENGTHS[0], LONGEST = 3000000 };

static void ring(void) {
    long right = (me + 1) % nodes, left = (me + nodes - 1) % nodes, length, from;
    char *out = malloc(LONGEST), *in = malloc(LONGEST);
    for (int kind = 0; kind < KINDS; kind++) {
        fill(out, LENGTHS[kind], me + kind);
        /* Asynchronous, since all send before they receive. */
        tcg_snd(100 + kind, out, LENGTHS[kind], right, 0);
        tcg_rcv(100 + kind, in, LONGEST, &length, left, &from, 1);
        tcg_waitcom(right);
        NEED(length == LENGTHS[kind] && from == left && is_filled(in, length, left + kind));
    }
    free(out);
    free(in);
}

/* Both ends of an asynchronous exchange start before either waits. */
static void exchange(void) {
    if (me > 1)
        return;
    long other = 1 - me, length = 0, from = 0;
    char *out = malloc(LONGEST), *in = malloc(LONGEST);
    for (int kind = 0; kind < KINDS; kind++) {
        fill(out, LENGTHS[kind], me);
        tcg_rcv(200 + kind, in, LONGEST, &length, other, &from, 0);
        tcg_snd(200 + kind, out, LENGTHS[kind], other, 0);
        tcg_waitcom(-1);
        NEED(is_filled(in, LENGTHS[kind], other));
        fill(out, LENGTHS[kind], 99);
    }
    free(out);
    free(in);
}

/* All send to node 0, which hears each as often as the others though it asks for nobody in particular. */
static void any(void) {
    enum { ROUNDS = 50 };
    long value, length, from;
    if (me != 0) {
        for (long round = 0; round < ROUNDS; round++)
            tcg_snd(300 | MSGINT, &round, sizeof round, 0, 1);
        tcg_synch(301);
        return;
    }
    /* Everything is there, so whoever is heard is chosen. */
    sleep(1);
    long *heard = calloc(nodes, sizeof *heard);
    for (long each = 0; each < ROUNDS * (nodes - 1); each++) {
        tcg_rcv(300 | MSGINT, &value, sizeof value, &length, -1, &from, 1);
        NEED(length == sizeof value && value == heard[from]++);
        for (long node = 1; node < nodes; node++)
            NEED(heard[node] <= each / (nodes - 1) + 1);
    }
    free(heard);
    tcg_synch(301);
}

static void probes(void) {
    long length, from;
    char byte = 5;
    if (me == 1) {
        tcg_snd(401, &byte, 1, 0, 1);
        tcg_snd(402, &byte, 0, 0, 1);
    } else if (me == 0) {
        while (!tcg_probe(401, 1))
            ;
        NEED(tcg_probe(401, -1) && !tcg_probe(402, 1) && !tcg_probe(402, -1));
        tcg_rcv(401, &byte, 1, &length, 1, &from, 1);
        while (!tcg_probe(402, -1))
            ;
        NEED(!tcg_probe(401, 1));
        tcg_rcv(402, &byte, 1, &length, -1, &from, 1);
        NEED(length == 0 && from == 1);
    }
}

static void together(void) {
    enum { MANY = 20000 };
    double *x = malloc(MANY * sizeof *x);
    long *n = malloc(MANY * sizeof *n);
    for (long root = 0; root < nodes; root++) {
        for (long i = 0; i < MANY; i++)
            n[i] = me == root ? i + root : -1;
        tcg_brdcst(501 | MSGINT, n, MANY * sizeof *n, root);
        for (long i = 0; i < MANY; i++)
            NEED(n[i] == i + root);
    }
    for (long i = 0; i < MANY; i++) {
        n[i] = i * me;
        x[i] = 0.5 * i * me;
    }
    tcg_igop(502, n, MANY, "+");
    tcg_dgop(503, x, MANY, "+");
    for (long i = 0; i < MANY; i++)
        NEED(n[i] == i * nodes * (nodes - 1) / 2 && x[i] == 0.5 * n[i]);
    double most[2] = {me, -1.0 - me};
    tcg_dgop(504, most, 2, "max");
    NEED(most[0] == nodes - 1 && most[1] == -1);
    double least[2] = {-1.0 - me, 1.0 + me};
    tcg_dgop(505, least, 2, "absmin");
    NEED(nodes == 1 || (least[0] == 1 && least[1] == 1));
    long bits = 1L << me, product = me + 1, factorial = 1;
    tcg_igop(506, &bits, 1, "or");
    tcg_igop(507, &product, 1, "*");
    for (long i = 1; i <= nodes; i++)
        factorial *= i;
    NEED(bits == (1L << nodes) - 1 && product == factorial);
    free(x);
    free(n);
}

/* Each number goes to one node, and numbers begin anew when all are done. */
static void counts(void) {
    enum { TASKS = 500 };
    long taken[TASKS];
    for (int loop = 0; loop < 3; loop++) {
        memset(taken, 0, sizeof taken);
        long next, last = -1;
        while ((next = tcg_nxtval(nodes)) < TASKS) {
            NEED(next > last);
            taken[last = next]++;
        }
        tcg_nxtval(-nodes);
        tcg_igop(600, taken, TASKS, "+");
        for (int task = 0; task < TASKS; task++)
            NEED(taken[task] == 1);
    }
}

static void files(const char *folder) {
    char name[4000], text[40];
    snprintf(name, sizeof name, "%s/copy.%ld", folder, me);
    if (me == 0) {
        FILE *file = fopen(name, "w");
        NEED(file);
        for (long line = 0; line < 200000; line++)
            fprintf(file, "%ld\n", line);
        NEED(fclose(file) == 0);
    }
    tcg_pfcopy(700, 0, name);
    FILE *file = fopen(name, "r");
    NEED(file);
    for (long line = 0; line < 200000; line++)
        NEED(fgets(text, sizeof text, file) && atol(text) == line);
    NEED(!fgets(text, sizeof text, file));
    fclose(file);
}

int main(int argc, char **argv) {
    NEED(!tcg_ready());
    tcg_pbegin(argc, argv);
    me = tcg_nodeid();
    nodes = tcg_nnodes();
    NEED(tcg_ready() && nodes == atol(argv[1]) && me < nodes);
    double start = tcg_time();
    if (nodes > 1) {
        ring();
        tcg_synch(10);
        exchange();
        any();
        probes();
    }
    together();
    counts();
    files(argv[2]);
    NEED(tcg_time() >= start && tcg_mtime() >= (long)(start * 100));
    NEED(tcg_mdtob(3) == 24 && tcg_mitob(3) == 24 && tcg_mdtoi(3) == 3 && tcg_mitod(3) == 3);
    double random = tcg_drand48();
    NEED(random >= 0 && random <= 1);
    tcg_pend();
    if (me == 0)
        puts("ok");
    return 0;
}
