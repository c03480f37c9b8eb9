/* Many hosts send to one: everything arrives whole and in order, and while all of them send nobody starves.
 *
 *     hosts_incast BYTES COUNT       each rank but 0 sends COUNT messages of BYTES
 *
 * Counted is how many messages of each sender come until the first has ended, once all have a way that works. In that time
 * each must bring a quarter of what would be its fair share. */
#include "check.h"

enum { TAG = 3, UNDER_WAY = 4, STARVES = 4, WARM = 20 };

static unsigned char byte_of(int sender, long message, long at)
{
    return (unsigned char)(sender * 59 + message * 7 + at * 13 + at / 251);
}

static void send_all(int bytes, long count)
{
    unsigned char *buffer[UNDER_WAY];
    MPI_Request request[UNDER_WAY];
    for (int slot = 0; slot < UNDER_WAY; slot++) {
        CHECK(buffer[slot] = malloc((size_t)bytes));
        request[slot] = MPI_REQUEST_NULL;
    }
    for (long message = 0; message < count; message++) {
        int slot = (int)(message % UNDER_WAY);
        OK(MPI_Wait(&request[slot], MPI_STATUS_IGNORE));
        for (long at = 0; at < bytes; at++) buffer[slot][at] = byte_of(check_rank, message, at);
        OK(MPI_Isend(buffer[slot], bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[slot]));
    }
    OK(MPI_Waitall(UNDER_WAY, request, MPI_STATUSES_IGNORE));
    for (int slot = 0; slot < UNDER_WAY; slot++) free(buffer[slot]);
}

/* At the end of the first sender. */
static void look_for_the_starved(const long *got, int senders)
{
    long all = 0;
    for (int sender = 1; sender <= senders; sender++) all += got[sender];
#ifdef SHOW
    for (int sender = 1; sender <= senders; sender++) fprintf(stderr, "%ld ", got[sender]);
    fprintf(stderr, "\n");
#endif
    for (int sender = 1; sender <= senders; sender++)
        if (got[sender] * STARVES * senders < all) {
            fprintf(stderr, "rank %d starves: %ld of %ld messages among %d senders\n", sender, got[sender], all, senders);
            exit(98);
        }
}

static void receive_all(int bytes, long count)
{
    int senders = check_size - 1, ended = 0;
    long *got = calloc((size_t)check_size, sizeof *got);
    unsigned char *buffer = malloc((size_t)bytes);
    CHECK(got && buffer);
    for (long left = count * senders; left > 0; left--) {
        MPI_Status status;
        OK(MPI_Recv(buffer, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
        int from = status.MPI_SOURCE, length;
        OK(MPI_Get_count(&status, MPI_BYTE, &length));
        CHECK(from > 0 && length == bytes && got[from] < count);
        for (long at = 0; at < bytes; at++) CHECK(buffer[at] == byte_of(from, got[from], at));
        if (++got[from] == count && ended++ == 0) look_for_the_starved(got, senders);
    }
    free(got), free(buffer);
}

static void send_or_receive(int bytes, long count)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank == 0)
        receive_all(bytes, count);
    else
        send_all(bytes, count);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    CHECK(argc == 3 && check_size > 2);
    /* Connections come about while the first messages are under way already. */
    for (int round = 0; round < WARM; round++) {
        int byte = 0;
        unsigned char *buffer = calloc(1, (size_t)atoi(argv[1]));
        CHECK(buffer);
        for (int sender = 1; sender < check_size; sender++) {
            if (check_rank == sender) OK(MPI_Send(buffer, atoi(argv[1]), MPI_BYTE, 0, TAG, MPI_COMM_WORLD));
            if (check_rank == 0)
                OK(MPI_Recv(buffer, atoi(argv[1]), MPI_BYTE, sender, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        OK(MPI_Bcast(&byte, 1, MPI_INT, 0, MPI_COMM_WORLD));
        free(buffer);
    }
    send_or_receive(atoi(argv[1]), atol(argv[2]));
    return check_end();
}
