/* Connections of rank 0 to each other rank, and bytes that go there and back. */
#ifndef WIRES_H
#define WIRES_H

#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 64 };

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

#endif
