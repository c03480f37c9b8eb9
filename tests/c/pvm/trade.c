/* Tasks that trade with pvm_psend and pvm_precv as soon as they are spawned, while they still meet: each waits for the
   right one. */
#include <pvm3.h>
#include <stdio.h>

enum { TASKS = 4, TIDS = 1, TRADE = 2 };

static int trade(const int *tids)
{
    int me = 0, tid, tag, bytes;
    while (tids[me] != pvm_mytid())
        me++;
    for (int step = 1; step < TASKS; step++) {
        int to = (me + step) % TASKS, from = (me + TASKS - step) % TASKS, got = -1;
        if (pvm_psend(tids[to], TRADE, (char *)&me, 1, PVM_INT) != 0)
            return 3;
        if (pvm_precv(tids[from], TRADE, (char *)&got, 1, PVM_INT, &tid, &tag, &bytes) != 0 || got != from)
            return 4;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int tids[TASKS], wrong = 0;
    (void)argc;
    if (pvm_parent() > 0) {
        wrong = pvm_recv(pvm_parent(), TIDS) <= 0 || pvm_upkint(tids, TASKS, 1) != 0;
        return wrong ? 2 : trade(tids) | pvm_exit();
    }
    tids[0] = pvm_mytid();
    for (int round = 0; round < 20 && !wrong; round++) {
        if (pvm_spawn(argv[0], 0, PvmTaskDefault, 0, TASKS - 1, tids + 1) != TASKS - 1)
            return 1;
        pvm_initsend(PvmDataDefault);
        pvm_pkint(tids, TASKS, 1);
        pvm_mcast(tids + 1, TASKS - 1, TIDS);
        wrong = trade(tids);
    }
    return wrong ? wrong : pvm_exit() != 0 || puts("ok") < 0;
}
