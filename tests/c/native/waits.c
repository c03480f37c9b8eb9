/* The first of several ports and descriptors, and an event loop of the program's own. */
#include "check.h"
#include <unistd.h>

enum { FIRST = 1, SECOND = 2, ROUNDS = 2000 };

static struct weft_message message;

static void select_both(void)
{
    int ends[2], me = weft_me();
    char byte;
    struct weft_pick ports[] = {{FIRST, WEFT_ANY, WEFT_ANY}, {SECOND, 1 - me, 3}};
    CHECK(pipe(ends) == 0);
    struct pollfd polled[] = {{-1, POLLIN, 0}, {ends[0], POLLIN, 0}};
    CHECK(weft_select(ports, 1, polled, 2, 0, &message) == 0);
    CHECK(weft_select(NULL, 0, NULL, 0, 5, NULL) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(weft_select(ports, 1, polled, 2, -1, &message) == 3 && polled[1].revents == POLLIN);
    struct pollfd twice[] = {{ends[0], POLLOUT, 0}, {ends[0], POLLIN, 0}, {ends[0], POLLIN, 0}};
    CHECK(weft_select(ports, 1, twice, 3, -1, &message) == 3);
    CHECK(twice[0].revents == 0 && twice[1].revents == POLLIN && twice[2].revents == POLLIN);
    CHECK(read(ends[0], &byte, 1) == 1);
    /* Nobody is to be woken by the tag that is not chosen. */
    CHECK(weft_send(1 - me, SECOND, 4, NULL, 0) == 0);
    CHECK(weft_send(1 - me, SECOND, 3, &byte, 1) == 0);
    CHECK(weft_select(ports, 2, polled, 2, -1, &message) == 2);
    CHECK(message.process == 1 - me && message.tag == 3 && message.length == 1);
    CHECK(weft_receive(SECOND, 1 - me, 3, &byte, 1, NULL) == 0);
    CHECK(weft_probe(ports + 1, 1, &message) == 0);
    CHECK(weft_receive(SECOND, WEFT_ANY, WEFT_ANY, NULL, 0, NULL) == 0);
    /* The pipe is written while the other process sleeps, and the message comes while it sleeps. */
    for (int round = 0; round < 20; round++) {
        if (me == 0) {
            CHECK(weft_select(ports, 2, polled, 2, -1, &message) == 1);
            CHECK(weft_receive_first(ports, 2, &byte, 1, &message) == 0 && message.port == FIRST);
        } else {
            usleep(1000);
            CHECK(weft_send(0, FIRST, round, "y", 1) == 0);
        }
    }
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    polled[1].fd = ends[0];
    CHECK(weft_select(ports, 2, polled, 2, -1, &message) == WEFT_ERR_ARGUMENT);
}

/* Answers each message of the other process, as event loops do. */
static void event_loop(void)
{
    int me = weft_me(), wait, left = ROUNDS;
    struct weft_pick port = {FIRST, 1 - me, WEFT_ANY};
    struct pollfd polled = {weft_descriptor(), POLLIN, 0};
    CHECK(polled.fd >= 0 && polled.fd == weft_descriptor());
    if (me == 0)
        CHECK(weft_send(1, FIRST, left, &left, sizeof left) == 0);
    while (left > 0) {
        while (left > 0 && weft_probe(&port, 1, &message) > 0) {
            int got;
            CHECK(weft_receive(FIRST, message.process, message.tag, &got, sizeof got, NULL) == 0);
            CHECK(got == left);
            left--;
            if (me == 1 || left > 0)
                CHECK(weft_send(1 - me, FIRST, left, me == 1 ? &got : &left, sizeof left) == 0);
        }
        int armed = left > 0 ? weft_arm(&wait) : 0;
        CHECK(armed >= 0);
        if (armed == 1)
            CHECK(poll(&polled, 1, wait) >= 0);
    }
}

int main(void)
{
    CHECK(weft_init(0) == 0 && weft_size() == 2);
    CHECK(weft_port_open(FIRST) == FIRST && weft_port_open(SECOND) == SECOND);
    select_both();
    event_loop();
    finish();
    return 0;
}
