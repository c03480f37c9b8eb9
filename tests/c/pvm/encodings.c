/* What one task packs another one unpacks, in every encoding and at several
 * lengths: a task and the copy of itself that it spawns. Says "ok". */

#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) ((what) ? (void) 0 : failed(#what, __LINE__))

enum { DATA = 1, BACK, BYTES, FORWARDED, PLACED };

static const int lengths[] = {0, 1, 7, 1000, 300000};
static const int encodings[] = {PvmDataDefault, PvmDataRaw, PvmDataInPlace};

static int me;

static void failed(const char *what, int line)
{
    fprintf(stderr, "t%x, line %d: %s\n", me, line, what);
    exit(1);
}

static void fill(int *numbers, double *floats, int length, int seed)
{
    int k;
    for (k = 0; k < length; k++) {
        numbers[k] = seed * 1000003 + k * 17;
        floats[k] = numbers[k] / 8.0;
    }
}

static void send_data(int to, int encoding, int length, int seed, int *numbers, double *floats)
{
    fill(numbers, floats, length, seed);
    CHECK(pvm_initsend(encoding) > 0);
    CHECK(pvm_pkint(numbers, length, 1) == 0 && pvm_pkdouble(floats, length, 1) == 0 && pvm_pkbyte("end", 4, 1) == 0);
    CHECK(pvm_send(to, DATA) == 0);
}

static void receive_data(int from, int length, int seed, int *numbers, double *floats)
{
    int buffer, bytes, tag, tid, k;
    char end[4];
    CHECK((buffer = pvm_recv(from, DATA)) > 0 && pvm_getrbuf() == buffer);
    CHECK(pvm_bufinfo(buffer, &bytes, &tag, &tid) == 0 && bytes == 12 * length + 4 && tag == DATA && tid == from);
    CHECK(pvm_upkint(numbers, length, 1) == 0 && pvm_upkdouble(floats, length, 1) == 0);
    CHECK(pvm_upkbyte(end, 4, 1) == 0 && !strcmp(end, "end"));
    for (k = 0; k < length; k++)
        CHECK(numbers[k] == seed * 1000003 + k * 17 && floats[k] == numbers[k] / 8.0);
}

static void both_ways(int other, int is_first, int *numbers, double *floats)
{
    size_t e, l;
    for (e = 0; e < 3; e++)
        for (l = 0; l < 5; l++) {
            int seed = (int) (10 * e + l);
            if (is_first)
                send_data(other, encodings[e], lengths[l], seed, numbers, floats);
            receive_data(other, lengths[l], is_first ? seed + 500 : seed, numbers, floats);
            if (!is_first)
                send_data(other, encodings[e], lengths[l], seed + 500, numbers, floats);
        }
}

/* What is sent as bytes without packing is unpacked as bytes, and the reverse. */
static void without_packing(int other, int is_first)
{
    char bytes[100];
    int from, tag, length;
    if (is_first) {
        CHECK(pvm_psend(other, BYTES, "straight", 9, PVM_BYTE) == 0);
        CHECK(pvm_initsend(PvmDataRaw) > 0 && pvm_pkbyte("packed", 7, 1) == 0 && pvm_send(other, BYTES) == 0);
        return;
    }
    CHECK(pvm_recv(other, BYTES) > 0 && pvm_upkbyte(bytes, 9, 1) == 0 && !strcmp(bytes, "straight"));
    CHECK(pvm_upkbyte(bytes, 1, 1) == PvmNoData);
    CHECK(pvm_precv(-1, -1, bytes, 100, PVM_BYTE, &from, &tag, &length) == 0);
    CHECK(from == other && tag == BYTES && length == 7 && !strcmp(bytes, "packed"));
}

/* A message is kept, sent on as it is, and sent within another one. */
static void forwarding(int other, int is_first, int *numbers, double *floats)
{
    int kept, found, n = 77;
    if (!is_first) {
        CHECK((kept = pvm_recv(other, DATA)) > 0 && pvm_setrbuf(0) == kept);
        CHECK(pvm_setsbuf(kept) >= 0 && pvm_send(other, DATA) == 0 && pvm_setsbuf(0) == kept);
        CHECK(pvm_initsend(PvmDataDefault) > 0 && pvm_pkmesg(kept) == 0 && pvm_pkint(&n, 1, 1) == 0);
        CHECK(pvm_send(other, FORWARDED) == 0 && pvm_freebuf(kept) == 0);
        return;
    }
    send_data(other, PvmDataRaw, 100, 3, numbers, floats);
    receive_data(other, 100, 3, numbers, floats);
    CHECK(pvm_recv(other, FORWARDED) > 0 && (found = pvm_upkmesg()) > 0);
    n = 0;
    CHECK(pvm_upkint(&n, 1, 1) == 0 && n == 77 && pvm_setrbuf(found) > 0);
    CHECK(pvm_upkint(numbers, 100, 1) == 0 && pvm_upkdouble(floats, 100, 1) == 0);
    CHECK(numbers[99] == 3 * 1000003 + 99 * 17);
    CHECK(pvm_freebuf(found) == 0);
}

/* The same buffer is sent twice; what lies in place has changed in between. */
static void in_place(int other, int is_first)
{
    int value = 1;
    if (is_first) {
        CHECK(pvm_initsend(PvmDataInPlace) > 0 && pvm_pkint(&value, 1, 1) == 0 && pvm_send(other, PLACED) == 0);
        value = 2;
        CHECK(pvm_send(other, PLACED) == 0);
        return;
    }
    CHECK(pvm_recv(other, PLACED) > 0 && pvm_upkint(&value, 1, 1) == 0 && value == 1);
    CHECK(pvm_recv(other, PLACED) > 0 && pvm_upkint(&value, 1, 1) == 0 && value == 2);
}

int main(int argc, char **argv)
{
    int other, is_first, n = 0;
    int *numbers = malloc(300000 * sizeof *numbers);
    double *floats = malloc(300000 * sizeof *floats);
    (void) argc;
    CHECK((me = pvm_mytid()) > 0 && pvm_setopt(PvmAutoErr, 0) == 1);
    other = pvm_parent();
    is_first = other == PvmNoParent;
    if (is_first)
        CHECK(pvm_spawn(argv[0], NULL, PvmTaskDefault, "", 1, &other) == 1);
    both_ways(other, is_first, numbers, floats);
    without_packing(other, is_first);
    forwarding(other, is_first, numbers, floats);
    in_place(other, is_first);
    if (is_first) {
        CHECK(pvm_recv(other, BACK) > 0 && pvm_upkint(&n, 1, 1) == 0 && n == me);
        puts("ok");
    } else {
        CHECK(pvm_initsend(PvmDataDefault) > 0 && pvm_pkint(&other, 1, 1) == 0 && pvm_send(other, BACK) == 0);
    }
    return pvm_exit();
}
