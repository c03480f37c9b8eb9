/* Ranks of a job whose groups change between barriers, and in them: a rank joins, leaves, ends, or is killed while others
 * wait. The word is what happens. */
#include <pvm3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); exit(1); } } while (0)
#define ROUNDS 300

static int *tids, size, me;

/* Everybody sends a number to the next one before the barrier, who gets it after that: soon, since a message may take
 * another way than the barrier. */
static void rounds(const char *group, int count, int whole)
{
    for (int round = 0; round < ROUNDS; round++) {
        int number = round, tag = 5 + round % 2;
        pvm_initsend(PvmDataRaw);
        pvm_pkint(&number, 1, 1);
        CHECK(pvm_send(tids[(me + 1) % count], tag) == 0);
        CHECK(pvm_barrier((char *)group, round % 3 ? count : whole) == 0);
        number = -1;
        CHECK(pvm_recv(tids[(me + count - 1) % count], tag) > 0);
        CHECK(pvm_upkint(&number, 1, 1) == 0 && number == round);
    }
}

/* The last one joins and leaves again and again, and is in no barrier in between. */
static void changes(void)
{
    int others = size - 1;
    if (me < others) {
        CHECK(pvm_joingroup("some") >= 0 && pvm_barrier("some", others) == 0);
        rounds("some", others, others);
        return;
    }
    for (int round = 0; round < 50; round++) {
        while (pvm_gsize("some") < others)
            usleep(100);
        CHECK(pvm_joingroup("some") >= 0 && pvm_lvgroup("some") == 0);
    }
}

/* Barriers of two members, while the others wait for all in another group. */
static void fewer(void)
{
    CHECK(pvm_joingroup("few") >= 0 && pvm_barrier("few", size) == 0 && pvm_joingroup("other") >= 0);
    CHECK(pvm_barrier("few", size) == 0);
    for (int round = 0; me < 2 && round < ROUNDS; round++)
        CHECK(pvm_barrier("few", 2) == 0);
    CHECK(pvm_barrier("other", size) == 0 && pvm_barrier("few", size) == 0);
}

/* One has another count in mind. */
static void differs(void)
{
    CHECK(pvm_joingroup("differ") >= 0 && pvm_barrier("differ", size) == 0 && pvm_barrier("differ", -1) == 0);
    if (me == 0) {
        CHECK(pvm_barrier("differ", 2) == 0);
    } else if (me == 1) {
        int code;
        while ((code = pvm_barrier("differ", 1)) == 0)
            usleep(100);
        CHECK(code == PvmMismatch && pvm_barrier("differ", 2) == 0);
        CHECK(pvm_barrier("differ", 0) == PvmBadParam);
    }
    CHECK(pvm_barrier("other", size) == 0);
}

/* One is killed while the others wait for all: those that are left meet. In a frozen group they are told. */
static void killed(int freezes)
{
    int left = size - 1;
    CHECK(pvm_joingroup("dead") >= 0 && pvm_barrier("dead", size) == 0);
    if (freezes)
        CHECK(pvm_freezegroup("dead", size) == 0);
    CHECK(pvm_barrier("dead", size) == 0);
    if (me == left)
        kill(getpid(), SIGKILL);
    if (freezes) {
        CHECK(pvm_barrier("dead", size) == PvmNoGroup && pvm_barrier("dead", size) == PvmNoGroup);
        return;
    }
    for (int round = 0; round < ROUNDS; round++)
        CHECK(pvm_barrier("dead", left) == 0);
}

/* One ends with a message to each of the others under way. */
static void ends(void)
{
    static char much[1 << 20];
    CHECK(pvm_joingroup("end") >= 0 && pvm_barrier("end", size) == 0 && pvm_barrier("end", size) == 0);
    for (int to = 0; to < size; to++)
        if (to != me) {
            pvm_initsend(PvmDataRaw);
            pvm_pkbyte(much, sizeof much, 1);
            CHECK(pvm_send(tids[to], 9) == 0);
        }
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    pvm_setopt(PvmAutoErr, 0);
    int mine = pvm_mytid();
    size = pvm_siblings(&tids);
    for (me = 0; me < size && tids[me] != mine; me++)
        ;
    CHECK(size > 2 && me < size);
    if (strcmp(argv[1], "killed") == 0) {
        killed(0);
    } else if (strcmp(argv[1], "frozen") == 0) {
        killed(1);
    } else if (strcmp(argv[1], "ends") == 0) {
        ends();
    } else {
        CHECK(pvm_joingroup("all") >= 0 && pvm_barrier("all", size) == 0);
        rounds("all", size, -1);
        CHECK(pvm_lvgroup("all") == 0);
        changes();
        fewer();
        differs();
        CHECK(pvm_freezegroup("few", size) == 0);
        rounds("few", size, -1);
    }
    if (me == 0)
        puts("ok");
    return pvm_exit() != 0;
}
