/* The older names, for longs or for ints as TCGMSG_INTEGER says. */
#include <stdio.h>
#include "sndrcv.h"

int main(int argc, char **argv) {
    Integer type = 7 | MSGDBL, sync = 1, length = 8, got = -1, from = -1, any = -1, zero = 0, one = 1, count = 2;
    PBEGIN_(argc, argv);
    Integer me = NODEID_(), nodes = NNODES_();
    double x = 1.5 + me;
    for (Integer node = 1; node < nodes; node++) {
        if (me == 0) {
            RCV_(&type, &x, &length, &got, &any, &from, &sync);
            if (got != 8 || x != 1.5 + from)
                ERROR_("wrong message from", from);
        } else if (me == node) {
            SND_(&type, &x, &length, &zero, &sync);
        }
    }
    Integer n[2] = {me, 1};
    IGOP_(&one, n, &count, "+", 1);
    BRDCST_(&type, &x, &length, &zero);
    SYNCH_(&one);
    Integer mproc = nodes, minus = -nodes, first = NXTVAL_(&mproc);
    if (n[0] != nodes * (nodes - 1) / 2 || n[1] != nodes || first >= nodes || MITOB_(&count) != sizeof n)
        ERROR_("wrong result at", me);
    NXTVAL_(&minus);
    PEND_();
    if (me == 0)
        puts("ok");
    return 0;
}
