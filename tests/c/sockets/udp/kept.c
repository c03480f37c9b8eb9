/* What must not change: the order of a sender, the program's own headers, and what the program asks the kernel for. */
#include "udp.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <stddef.h>

/* What one sender has sent on either way before a fork, and what it sends afterwards. */
void order_over_a_fork(void)
{
    for (int looks = 0; looks < 2; looks++) {
        struct pair p = pair_of(AF_INET, 0);
        char in[10];
        must(recv(p.b, in, 10, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        /* With this flag it is the kernel's, and the next ones are not. */
        must(sendto(p.a, "one", 3, MSG_DONTROUTE, (struct sockaddr *)&p.at_b, 16) == 3);
        to_b(&p, "three", 5);
        to_b(&p, "", 0);
        if (looks)
            must(recv(p.b, in, 10, MSG_PEEK) == 3 && !memcmp(in, "one", 3));
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        ended_well(child);
        to_b(&p, "fourth", 6);
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        must(recvfrom(p.b, in, 10, 0, (struct sockaddr *)&from, &size) == 3 && !memcmp(in, "one", 3));
        must(size == 16 && !memcmp(&from, &p.at_a, 16));
        must(recv(p.b, in, 10, 0) == 5 && !memcmp(in, "three", 5) && recv(p.b, in, 10, 0) == 0);
        must(recv(p.b, in, 10, 0) == 6 && recv(p.b, in, 10, MSG_DONTWAIT) == -1);
        must(!close(p.a) && !close(p.b));
    }
}

static volatile pid_t receiver;
static struct pair between;
static struct msghdr header;

static void *receive_asleep(void *length)
{
    receiver = gettid();
    *(ssize_t *)length = recvmsg(between.b, &header, 0);
    return NULL;
}

/* The kernel reads a header when the call begins, and writes some of it when the call has received something. */
void headers_stay(void)
{
    between = pair_of(AF_INET, 0);
    char in[10];
    struct iovec into = { in, sizeof in };
    struct msghdr before = { .msg_namelen = 77, .msg_iov = &into, .msg_iovlen = 1, .msg_flags = 0x5555 };
    pthread_t thread;
    ssize_t length;
    header = before;
    must(recvmsg(between.b, &header, MSG_DONTWAIT) == -1 && errno == EAGAIN && !memcmp(&header, &before, sizeof before));
    must(!pthread_create(&thread, NULL, receive_asleep, &length));
    until_asleep(&receiver);
    must(!memcmp(&header, &before, sizeof before));
    to_b(&between, "x", 1);
    must(!pthread_join(thread, NULL) && length == 1);
    must(!header.msg_name && header.msg_namelen == 77 && header.msg_flags == 0);
    /* One that is there already, and one of a list. */
    struct mmsghdr one = { .msg_hdr = before };
    header = before;
    to_b(&between, "xy", 2);
    to_b(&between, "xyz", 3);
    must(recvmsg(between.b, &header, MSG_CMSG_CLOEXEC) == 2 && header.msg_namelen == 77);
    must(header.msg_flags == MSG_CMSG_CLOEXEC);
    must(recvmmsg(between.b, &one, 1, 0, NULL) == 1 && one.msg_hdr.msg_namelen == 77 && one.msg_hdr.msg_flags == 0);
}

static volatile int trapped;

static void on_trap(int number)
{
    (void)number;
    trapped++;
}

/* From now on these calls are not made, and counted. */
static void trap(const int *calls, int count)
{
    struct sock_filter words[16] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
    unsigned short length = 1;
    for (int i = 0; i < count; i++) {
        words[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        words[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    words[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = { length, words };
    must(signal(SIGSYS, on_trap) != SIG_ERR && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

/* A socket that has no ring blocks no signals, and interrupts nobody, when it hears somebody and when it is closed. */
void no_needless_calls(void)
{
    struct pair p = pair_of(AF_INET, 0), q;
    char in[10];
    q.a = on_loopback(AF_INET, &q.at_a);
    q.b = on_loopback(AF_INET, &q.at_b);
    to_b(&q, "x", 1);
    must(recv(q.b, in, 10, 0) == 1);
    to_a(&q, "y", 1);
    const int calls[] = { SYS_rt_sigprocmask, SYS_membarrier };
    trap(calls, 2);
    must(recv(q.a, in, 10, 0) == 1);
    must(!close(q.a) && !close(q.b));
    must(!trapped);
    (void)p;
}

/* Where there is no rendezvous, and never was, a socket asks nobody after a while. */
void nobody_to_ask(void)
{
    struct pair p = pair_of(AF_INET, 0), q;
    pid_t child = fork();
    if (child == 0) {
        struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
        must(!unshare(CLONE_NEWNET) || !unshare(CLONE_NEWUSER | CLONE_NEWNET));
        q.a = on_loopback(AF_INET, &q.at_a);
        must(!ioctl(q.a, SIOCSIFFLAGS, &loopback));
        q.b = on_loopback(AF_INET, &q.at_b);
        exchange(&q, 200);
        const int calls[] = { SYS_getsockopt, SYS_getsockname, SYS_connect };
        trap(calls, 3);
        exchange(&q, 200);
        must(!trapped);
        _exit(0);
    }
    ended_well(child);
    must(!close(p.a) && !close(p.b));
}
