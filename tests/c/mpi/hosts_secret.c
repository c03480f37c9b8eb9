/* Sends a text that nobody but the other host is to read: short, eager and long. */
#include "point.h"

enum { MOST = 1 << 20 };

static const char text[] = "nobody but the two hosts reads this ";
static char out[MOST], in[MOST];

static void send_all(int to)
{
    static const int lengths[] = { 16, 48, 600, 4096, 30000, MOST };
    for (int round = 0; round < 5; round++) {
        for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            MPI_Status status;
            memset(in, 0, sizeof in);
            MPI_Sendrecv(out, lengths[i], MPI_CHAR, to, 1, in, MOST, MPI_CHAR, to, 1, MPI_COMM_WORLD, &status);
            CHECK(memcmp(in, out, lengths[i]) == 0, "%d bytes came otherwise", lengths[i]);
        }
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int i = 0; i < MOST; i++) {
        out[i] = text[i % (sizeof text - 1)];
    }
    send_all(size - 1 - rank);
    MPI_Finalize();
    return 0;
}
