/* Messages that are started now and waited for later: two processes send each other much before either receives. With
   "lost" the other one ends meanwhile. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

enum { PORT = 1, LONG = 4000000, COUNT = 6 };

static char out[COUNT][LONG], in[COUNT][LONG];

static void in_any_order(int other)
{
    int requests[2 * COUNT], left = 2 * COUNT;
    for (int at = 0; at < COUNT; at++) {
        memset(out[at], 'a' + at, LONG);
        requests[at] = weft_send_begin(other, PORT, at, out[at], (size_t)LONG - (size_t)at);
    }
    for (int at = 0; at < COUNT; at++)
        requests[COUNT + at] = weft_receive_begin(PORT, other, at, in[at], LONG);
    while (left > 0) {
        struct weft_message message;
        int which = weft_wait_any(requests, left, 30000) - 1;
        CHECK(which >= 0 && weft_test(requests[which], &message) == 1);
        CHECK(message.process == other && message.port == PORT && message.length == (size_t)(LONG - message.tag));
        requests[which] = requests[--left];
    }
    for (int at = 0; at < COUNT; at++)
        CHECK(memcmp(in[at], out[at], (size_t)LONG - (size_t)at) == 0);
}

static void short_ones(int other)
{
    struct weft_message message;
    char room[4];
    int never = weft_receive_begin(PORT, other, 90, room, 4), cut = weft_receive_begin(PORT, WEFT_ANY, 91, room, 4);
    CHECK(weft_test(never, &message) == 0 && weft_wait_any(&never, 1, 10) == 0);
    int sent = weft_send_begin(other, PORT, 91, "too long", 8);
    CHECK(weft_wait(sent, &message) == 0 && message.tag == 91 && message.length == 8);
    CHECK(weft_wait(cut, &message) == WEFT_ERR_TRUNCATED && message.length == 8 && memcmp(room, "too ", 4) == 0);
    CHECK(weft_test(cut, NULL) == WEFT_ERR_ARGUMENT);
    CHECK(weft_cancel(never) == 1 && weft_test(never, NULL) == WEFT_ERR_ARGUMENT);
    /* To oneself. */
    int coming = weft_receive_begin(PORT, weft_me(), 5, in[0], LONG);
    int leaving = weft_send_begin(weft_me(), PORT, 5, out[1], LONG);
    CHECK(weft_wait(coming, NULL) == 0 && weft_cancel(leaving) == 0 && weft_wait(leaving, NULL) == 0);
    CHECK(memcmp(in[0], out[1], LONG) == 0);
}

/* What was begun with a process that ends is over then. */
static void without(int other)
{
    CHECK(weft_receive(PORT, other, 1, NULL, 0, NULL) == 0);
    int requests[] = {weft_receive_begin(PORT, other, 2, in[0], LONG), weft_send_begin(other, PORT, 3, out[0], LONG)};
    if (weft_has_left(other) != WEFT_LOST)
        CHECK(weft_wait_any(requests, 1, 30000) == 1);
    CHECK(weft_wait(requests[0], NULL) == WEFT_ERR_LOST && weft_wait(requests[1], NULL) == WEFT_ERR_LOST);
}

int main(int count, char **words)
{
    CHECK(weft_init(0) == 0 && weft_size() == 2 && weft_port_open(PORT) == PORT);
    int other = 1 - weft_me();
    if (count == 2 && strcmp(words[1], "lost") == 0) {
        if (weft_me() == 1) {
            CHECK(weft_send(0, PORT, 1, NULL, 0) == 0);
            kill(getpid(), SIGKILL);
        }
        without(other);
        puts("ok");
        return weft_finish();
    }
    in_any_order(other);
    short_ones(other);
    /* Nobody receives this, and what stands here is nobody's: leaving waits for neither. */
    CHECK(weft_send_begin(other, PORT, 70, out[0], LONG) > 0 && weft_receive_begin(PORT, other, 71, in[0], LONG) > 0);
    finish();
    return 0;
}
