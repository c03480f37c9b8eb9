/* Eight bytes there and back, then messages of all lengths. */
#include "check.h"

enum { PORT = 5, TAG = 17, LONGEST = 3000000 };

static unsigned char out[LONGEST], in[LONGEST];

static void there_and_back(size_t length)
{
    struct weft_message message;
    int me = weft_me();
    for (size_t at = 0; at < length; at++)
        out[at] = (unsigned char)(at * 7 + at / 251 + length);
    if (me == 0) {
        CHECK(weft_send(1, PORT, TAG, out, length) == 0);
        CHECK(weft_receive(PORT, 1, TAG + 1, in, sizeof in, &message) == 0);
    } else {
        CHECK(weft_receive(PORT, 0, TAG, in, sizeof in, &message) == 0);
        CHECK(weft_send(0, PORT, TAG + 1, in, length) == 0);
    }
    CHECK(message.length == length && message.process == 1 - me && message.port == PORT);
    CHECK(message.tag == (me == 0 ? TAG + 1 : TAG));
    CHECK(memcmp(in, out, length) == 0);
}

int main(void)
{
    size_t lengths[] = {8, 0, 1, 48, 49, 4096, 65537, LONGEST};
    CHECK(weft_init(0) == 0);
    CHECK(weft_size() == 2);
    CHECK(weft_port_open(PORT) == PORT);
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++)
        there_and_back(lengths[at]);
    finish();
    return 0;
}
