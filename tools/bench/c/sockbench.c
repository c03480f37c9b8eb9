/* Measures pairs of processes over sockets, and keeps servers beside their clients.
 *
 *   sockbench pingpong WAY FAMILY BYTES SECONDS CPU CPU      one way, seconds
 *   sockbench stream   WAY FAMILY BYTES SECONDS CPU CPU      bytes per second
 *   sockbench connect  WAY FAMILY BYTES SECONDS CPU CPU      connections per second
 *   sockbench idle     WAY FAMILY COUNT SECONDS CPU CPU      bytes of memory per connection, and per cent of a core
 *   sockbench memcached PORT CONNECTIONS SECONDS             requests per second
 *   sockbench beside PORT BUSY SERVER... then CLIENT...      runs the client while the server runs, beside BUSY others
 *
 * WAY: block, spin (MSG_DONTWAIT in a loop), level, edge (through epoll), outside (like block; the other process is
 * started again without what LD_PRELOAD names). FAMILY: tcp or unix. Every message carries its number in
 * several places, and is checked. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
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

/* One end of a connection, and how it waits. */
typedef struct {
  int fd, set;
  enum way way;
} End;

static End open_end(int fd, const Plan *plan) {
  End end = {.fd = fd, .set = -1, .way = plan->way};
  int on = 1;
  if (!plan->local) check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
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

static void figure(const char *id, double value, const char *unit) { printf("figure %s %.9g %s\n", id, value, unit); }

/* The server's side of everything: what comes in is answered (ping-pong), swallowed (stream), or closed (connect). */
static void serve_one(int fd, const Plan *plan) {
  End end = open_end(fd, plan);
  uint8_t *bytes = new_message(plan->bytes);
  bool answers = strcmp(plan->what, "stream") != 0;
  for (uint64_t number = 0; take_all(&end, bytes, plan->bytes); number++) {
    look(bytes, plan->bytes, number);
    if (answers && !give_all(&end, bytes, plan->bytes)) break;
  }
  /* Says to the client of a stream that all has arrived. */
  if (!answers) give_all(&end, bytes, 1);
  free(bytes);
  close(fd);
}

static void serve_idle(int listener, const Plan *plan) {
  for (size_t i = 0; i < plan->bytes; i++) {
    uint8_t bytes[64];
    Plan blocking = *plan;
    End end = open_end((int)check(accept(listener, NULL, NULL), "accept"), &blocking);
    if (!take_all(&end, bytes, sizeof bytes) || !give_all(&end, bytes, sizeof bytes)) fail("no request");
  }
  int set = (int)check(epoll_create1(0), "epoll_create1");
  struct epoll_event event = {.events = EPOLLIN};
  check(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
  epoll_wait(set, &event, 1, -1);
}

static _Noreturn void serve(int listener, const Plan *plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  bind_to(plan->cpus[1]);
  if (!strcmp(plan->what, "idle")) serve_idle(listener, plan);
  if (!strcmp(plan->what, "connect"))
    for (;;) close((int)check(accept(listener, NULL, NULL), "accept"));
  serve_one((int)check(accept(listener, NULL, NULL), "accept"), plan);
  exit(0);
}

typedef union {
  struct sockaddr any;
  struct sockaddr_in tcp;
  struct sockaddr_un local;
} Address;

static int open_listener(const Plan *plan, Address *address, socklen_t *size) {
  memset(address, 0, sizeof *address);
  int family = plan->local ? AF_UNIX : AF_INET;
  address->any.sa_family = (sa_family_t)family;
  *size = plan->local ? sizeof(sa_family_t) : sizeof address->tcp; /* The kernel chooses an abstract name. */
  if (!plan->local) address->tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int listener = (int)check(socket(family, SOCK_STREAM, 0), "socket");
  check(bind(listener, &address->any, *size), "bind");
  check(listen(listener, 1024), "listen");
  *size = sizeof *address;
  check(getsockname(listener, &address->any, size), "getsockname");
  return listener;
}

static int dial(const Address *address, socklen_t size) {
  int fd = (int)check(socket(address->any.sa_family, SOCK_STREAM, 0), "socket");
  check(connect(fd, &address->any, size), "connect");
  return fd;
}

static void ping(int fd, const Plan *plan) {
  End end = open_end(fd, plan);
  uint8_t *bytes = new_message(plan->bytes);
  uint64_t number = 0, first = 0;
  double start = now(), warm = start + plan->seconds / 10, stop = warm + plan->seconds, time = start;
  for (bool measuring = false; time < stop; number++) {
    mark(bytes, plan->bytes, number);
    if (!give_all(&end, bytes, plan->bytes) || !take_all(&end, bytes, plan->bytes)) fail("the other process is gone");
    look(bytes, plan->bytes, number);
    if (number % 8 == 0) time = now();
    if (!measuring && time >= warm) measuring = true, first = number, start = time;
  }
  figure("pingpong", (time - start) / (double)(number - first) / 2, "s");
}

static void pour(int fd, const Plan *plan) {
  End end = open_end(fd, plan);
  uint8_t *bytes = new_message(plan->bytes);
  uint64_t number = 0, first = 0;
  double start = now(), warm = start + plan->seconds / 10, stop = warm + plan->seconds, time = start;
  for (bool measuring = false; time < stop; number++) {
    mark(bytes, plan->bytes, number);
    if (!give_all(&end, bytes, plan->bytes)) fail("the other process is gone");
    if (number % 8 == 0) time = now();
    if (!measuring && time >= warm) measuring = true, first = number, start = time;
  }
  check(shutdown(fd, SHUT_WR), "shutdown");
  if (!take_all(&end, bytes, 1)) fail("the other process has not received everything");
  figure("stream", (double)((number - first) * plan->bytes) / (now() - start), "B/s");
}

static void dial_on(const Address *address, socklen_t size, const Plan *plan) {
  double start = now(), time = start;
  uint64_t count = 0;
  struct linger at_once = {1, 0}; /* No connection stays in TIME_WAIT and uses up a port. */
  for (; time < start + plan->seconds; count++, time = now()) {
    int fd = dial(address, size);
    check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), "SO_LINGER");
    close(fd);
  }
  figure("connect", (double)count / (time - start), "1/s");
}

/* Memory of this process and the other one, shared memory in equal parts. */
static double memory_of(pid_t pid) {
  char path[64], line[200];
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
  FILE *file = fopen(path, "r");
  if (!file) fail("%s: %s", path, strerror(errno));
  double kib = 0;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "Pss: %lf", &kib) == 1) break;
  fclose(file);
  return kib * 1024;
}

static double cpu_of(pid_t pid) {
  char path[64];
  unsigned long user = 0, system = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *file = fopen(path, "r");
  if (!file || fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
    fail("%s cannot be read", path);
  fclose(file);
  return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void stay_idle(const Address *address, socklen_t size, const Plan *plan, pid_t other) {
  double before = memory_of(getpid()) + memory_of(other);
  int set = (int)check(epoll_create1(0), "epoll_create1");
  for (size_t i = 0; i < plan->bytes; i++) {
    uint8_t bytes[64] = {0};
    End end = open_end(dial(address, size), plan);
    if (!give_all(&end, bytes, sizeof bytes) || !take_all(&end, bytes, sizeof bytes)) fail("no reply");
    struct epoll_event event = {.events = EPOLLIN};
    check(epoll_ctl(set, EPOLL_CTL_ADD, end.fd, &event), "epoll_ctl");
  }
  double after = memory_of(getpid()) + memory_of(other), cpu = cpu_of(getpid()) + cpu_of(other), start = now();
  struct epoll_event event;
  if (epoll_wait(set, &event, 1, (int)(plan->seconds * 1000)) != 0) fail("an idle connection has an event");
  figure("idle-memory", (after - before) / (double)plan->bytes, "B");
  figure("idle-cpu", 100 * (cpu_of(getpid()) + cpu_of(other) - cpu) / (now() - start), "%");
}

static void more_descriptors(void) {
  struct rlimit limit;
  check(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  check(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

static Plan read_plan(char **words) {
  Plan plan = {.what = words[1], .way = WAYS};
  for (int way = 0; way < WAYS; way++)
    if (!strcmp(words[2], way_names[way])) plan.way = (enum way)way;
  plan.local = !strcmp(words[3], "unix");
  plan.bytes = strtoul(words[4], NULL, 10);
  plan.seconds = atof(words[5]);
  for (int i = 0; i < 2; i++) plan.cpus[i] = atoi(words[6 + i]);
  if (plan.way == WAYS || plan.bytes == 0 || plan.seconds <= 0) fail("wrong arguments");
  return plan;
}

/* The other process without the library: the same program, started again with the listener. */
static void start_outside(char **words, int listener) {
  char number[16];
  snprintf(number, sizeof number, "%d", listener);
  unsetenv("LD_PRELOAD");
  execl("/proc/self/exe", "sockbench", words[1], words[2], words[3], words[4], words[5], words[6], words[7], number, NULL);
  fail("exec: %s", strerror(errno));
}

static int pair(int count, char **words) {
  if (count != 8 && count != 9) fail("wrong number of arguments");
  Plan plan = read_plan(words);
  more_descriptors();
  if (count == 9) serve(atoi(words[8]), &plan);
  Address address;
  socklen_t size;
  int listener = open_listener(&plan, &address, &size);
  pid_t other = fork();
  check(other, "fork");
  if (other == 0 && plan.way == OUTSIDE) start_outside(words, listener);
  if (other == 0) serve(listener, &plan);
  close(listener);
  bind_to(plan.cpus[0]);
  if (!strcmp(plan.what, "pingpong")) ping(dial(&address, size), &plan);
  else if (!strcmp(plan.what, "stream")) pour(dial(&address, size), &plan);
  else if (!strcmp(plan.what, "connect")) dial_on(&address, size, &plan);
  else if (!strcmp(plan.what, "idle")) stay_idle(&address, size, &plan, other);
  else fail("'%s' is not known", plan.what);
  fflush(stdout);
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  return 0;
}

/* Requests for one small value on each connection, the next one when the answer is complete. */
static int load_memcached(char **words) {
  enum { MOST = 64 };
  static const char store[] = "set key 0 0 32\r\n0123456789abcdef0123456789abcdef\r\n", ask[] = "get key\r\n";
  static const char answer[] = "VALUE key 0 32\r\n0123456789abcdef0123456789abcdef\r\nEND\r\n";
  Address address = {.tcp = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[2]))}};
  address.tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int count = atoi(words[3]), set = (int)check(epoll_create1(0), "epoll_create1");
  double seconds = atof(words[4]);
  size_t got[MOST] = {0};
  int fds[MOST];
  char bytes[sizeof answer];
  if (count < 1 || count > MOST) fail("%d connections; allowed are 1 to %d", count, MOST);
  for (int i = 0; i < count; i++) {
    fds[i] = dial(&address, sizeof address.tcp);
    if (i == 0) {
      check(send(fds[0], store, sizeof store - 1, 0), "send");
      if (recv(fds[0], bytes, 8, MSG_WAITALL) != 8 || memcmp(bytes, "STORED\r\n", 8)) fail("not stored");
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
    check(epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &event), "epoll_ctl");
    check(send(fds[i], ask, sizeof ask - 1, 0), "send");
  }
  uint64_t answers = 0;
  double start = now(), time = start;
  while (time < start + seconds) {
    struct epoll_event events[MOST];
    int n = (int)check(epoll_wait(set, events, MOST, 5000), "epoll_wait");
    if (n == 0) fail("no answer");
    for (int e = 0; e < n; e++) {
      uint32_t i = events[e].data.u32;
      long once = check(recv(fds[i], bytes, sizeof answer - 1 - got[i], 0), "recv");
      if (once == 0 || memcmp(bytes, answer + got[i], (size_t)once)) fail("a wrong answer");
      got[i] += (size_t)once;
      if (got[i] < sizeof answer - 1) continue;
      got[i] = 0;
      answers++;
      check(send(fds[i], ask, sizeof ask - 1, 0), "send");
    }
    time = now();
  }
  figure("memcached", (double)answers / (time - start), "1/s");
  return 0;
}

static pid_t start(char **words) {
  pid_t child = fork();
  check(child, "fork");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  execvp(words[0], words);
  fail("%s: %s", words[0], strerror(errno));
}

static void wait_for_port(int port, pid_t server) {
  Address address = {.tcp = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}};
  address.tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (double end = now() + 20; now() < end; usleep(5000)) {
    int fd = (int)check(socket(AF_INET, SOCK_STREAM, 0), "socket");
    int result = connect(fd, &address.any, sizeof address.tcp);
    close(fd);
    if (result == 0) return;
    if (waitpid(server, NULL, WNOHANG) != 0) fail("the server ended");
  }
  fail("the server does not listen on port %d", port);
}

static _Noreturn void be_busy(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (volatile uint64_t i = 0;; i++) continue;
}

static int run_beside(int count, char **words) {
  int port = atoi(words[2]), busy = atoi(words[3]), cut = 4;
  while (cut < count && strcmp(words[cut], "then")) cut++;
  if (cut >= count - 1) fail("no client");
  words[cut] = NULL;
  pid_t server = start(words + 4), burners[8];
  wait_for_port(port, server);
  for (int i = 0; i < busy && i < 8; i++)
    if ((burners[i] = fork()) == 0) be_busy();
  pid_t client = start(words + cut + 1);
  int status, server_status;
  check(waitpid(client, &status, 0), "waitpid");
  for (int i = 0; i < busy && i < 8; i++) kill(burners[i], SIGKILL);
  kill(server, SIGINT);
  kill(server, SIGTERM);
  for (double end = now() + 5; waitpid(server, &server_status, WNOHANG) == 0; usleep(2000))
    if (now() > end) kill(server, SIGKILL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int count, char **words) {
  if (count == 5 && !strcmp(words[1], "memcached")) return load_memcached(words);
  if (count > 6 && !strcmp(words[1], "beside")) return run_beside(count, words);
  return pair(count, words);
}
