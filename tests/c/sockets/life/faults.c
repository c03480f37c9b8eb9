/* Limits that are reached, and processes that are killed. */
#include "life.h"
#include <net/if.h>
#include <sched.h>
#include <stddef.h>
#include <sys/un.h>

/* Opens files until there are no numbers left; gives `spare` back. */
static void use_up(int spare)
{
    int last = -1, fd;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    must(errno == EMFILE);
    for (; spare > 0; spare--)
        must(!close(last--));
}

static void limit(int resource, rlim_t soft)
{
    struct rlimit both;
    must(!getrlimit(resource, &both));
    both.rlim_cur = soft;
    must(!setrlimit(resource, &both));
}

static void *send_slowly(void *argument)
{
    for (int i = 0; i < 3; i++) {
        usleep(20000);
        send_all(*(int *)argument, "x", 1);
    }
    return NULL;
}

/* Sleeps in each way until something comes. */
static void sleep_in_turn(int a, int b, int set)
{
    pthread_t thread;
    char byte;
    struct pollfd one = { .fd = b, .events = POLLIN };
    struct epoll_event event;
    must(!pthread_create(&thread, NULL, send_slowly, &a));
    receive_all(b, &byte, 1);
    must(poll(&one, 1, 5000) == 1);
    receive_all(b, &byte, 1);
    must(epoll_wait(set, &event, 1, 5000) == 1);
    receive_all(b, &byte, 1);
    must(!pthread_join(thread, NULL));
}

/* There are no descriptors for the library: before it takes a connection over, and after. */
void no_descriptors(void)
{
    for (int before = 0; before < 2; before++) {
        int b, a = connected(&b), set = epoll_create1(0);
        put(set, EPOLL_CTL_ADD, b, EPOLLIN);
        if (!before)
            take_over(a, b);
        limit(RLIMIT_NOFILE, 300);
        use_up(0);
        warm(a, b);
        for (int i = 0; i < 50; i++) {
            send_pattern(a, i * 1000, 1000);
            receive_pattern(b, i * 1000, 1000);
        }
        sleep_in_turn(a, b, set);
        for (int fd = b + 10; fd < 300; fd++)
            close(fd);
        warm(a, b);
        send_pattern(b, 0, 100000);
        receive_pattern(a, 0, 100000);
        must(!close(a) && !close(b));
    }
}

/* Files may have no bytes. */
void no_files(void)
{
    limit(RLIMIT_FSIZE, 0);
    int b, a = pair(&b);
    send_pattern(a, 0, 100000);
    receive_pattern(b, 0, 100000);
    must(!close(a) && !close(b));
}

/* There is no address space for more than what is mapped. */
void no_memory(void)
{
    int b, a = connected(&b);
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    must(file && fscanf(file, "%ld", &pages) == 1 && !fclose(file));
    limit(RLIMIT_AS, (rlim_t)pages * 4096 + (1 << 20));
    warm(a, b);
    send_pattern(a, 0, 100000);
    receive_pattern(b, 0, 100000);
    struct pollfd one = { .fd = b, .events = POLLIN };
    must(poll(&one, 1, 20) == 0);
    send_all(a, "x", 1);
    must(poll(&one, 1, 5000) == 1);
    must(!close(a) && !close(b));
}

static size_t *count_sent;

static void send_until_killed(int fd)
{
    for (size_t at = 0;; at += 1000) {
        send_pattern(fd, at, 1000);
        __atomic_store_n(count_sent, at + 1000, __ATOMIC_SEQ_CST);
    }
}

/* Receives until the end; answers the error, 0 for none. */
static int receive_rest(int fd, size_t *at, int set)
{
    static char buffer[10000], wanted[sizeof buffer];
    for (;;) {
        struct epoll_event event;
        if (set >= 0)
            must(epoll_wait(set, &event, 1, 5000) == 1);
        ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0)
            return n < 0 ? errno : 0;
        pattern(wanted, *at, n);
        must(!memcmp(buffer, wanted, n));
        *at += n;
    }
}

/* The other side is killed while it sends: what it has sent arrives, and then the end. */
void killed_while_sending(void)
{
    count_sent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(count_sent != MAP_FAILED);
    for (int i = 0; i < 12; i++) {
        int fd, set = i % 3 == 1 ? epoll_create1(0) : -1;
        size_t at = 0;
        *count_sent = 0;
        pid_t child = peer(&fd, send_until_killed);
        if (set >= 0)
            put(set, EPOLL_CTL_ADD, fd, EPOLLIN | (i % 2 ? EPOLLET : 0) | EPOLLRDHUP);
        /* In the middle of a send, or blocked in one. */
        size_t some = i % 4 < 2 ? 50000 * i : 0;
        receive_pattern(fd, 0, some);
        at = some;
        if (some == 0)
            usleep(20000);
        must(!kill(child, SIGKILL));
        if (i % 2)
            must(waitpid(child, NULL, 0) == child);
        if (set >= 0 && i % 2) {
            /* An edge may have been told before. */
            close(set);
            set = -1;
        }
        must(receive_rest(fd, &at, set) == 0);
        must(at >= *count_sent);
        if (i % 2 == 0)
            must(waitpid(child, NULL, 0) == child);
        must(!close(fd) && (set < 0 || !close(set)));
    }
}

static void receive_until_killed(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) == 1)
        ;
}

/* The other side is killed while we send: an error, and no hanging. */
void killed_while_receiving(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 4; i++) {
        static char buffer[1 << 20];
        int fd;
        pid_t child = peer(&fd, receive_until_killed);
        send_all(fd, buffer, 1000);
        pid_t killer = fork();
        if (killer == 0) {
            usleep(20000);
            _exit(kill(child, SIGKILL));
        }
        ssize_t n;
        while ((n = send(fd, buffer, sizeof buffer, 0)) >= 0)
            ;
        must(errno == EPIPE || errno == ECONNRESET);
        must(waitpid(child, NULL, 0) == child);
        ended_well(killer);
        must(!close(fd));
    }
}

/* A network of our own, where a rendezvous of our own can be killed. */
static void go_elsewhere(void)
{
    struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    must(!unshare(CLONE_NEWNET) || !unshare(CLONE_NEWUSER | CLONE_NEWNET));
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    must(!ioctl(fd, SIOCSIFFLAGS, &loopback) && !close(fd));
}

static int answers(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "weft-rendezvous-v5-%u", geteuid());
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int answer = connect(fd, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + length);
    close(fd);
    return answer == 0;
}

/* Starts it; on plain kernel TCP there is none. */
static pid_t start_rendezvous(void)
{
    char path[4096];
    const char *library = getenv("LD_PRELOAD");
    if (!library)
        return 0;
    snprintf(path, sizeof path, "%s", library);
    for (int up = 0; up < 2; up++)
        *strrchr(path, '/') = 0;
    strncat(path, "/bin/weft", sizeof path - strlen(path) - 1);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsetenv("LD_PRELOAD");
        execl(path, "weft", "rendezvous", (char *)NULL);
        _exit(9);
    }
    while (!answers())
        must(waitpid(child, NULL, WNOHANG) == 0 && !usleep(1000));
    return child;
}

static void kill_rendezvous(pid_t rendezvous)
{
    if (rendezvous)
        must(!kill(rendezvous, SIGKILL) && waitpid(rendezvous, NULL, 0) == rendezvous);
}

static void exchange(int a, int b)
{
    for (size_t at = 0; at < 1 << 20; at += 10000) {
        send_pattern(a, at, 10000);
        receive_pattern(b, at, 10000);
    }
}

/* The rendezvous is killed: connections that are there go on, new ones are the kernel's, and a later rendezvous is found. */
void rendezvous_killed(void)
{
    go_elsewhere();
    pid_t rendezvous = start_rendezvous();
    int b, a = closing_pair(&b), d, f;
    exchange(a, b);
    kill_rendezvous(rendezvous);
    exchange(b, a);
    int c = connected_as(SOCK_CLOEXEC, &d);
    warm(c, d);
    exchange(c, d);
    exchange(a, b);
    rendezvous = start_rendezvous();
    /* The library remembers for a second that there was none. */
    usleep(1100000);
    int e = closing_pair(&f);
    exchange(e, f);
    exchange(c, d);
    exchange(a, b);
    kill_rendezvous(rendezvous);
    must(!close(a) && !close(b) && !close(c) && !close(d) && !close(e) && !close(f));
}
