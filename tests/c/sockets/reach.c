/* Connections between two hosts, made and used when somebody says so, every byte checked.
 *
 *   reach serve PORT
 *   reach ADDRESS PORT
 *
 * Reads commands, and says "done" after each:
 *   open N    makes (or takes) N connections
 *   talk      sends some short messages on each, and reads nothing
 *   hear      reads what the other side has said on each, and closes them
 *   pong N    one more connection, for N messages and as many answers */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 64, MESSAGES = 6, BYTES = 16 };
static struct sockaddr_in end = { .sin_family = AF_INET };
static int listener = -1, all[MOST], count;

static void die(const char *what)
{
    fprintf(stderr, "reach: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int one_more(void)
{
    int one = 1, fd = listener < 0 ? socket(AF_INET, SOCK_STREAM, 0) : accept(listener, NULL, NULL);
    if (fd < 0 || (listener < 0 && connect(fd, (struct sockaddr *)&end, sizeof end)))
        die("a connection");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* Message `number` of the side that calls, or of the other one. */
static void fill(unsigned char *bytes, int calls, unsigned number)
{
    for (unsigned at = 0; at < BYTES; at++)
        bytes[at] = (unsigned char)(number * 37 + at * 11 + (calls ? 0 : 101));
}

static void say(int fd, unsigned number)
{
    unsigned char bytes[BYTES];
    fill(bytes, listener < 0, number);
    if (send(fd, bytes, BYTES, MSG_NOSIGNAL) != BYTES)
        die("send");
}

static void hear(int fd, unsigned number)
{
    unsigned char bytes[BYTES], wanted[BYTES];
    fill(wanted, listener >= 0, number);
    if (recv(fd, bytes, BYTES, MSG_WAITALL) != BYTES)
        die("recv");
    if (memcmp(bytes, wanted, BYTES)) {
        fprintf(stderr, "reach: message %u is another one\n", number);
        exit(3);
    }
}

static void pong(unsigned messages)
{
    int fd = one_more();
    for (unsigned number = 0; number < messages; number++) {
        if (listener < 0)
            say(fd, number);
        hear(fd, number);
        if (listener >= 0)
            say(fd, number);
    }
    close(fd);
}

static void obey(const char *word, unsigned number)
{
    if (!strcmp(word, "pong"))
        pong(number);
    if (!strcmp(word, "open"))
        while (number-- && count < MOST)
            all[count++] = one_more();
    for (int at = 0; at < count; at++)
        for (unsigned message = 0; message < MESSAGES; message++) {
            if (!strcmp(word, "talk"))
                say(all[at], message);
            if (!strcmp(word, "hear"))
                hear(all[at], message);
        }
    if (!strcmp(word, "hear"))
        while (count)
            close(all[--count]);
}

int main(int argc, char **words)
{
    char line[64], word[8];
    int one = 1;
    if (argc != 3)
        return 2;
    end.sin_port = htons((unsigned short)atoi(words[2]));
    if (strcmp(words[1], "serve") && inet_pton(AF_INET, words[1], &end.sin_addr) != 1)
        die(words[1]);
    if (!strcmp(words[1], "serve")) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(listener, (struct sockaddr *)&end, sizeof end) || listen(listener, MOST))
            die("listen");
    }
    puts("done");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        unsigned number = 0;
        if (sscanf(line, "%7s %u", word, &number) < 1)
            return 2;
        obey(word, number);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
