/* What a program does wrong, by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tcgmsg.h"

static char buffer[100000];

int main(int argc, char **argv) {
    long length, from;
    const char *what = argv[1];
    if (!strcmp(what, "early"))
        tcg_synch(1);
    tcg_pbegin(argc, argv);
    if (!strcmp(what, "twice"))
        tcg_pbegin(argc, argv);
    if (!strcmp(what, "type")) {
        if (tcg_nodeid() == 1)
            tcg_snd(5, buffer, 8, 0, 1);
        else if (tcg_nodeid() == 0)
            tcg_rcv(6, buffer, 8, &length, 1, &from, 1);
    } else if (!strcmp(what, "long")) {
        if (tcg_nodeid() == 1)
            tcg_snd(5, buffer, sizeof buffer, 0, 1);
        else if (tcg_nodeid() == 0)
            tcg_rcv(5, buffer, 10, &length, 1, &from, 1);
    } else if (tcg_nodeid() == 0) {
        double x = 1;
        if (!strcmp(what, "self"))
            tcg_snd(5, buffer, 8, 0, 1);
        if (!strcmp(what, "node"))
            tcg_rcv(5, buffer, 8, &length, 7, &from, 1);
        if (!strcmp(what, "length"))
            tcg_snd(5, buffer, -1, 1, 1);
        if (!strcmp(what, "operation"))
            tcg_dgop(5, &x, 1, "plus");
        if (!strcmp(what, "counter"))
            tcg_nxtval(0);
        if (!strcmp(what, "file"))
            tcg_pfcopy(1, 0, "/no/such/file");
        if (!strcmp(what, "error"))
            tcg_error("the program says so", 42);
        if (!strcmp(what, "gone"))
            tcg_rcv(5, buffer, 8, &length, 1, &from, 1);
        if (!strcmp(what, "gone before it took")) {
            tcg_snd(5, buffer, sizeof buffer, 1, 0);
            tcg_waitcom(1);
        }
    }
    if (tcg_nodeid() == 0 || strncmp(what, "gone", 4))
        tcg_synch(1);
    tcg_pend();
    return 0;
}
