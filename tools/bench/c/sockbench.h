/* What the measurements of sockbench.c share: the plan, waiting on one end, messages that carry their number, addresses,
 * and what a cache line takes between the two processors. */
#define _GNU_SOURCE
#include "cache_line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum way { BLOCK, SPIN, LEVEL, EDGE, OUTSIDE, WAYS };
static const char *const way_names[WAYS] = {"block", "spin", "level", "edge", "outside"};

typedef struct {
  const char *what;
  enum way way;
  bool local; /* a Unix socket */
  struct in_addr address; /* where the other process listens */
  const char *place;      /* in which network namespace, NULL: in ours */
  bool datagrams;
  size_t bytes;
  double seconds;
  int cpus[2];
} Plan;

static _Noreturn void fail(const char *format, ...) {
  va_list arguments;
  char line[300];
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fprintf(stderr, "sockbench: error: %s\n", line);
  exit(1);
}

static long check(long result, const char *what) {
  if (result < 0) fail("%s: %s", what, strerror(errno));
  return result;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  check(sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

static void figure(const char *id, double value, const char *unit) { printf("figure %s %.9g %s\n", id, value, unit); }

/* Prints what a cache line takes from one processor to the other now. This process may run afterwards where it could
 * before. */
static void time_line(const char *id, const int *cpus) {
  struct lines *lines = mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (lines == MAP_FAILED) fail("mmap: %s", strerror(errno));
  cpu_set_t before;
  check(sched_getaffinity(0, sizeof before, &before), "sched_getaffinity");
  int yield = cpus[0] == cpus[1];
  pid_t second = fork();
  check(second, "fork");
  if (second == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bind_to(cpus[1]);
    _exit(answer(lines, yield) != 0);
  }
  bind_to(cpus[0]);
  uint64_t i = exchange(lines, 0, yield);
  double mean = i ? hand_over_s(lines, &i, 0.02, yield) : -1;
  if (mean < 0) fail("a line arrived torn");
  hand_over(lines->there, LAST);
  int status;
  while (waitpid(second, &status, 0) != second) continue;
  if (status != 0) fail("the second process of the cache line failed");
  munmap(lines, sizeof *lines);
  check(sched_setaffinity(0, sizeof before, &before), "sched_setaffinity");
  figure(id, mean, "s");
  fflush(stdout);
}

/* One end of a connection, and how it waits. */
typedef struct {
  int fd, set;
  enum way way;
} End;

static End open_end(int fd, const Plan *plan) {
  End end = {.fd = fd, .set = -1, .way = plan->way};
  int on = 1;
  if (!plan->local && !plan->datagrams) check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
  if (plan->way != LEVEL && plan->way != EDGE) return end;
  end.set = (int)check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  struct epoll_event event = {.events = EPOLLIN | (plan->way == EDGE ? EPOLLET : 0)};
  check(epoll_ctl(end.set, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  return end;
}

/* Some bytes, or 0 at the end. By edges, the kernel is asked again only after it had nothing more. */
static size_t take(End *end, uint8_t *bytes, size_t count) {
  int flags = end->way == BLOCK || end->way == OUTSIDE ? 0 : MSG_DONTWAIT;
  for (bool wait = end->way == LEVEL;; wait = true) {
    struct epoll_event event;
    if (wait && end->set >= 0) check(epoll_wait(end->set, &event, 1, -1), "epoll_wait");
    ssize_t got = recv(end->fd, bytes, count, flags);
    if (got >= 0) return (size_t)got;
    if (errno == ECONNRESET) return 0;
    if (errno != EAGAIN) fail("recv: %s", strerror(errno));
  }
}

static bool take_all(End *end, uint8_t *bytes, size_t count) {
  for (size_t got = 0; got < count;) {
    size_t once = take(end, bytes + got, count - got);
    if (once == 0) return false;
    got += once;
  }
  return true;
}

static bool give_all(End *end, const uint8_t *bytes, size_t count) {
  for (size_t sent = 0; sent < count;) {
    ssize_t once = send(end->fd, bytes + sent, count - sent, MSG_NOSIGNAL);
    if (once < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
    sent += (size_t)check(once, "send");
  }
  return true;
}

static uint8_t middle(size_t at) { return (uint8_t)(at * 7 + (at >> 8)); }

/* Written in full: pages that nobody has written are all one page to the kernel. */
static uint8_t *new_message(size_t count) {
  uint8_t *bytes = malloc(count);
  if (!bytes) fail("no memory");
  for (size_t i = 0; i < count; i++) bytes[i] = middle(i);
  return bytes;
}

/* The number of the message stands in its first and last byte and once in each page between. */
static void mark(uint8_t *bytes, size_t count, uint64_t number) {
  for (size_t at = 0; at < count; at += 4096) bytes[at] = (uint8_t)number;
  bytes[count - 1] = (uint8_t)number;
}

/* The numbers in each message, and all of some. */
static void look(const uint8_t *bytes, size_t count, uint64_t number) {
  for (size_t at = 0; at < count; at += number % 1024 == 0 ? 1 : 4096) {
    uint8_t expected = at % 4096 == 0 || at + 1 == count ? (uint8_t)number : middle(at);
    if (bytes[at] != expected) fail("message %llu is wrong at byte %zu", (unsigned long long)number, at);
  }
  if (bytes[count - 1] != (uint8_t)number) fail("message %llu is wrong at its end", (unsigned long long)number);
}

typedef union {
  struct sockaddr any;
  struct sockaddr_in tcp;
  struct sockaddr_un local;
} Address;

/* Sockets that are made from now on are of the network namespace `place`. Returns the one before. */
static int enter(const char *place) {
  int before = (int)check(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "open");
  int there = (int)check(open(place, O_RDONLY | O_CLOEXEC), place);
  check(setns(there, CLONE_NEWNET), "setns");
  close(there);
  return before;
}

static int open_listener(const Plan *plan, Address *address, socklen_t *size) {
  memset(address, 0, sizeof *address);
  int family = plan->local ? AF_UNIX : AF_INET;
  address->any.sa_family = (sa_family_t)family;
  *size = plan->local ? sizeof(sa_family_t) : sizeof address->tcp; /* The kernel chooses an abstract name. */
  if (!plan->local) address->tcp.sin_addr = plan->address;
  int before = plan->place ? enter(plan->place) : -1;
  int listener = (int)check(socket(family, SOCK_STREAM, 0), "socket");
  if (before >= 0) check(setns(before, CLONE_NEWNET), "setns"), close(before);
  check(bind(listener, &address->any, *size), "bind");
  check(listen(listener, 1024), "listen");
  *size = sizeof *address;
  check(getsockname(listener, &address->any, size), "getsockname");
  return listener;
}

static int open_datagrams(Address *address, socklen_t *size) {
  memset(address, 0, sizeof *address);
  address->tcp = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = (int)check(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  check(bind(fd, &address->any, sizeof address->tcp), "bind");
  *size = sizeof *address;
  check(getsockname(fd, &address->any, size), "getsockname");
  return fd;
}

static int dial(const Address *address, socklen_t size) {
  int fd = (int)check(socket(address->any.sa_family, SOCK_STREAM, 0), "socket");
  check(connect(fd, &address->any, size), "connect");
  return fd;
}

/* tcp@ADDRESS@NAMESPACE */
static void read_place(Plan *plan, const char *family) {
  char address[INET_ADDRSTRLEN];
  plan->address.s_addr = htonl(INADDR_LOOPBACK);
  if (strncmp(family, "tcp@", 4)) return;
  const char *end = strchr(family + 4, '@');
  if (!end || end - family - 4 >= INET_ADDRSTRLEN) fail("'%s' is not tcp@ADDRESS@NAMESPACE", family);
  memcpy(address, family + 4, (size_t)(end - family - 4));
  address[end - family - 4] = 0;
  if (inet_pton(AF_INET, address, &plan->address) != 1) fail("'%s' is no address", address);
  plan->place = end + 1;
}

static Plan read_plan(char **words) {
  Plan plan = {.what = words[1], .way = WAYS};
  read_place(&plan, words[3]);
  for (int way = 0; way < WAYS; way++)
    if (!strcmp(words[2], way_names[way])) plan.way = (enum way)way;
  plan.local = !strcmp(words[3], "unix");
  plan.datagrams = !strcmp(plan.what, "datagrams");
  plan.bytes = strtoul(words[4], NULL, 10);
  plan.seconds = atof(words[5]);
  for (int i = 0; i < 2; i++) plan.cpus[i] = atoi(words[6 + i]);
  if (plan.way == WAYS || plan.bytes == 0 || plan.seconds <= 0) fail("wrong arguments");
  return plan;
}
