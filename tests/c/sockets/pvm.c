/* Two PVM tasks with a direct route: the first spawns the second, sends it blocks of many lengths, and compares what comes
 * back; then it says "ok" and ends the daemon. */
#include <pvm3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LONGEST = 500000, TURNS = 100, ASK = 1, ANSWER = 2 };

static int number_at(int turn, int at) {
    return (int)((unsigned)at * 2654435761u + (unsigned)turn);
}

static void answer(int parent, int *numbers) {
    for (int turn = 0; turn < TURNS; turn++) {
        int length;
        pvm_recv(parent, ASK);
        pvm_upkint(&length, 1, 1);
        pvm_upkint(numbers, length, 1);
        pvm_initsend(PvmDataRaw);
        pvm_pkint(numbers, length, 1);
        pvm_send(parent, ANSWER);
    }
}

static int ask(int child, int *numbers) {
    static const int lengths[] = {1, 100, 5000, 70000, LONGEST};
    for (int turn = 0; turn < TURNS; turn++) {
        int length = lengths[turn % 5];
        for (int at = 0; at < length; at++) {
            numbers[at] = number_at(turn, at);
        }
        pvm_initsend(PvmDataRaw);
        pvm_pkint(&length, 1, 1);
        pvm_pkint(numbers, length, 1);
        pvm_send(child, ASK);
        for (int at = 0; at < length; at++) {
            numbers[at] = 0;
        }
        pvm_recv(child, ANSWER);
        pvm_upkint(numbers, length, 1);
        for (int at = 0; at < length; at++) {
            if (numbers[at] != number_at(turn, at)) {
                printf("number %d of turn %d is wrong\n", at, turn);
                return 1;
            }
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    int *numbers = malloc(LONGEST * sizeof *numbers), child = 0, wrong = 1;
    (void)argc;
    /* The daemon may still be starting. */
    for (int tries = 0; pvm_mytid() < 0 && tries < 1000; tries++) {
        usleep(10000);
    }
    pvm_setopt(PvmRoute, PvmRouteDirect);
    if (pvm_parent() != PvmNoParent) {
        answer(pvm_parent(), numbers);
        pvm_exit();
        return 0;
    }
    if (pvm_spawn(argv[0], NULL, PvmTaskDefault, "", 1, &child) == 1) {
        wrong = ask(child, numbers);
    } else {
        printf("the second task cannot be started: %d\n", child);
    }
    if (!wrong) {
        printf("ok\n");
        fflush(stdout);
    }
    /* The daemon ends its tasks with this. */
    signal(SIGTERM, SIG_IGN);
    pvm_halt();
    return wrong;
}
