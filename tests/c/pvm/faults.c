/* What is told of tasks that end, handlers and matchers, the mailbox, and what is refused. */
#include <pvm3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); return 1; } } while (0)

static int handled, matched;

static int handler(int buffer)
{
    int number = 0;
    (void)buffer;
    pvm_upkint(&number, 1, 1);
    handled += number;
    return 0;
}

/* Of the messages that fit the one with the highest tag. */
static int matcher(int buffer, int tid, int tag)
{
    int bytes, its, from;
    matched++;
    if (pvm_bufinfo(buffer, &bytes, &its, &from) < 0)
        return PvmBadParam;
    return (tid == -1 || tid == from) && (tag == -1 || tag == its) ? its + 1 : 0;
}

static int send_number(int to, int tag, int number)
{
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&number, 1, 1);
    return pvm_send(to, tag);
}

static int functions(int me)
{
    int number, mine;
    mine = pvm_addmhf(-1, 41, -1, handler);
    CHECK(mine >= 0 && pvm_addmhf(me, 41, 0, handler) == PvmExists);
    CHECK(send_number(me, 41, 5) == 0 && send_number(me, 42, 6) == 0);
    CHECK(pvm_recv(-1, -1) > 0 && pvm_upkint(&number, 1, 1) == 0 && number == 6 && handled == 5);
    CHECK(pvm_delmhf(mine) == 0 && pvm_delmhf(mine) == PvmNotFound);
    send_number(me, 50, 1);
    send_number(me, 52, 2);
    send_number(me, 51, 3);
    pvm_recvf(matcher);
    CHECK(pvm_recv(-1, -1) > 0 && pvm_upkint(&number, 1, 1) == 0 && number == 2 && matched > 0);
    pvm_recvf(0);
    CHECK(pvm_recv(-1, -1) > 0 && pvm_upkint(&number, 1, 1) == 0 && number == 1);
    CHECK(pvm_recv(-1, 51) > 0);
    return 0;
}

static int mailbox(void)
{
    struct pvmmboxinfo *names;
    int count, number = 77;
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&number, 1, 1);
    CHECK(pvm_putinfo("box", pvm_getsbuf(), PvmMboxMultiInstance) == 0);
    CHECK(pvm_putinfo("box", pvm_getsbuf(), PvmMboxMultiInstance) == 1);
    number = 0;
    CHECK(pvm_recvinfo("box", 1, PvmMboxDefault) > 0 && pvm_upkint(&number, 1, 1) == 0 && number == 77);
    CHECK(pvm_getmboxinfo("b*", &count, &names) == 0 && count == 1 && names[0].mi_nentries == 2);
    CHECK(pvm_delinfo("box", 0, PvmMboxDefault) == 0 && pvm_recvinfo("box", 0, PvmMboxDefault) == PvmNotFound);
    CHECK(pvm_insert("old", -1, 12) == 0 && pvm_lookup("old", -1, &number) == 0 && number == 12);
    CHECK(pvm_delete("old", 0) == 0);
    return 0;
}

static int refused(int me)
{
    struct timeval brief = { 0, 20000 };
    int tids[3], number;
    pvm_setopt(PvmAutoErr, 0);
    CHECK(pvm_send(me, -5) == PvmBadParam && pvm_send(0, 1) == PvmBadParam && pvm_recv(-1, -7) == PvmBadParam);
    CHECK(pvm_spawn("no such program", 0, 0, "", 2, tids) == 0 && tids[0] == PvmNoFile && tids[1] == PvmNoFile);
    CHECK(pvm_spawn("sh", 0, PvmTaskHost, "nowhere", 1, tids) == 0 && tids[0] == PvmNoHost);
    CHECK(pvm_pstat(0x40fff) == PvmNoTask && pvm_mstat("nowhere") == PvmNoHost && pvm_barrier("none", 1) == PvmNoGroup);
    CHECK(pvm_joingroup("") == PvmNullGroup && pvm_trecv(-1, 99, &brief) == 0);
    CHECK(pvm_notify(PvmTaskExit, 9, 0, &number) == PvmBadParam && pvm_setopt(99, 1) == PvmBadParam);
    pvm_setopt(PvmAutoErr, 1);
    return 0;
}

/* A copy of a task that ends takes nothing of the task with it. */
static int copied(int me)
{
    int status = -1;
    pid_t copy = fork();
    if (copy == 0)
        exit(0);
    CHECK(copy > 0 && waitpid(copy, &status, 0) == copy && status == 0);
    CHECK(pvm_pstat(me) == PvmOk);
    send_number(me, 8, 5);
    CHECK(pvm_recv(me, 8) > 0 && pvm_upkint(&status, 1, 1) == 0 && status == 5);
    return 0;
}

int main(int argc, char **argv)
{
    int me = pvm_mytid(), child, told;
    CHECK(me > 0);
    if (pvm_parent() > 0) {
        send_number(pvm_parent(), 3, getpid());
        if (argc > 1)
            pause();
        return pvm_exit();
    }
    char *words[] = { "wait", NULL };
    CHECK(pvm_spawn(argv[0], words, 0, "", 1, &child) == 1);
    CHECK(pvm_notify(PvmTaskExit, 4, 1, &child) == 0 && pvm_recv(child, 3) > 0 && pvm_upkint(&told, 1, 1) == 0);
    CHECK(pvm_pstat(child) == 0 && kill(told, SIGKILL) == 0);
    CHECK(pvm_recv(-1, 4) > 0 && pvm_upkint(&told, 1, 1) == 0 && told == child);
    CHECK(pvm_pstat(child) == PvmNoTask);
    /* Nobody is left who could send it. */
    pvm_setopt(PvmAutoErr, 0);
    CHECK(pvm_recv(child, 3) == PvmNoTask);
    pvm_setopt(PvmAutoErr, 1);
    if (copied(me) || functions(me) || mailbox() || refused(me))
        return 1;
    CHECK(pvm_exit() == 0 && pvm_mytid() > 0);
    puts("ok");
    return pvm_exit();
}
