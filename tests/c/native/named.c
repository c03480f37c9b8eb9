/* Processes of different jobs meet at a port with a name: "owner NAME GUESTS [FILE]", which leaves its address in the file;
   "guest NAME-OR-ADDRESS"; "squatter NAME"; "inside NAME": the processes of one job, which look before it is there. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

enum { LONG = 2000000 };

static unsigned char bytes[LONG], back[LONG];

static void tell(const char *address, const char *file)
{
    char part[600];
    snprintf(part, sizeof part, "%s.part", file);
    FILE *out = fopen(part, "w");
    CHECK(out && fputs(address, out) >= 0 && fclose(out) == 0 && rename(part, file) == 0);
}

static void owner(const char *name, int guests, const char *file)
{
    struct weft_message message;
    char address[512];
    int port = weft_port_open_named(name);
    CHECK(port > 0);
    CHECK(weft_port_open_named(name) == WEFT_ERR_NAME);
    CHECK(weft_port_address(port, address, sizeof address) == 0 && strstr(address, name));
    CHECK(weft_port_address(port, address, 10) == WEFT_ERR_ARGUMENT);
    CHECK(weft_port_address(1, address, sizeof address) == WEFT_ERR_PORT);
    if (file)
        tell(address, file);
    while (guests > 0) {
        CHECK(weft_receive(port, WEFT_ANY, WEFT_ANY, back, sizeof back, &message) == 0);
        /* A guest's first message has the port for its answers. */
        CHECK(weft_send(message.process, message.tag, 1, back, message.length) == 0);
        guests -= message.length == 0;
    }
}

static void guest(const char *name)
{
    struct weft_message message;
    int process, port, mine = weft_port_open(WEFT_ANY);
    size_t lengths[] = {8, 48, 100, 70000, LONG, 0};
    CHECK(weft_port_find(name, 20000, &process, &port) == 0);
    CHECK(process >= weft_size());
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        memset(bytes, (int)at + 1, lengths[at]);
        CHECK(weft_send(process, port, mine, bytes, lengths[at]) == 0);
        CHECK(weft_receive(mine, process, 1, back, sizeof back, &message) == 0);
        CHECK(message.length == lengths[at] && memcmp(bytes, back, lengths[at]) == 0);
    }
    /* Found again it is the same. */
    int again, there;
    if (weft_port_find(name, 0, &again, &there) == 0)
        CHECK(again == process && there == port);
}

static void inside(const char *name)
{
    int process, port, others = weft_size() - 1;
    if (weft_me() != 0) {
        CHECK(weft_port_find(name, 20000, &process, &port) == 0 && process == 0);
        CHECK(weft_send(process, port, weft_me(), NULL, 0) == 0);
        return;
    }
    usleep(50000);
    CHECK((port = weft_port_open_named(name)) > 0);
    while (others-- > 0)
        CHECK(weft_receive(port, WEFT_ANY, WEFT_ANY, NULL, 0, NULL) == 0);
}

int main(int count, char **words)
{
    CHECK(count >= 3 && weft_init(0) == 0);
    if (strcmp(words[1], "owner") == 0) {
        if (weft_me() == 0)
            owner(words[2], atoi(words[3]), words[4]);
    } else if (strcmp(words[1], "inside") == 0) {
        inside(words[2]);
    } else if (strcmp(words[1], "guest") == 0) {
        guest(words[2]);
    } else {
        CHECK(weft_port_open_named(words[2]) > 0);
        puts("ok");
        fflush(stdout);
        kill(getpid(), SIGKILL);
    }
    finish();
    return 0;
}
