/* The free kind: both sides run by themselves, in one of several shapes, and what counts is what arrives.
 *
 * A bout is one connection. Each side sends a known number of bytes and receives until the end of the stream; every byte
 * is checked with its position, and the end must stand exactly where the other side stopped. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "player.h"

enum { COPIES = 3 };
enum shape { TWO_PROCESSES, TWO_THREADS, BY_POLL, BY_SELECT, BY_EPOLL_LEVEL, BY_EPOLL_EDGE, SHAPES };

/* What both sides know of a bout. */
typedef struct {
  uint64_t keys[2], totals[2];
  enum shape shapes[2];
  bool signals[2], forks[2];
  bool brief;  /* short messages, not many at a time, for long enough that two hosts agree on a way */
  int killed;  /* the side that is killed when it has sent everything, or -1 */
  uint64_t *calls;
} Bout;

/* One side of it. */
typedef struct {
  const Bout *bout;
  int side, fds[COPIES];
  uint64_t sent, received;
  bool ended;
} End;

static uint8_t *room_for_calls(void) { return malloc(64 * 1024); }

static void count_call(const Bout *bout) { __atomic_fetch_add(bout->calls, 1, __ATOMIC_RELAXED); }

/* A process that comes and goes while the descriptors are in use. */
static void fork_storm(End *end, Random *random) {
  if (!end->bout->forks[end->side] || !one_in(random, 64)) return;
  pid_t child = fork();
  if (child == 0) _exit(0);
  check_call(child, "fork");
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
}

/* One call that sends; false when it would wait. */
static bool send_once(End *end, Random *random, uint8_t *bytes, int flags) {
  const Bout *bout = end->bout;
  uint64_t left = bout->totals[end->side] - end->sent;
  size_t count = some_bytes(random, bout->brief ? BRIEF : 32 * 1024);
  if (count > left) count = (size_t)left;
  if (bout->brief && one_in(random, 2)) usleep(below(random, 300));
  fill_stream(bytes, bout->keys[end->side], end->sent, count);
  size_t half = below(random, (uint32_t)count + 1);
  struct iovec pieces[2] = {{bytes, half}, {bytes + half, count - half}};
  int fd = end->fds[below(random, COPIES)];
  count_call(bout);
  fork_storm(end, random);
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
  ssize_t sent;
  switch (flags ? 0 : below(random, 3)) {
    case 0: sent = sendmsg(fd, &message, flags | MSG_NOSIGNAL); break;
    case 1: sent = write(fd, bytes, count); break;
    default: sent = writev(fd, pieces, 2);
  }
  if (sent > 0) end->sent += (uint64_t)sent;
  if (sent > (ssize_t)count) fail("free: %zd of %zu bytes sent", sent, count);
  if (sent < 0 && errno != EINTR && errno != EAGAIN) fail("free: send at %llu: %s", (unsigned long long)end->sent, strerror(errno));
  return sent >= 0 || errno == EINTR;
}

/* One call that receives; false when it would wait. */
static bool receive_once(End *end, Random *random, uint8_t *bytes, int flags) {
  const Bout *bout = end->bout;
  size_t count = some_bytes(random, 32 * 1024);
  int fd = end->fds[below(random, COPIES)];
  count_call(bout);
  if (one_in(random, 16)) {
    ssize_t seen = recv(fd, bytes, count, MSG_PEEK | MSG_DONTWAIT);
    if (seen > 0) check_stream(bytes, bout->keys[!end->side], end->received, (size_t)seen, "peeked at");
  }
  struct iovec pieces[2] = {{bytes, count / 2}, {bytes + count / 2, count - count / 2}};
  ssize_t got;
  switch (flags ? 0 : below(random, 4)) {
    case 0: got = recv(fd, bytes, count, flags); break;
    case 1: got = recv(fd, bytes, count, MSG_WAITALL); break;
    case 2: got = read(fd, bytes, count); break;
    default: got = readv(fd, pieces, 2);
  }
  if (got < 0 && errno != EINTR && errno != EAGAIN)
    fail("free: receive at %llu: %s", (unsigned long long)end->received, strerror(errno));
  if (got > 0) check_stream(bytes, bout->keys[!end->side], end->received, (size_t)got, "free");
  if (got > 0) end->received += (uint64_t)got;
  if (got == 0) end->ended = true;
  return got >= 0 || errno == EINTR;
}

static void finish_sending(End *end) {
  if (end->bout->killed == end->side) {
    fflush(NULL);
    kill(getpid(), SIGKILL);
  }
  check_call(shutdown(end->fds[0], SHUT_WR), "shutdown");
}

static void send_all(End *end, Random *random) {
  uint8_t *bytes = room_for_calls();
  while (end->sent < end->bout->totals[end->side]) send_once(end, random, bytes, 0);
  finish_sending(end);
  free(bytes);
}

static void receive_all(End *end, Random *random) {
  uint8_t *bytes = room_for_calls();
  while (!end->ended) receive_once(end, random, bytes, 0);
  if (end->received != end->bout->totals[!end->side])
    fail("free: the stream ended after %llu of %llu bytes", (unsigned long long)end->received,
         (unsigned long long)end->bout->totals[!end->side]);
  free(bytes);
}

/* The receiver is another process, which shares the descriptors. */
static void in_two_processes(End *end, Random *random) {
  Random other = {next(random)};
  fflush(NULL);
  pid_t child = fork();
  check_call(child, "fork");
  if (child == 0) {
    if (end->bout->signals[end->side]) start_signals(false);
    receive_all(end, &other);
    _exit(0);
  }
  send_all(end, random);
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0) fail("free: the receiving process ended with %#x", (unsigned)status);
}

typedef struct {
  End *end;
  Random random;
} Thread;

static void *receive_in_thread(void *given) {
  Thread *thread = given;
  receive_all(thread->end, &thread->random);
  return NULL;
}

static void in_two_threads(End *end, Random *random) {
  End receiving = *end;
  Thread thread = {&receiving, {next(random)}};
  pthread_t id;
  if (pthread_create(&id, NULL, receive_in_thread, &thread) != 0) fail("free: no thread");
  send_all(end, random);
  pthread_join(id, NULL);
}

/* Waits until something can be done; the events as POLL* bits. */
static short wait_for(End *end, int set, bool wants_out) {
  struct pollfd look = {.fd = end->fds[1], .events = (short)(POLLIN | (wants_out ? POLLOUT : 0))};
  int ready, fd = end->fds[1];
  do {
    count_call(end->bout);
    if (set >= 0) {
      struct epoll_event event = {0};
      ready = epoll_wait(set, &event, 1, 2 * PATIENCE_MS);
      look.revents = (short)event.events;
    } else if (end->bout->shapes[end->side] == BY_SELECT) {
      struct timeval limit = {2 * PATIENCE_MS / 1000, 0};
      fd_set readable, writable;
      FD_ZERO(&readable);
      FD_ZERO(&writable);
      FD_SET(fd, &readable);
      if (wants_out) FD_SET(fd, &writable);
      ready = select(fd + 1, &readable, &writable, NULL, &limit);
      if (ready > 0) look.revents = (short)((FD_ISSET(fd, &readable) ? POLLIN : 0) | (FD_ISSET(fd, &writable) ? POLLOUT : 0));
    } else {
      ready = poll(&look, 1, 2 * PATIENCE_MS);
    }
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0)
    fail("free: side %d: nothing happens after %llu bytes sent and %llu received", end->side, (unsigned long long)end->sent,
         (unsigned long long)end->received);
  return look.revents;
}

static int make_set(End *end, bool edge) {
  int set = epoll_create1(EPOLL_CLOEXEC);
  check_call(set, "epoll_create1");
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | (edge ? EPOLLET : 0)};
  check_call(epoll_ctl(set, EPOLL_CTL_ADD, end->fds[1], &event), "EPOLL_CTL_ADD");
  return set;
}

/* Both directions in one loop. By edges, everything is done until it would wait; by levels, one call per event. */
static void in_one_loop(End *end, Random *random) {
  enum shape shape = end->bout->shapes[end->side];
  uint64_t total = end->bout->totals[end->side];
  bool edge = shape == BY_EPOLL_EDGE, said = false;
  int set = shape == BY_EPOLL_LEVEL || edge ? make_set(end, edge) : -1;
  uint8_t *bytes = room_for_calls();
  while (!end->ended || !said) {
    if (end->sent == total && !said) {
      finish_sending(end);
      said = true;
      struct epoll_event event = {.events = EPOLLIN | (edge ? EPOLLET : 0)};
      if (set >= 0) check_call(epoll_ctl(set, EPOLL_CTL_MOD, end->fds[1], &event), "EPOLL_CTL_MOD");
      continue;
    }
    short events = wait_for(end, set, end->sent < total);
    if (events & (POLLIN | POLLHUP | POLLERR))
      while (!end->ended && receive_once(end, random, bytes, MSG_DONTWAIT) && edge) continue;
    if (events & POLLOUT)
      while (end->sent < total && send_once(end, random, bytes, MSG_DONTWAIT) && edge) continue;
  }
  if (end->received != end->bout->totals[!end->side])
    fail("free: the stream ended after %llu of %llu bytes", (unsigned long long)end->received,
         (unsigned long long)end->bout->totals[!end->side]);
  free(bytes);
  if (set >= 0) close(set);
}

static void fight(const Bout *bout, int side, int fd, Random random) {
  End end = {.bout = bout, .side = side, .fds = {fd, dup(fd), dup(fd)}};
  if (bout->signals[side]) start_signals(false);
  switch (bout->shapes[side]) {
    case TWO_PROCESSES: in_two_processes(&end, &random); break;
    case TWO_THREADS: in_two_threads(&end, &random); break;
    default: in_one_loop(&end, &random);
  }
  stop_signals();
  for (int i = 0; i < COPIES; i++) close(end.fds[i]);
}

static int open_listener(struct sockaddr_in *address) {
  socklen_t bytes = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET};
  inet_pton(AF_INET, address_of_listener(AF_INET), &address->sin_addr);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check_call(listener, "socket");
  check_call(bind(listener, (struct sockaddr *)address, bytes), "bind");
  check_call(listen(listener, 1), "listen");
  check_call(getsockname(listener, (struct sockaddr *)address, &bytes), "getsockname");
  return listener;
}

static pid_t start_side(const Bout *bout, int side, int listener, const struct sockaddr_in *address, Random random) {
  fflush(NULL);
  pid_t child = fork();
  check_call(child, "fork");
  if (child > 0) return child;
  alarm(0);
  enter_host(side);
  int fd = side == 0 ? socket(AF_INET, SOCK_STREAM, 0) : accept(listener, NULL, NULL);
  check_call(fd, "socket or accept");
  if (side == 0) check_call(connect(fd, (const struct sockaddr *)address, sizeof *address), "connect");
  fight(bout, side, fd, random);
  /* With everything that a library does at the end, which may be to say what it has moved. */
  exit(0);
}

static Bout plan(Random *random, uint64_t *calls) {
  Bout bout = {.killed = -1, .calls = calls, .brief = has_hosts && !one_in(random, 4)};
  for (int side = 0; side < 2; side++) {
    bout.keys[side] = next(random);
    bout.totals[side] = bout.brief ? 50000 + below(random, 50000) : below(random, 1u << (4 + below(random, 17)));
    bout.shapes[side] = below(random, SHAPES);
    bout.signals[side] = one_in(random, 4);
    bout.forks[side] = !bout.brief && one_in(random, 8) && bout.shapes[side] != TWO_THREADS;
  }
  if (one_in(random, 6)) {
    /* One way only: bytes unread at the side that is killed would take others with them. */
    bout.killed = (int)below(random, 2);
    bout.totals[!bout.killed] = 0;
    bout.shapes[bout.killed] = BY_POLL;
  }
  return bout;
}

/* The side that is killed must not receive a thing, not even the end: its peer would end first. */
static void one_bout(Random *random, uint64_t *calls, FILE *trace, unsigned long long number) {
  Bout bout = plan(random, calls);
  struct sockaddr_in address;
  int listener = open_listener(&address);
  pid_t sides[2];
  for (int side = 0; side < 2; side++) {
    Random own = {next(random)};
    sides[side] = start_side(&bout, side, listener, &address, own);
  }
  close(listener);
  for (int side = 0; side < 2; side++) {
    int status;
    check_call(waitpid(sides[side], &status, 0), "waitpid");
    bool as_planned = bout.killed == side ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0;
    if (!as_planned)
      fail("free: bout %llu: side %d (shapes %u and %u) ended with %#x", number, side, bout.shapes[0], bout.shapes[1], (unsigned)status);
  }
  fprintf(trace, "bout %llu: %llu and %llu bytes arrived%s\n", number, (unsigned long long)bout.totals[0],
          (unsigned long long)bout.totals[1], bout.killed >= 0 ? ", one side was killed" : "");
}

void run_free(const Run *run) {
  Random random = {mix(run->seed ^ 0xf4ee)};
  uint64_t *calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (calls == MAP_FAILED) fail("no memory");
  unsigned long long number = 0;
  /* Listeners are opened here, and are side 1's. */
  enter_host(1);
  /* The number of bouts follows from the seed alone, so that both runs do the same: 200 calls count as one bout. */
  for (uint64_t left = run->operations / 200 + 1; left > 0; left--) one_bout(&random, calls, run->trace, number++);
  printf("free: %llu bouts, %llu calls\n", number, (unsigned long long)*calls);
}
