/* Process 0 receives, the others select at a port with a name; with an argument the last one ends without leave. */
#include <unistd.h>
#include <weft.h>

int main(int count, char **words)
{
    char room[8];
    (void)words;
    if (weft_init(0) < 0 || weft_port_open(7) != 7)
        return 1;
    if (count > 1 && weft_me() == weft_size() - 1)
        _exit(0);
    if (weft_me() == 0) {
        weft_receive(7, WEFT_ANY, 3, room, sizeof room, NULL);
    } else {
        struct weft_pick pick = {weft_port_open_named("weft-test-seen"), WEFT_ANY, WEFT_ANY};
        weft_select(&pick, 1, NULL, 0, -1, NULL);
    }
    return weft_finish();
}
