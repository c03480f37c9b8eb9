/* What other threads do to a connection meanwhile. */
#include "life.h"

static const size_t much = 200000;
static int stopped[2];

/* Sends something and ends, with bytes unread. */
static void leave_unread(int fd)
{
    char byte;
    send_all(fd, "left", 4);
    must(!close(stopped[1]) && read(stopped[0], &byte, 1) == 0);
    raise(SIGKILL);
}

static volatile pid_t looker;
static volatile int holds, set_answered = -1;
static int held_set;
static char *page;

/* The reader was interrupted while it takes bytes, and looks at a set that somebody else waits on. */
static void look_in_a_handler(int number)
{
    struct epoll_event event;
    (void)number;
    holds = 1;
    until_asleep(&looker);
    set_answered = epoll_wait(held_set, &event, 1, 0);
    must(!mprotect(page, 4096, PROT_READ | PROT_WRITE));
}

static void *read_into_the_page(void *fd)
{
    must(recv(*(int *)fd, page, 4, 0) == 4 && !memcmp(page, "left", 4));
    return NULL;
}

static void *wait_for_the_end(void *argument)
{
    struct epoll_event event;
    while (!holds)
        usleep(1000);
    looker = gettid();
    must(epoll_wait(held_set, &event, 1, -1) == 1 && event.events & EPOLLRDHUP);
    return argument;
}

/* One thread takes bytes, and is in a handler in the middle of that; another one learns of the end from a set, which has
 * to do with those bytes; and the handler looks at that set. Nobody waits for ever. */
void looked_at_by_a_handler(void)
{
    int fd;
    pthread_t reader, waiter;
    /* Memory of the program is touched in the middle of a receive by the library only. */
    if (!getenv("LD_PRELOAD"))
        return;
    must(!pipe(stopped));
    pid_t child = peer(&fd, leave_unread);
    send_all(fd, "unread", 6);
    must(!close(stopped[0]) && !close(stopped[1]) && waitpid(child, NULL, 0) == child);
    must((held_set = epoll_create1(0)) >= 0);
    put(held_set, EPOLL_CTL_ADD, fd, EPOLLRDHUP);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(page != MAP_FAILED && signal(SIGSEGV, look_in_a_handler) != SIG_ERR);
    must(!pthread_create(&reader, NULL, read_into_the_page, &fd));
    must(!pthread_create(&waiter, NULL, wait_for_the_end, NULL));
    must(!pthread_join(reader, NULL) && !pthread_join(waiter, NULL) && set_answered >= 0);
    must(!close(fd) && !close(held_set));
}

static void say_it_and_go(int fd)
{
    send_pattern(fd, 0, much);
    _exit(0);
}

static void *read_it_in_order(void *argument)
{
    int fd = *(int *)argument;
    char got, wanted;
    size_t at = 0;
    for (ssize_t n; (n = recv(fd, &got, 1, 0)) != 0; at += n) {
        must(n == 1);
        pattern(&wanted, at, 1);
        must(got == wanted);
    }
    must(at == much);
    return NULL;
}

/* The other side is gone, and what it has sent is read while another program is started that gets the socket, too. */
void read_beside_a_spawn(void)
{
    for (int i = 0; i < 20; i++) {
        int fd;
        char *words[] = { "true", NULL };
        pthread_t reader;
        pid_t gone = peer(&fd, say_it_and_go), child;
        must(waitpid(gone, NULL, 0) == gone);
        must(!pthread_create(&reader, NULL, read_it_in_order, &fd));
        must(!posix_spawnp(&child, "true", NULL, NULL, words, environ) && exit_status(child) == 0);
        must(!pthread_join(reader, NULL) && !close(fd));
    }
}
