/* MPI, sockets and the native interface by turns, with messages of many lengths: every byte is looked at. Rank 0 has a
   connection to each other rank; the two others go round in a ring. */
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONGEST = 400000, TURNS = 60, MOST = 64 };

static int rank, size, wires[MOST];

/* Rank 0 listens at the address that the argument names. */
static void connect_all(const char *text)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof at;
    int listener = -1;
    check(inet_pton(AF_INET, text, &at.sin_addr) == 1, "an address");
    if (rank == 0) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        check(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, MOST) == 0, "a listener");
        check(getsockname(listener, (struct sockaddr *)&at, &length) == 0, "a name");
    }
    MPI_Bcast(&at.sin_port, 2, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int other = 1; other < size; other++) {
        if (rank == 0)
            check((wires[other] = accept(listener, NULL, NULL)) >= 0, "an accepted connection");
        if (rank == other) {
            wires[0] = socket(AF_INET, SOCK_STREAM, 0);
            check(connect(wires[0], (struct sockaddr *)&at, sizeof at) == 0, "a connection");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void write_all(int wire, const unsigned char *bytes, int length)
{
    for (int done = 0; done < length;) {
        ssize_t now = write(wire, bytes + done, (size_t)(length - done));
        check(now > 0, "a write");
        done += (int)now;
    }
}

static void read_all(int wire, unsigned char *bytes, int length)
{
    for (int done = 0; done < length;) {
        ssize_t now = read(wire, bytes + done, (size_t)(length - done));
        check(now > 0, "a read");
        done += (int)now;
    }
}

static void by_sockets(unsigned char *bytes, int length, int turn)
{
    for (int other = 1; other < size; other++) {
        if (rank == 0) {
            fill(bytes, length, 0, turn);
            write_all(wires[other], bytes, length);
            read_all(wires[other], bytes, length);
            check_bytes(bytes, length, other, turn, "bytes of a socket");
        } else if (rank == other) {
            read_all(wires[0], bytes, length);
            check_bytes(bytes, length, 0, turn, "bytes of a socket");
            fill(bytes, length, rank, turn);
            write_all(wires[0], bytes, length);
        }
    }
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 48, 1000, 5000, 70000, LONGEST};
    static unsigned char a[LONGEST], b[LONGEST], c[LONGEST];
    MPI_Request requests[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    open_native(0);
    connect_all(argv[1]);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int turn = 0; turn < TURNS; turn++) {
        int length = lengths[turn % 6];
        fill(a, length, rank, turn);
        long request = native.post(to, turn, a, length);
        MPI_Irecv(b, length, MPI_BYTE, from, turn, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(a, length, MPI_BYTE, to, turn, MPI_COMM_WORLD, &requests[1]);
        check(native.receive(from, turn, c, LONGEST) == length, "the length of a native message");
        check_bytes(c, length, from, turn, "a native message");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_bytes(b, length, from, turn, "a message of MPI");
        check(native.sent(request) == 0, "a native send");
        by_sockets(c, length, turn);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    native.close();
    MPI_Finalize();
    if (rank == 0)
        printf("ok\n");
    return 0;
}
