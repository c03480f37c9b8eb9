/* Process 0 extracts, process 1 sends more than process 2 takes; with an argument the last one ends without leave. */
#include <fm.h>
#include <unistd.h>

static char bytes[8 << 20];

int main(int count, char **words)
{
    (void)words;
    FM_initialize();
    if (count > 1 && FM_nodeid == FM_numnodes - 1)
        _exit(0);
    if (FM_nodeid == 1) {
        FM_stream *stream = FM_begin_message(2, sizeof bytes, 1);
        FM_send_piece(stream, bytes, sizeof bytes);
        FM_end_message(stream);
    }
    while (FM_nodeid == 0)
        FM_extract(1000);
    pause();
    FM_finalize();
    return 0;
}
