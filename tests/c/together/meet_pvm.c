/* Two tasks, of which the first one sends to a P4 process, at a port of this name or address, what the other one has sent
   it by PVM, and brings the answers back: each of so many P4 processes has added one to each byte. */
#include "meeting.h"
#include <pvm3.h>

static void give(int other, int turn, int length)
{
    pvm_initsend(PvmDataRaw);
    pvm_pkbyte((char *)bytes, length, 1);
    NEED(pvm_send(other, turn) == 0);
}

static void take(int other, int turn, int length)
{
    NEED(pvm_recv(other, turn) > 0 && pvm_upkbyte((char *)bytes, length, 1) == 0);
}

int main(int argc, char **argv)
{
    int *tids, me = pvm_mytid(), process = -1, port, mine;
    NEED(argc == 3 && me > 0 && pvm_siblings(&tids) == 2);
    int is_first = me == tids[0], other = tids[is_first];
    NEED(weft_init(0) == 0 && (mine = weft_port_open(WEFT_ANY)) > 0);
    if (is_first)
        NEED(weft_port_find(argv[1], 20000, &process, &port) == 0 && process >= weft_size());
    for (int turn = 0; turn < TURNS; turn++) {
        struct weft_message message;
        int length = LENGTHS[turn % 6];
        if (is_first) {
            take(other, turn, length);
            NEED(weft_send(process, port, mine, bytes, length) == 0);
            NEED(weft_receive(mine, process, turn, bytes, length, &message) == 0 && message.length == (size_t)length);
            give(other, turn, length);
        } else {
            for (int at = 0; at < length; at++)
                bytes[at] = (unsigned char)(at * 7 + turn);
            give(other, turn, length);
            take(other, turn, length);
            for (int at = 0; at < length; at++)
                NEED(bytes[at] == (unsigned char)(at * 7 + turn + atoi(argv[2])));
        }
    }
    NEED(weft_finish() == 0 && pvm_exit() == 0);
    if (!is_first)
        puts("ok");
    return 0;
}
