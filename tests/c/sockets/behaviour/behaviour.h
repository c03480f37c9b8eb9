/* What the cases share: connections that the library has taken over, and their two ends. */
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
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The case that runs. */
extern const char *name;

#define must(condition)                                                                              \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "behaviour: %s: line %d: %s (%s)\n", name, __LINE__, #condition, strerror(errno)); \
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

int connected(int *other);
void send_all(int fd, const void *from, size_t bytes);
void receive_all(int fd, void *into, size_t bytes);
void warm(int a, int b);
int pair(int *other);
pid_t peer(int *fd, void (*role)(int));
void ended_well(pid_t child);
void on(int number, int flags);
void *send_later(void *argument);
void talk(int fd, int rounds);
void echo(int fd);
size_t fill_up(int fd);
void drain(int fd, size_t bytes);

/* The cases. */
void end_follows_data(void);
void closed_peer_gives_epipe(void);
void broken_pipe_signal(void);
void flags(void);
void urgent(void);
void files(void);
void timeouts(void);
void interrupted(void);
void shut_by_a_thread(void);
void cancelled(void);
void duplicates(void);
void forked(void);
void executed(void);
void spawned(void);
void standard_io(void);
void passed(void);
void peer_killed(void);
void readiness(void);
void sets(void);
void edges(void);
void nested_sets(void);
void two_sleepers(void);
void registered_beside(void);
void filled_beside(void);
void forked_beside(void);
void killed_behind_a_full_ring(void);
void answers_of_two_threads(void);
void used_beside_poll(void);
void all_else_closed(void);
