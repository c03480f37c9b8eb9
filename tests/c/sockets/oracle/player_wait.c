/* A player's calls that wait, and the signals that disturb them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "player.h"

volatile int broken_pipes;

static void note(int signal) {
  if (signal == SIGPIPE) broken_pipes++;
}

static void set_timer(int us) {
  struct itimerval timer = {{0, us}, {0, us}};
  check_call(setitimer(ITIMER_REAL, &timer, NULL), "setitimer");
}

void start_signals(bool restart) {
  struct sigaction action = {.sa_handler = note, .sa_flags = restart ? SA_RESTART : 0};
  check_call(sigaction(SIGALRM, &action, NULL), "sigaction");
  set_timer(300);
}

void stop_signals(void) { set_timer(0); }

/* Waits up to `timeout_ms` (negative: for ever) until `fd` shows one of `events`; what it shows, as POLL* bits. */
static int wait_by(Player *player, uint32_t way, uint32_t handle, short events, int timeout_ms, int *shown) {
  int fd = player->fds[handle];
  struct pollfd look[2] = {{.fd = -1, .events = POLLIN}, {.fd = fd, .events = events}};
  struct timespec time = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
  struct timeval time_us = {timeout_ms / 1000, timeout_ms % 1000 * 1000L};
  fd_set readable, writable;
  FD_ZERO(&readable);
  FD_ZERO(&writable);
  if (events & POLLIN) FD_SET(fd, &readable);
  if (events & POLLOUT) FD_SET(fd, &writable);
  int ready;
  switch (way) {
    case POLL: ready = poll(look, 2, timeout_ms); break;
    case PPOLL: ready = ppoll(look, 2, timeout_ms < 0 ? NULL : &time, NULL); break;
    case SELECT: ready = select(fd + 1, &readable, &writable, NULL, timeout_ms < 0 ? NULL : &time_us); break;
    case PSELECT: ready = pselect(fd + 1, &readable, &writable, NULL, timeout_ms < 0 ? NULL : &time, NULL); break;
    default: {
      int set = epoll_create1(EPOLL_CLOEXEC);
      check_call(set, "epoll_create1");
      struct epoll_event event = {.events = (uint32_t)events, .data.u64 = handle};
      check_call(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), "EPOLL_CTL_ADD");
      ready = epoll_wait(set, &event, 1, timeout_ms);
      int error = errno;
      close(set);
      errno = error;
      *shown = ready > 0 ? (int)event.events : 0;
      return ready;
    }
  }
  if (ready < 0) return ready;
  if (way == POLL || way == PPOLL)
    *shown = look[1].revents;
  else
    *shown = ready == 0 ? 0 : (FD_ISSET(fd, &readable) ? POLLIN : 0) | (FD_ISSET(fd, &writable) ? POLLOUT : 0);
  return ready;
}

/* Waits for as long as it takes. */
void play_wait(Player *player, const Command *command, Reply *reply) {
  int shown = 0;
  int limit = command->flags ? -1 : PATIENCE_MS;
  int ready = wait_by(player, command->way, command->handle, (short)command->expected, limit, &shown);
  *reply = (Reply){.result = ready < 0 ? -1 : shown & (int)command->expected, .error = ready < 0 ? errno : 0};
}

/* Looks until it shows exactly what is expected (after some patience: whatever it shows). */
void play_ready(Player *player, const Command *command, Reply *reply) {
  double end = now_ms() + PATIENCE_MS;
  short events = (short)command->flags;
  int shown = 0;
  for (;;) {
    int ready = wait_by(player, command->way, command->handle, events, 0, &shown);
    check_call(ready, "a look at readiness");
    if (shown == (int)command->expected || now_ms() > end) break;
    player->late++;
  }
  reply->result = shown;
}

/* A wait of unlimited time with nothing to come, under signals whose handler does not restart calls. */
void play_interrupted(Player *player, const Command *command, Reply *reply) {
  int shown = 0, result;
  uint8_t byte;
  start_signals(command->way < WAIT_WAYS);
  switch (command->way) {
    case WAIT_WAYS: result = (int)recv(player->fds[command->handle], &byte, 1, 0); break;
    case WAIT_WAYS + 1: result = (int)read(player->fds[command->handle], &byte, 1); break;
    default: result = wait_by(player, command->way, command->handle, POLLIN, -1, &shown);
  }
  *reply = (Reply){.result = result, .error = result < 0 ? errno : 0};
  stop_signals();
}

/* Adds, changes or takes away (no events) a descriptor of the player's own set. */
void play_epoll_set(Player *player, const Command *command, Reply *reply) {
  (void)reply;
  uint32_t handle = command->handle;
  struct epoll_event event = {.events = command->flags, .data.u64 = handle};
  int how = command->flags == 0 ? EPOLL_CTL_DEL : player->watched[handle] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  check_call(epoll_ctl(player->epoll, how, player->fds[handle], how == EPOLL_CTL_DEL ? NULL : &event), "epoll_ctl");
  player->watched[handle] = command->flags;
}

/* Whether the set as a whole shows itself readable, to a poll and to a set around it. */
static bool set_shows(Player *player) {
  struct pollfd look = {.fd = player->epoll, .events = POLLIN};
  int by_poll = poll(&look, 1, 0);
  int outer = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  check_call(epoll_ctl(outer, EPOLL_CTL_ADD, player->epoll, &event), "a set in a set");
  int by_set = epoll_wait(outer, &event, 1, 0);
  close(outer);
  return by_poll == 1 && by_set == 1;
}

/* Waits on the player's set until every handle has shown what `events` of the command's key asks for.
 * `key` has 4 bits per handle: 1 IN, 2 OUT, 4 RDHUP, 8 HUP must come. What came, all together, is the answer. */
void play_epoll_wait(Player *player, const Command *command, Reply *reply) {
  static const uint32_t bits[4] = {EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP};
  double end = now_ms() + PATIENCE_MS;
  bool must_show = command->flags && command->key != 0;
  while (must_show && !set_shows(player))
    if (now_ms() > end) fail("a set with events does not show itself readable to who looks at the set");
  for (;;) {
    struct epoll_event events[HANDLES];
    int n = epoll_wait(player->epoll, events, HANDLES, command->key ? (int)command->way : 0);
    if (n < 0 && errno != EINTR) fail("epoll_wait: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
      if (events[i].data.u64 >= HANDLES) fail("epoll_wait: data of nobody");
      reply->events[events[i].data.u64] |= events[i].events;
    }
    bool all = true;
    for (int handle = 0; handle < HANDLES; handle++)
      for (int bit = 0; bit < 4; bit++)
        if (command->key >> (4 * handle + bit) & 1) all = all && (reply->events[handle] & bits[bit]);
    if (all || now_ms() > end) break;
    player->late++;
  }
}
