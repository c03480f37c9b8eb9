/* Two ranks exchange messages of several lengths, whatever becomes of the way between them, until a file appears.
 *
 *     hosts_partition FILE
 *
 * Rank 0 says "begun", and "paused" after each exchange that took longer than a second. Every byte is checked. */
#include "check.h"
#include <unistd.h>

enum { TAG = 5, WARM = 100, REST = 500, LONGEST = 70000 };
static const int LENGTHS[] = {1, 48, 900, 5000, 20000, LONGEST};
static const double PAUSE_S = 1.0;

static unsigned char byte_of(int sender, long round, long at)
{
    return (unsigned char)(sender * 101 + round * 13 + at * 7 + at / 253);
}

/* To and fro at the same time; answers whether rank 0 wants to go on. */
static int exchange(long round, int goes_on)
{
    static unsigned char out[LONGEST], in[LONGEST];
    int length = LENGTHS[round % (int)(sizeof LENGTHS / sizeof *LENGTHS)], got, other = 1 - check_rank;
    out[0] = (unsigned char)goes_on;
    for (long at = 1; at < length; at++) out[at] = byte_of(check_rank, round, at);
    MPI_Status status;
    OK(MPI_Sendrecv(out, length, MPI_BYTE, other, TAG, in, LONGEST, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &got));
    CHECK(got == length);
    for (long at = 1; at < length; at++) CHECK(in[at] == byte_of(other, round, at));
    return check_rank == 0 ? goes_on : in[0];
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    CHECK(argc == 2 && check_size == 2);
    long left = REST;
    for (long round = 0, goes_on = 1; goes_on; round++) {
        double begin = MPI_Wtime();
        /* Some more once it is there: the way works. */
        if (access(argv[1], F_OK) == 0) left--;
        goes_on = exchange(round, left > 0);
        if (check_rank == 0 && round == WARM) puts("begun");
        if (check_rank == 0 && round > WARM && MPI_Wtime() - begin > PAUSE_S) puts("paused");
        fflush(stdout);
    }
    return check_end();
}
