/* Measures pairs of processes over sockets, and keeps servers beside their clients.
 *
 *   sockbench pingpong WAY FAMILY BYTES SECONDS CPU CPU      one way, seconds
 *   sockbench stream   WAY FAMILY BYTES SECONDS CPU CPU      bytes per second
 *   sockbench datagrams WAY FAMILY BYTES SECONDS CPU CPU     one way over UDP, seconds
 *   sockbench exchange WAY FAMILY BYTES SECONDS CPU CPU      seconds in which both send a message and receive one
 *   sockbench self-pingpong, self-exchange ...               the same, both ends in one process on the first CPU
 *   sockbench line CPU CPU                                   a cache line one way, seconds
 *   sockbench connect  WAY FAMILY BYTES SECONDS CPU CPU      connections per second
 *   sockbench idle     WAY FAMILY COUNT SECONDS CPU CPU      bytes of memory per connection, and per cent of a core
 *   sockbench talked   WAY FAMILY COUNT SECONDS CPU CPU      the same after eight requests on each, not one
 *   sockbench memcached PORT CONNECTIONS SECONDS             requests per second
 *   sockbench beside PORT BUSY CPU CPU SERVER... then CLIENT...   runs the client while the server runs, beside BUSY others
 *
 * WAY: block, spin (MSG_DONTWAIT in a loop), level, edge (through epoll), outside (like block; the other process is
 * started again without what LD_PRELOAD names). FAMILY: tcp or unix, or tcp@ADDRESS@NAMESPACE: the other
 * process listens at that address in the network namespace of that file, which takes root. Every message carries its number in
 * several places, and is checked. What a cache line takes between the two processors is measured before and after, while
 * nobody else of ours runs. */
#include "sockbench.h"

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

/* How many requests each of many connections has seen before it is idle. */
static int requests_of(const Plan *plan) { return strcmp(plan->what, "talked") ? 1 : 8; }

static void serve_idle(int listener, const Plan *plan) {
  for (size_t i = 0; i < plan->bytes; i++) {
    uint8_t bytes[64];
    End end = open_end((int)check(accept(listener, NULL, NULL), "accept"), plan);
    for (int request = 0; request < requests_of(plan); request++)
      if (!take_all(&end, bytes, sizeof bytes) || !give_all(&end, bytes, sizeof bytes)) fail("no request");
  }
  int set = (int)check(epoll_create1(0), "epoll_create1");
  struct epoll_event event = {.events = EPOLLIN};
  check(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
  epoll_wait(set, &event, 1, -1);
}

static void cross_for_ever(int fd, const Plan *plan);

static _Noreturn void serve(int listener, const Plan *plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  bind_to(plan->cpus[1]);
  /* A process of that host in everything: it meets others by that host's rendezvous. */
  if (plan->place) close(enter(plan->place));
  if (!strcmp(plan->what, "idle") || !strcmp(plan->what, "talked")) serve_idle(listener, plan);
  if (!strcmp(plan->what, "connect"))
    for (;;) close((int)check(accept(listener, NULL, NULL), "accept"));
  int fd = (int)check(accept(listener, NULL, NULL), "accept");
  if (!strcmp(plan->what, "exchange")) cross_for_ever(fd, plan);
  else serve_one(fd, plan);
  exit(0);
}

static void ping(int fd, const Plan *plan) {
  End end = open_end(fd, plan);
  uint8_t *bytes = new_message(plan->bytes);
  uint64_t number = 0, first = 0;
  double start = now(), warm = start + plan->seconds / 10, time = start;
  for (bool measuring = false; !measuring || time < start + plan->seconds; number++) {
    mark(bytes, plan->bytes, number);
    if (!give_all(&end, bytes, plan->bytes) || !take_all(&end, bytes, plan->bytes)) fail("the other process is gone");
    look(bytes, plan->bytes, number);
    if (number % 8 == 0) time = now();
    if (!measuring && time >= warm) measuring = true, first = number + 1, start = time;
  }
  figure("pingpong", (time - start) / (double)(number - first) / 2, "s");
}

static void pour(int fd, const Plan *plan) {
  End end = open_end(fd, plan);
  uint8_t *bytes = new_message(plan->bytes);
  uint64_t number = 0, first = 0;
  double start = now(), warm = start + plan->seconds / 10, time = start;
  for (bool measuring = false; !measuring || time < start + plan->seconds; number++) {
    mark(bytes, plan->bytes, number);
    if (!give_all(&end, bytes, plan->bytes)) fail("the other process is gone");
    if (number % 8 == 0) time = now();
    if (!measuring && time >= warm) measuring = true, first = number + 1, start = time;
  }
  check(shutdown(fd, SHUT_WR), "shutdown");
  if (!take_all(&end, bytes, 1)) fail("the other process has not received everything");
  figure("stream", (double)((number - first) * plan->bytes) / (now() - start), "B/s");
}

/* A message that is sent on one descriptor and received on another: the same one where the other end is another process,
 * which sends at the same time. */
typedef struct {
  int on, from;
  uint8_t *out, *in;
  size_t sent, got;
} Crossing;

static Crossing new_crossing(int on, int from, const Plan *plan) {
  return (Crossing){.on = on, .from = from, .out = new_message(plan->bytes), .in = new_message(plan->bytes)};
}

/* How many of the bytes could be moved now, or -1 at the end. */
static ssize_t moved(ssize_t result, const char *what) {
  if (result > 0) return result;
  if (result == 0 || errno == EPIPE || errno == ECONNRESET) return -1;
  if (errno != EAGAIN) fail("%s: %s", what, strerror(errno));
  return 0;
}

/* Sends first, then receives. A message that the connection cannot hold goes in parts, so that nobody waits for room that
 * only he can make. False at the end. */
static bool cross(Crossing *all, int count, size_t bytes, uint64_t number) {
  size_t to_send = bytes * (size_t)count, to_get = to_send;
  for (int i = 0; i < count; i++) mark(all[i].out, bytes, number), all[i].sent = all[i].got = 0;
  while (to_send + to_get > 0) {
    size_t before = to_send + to_get;
    for (Crossing *c = all; c < all + count; c++) {
      if (c->sent == bytes) continue;
      ssize_t once = moved(send(c->on, c->out + c->sent, bytes - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL), "send");
      if (once < 0) return false;
      c->sent += (size_t)once, to_send -= (size_t)once;
    }
    for (Crossing *c = all; c < all + count; c++) {
      if (c->got == bytes) continue;
      ssize_t once = moved(recv(c->from, c->in + c->got, bytes - c->got, to_send ? MSG_DONTWAIT : 0), "recv");
      if (once < 0) return false;
      c->got += (size_t)once, to_get -= (size_t)once;
    }
    struct pollfd ready = {.fd = all->on, .events = (to_send ? POLLOUT : 0) | (to_get ? POLLIN : 0)};
    if (before == to_send + to_get && count == 1 && all->on == all->from) check(poll(&ready, 1, -1), "poll");
  }
  for (int i = 0; i < count; i++) look(all[i].in, bytes, number);
  return true;
}

/* Prints the mean time of a round: all crossings at once, or one after the other. */
static void cross_on(Crossing *all, int count, bool at_once, const Plan *plan) {
  uint64_t number = 0, first = 0;
  double start = now(), warm = start + plan->seconds / 10, time = start;
  /* The first messages may take longer than all the time there is: a connection that begins waits for its other end. */
  for (bool measuring = false; !measuring || time < start + plan->seconds; number++) {
    bool well = at_once ? cross(all, count, plan->bytes, number) : true;
    for (int i = 0; i < count && !at_once; i++) well = well && cross(all + i, 1, plan->bytes, number);
    if (!well) fail("the other end is gone");
    if (number % 8 == 0) time = now();
    if (!measuring && time >= warm) measuring = true, first = number + 1, start = time;
  }
  double round = (time - start) / (double)(number - first);
  figure(at_once ? "exchange" : "pingpong", at_once ? round : round / 2, "s");
}

/* The process that does not measure. */
static void cross_for_ever(int fd, const Plan *plan) {
  open_end(fd, plan);
  Crossing one = new_crossing(fd, fd, plan);
  for (uint64_t number = 0; cross(&one, 1, plan->bytes, number); number++) continue;
}

static void exchange_messages(int fd, const Plan *plan) {
  open_end(fd, plan);
  Crossing one = new_crossing(fd, fd, plan);
  cross_on(&one, 1, true, plan);
}

/* Both ends are ours. */
static int talk_to_self(char **words) {
  Plan plan = read_plan(words);
  Address address;
  socklen_t size;
  bind_to(plan.cpus[0]);
  int listener = open_listener(&plan, &address, &size);
  int here = dial(&address, size), there = (int)check(accept(listener, NULL, NULL), "accept");
  open_end(here, &plan);
  open_end(there, &plan);
  Crossing both[2] = {new_crossing(here, there, &plan), new_crossing(there, here, &plan)};
  cross_on(both, 2, !strcmp(plan.what, "self-exchange"), &plan);
  return 0;
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

/* Seconds on a processor, exact where the kernel keeps account. */
static double cpu_of(pid_t pid) {
  char path[64];
  unsigned long long running = 0;
  unsigned long user = 0, system = 0;
  snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
  FILE *file = fopen(path, "r");
  bool exact = file && fscanf(file, "%llu", &running) == 1;
  if (file) fclose(file);
  if (exact) return (double)running * 1e-9;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  file = fopen(path, "r");
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
    for (int request = 0; request < requests_of(plan); request++)
      if (!give_all(&end, bytes, sizeof bytes) || !take_all(&end, bytes, sizeof bytes)) fail("no reply");
    struct epoll_event event = {.events = EPOLLIN};
    check(epoll_ctl(set, EPOLL_CTL_ADD, end.fd, &event), "epoll_ctl");
  }
  double after = memory_of(getpid()) + memory_of(other);
  /* Both go to sleep first: what that takes is not what sleeping takes. */
  struct epoll_event event;
  if (epoll_wait(set, &event, 1, 100) != 0) fail("an idle connection has an event");
  double cpu = cpu_of(getpid()) + cpu_of(other), start = now();
  if (epoll_wait(set, &event, 1, 1000 + (int)(plan->seconds * 1000)) != 0) fail("an idle connection has an event");
  figure("idle-memory", (after - before) / (double)plan->bytes, "B");
  figure("idle-cpu", 100 * (cpu_of(getpid()) + cpu_of(other) - cpu) / (now() - start), "%");
}

static void more_descriptors(void) {
  struct rlimit limit;
  check(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  check(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

/* The other process without the library: the same program, started again with the listener. */
static void start_outside(char **words, int listener) {
  char number[16];
  snprintf(number, sizeof number, "%d", listener);
  unsetenv("LD_PRELOAD");
  execl("/proc/self/exe", "sockbench", words[1], words[2], words[3], words[4], words[5], words[6], words[7], number, NULL);
  fail("exec: %s", strerror(errno));
}

static _Noreturn void serve_datagrams(int tell, const Plan *plan) {
  Address own, from;
  uint8_t byte;
  socklen_t size;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  bind_to(plan->cpus[1]);
  int fd = open_datagrams(&own, &size);
  check(write(tell, &own, sizeof own), "write");
  size = sizeof from;
  check(recvfrom(fd, &byte, 1, MSG_PEEK, &from.any, &size), "recvfrom");
  check(connect(fd, &from.any, size), "connect");
  serve_one(fd, plan);
  exit(0);
}

/* Each process makes its own socket: one that was there at a fork stays with the kernel. */
static int exchange_datagrams(const Plan *plan) {
  Address own, other;
  socklen_t size;
  int ends[2];
  check(pipe(ends), "pipe");
  pid_t child = fork();
  check(child, "fork");
  if (child == 0) serve_datagrams(ends[1], plan);
  bind_to(plan->cpus[0]);
  int fd = open_datagrams(&own, &size);
  if (check(read(ends[0], &other, sizeof other), "read") != sizeof other) fail("no address");
  check(connect(fd, &other.any, size), "connect");
  ping(fd, plan);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  time_line("line-after", plan->cpus);
  return 0;
}

static int pair(int count, char **words) {
  if (count != 8 && count != 9) fail("wrong number of arguments");
  Plan plan = read_plan(words);
  more_descriptors();
  if (count == 9) serve(atoi(words[8]), &plan);
  time_line("line-before", plan.cpus);
  if (plan.datagrams) return exchange_datagrams(&plan);
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
  else if (!strcmp(plan.what, "exchange")) exchange_messages(dial(&address, size), &plan);
  else if (!strcmp(plan.what, "stream")) pour(dial(&address, size), &plan);
  else if (!strcmp(plan.what, "connect")) dial_on(&address, size, &plan);
  else if (!strcmp(plan.what, "idle") || !strcmp(plan.what, "talked")) stay_idle(&address, size, &plan, other);
  else fail("'%s' is not known", plan.what);
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  time_line("line-after", plan.cpus);
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
  int port = atoi(words[2]), busy = atoi(words[3]), cpus[2] = {atoi(words[4]), atoi(words[5])}, cut = 6;
  while (cut < count && strcmp(words[cut], "then")) cut++;
  if (cut >= count - 1) fail("no client");
  words[cut] = NULL;
  time_line("line-before", cpus);
  pid_t server = start(words + 6), burners[8];
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
  time_line("line-after", cpus);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int count, char **words) {
  if (count == 5 && !strcmp(words[1], "memcached")) return load_memcached(words);
  if (count > 8 && !strcmp(words[1], "beside")) return run_beside(count, words);
  if (count == 8 && !strncmp(words[1], "self-", 5)) return talk_to_self(words);
  if (count == 4 && !strcmp(words[1], "line")) return time_line("line", (int[]){atoi(words[2]), atoi(words[3])}), 0;
  return pair(count, words);
}
