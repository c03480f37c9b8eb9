/* Tasks that send to each other at random, some of which are killed; with `daemon` the daemon is, too. The first argument
 * is where the random numbers begin. */
#include <pvm3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); return 1; } } while (0)
#define TASKS 5
#define LONG 40000

enum { HELLO = 1, ALL, CHAT, END, ENDED };

static int chat(const int *tids)
{
    static int numbers[LONG];
    pvm_joingroup("all");
    for (;;) {
        struct timeval brief = { 0, rand() % 2000 };
        int buffer, bytes, tag, from;
        pvm_initsend(rand() % 2 ? PvmDataRaw : PvmDataDefault);
        pvm_pkint(numbers, rand() % 3 ? 10 : LONG, 1);
        if (pvm_send(tids[rand() % TASKS], CHAT) < 0 || (buffer = pvm_trecv(-1, -1, &brief)) < 0)
            return 1;
        if (buffer > 0 && pvm_bufinfo(buffer, &bytes, &tag, &from) == 0 && tag == END)
            break;
    }
    pvm_lvgroup("all");
    return pvm_exit() != 0;
}

static int task(void)
{
    int tids[TASKS], pids[2] = { getpid(), getppid() }, seed;
    pvm_setopt(PvmAutoErr, 0);
    pvm_mytid();
    pvm_initsend(PvmDataDefault);
    pvm_pkint(pids, 2, 1);
    if (pvm_send(pvm_parent(), HELLO) < 0 || pvm_recv(pvm_parent(), ALL) <= 0 || pvm_upkint(tids, TASKS, 1) != 0)
        return 1;
    pvm_upkint(&seed, 1, 1);
    srand(seed + pids[0]);
    return chat(tids);
}

static int ended(int *tid)
{
    struct timeval limit = { 8, 0 };
    return pvm_trecv(-1, ENDED, &limit) > 0 && pvm_upkint(tid, 1, 1) == 0;
}

/* Whoever is left ends soon without a daemon. */
static int without_daemon(const int pids[][2])
{
    struct timeval limit = { 8, 0 };
    int buffer;
    usleep(rand() % 10000);
    kill(pids[0][1], SIGKILL);
    while ((buffer = pvm_trecv(-1, -1, &limit)) > 0)
        ;
    CHECK(buffer < 0);
    for (int i = 0; i < TASKS; i++)
        for (int wait = 0; kill(pids[i][0], 0) == 0; wait++, usleep(10000))
            CHECK(wait < 500);
    return 0;
}

int main(int argc, char **argv)
{
    int tids[TASKS], pids[TASKS][2], killed[TASKS] = { 0 }, kills = 0, seed, tid;
    if (argc < 2)
        return task();
    seed = atoi(argv[1]);
    srand(seed);
    pvm_setopt(PvmAutoErr, 0);
    CHECK(pvm_spawn(argv[0], 0, 0, 0, TASKS, tids) == TASKS);
    for (int i = 0; i < TASKS; i++)
        CHECK(pvm_recv(tids[i], HELLO) > 0 && pvm_upkint(pids[i], 2, 1) == 0);
    CHECK(pvm_notify(PvmTaskExit, ENDED, TASKS, tids) == 0);
    pvm_initsend(PvmDataDefault);
    pvm_pkint(tids, TASKS, 1);
    pvm_pkint(&seed, 1, 1);
    CHECK(pvm_mcast(tids, TASKS, ALL) == 0);
    for (int i = 1 + rand() % 3; i > 0; i--) {
        int victim = rand() % TASKS;
        usleep(rand() % 20000);
        kills += !killed[victim];
        killed[victim] = 1;
        kill(pids[victim][0], SIGKILL);
    }
    if (argc > 2 && !strcmp(argv[2], "daemon")) {
        CHECK(without_daemon((const int (*)[2])pids) == 0);
        return puts("ok") < 0;
    }
    for (int i = 0; i < kills; i++) {
        int place = 0;
        CHECK(ended(&tid));
        while (place < TASKS && tids[place] != tid)
            place++;
        CHECK(place < TASKS && killed[place]);
    }
    pvm_initsend(PvmDataDefault);
    CHECK(pvm_mcast(tids, TASKS, END) == 0);
    for (int i = kills; i < TASKS; i++)
        CHECK(ended(&tid));
    /* Their processes, too: nobody waits for one that was killed. */
    for (int i = 0; i < TASKS; i++)
        for (int wait = 0; kill(pids[i][0], 0) == 0; wait++, usleep(10000))
            CHECK(wait < 200);
    return pvm_exit() != 0 || puts("ok") < 0;
}
