/* Siblings of one job: a ring, contexts, groups, reductions, and much sent before anything is received. */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); return 1; } } while (0)

static int group(int size, int inst)
{
    double sum[2] = { inst, 2.0 * inst }, *all = calloc(size, sizeof *all), part = 0;
    int i, root = size - 1;
    CHECK(pvm_reduce(PvmSum, sum, 2, PVM_DOUBLE, 11, "all", root) == 0);
    CHECK(inst != root || (sum[0] == size * (size - 1) / 2 && sum[1] == size * (size - 1)));
    CHECK(inst == root || sum[0] == inst);
    part = 10 * inst;
    CHECK(pvm_gather(all, &part, 1, PVM_DOUBLE, 12, "all", 0) == 0);
    for (i = 0; inst == 0 && i < size; i++)
        CHECK(all[i] == 10 * i);
    CHECK(pvm_scatter(&part, all, 1, PVM_DOUBLE, 13, "all", 0) == 0);
    CHECK(part == 10 * inst);
    CHECK(pvm_barrier("all", -1) == 0);
    CHECK(pvm_freezegroup("all", size) == 0);
    for (i = 0; i < 100; i++)
        CHECK(pvm_barrier("all", -1) == 0);
    CHECK(pvm_joingroup("all") < 0);
    if (inst == 1) {
        pvm_initsend(PvmDataDefault);
        pvm_pkstr("to all");
        CHECK(pvm_bcast("all", 14) == 0);
    } else {
        char text[20];
        CHECK(pvm_recv(-1, 14) > 0 && pvm_upkstr(text) == 0 && strcmp(text, "to all") == 0);
    }
    free(all);
    return 0;
}

static int contexts(int left, int right)
{
    int number = 1, second = 2, old, bytes, tag, from, buffer;
    /* What is sent in another context is not seen in this one. */
    old = pvm_setcontext(5);
    pvm_initsend(PvmDataRaw);
    pvm_pkint(&second, 1, 1);
    CHECK(pvm_send(right, 21) == 0);
    CHECK(pvm_setcontext(old) == 5);
    pvm_initsend(PvmDataRaw);
    pvm_pkint(&number, 1, 1);
    CHECK(pvm_send(right, 21) == 0);
    buffer = pvm_recv(left, -1);
    CHECK(pvm_bufinfo(buffer, &bytes, &tag, &from) == 0 && bytes == 4 && tag == 21 && from == left);
    CHECK(pvm_upkint(&number, 1, 1) == 0 && number == 1);
    CHECK(pvm_nrecv(-1, 21) == 0);
    pvm_setcontext(5);
    CHECK(pvm_probe(-1, -1) > 0 && pvm_recv(-1, 21) > 0 && pvm_upkint(&number, 1, 1) == 0 && number == 2);
    pvm_setcontext(old);
    return 0;
}

static int much(int left, int right)
{
    const int length = 8 << 20;
    char *bytes = malloc(length);
    int i, from, tag, got;
    for (i = 0; i < length; i++)
        bytes[i] = i % 251;
    CHECK(pvm_psend(right, 31, bytes, length, PVM_BYTE) == 0);
    pvm_initsend(PvmDataInPlace);
    pvm_pkbyte(bytes, length, 1);
    CHECK(pvm_send(right, 32) == 0);
    memset(bytes, 0, length);
    /* A shorter room: the rest is cut off, and the length is the message's. */
    CHECK(pvm_precv(left, 31, bytes, length / 2, PVM_BYTE, &from, &tag, &got) == 0);
    CHECK(from == left && tag == 31 && got == length && bytes[length / 2] == 0);
    for (i = 0; i < length / 2; i++)
        CHECK(bytes[i] == (char)(i % 251));
    CHECK(pvm_recv(left, 32) > 0 && pvm_upkbyte(bytes, length, 1) == 0);
    free(bytes);
    return 0;
}

int main(void)
{
    int *tids, me = pvm_mytid(), size = pvm_siblings(&tids), place, token, inst, left, right;
    CHECK(me > 0 && size >= 2 && pvm_parent() == PvmNoParent);
    for (place = 0; tids[place] != me; place++)
        CHECK(place < size);
    left = tids[(place + size - 1) % size];
    right = tids[(place + 1) % size];
    token = 0;
    if (place == 0) {
        pvm_initsend(PvmDataDefault);
        pvm_pkint(&token, 1, 1);
        CHECK(pvm_send(right, 1) == 0);
    }
    CHECK(pvm_recv(-1, 1) > 0 && pvm_upkint(&token, 1, 1) == 0 && token == (place == 0 ? size - 1 : place - 1));
    if (place != 0) {
        token++;
        pvm_initsend(PvmDataDefault);
        pvm_pkint(&token, 1, 1);
        CHECK(pvm_send(right, 1) == 0);
    }
    inst = pvm_joingroup("all");
    CHECK(inst >= 0 && inst < size);
    CHECK(pvm_barrier("all", size) == 0 && pvm_gsize("all") == size);
    CHECK(pvm_getinst("all", me) == inst && pvm_gettid("all", inst) == me && pvm_gettid("all", size) == PvmNoInst);
    if (contexts(left, right) || much(left, right) || group(size, inst))
        return 1;
    if (place == 0)
        puts("ok");
    return pvm_exit();
}
