/* Raw bytes, memory of others, and handlers. */
#include "check.h"

enum { PORT = 1, LONG = 3000000, CALLS = 5000 };

static unsigned char out[LONG], in[LONG];
static uint64_t sum, replies;
static int inside;

static void fill(unsigned seed)
{
    for (size_t at = 0; at < LONG; at++)
        out[at] = (unsigned char)(at * 7 + at / 251 + seed);
}

/* The other process has come as far. */
static void meet(int other)
{
    CHECK(weft_send(other, PORT, 9, NULL, 0) == 0);
    CHECK(weft_receive(PORT, other, 9, NULL, 0, NULL) == 0);
}

static void raw(int me, int other)
{
    size_t sent[] = {8, 1, 1000, 100000, 0, 2000000}, received[] = {4, 5, 100000, 2001000};
    size_t at = 0;
    fill(1);
    for (int turn = 0; turn < 2; turn++) {
        at = 0;
        if (turn == me)
            for (int n = 0; n < 6; at += sent[n++])
                CHECK(weft_raw_send(other, out + at, sent[n]) == 0);
        else
            for (int n = 0; n < 4; at += received[n++])
                CHECK(weft_raw_receive(other, in + at, received[n]) == 0);
        CHECK(at == 2101009);
    }
    CHECK(memcmp(in, out, at) == 0);
    CHECK(weft_raw_send(me, out, 1) == WEFT_ERR_ARGUMENT);
}

static void memory(int me, int other)
{
    struct weft_memory mine, theirs, wrong;
    unsigned char *here;
    CHECK(weft_register(LONG, (void **)&here, &mine) == 0);
    CHECK(weft_send(other, PORT, 1, &mine, sizeof mine) == 0);
    CHECK(weft_receive(PORT, other, 1, &theirs, sizeof theirs, NULL) == 0);
    fill((unsigned)me);
    CHECK(weft_put(other, &theirs, 5, out + 5, LONG - 6) == 0);
    CHECK(weft_put(other, &theirs, LONG - 1, out + LONG - 1, 1) == 0);
    CHECK(weft_put(other, &theirs, LONG - 1, out, 2) == WEFT_ERR_MEMORY);
    CHECK(weft_put(other, &theirs, UINT64_MAX, out, 2) == WEFT_ERR_MEMORY);
    CHECK(weft_send(other, PORT, 2, NULL, 0) == 0);
    CHECK(weft_receive(PORT, other, 2, NULL, 0, NULL) == 0);
    fill((unsigned)other);
    CHECK(memcmp(here + 5, out + 5, LONG - 5) == 0 && here[0] == 0 && here[4] == 0);
    CHECK(weft_get(other, &theirs, 0, in, LONG) == 0);
    fill((unsigned)me);
    CHECK(memcmp(in + 5, out + 5, LONG - 5) == 0 && in[4] == 0);
    CHECK(weft_get(me, &mine, 10, in, 10) == 0 && memcmp(in, here + 10, 10) == 0);
    wrong = theirs;
    wrong.words[0] ^= 1;
    CHECK(weft_get(other, &wrong, 0, in, 10) == WEFT_ERR_MEMORY);
    CHECK(weft_unregister(&wrong) == WEFT_ERR_MEMORY);
    meet(other);
    CHECK(weft_unregister(&mine) == 0 && weft_unregister(&mine) == WEFT_ERR_MEMORY);
    meet(other);
    CHECK(weft_get(other, &theirs, 0, in, 10) == WEFT_ERR_MEMORY);
    CHECK(weft_put(me, &mine, 0, in, 10) == WEFT_ERR_MEMORY);
    meet(other);
}

static void on_call(struct weft_call *call, void *context)
{
    const unsigned char *bytes = call->bytes;
    uint64_t answer = call->arguments[0];
    CHECK(context == &sum && call->count == 2 && call->process == 1 - weft_me());
    for (size_t at = 0; at < call->length; at++)
        answer += bytes[at];
    CHECK(weft_reply(call, 4096, &answer, 1, NULL, 0) == WEFT_ERR_ARGUMENT);
    CHECK(weft_reply(call, 4095, &answer, 1, "x", 1) == 0);
    CHECK(weft_reply(call, 4095, &answer, 1, "x", 1) == WEFT_ERR_ARGUMENT);
}

static void on_reply(struct weft_call *call, void *context)
{
    CHECK(context == NULL && call->count == 1 && call->length == 1);
    CHECK(weft_reply(call, 4095, NULL, 0, NULL, 0) == WEFT_ERR_ARGUMENT);
    sum += call->arguments[0];
    replies++;
}

static void on_visit(struct weft_call *call, void *context)
{
    char byte;
    inside = 1;
    CHECK(weft_send(0, PORT, 1, NULL, 0) == WEFT_ERR_STATE);
    CHECK(weft_receive(PORT, 0, 1, &byte, 1, NULL) == WEFT_ERR_STATE);
    CHECK(weft_poll() == WEFT_ERR_STATE && weft_me() >= 0 && weft_finish() == WEFT_ERR_STATE);
    CHECK(call->length == 0 && context == NULL);
}

static void handlers(int me, int other)
{
    uint64_t arguments[] = {5, 6, 7, 8}, unhandled;
    unsigned char bytes[] = {1, 2, 3};
    CHECK(weft_handler(0, on_call, &sum) == 0);
    CHECK(weft_handler(4095, on_reply, NULL) == 0);
    CHECK(weft_handler(4096, on_reply, NULL) == WEFT_ERR_ARGUMENT && weft_handler(-1, NULL, NULL) == WEFT_ERR_ARGUMENT);
    CHECK(weft_handler(7, on_visit, NULL) == 0);
    CHECK(weft_call(me, 7, NULL, 0, NULL, 0) == 0);
    while (!inside)
        CHECK(weft_poll() == 0);
    meet(other);
    for (int call = 0; call < CALLS; call++)
        CHECK(weft_call(other, 0, arguments, 2, bytes, sizeof bytes) == 0);
    while (replies < CALLS)
        CHECK(weft_select(NULL, 0, NULL, 0, 1, NULL) == 0);
    CHECK(sum == CALLS * 11);
    CHECK(weft_call(other, 0, arguments, 4, bytes, sizeof bytes) == WEFT_ERR_ARGUMENT);
    CHECK(weft_call(other, 0, arguments, 2, out, 32769) == WEFT_ERR_ARGUMENT);
    CHECK(weft_call(other, 0, arguments, 2, out, 32768) == 0);
    CHECK(weft_call(other, 99, NULL, 0, NULL, 0) == 0);
    do {
        CHECK(weft_unhandled(&unhandled) == 0 && weft_poll() == 0);
    } while (unhandled != 1);
    while (replies <= CALLS)
        CHECK(weft_poll() == 0);
    /* Who waits here answers the other one's calls. */
    meet(other);
}

int main(void)
{
    CHECK(weft_init(0) == 0 && weft_size() == 2);
    CHECK(weft_port_open(PORT) == PORT);
    int me = weft_me(), other = 1 - me;
    raw(me, other);
    memory(me, other);
    handlers(me, other);
    finish();
    return 0;
}
