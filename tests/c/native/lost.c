/* A process of three ends, "well" or "killed", while the others wait for it in various ways; or "unmet": before anybody
   has heard of it. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

enum { PORT = 1, LONG = 5000000 };

static char bytes[LONG];

int main(int count, char **words)
{
    struct weft_pick picks[] = {{PORT, 2, 1}, {PORT, 2, 2}};
    struct weft_message message;
    struct weft_memory memory;
    void *mine;
    CHECK(count == 2 && weft_init(0) == 0 && weft_size() == 3);
    CHECK(weft_port_open(PORT) == PORT);
    int me = weft_me(), killed = strcmp(words[1], "killed") == 0;
    if (strcmp(words[1], "unmet") == 0) {
        if (me != 2)
            CHECK(weft_receive(PORT, 2, WEFT_ANY, bytes, LONG, &message) == WEFT_ERR_LOST && weft_has_left(2) != 0);
        CHECK(weft_finish() == 0);
        if (me == 0)
            puts("ok");
        return 0;
    }
    if (me == 2) {
        CHECK(weft_send(1, PORT, 2, NULL, 0) == 0);
        CHECK(weft_register(LONG, &mine, &memory) == 0);
        memcpy(bytes, &memory, sizeof memory);
        CHECK(weft_send(0, PORT, 1, bytes, 40) == 0);
        CHECK(weft_send(0, PORT, 1, bytes, 40) == 0);
        CHECK(weft_receive(PORT, 0, 1, NULL, 0, NULL) == 0);
        if (killed)
            kill(getpid(), SIGKILL);
        CHECK(weft_finish() == 0);
        return 0;
    }
    if (me == 0) {
        CHECK(weft_has_left(2) == 0);
        CHECK(weft_receive(PORT, 2, 1, bytes, LONG, &message) == 0 && message.length == 40);
        memcpy(&memory, bytes, sizeof memory);
        CHECK(weft_put(2, &memory, 0, bytes, 8) == 0);
        CHECK(weft_send(2, PORT, 1, NULL, 0) == 0);
        /* What it has sent before is there. */
        CHECK(weft_receive_first(picks, 2, bytes, LONG, &message) == 0 && message.length == 40);
        CHECK(weft_receive_first(picks, 2, bytes, LONG, &message) == WEFT_ERR_LOST);
        usleep(40000); /* It is looked now and then. */
        CHECK(weft_put(2, &memory, 0, bytes, 8) == WEFT_ERR_LOST && weft_get(2, &memory, 0, bytes, 8) == WEFT_ERR_LOST);
        CHECK(weft_receive(PORT, 2, WEFT_ANY, bytes, LONG, &message) == WEFT_ERR_LOST);
    } else {
        CHECK(weft_receive(PORT, 2, 2, NULL, 0, NULL) == 0);
        CHECK(weft_raw_receive(2, bytes, 8) == WEFT_ERR_LOST);
    }
    CHECK(weft_send(2, PORT, 1, bytes, LONG) == WEFT_ERR_LOST);
    CHECK(weft_has_left(2) == (killed ? WEFT_LOST : WEFT_LEFT));
    CHECK(weft_has_left(1 - me) == 0);
    /* The two that are left go on. */
    CHECK(weft_send(1 - me, PORT, 3, bytes, 8) == 0 && weft_receive(PORT, 1 - me, 3, bytes, 8, NULL) == 0);
    CHECK(weft_finish() == 0);
    if (me == 0)
        puts("ok");
    return 0;
}
