/* Connections that somebody else accepted, and what requests of io_uring do to them. */
#include "behaviour.h"
#include <linux/io_uring.h>
#include <sys/mman.h>

static void hand_over(int by, int fd)
{
    char byte = 'f';
    struct iovec data = { &byte, 1 };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    must(sendmsg(by, &message, 0) == 1);
}

static int handed_over(int by)
{
    char byte;
    struct iovec data = { &byte, 1 };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    must(recvmsg(by, &message, MSG_CMSG_CLOEXEC) == 1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* Answers byte by byte, as `peer` does. */
static void answer_until_the_end(int fd)
{
    for (char byte = 0; byte != 'e';) {
        receive_all(fd, &byte, 1);
        send_all(fd, &byte, 1);
    }
}

static void serve_what_is_handed_over(int by)
{
    int fd = handed_over(by);
    answer_until_the_end(fd);
    char byte;
    /* The one who accepted it may have sent something, too. */
    must(read(by, &byte, 1) == 1);
    send_all(fd, "from the server", 15);
    must(!close(fd));
    _exit(0);
}

/* Accepts in one process and serves in another one, which was there before: as servers with workers do it. */
static pid_t served_elsewhere(int *fd, int *accepted, int *by)
{
    int ways[2];
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ways));
    pid_t worker = fork();
    if (worker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ways[0]);
        serve_what_is_handed_over(ways[1]);
    }
    close(ways[1]);
    *by = ways[0];
    *fd = connected(accepted);
    hand_over(*by, *accepted);
    return worker;
}

void handed_to_a_worker(void)
{
    int fd, accepted, by;
    pid_t worker = served_elsewhere(&fd, &accepted, &by);
    must(!close(accepted));
    take_over(fd, -1);
    must(write(by, "g", 1) == 1);
    char in[15];
    receive_all(fd, in, sizeof in);
    must(!memcmp(in, "from the server", 15) && recv(fd, in, 1, 0) == 0);
    ended_well(worker);
    must(!close(fd) && !close(by));
}

/* Who has handed it over may use it all the same: what both send arrives in order. */
void handed_over_and_kept(void)
{
    int fd, accepted, by;
    pid_t worker = served_elsewhere(&fd, &accepted, &by);
    int b, a = pair(&b);
    must(!close(a) && !close(b));
    take_over(fd, -1);
    send_all(accepted, "A", 1);
    char in[16];
    must(write(by, "g", 1) == 1);
    receive_all(fd, in, 16);
    must(!memcmp(in, "Afrom the server", 16));
    must(!close(accepted) && recv(fd, in, 1, 0) == 0);
    ended_well(worker);
    must(!close(fd) && !close(by));
}

/* A socket that a process passes to itself is one connection with two descriptors: what is sent by the one that was not
 * used for long comes in order, and what comes can be read there. */
void handed_to_oneself(void)
{
    int ways[2], other, fd = connected(&other);
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ways));
    hand_over(ways[0], other);
    int again = handed_over(ways[1]);
    must(again >= 0 && again != other);
    take_over(fd, again);
    int b, a = pair(&b);
    must(!close(a) && !close(b));
    char in[3];
    send_all(again, "1", 1);
    send_all(other, "2", 1);
    send_all(again, "3", 1);
    receive_all(fd, in, 3);
    must(!memcmp(in, "123", 3));
    send_all(fd, "xyz", 3);
    receive_all(again, in, 1);
    must(recv(other, in + 1, 2, MSG_DONTWAIT) == 2 && !memcmp(in, "xyz", 3));
    must(!close(other));
    send_all(again, "4", 1);
    must(!close(again));
    receive_all(fd, in, 1);
    must(in[0] == '4' && recv(fd, in, 1, 0) == 0 && !close(fd) && !close(ways[0]) && !close(ways[1]));
}

/* One io_uring, driven by hand. */
struct requests {
    int fd;
    char *ring;
    struct io_uring_sqe *entries;
    struct io_uring_params made;
};

/* False where the kernel does not let us. */
static int set_up(struct requests *requests)
{
    memset(requests, 0, sizeof *requests);
    requests->fd = syscall(SYS_io_uring_setup, 8, &requests->made);
    if (requests->fd < 0) {
        must(errno == ENOSYS || errno == EPERM);
        return 0;
    }
    must(requests->made.features & IORING_FEAT_SINGLE_MMAP);
    int access = PROT_READ | PROT_WRITE, kind = MAP_SHARED;
    size_t bytes = requests->made.cq_off.cqes + requests->made.cq_entries * sizeof(struct io_uring_cqe);
    requests->ring = mmap(NULL, bytes, access, kind, requests->fd, IORING_OFF_SQ_RING);
    bytes = requests->made.sq_entries * sizeof(struct io_uring_sqe);
    requests->entries = mmap(NULL, bytes, access, kind, requests->fd, IORING_OFF_SQES);
    must(requests->ring != MAP_FAILED && requests->entries != MAP_FAILED);
    return 1;
}

/* Makes one request and waits for its answer. */
static int ask(struct requests *requests, struct io_uring_sqe request)
{
    char *ring = requests->ring;
    unsigned tail = *(unsigned *)(ring + requests->made.sq_off.tail), at = tail & (requests->made.sq_entries - 1);
    request.user_data = 77;
    requests->entries[at] = request;
    ((unsigned *)(ring + requests->made.sq_off.array))[at] = at;
    __atomic_store_n((unsigned *)(ring + requests->made.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
    must(syscall(SYS_io_uring_enter, requests->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
    unsigned *head = (unsigned *)(ring + requests->made.cq_off.head);
    must(*(volatile unsigned *)(ring + requests->made.cq_off.tail) != *head);
    struct io_uring_cqe *answers = (struct io_uring_cqe *)(ring + requests->made.cq_off.cqes);
    struct io_uring_cqe answer = answers[*head & (requests->made.cq_entries - 1)];
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    must(answer.user_data == 77);
    return answer.res;
}

static int register_by(struct requests *requests, int set, int operation, int fd, struct epoll_event *event)
{
    struct io_uring_sqe request = {
        .opcode = IORING_OP_EPOLL_CTL, .fd = set, .len = operation, .off = fd, .addr = (unsigned long)event
    };
    return ask(requests, request);
}

/* A program registers its sockets in epoll sets by requests, as libuv does, and its connections are accelerated all the
 * same, as they are where the kernel refuses it to make any. */
void registered_by_requests(void)
{
    struct requests requests;
    int may = set_up(&requests), set = epoll_create1(0), b, a = connected(&b);
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = 5 };
    if (may)
        must(register_by(&requests, set, EPOLL_CTL_ADD, b, &event) == 0);
    else
        must(!epoll_ctl(set, EPOLL_CTL_ADD, b, &event));
    take_over(a, b);
    must(epoll_wait(set, &event, 1, 0) == 0);
    for (int i = 0; i < 300; i++) {
        char byte;
        send_all(a, "x", 1);
        must(epoll_wait(set, &event, 1, 5000) == 1 && event.data.u64 == 5);
        receive_all(b, &byte, 1);
    }
    if (may) {
        must(register_by(&requests, set, EPOLL_CTL_ADD, b, &event) == -EEXIST);
        must(register_by(&requests, set, EPOLL_CTL_DEL, b, &event) == 0);
        must(register_by(&requests, set, EPOLL_CTL_DEL, b, &event) == -ENOENT);
        send_all(a, "x", 1);
        must(epoll_wait(set, &event, 1, 20) == 0);
        close(requests.fd);
    }
    must(!close(a) && !close(b) && !close(set));
}

/* A connection that a request moves bytes of is the kernel's before the request is made: its bytes come by the kernel. */
void moved_by_requests(void)
{
    struct requests requests;
    int may = set_up(&requests), b, a = pair(&b);
    char in[5];
    send_all(a, "hello", 5);
    if (may) {
        struct io_uring_sqe receive = { .opcode = IORING_OP_RECV, .fd = b, .addr = (unsigned long)in, .len = 5 };
        must(ask(&requests, receive) == 5);
        must(!memcmp(in, "hello", 5));
        struct io_uring_sqe end = { .opcode = IORING_OP_CLOSE, .fd = b };
        must(ask(&requests, end) == 0);
        must(recv(a, in, 1, 0) == 0);
        close(requests.fd);
    } else {
        receive_all(b, in, 5);
        close(b);
    }
    must(!close(a));
}
