/* What becomes of ends that only one side shows, and of those that come after them. */
#include "life.h"

enum { ONE_SIDED = 4, ROUNDS = 4000 };

/* So many messages that the library shows the sender's end, in fewer calls of the receiver. */
static void send_one_sided(int from, int to)
{
    char bytes[ONE_SIDED];
    for (int i = 0; i < ONE_SIDED; i++)
        send_all(from, "o", 1);
    receive_all(to, bytes, sizeof bytes);
}

/* A connection from this port, which is reset when it is closed; -1 while the last one of the same ports is there. */
static int connect_from(struct sockaddr_in *from, const struct sockaddr_in *to)
{
    struct linger at_once = { 1, 0 };
    socklen_t length = sizeof *from;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    must(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
    must(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    must(!bind(fd, (struct sockaddr *)from, sizeof *from) && !getsockname(fd, (struct sockaddr *)from, &length));
    if (!connect(fd, (const struct sockaddr *)to, sizeof *to))
        return fd;
    must(errno == EADDRNOTAVAIL && !close(fd));
    return -1;
}

/* The rendezvous closes the copy that it was shown in its own time. */
static int connected_from(struct sockaddr_in *from, int listener, int *other)
{
    struct sockaddr_in to;
    socklen_t length = sizeof to;
    int fd, one = 1;
    must(!getsockname(listener, (struct sockaddr *)&to, &length));
    while ((fd = connect_from(from, &to)) < 0)
        usleep(1000);
    must((*other = accept(listener, NULL, NULL)) >= 0);
    must(!setsockopt(*other, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    return fd;
}

/* One end is shown and closed before the other one was. The next connection between the same ports shows the other end
 * first, which must not meet the one that is gone. */
void port_used_again(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, from = at;
    int other, listener = socket(AF_INET, SOCK_STREAM, 0);
    must(!bind(listener, (struct sockaddr *)&at, sizeof at) && !listen(listener, 4));
    int fd = connected_from(&from, listener, &other);
    send_one_sided(fd, other);
    /* What this process has shown before is known to the rendezvous when these have met. */
    int one, another;
    one = pair(&another);
    must(!close(fd) && !close(other));
    fd = connected_from(&from, listener, &other);
    send_one_sided(other, fd);
    for (int i = 0; i < ROUNDS; i++) {
        char byte = 'r';
        send_all(fd, &byte, 1);
        receive_all(other, &byte, 1);
        send_all(other, &byte, 1);
        receive_all(fd, &byte, 1);
        usleep(i < 100 ? 100 : 0);
    }
    must(!close(fd) && !close(other) && !close(listener) && !close(one) && !close(another));
}
