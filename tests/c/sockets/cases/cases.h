/* What the programs with cases share: connections that the library has taken over, and their two ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A program with cases, each of which runs in a child of its own: PROGRAM CASE... | all | list. Prints one line per case. */
struct a_case {
    const char *name;
    void (*run)(void);
};

int run_cases(int argc, char **argv, const struct a_case *cases, size_t count);

/* The program and the case that runs. */
extern const char *program, *name;

#define must(condition)                                                                              \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "%s: %s: %s: line %d: %s (%s)\n", program, name, __FILE__, __LINE__,      \
                    #condition, strerror(errno));                                                    \
            _exit(1);                                                                                \
        }                                                                                            \
    } while (0)

extern volatile sig_atomic_t signals_seen;

struct later {
    int fd;
    int microseconds;
    pthread_t thread;
    int signal;
};

/* Two connected ends; `flags` are those of their kind, such as SOCK_CLOEXEC. */
int connected_as(int flags, int *other);
int connected(int *other);
void send_all(int fd, const void *from, size_t bytes);
void receive_all(int fd, void *into, size_t bytes);
/* Bytes that the kernel has moved, both ways: not those of the rings. */
unsigned long long moved_by_kernel(int fd);
void warm(int a, int b);
/* Talks until the library has taken the connection over, and then as long again and 20 rounds more, so that most goes
   through the rings. How long it takes depends on when the rendezvous process gets a core: on a loaded machine many rounds
   go by. Who is refused the rings goes on all the same, after some seconds. */
void take_over(int fd, int other);
int pair(int *other);
/* A pair that closes on exec. */
int closing_pair(int *other);
/* A child that has the other end and plays `role` with it. */
pid_t peer(int *fd, void (*role)(int));
int exit_status(pid_t child);
void ended_well(pid_t child);
void on(int number, int flags);
void *send_later(void *argument);
void join_in_time(pthread_t thread, void **result);
/* Until the thread of this number has slept at some looks, one after the other: a lock is not held for so long. */
void until_asleep(volatile pid_t *id);
void put(int set, int operation, int fd, unsigned events);
/* A stream whose bytes are known by their places: sends, or receives and compares, those from `at` on. */
void pattern(char *into, size_t at, size_t bytes);
void send_pattern(int fd, size_t at, size_t bytes);
void receive_pattern(int fd, size_t at, size_t bytes);
void talk(int fd, int rounds);
void echo(int fd);
size_t fill_up(int fd);
void drain(int fd, size_t bytes);
