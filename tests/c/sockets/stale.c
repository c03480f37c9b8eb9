/* A rendezvous that gives memory of another version than ours, in the network that this process is in, while a program runs:
 *
 *   stale NAME PROGRAM ARGUMENT... */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 16, BYTES = 64, HELLO = 1, OFFER = 2, MAIL = 16, MAILS_AT = 64 };
static struct pollfd all[MOST];
static int pages[MOST], count;
static uint32_t mails[MOST];

static void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(99);
    }
}

/* One packet, with a descriptor or -1. Bytes received or sent. */
static ssize_t pass(int fd, char *packet, int *descriptor, int sends)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec part = { packet, BYTES };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    if (sends) {
        control.header = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
        memcpy(CMSG_DATA(&control.header), descriptor, sizeof(int));
        return sendmsg(fd, &message, MSG_NOSIGNAL);
    }
    ssize_t got = recvmsg(fd, &message, 0);
    *descriptor = -1;
    if (got > 0 && CMSG_FIRSTHDR(&message))
        memcpy(descriptor, CMSG_DATA(&control.header), sizeof(int));
    return got;
}

static void answer(int at, int memory)
{
    char packet[BYTES];
    int shown;
    uint32_t kind, generation = 1, mail = MAIL;
    if (pass(all[at].fd, packet, &shown, 0) <= 0) {
        all[at].fd = -1;
        return;
    }
    memcpy(&kind, packet, sizeof kind);
    if (kind == HELLO)
        pages[at] = shown;
    if (kind != OFFER)
        return;
    close(shown);
    /* The cookie stands where it stood. */
    memset(packet + 16, 0, BYTES - 16);
    memcpy(packet, &mail, sizeof mail);
    packet[16] = 77;
    memcpy(packet + 32, &generation, sizeof generation);
    must(pass(all[at].fd, packet, &memory, 1) == BYTES, "sendmsg");
    mails[at]++;
    must(pwrite(pages[at], &mails[at], 4, MAILS_AT) == 4, "the page");
}

static void serve(void)
{
    int memory = memfd_create("stale", MFD_ALLOW_SEALING);
    must(memory >= 0 && !ftruncate(memory, 4096), "memory");
    for (;;) {
        must(poll(all, count, -1) > 0, "poll");
        for (int at = 1; at < count; at++)
            if (all[at].revents)
                answer(at, memory);
        if (all[0].revents && count < MOST)
            all[count++] = (struct pollfd){ .fd = accept(all[0].fd, NULL, NULL), .events = POLLIN };
    }
}

int main(int words, char **word)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    must(words > 2, "words");
    strcpy(name.sun_path + 1, word[1]);
    all[count++] = (struct pollfd){ .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), .events = POLLIN };
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(word[1]);
    must(!bind(all[0].fd, (struct sockaddr *)&name, length) && !listen(all[0].fd, MOST), word[1]);
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve();
    }
    execvp(word[2], word + 2);
    must(0, word[2]);
}
