/* What comes to the last process, at a port of this name, goes round by P4, and back to its sender. Each process adds one to
   each byte. The port's address is left in a file, if one is named. */
#include "meeting.h"
#include "p4.h"

static void add_one(char *to, int length)
{
    for (int at = 0; at < length; at++)
        to[at]++;
}

/* Takes the message of this turn from the process before, adds one, and hands it on. */
static char *take(int turn, int from, int length)
{
    int type = turn, got;
    char *message = NULL;
    p4_recv(&type, &from, &message, &got);
    NEED(got == length);
    return message;
}

static int open_port(const char *name, const char *file)
{
    char address[512], part[600];
    int port = weft_port_open_named(name);
    NEED(port > 0 && weft_port_address(port, address, sizeof address) == 0);
    if (file) {
        snprintf(part, sizeof part, "%s.part", file);
        FILE *out = fopen(part, "w");
        NEED(out && fputs(address, out) >= 0 && fclose(out) == 0 && rename(part, file) == 0);
    }
    return port;
}

int main(int argc, char **argv)
{
    p4_initenv(&argc, argv);
    NEED(p4_create_procgroup() == 0 && argc > 1);
    int me = p4_get_my_id(), all = p4_num_total_ids(), last = me == all - 1;
    NEED(weft_init(0) == 0);
    int port = last ? open_port(argv[1], argv[2]) : 0;
    for (int turn = 0; turn < TURNS; turn++) {
        int length = LENGTHS[turn % 6], from = (me + all - 1) % all, to = (me + 1) % all;
        struct weft_message asked;
        if (last) {
            NEED(weft_receive(port, WEFT_ANY, WEFT_ANY, bytes, LONGEST, &asked) == 0);
            NEED(asked.length == (size_t)length && asked.process >= weft_size());
            add_one((char *)bytes, length);
            p4_send(turn, to, (char *)bytes, length);
        }
        char *message = take(turn, from, length);
        if (last) {
            NEED(weft_send(asked.process, asked.tag, turn, message, length) == 0);
        } else {
            add_one(message, length);
            p4_send(turn, to, message, length);
        }
        p4_msg_free(message);
    }
    NEED(weft_finish() == 0);
    p4_wait_for_end();
    if (me == 0)
        puts("ok");
    return 0;
}
