/* A virtual machine of two hosts: the other one is the first argument. With `lone` behind it only the way there is tried. */
#include <pvm3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); fflush(stdout); return 1; } } while (0)
#define LONG 300000
#define GROUP "all"

enum { HELLO = 1, PEER, LETTER, ADDED, GONE, ENDED };

static int letter[LONG];

static int send_letter(int to, int value)
{
    letter[0] = letter[LONG - 1] = value;
    pvm_initsend(PvmDataRaw);
    pvm_pkint(letter, LONG, 1);
    return pvm_send(to, LETTER);
}

static int letter_of(int from)
{
    letter[0] = letter[LONG - 1] = 0;
    if (pvm_recv(from, LETTER) <= 0 || pvm_upkint(letter, LONG, 1) != 0 || letter[0] != letter[LONG - 1])
        return -1;
    return letter[0];
}

/* A child says who its daemon is, exchanges a letter with another child, and meets all of the group. It waits to be killed
 * then, if it is told to. */
static int child(void)
{
    int daemon = getppid(), all[3], count, waits, sum = 1;
    pvm_setopt(PvmAutoErr, 0);
    CHECK(pvm_mytid() > 0 && pvm_parent() > 0);
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&daemon, 1, 1);
    CHECK(pvm_send(pvm_parent(), HELLO) == 0);
    CHECK(pvm_recv(pvm_parent(), PEER) > 0 && pvm_upkint(&waits, 1, 1) == 0 && pvm_upkint(&count, 1, 1) == 0);
    CHECK(pvm_upkint(all, count, 1) == 0);
    for (int i = 0; i < count; i++)
        CHECK(all[i] == pvm_mytid() || send_letter(all[i], pvm_mytid()) == 0);
    for (int i = 0; i < count; i++)
        CHECK(all[i] == pvm_mytid() || letter_of(all[i]) == all[i]);
    if (count > 1) {
        CHECK(pvm_joingroup(GROUP) >= 0 && pvm_barrier(GROUP, count + 1) == 0 && pvm_gsize(GROUP) == count + 1);
        CHECK(pvm_reduce(PvmSum, &sum, 1, PVM_INT, 77, GROUP, 0) == 0 && pvm_barrier(GROUP, count + 1) == 0);
    }
    CHECK(send_letter(pvm_parent(), 5) == 0);
    if (waits)
        pvm_recv(-1, 999);
    return pvm_exit() != 0;
}

static int start(char *program, char *host, int count, int *tids)
{
    int flags = host ? PvmTaskHost : PvmTaskDefault;
    return pvm_spawn(program, 0, flags, host, count, tids);
}

static int daemon_of(int tid)
{
    int pid;
    return pvm_recv(tid, HELLO) > 0 && pvm_upkint(&pid, 1, 1) == 0 ? pid : -1;
}

static int tell(int *tids, int count, int waits)
{
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&waits, 1, 1);
    pvm_pkint(&count, 1, 1);
    pvm_pkint(tids, count, 1);
    return pvm_mcast(tids, count, PEER);
}

/* A notice of this kind comes soon, of this task or host. */
static int told(int tag, int of)
{
    struct timeval soon = { 12, 0 };
    int tid = 0;
    return pvm_trecv(-1, tag, &soon) > 0 && pvm_upkint(&tid, 1, 1) == 0 && tid == of;
}

static int together(char *program, char *other)
{
    int tids[3], sum = 1;
    struct pvmtaskinfo *tasks;
    CHECK(start(program, other, 2, tids) == 2 && start(program, ".", 1, tids + 2) == 1);
    CHECK(pvm_tidtohost(tids[0]) == pvm_tidtohost(tids[1]) && pvm_tidtohost(tids[0]) != pvm_tidtohost(pvm_mytid()));
    CHECK(pvm_tidtohost(tids[2]) == pvm_tidtohost(pvm_mytid()));
    for (int i = 0; i < 3; i++)
        CHECK(daemon_of(tids[i]) > 1);
    CHECK(pvm_tasks(pvm_tidtohost(tids[0]), &sum, &tasks) == 0 && sum == 2 && tasks[0].ti_host == pvm_tidtohost(tids[0]));
    CHECK(pvm_joingroup(GROUP) == 0 && tell(tids, 3, 0) == 0 && pvm_barrier(GROUP, 4) == 0);
    sum = 1;
    CHECK(pvm_reduce(PvmSum, &sum, 1, PVM_INT, 77, GROUP, 0) == 0 && sum == 4 && pvm_barrier(GROUP, 4) == 0);
    CHECK(pvm_notify(PvmTaskExit, ENDED, 1, tids) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(letter_of(tids[i]) == 5);
    CHECK(told(ENDED, tids[0]) && pvm_pstat(tids[0]) == PvmNoTask);
    CHECK(pvm_lvgroup(GROUP) == 0);
    return 0;
}

/* One that waits, on the other host; its daemon's process, below 0 if something is wrong. */
static int waiting(char *program, char *other, int *tid)
{
    int daemon;
    if (start(program, other, 1, tid) != 1 || (daemon = daemon_of(*tid)) <= 1 || tell(tid, 1, 1) != 0 || letter_of(*tid) != 5)
        return -1;
    if (pvm_notify(PvmTaskExit, ENDED, 1, tid) != 0)
        return -1;
    return daemon;
}

int main(int argc, char **argv)
{
    int code, hosts, kinds, far, tid, daemon, lone = argc > 2 && !strcmp(argv[2], "lone");
    struct pvmhostinfo *all;
    if (pvm_parent() > 0)
        return child();
    pvm_setopt(PvmAutoErr, 0);
    CHECK(argc > 1 && pvm_notify(PvmHostAdd, ADDED, -1, 0) == 0);
    CHECK(pvm_addhosts(argv + 1, 1, &far) == 1 && far > 0);
    CHECK(pvm_recv(-1, ADDED) > 0 && pvm_upkint(&code, 1, 1) == 0 && code == 1);
    CHECK(pvm_upkint(&code, 1, 1) == 0 && (code & 0x7fffffff) == far);
    CHECK(pvm_config(&hosts, &kinds, &all) == 0 && hosts == 2 && kinds == 1);
    CHECK(!strcmp(all[1].hi_name, argv[1]) && all[1].hi_tid == far && pvm_mstat(argv[1]) == PvmOk);
    CHECK(waiting(argv[0], argv[1], &tid) > 0);
    CHECK(pvm_kill(tid) == 0 && told(ENDED, tid));
    if (lone) {
        pvm_exit();
        return puts("ok") < 0;
    }
    CHECK(pvm_addhosts(argv + 1, 1, &code) == 0 && code == PvmDupHost);
    CHECK(together(argv[0], argv[1]) == 0);
    /* It is taken away, with its task. */
    CHECK((daemon = waiting(argv[0], argv[1], &tid)) > 0 && pvm_notify(PvmHostDelete, GONE, 1, &far) == 0);
    CHECK(pvm_delhosts(argv + 1, 1, &code) == 1 && code == PvmOk && told(GONE, far) && told(ENDED, tid));
    CHECK(pvm_recv(tid, 1) == PvmNoTask && pvm_mstat(argv[1]) == PvmNoHost && kill(daemon, 0) != 0);
    /* Its daemon is killed, or says nothing any more. */
    for (int round = 0; round < 2; round++) {
        CHECK(pvm_addhosts(argv + 1, 1, &far) == 1 && pvm_notify(PvmHostDelete, GONE, 1, &far) == 0);
        CHECK((daemon = waiting(argv[0], argv[1], &tid)) > 0);
        kill(daemon, round ? SIGSTOP : SIGKILL);
        CHECK(told(GONE, far) && told(ENDED, tid));
        CHECK(pvm_recv(tid, 1) == PvmNoTask && pvm_config(&hosts, &kinds, &all) == 0 && hosts == 1);
    }
    pvm_exit();
    return puts("ok") < 0;
}
