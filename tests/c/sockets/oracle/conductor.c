/* The conductor: makes players and connections, and knows what each call must answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model.h"

int channels[2][SLOTS][2];
int passages[2][2];

void make_channels(void) {
  for (int side = 0; side < 2; side++) {
    for (int slot = 0; slot < SLOTS; slot++)
      check_call(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channels[side][slot]), "socketpair");
    check_call(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, passages[side]), "socketpair");
  }
}

static void close_channels(int end) {
  for (int side = 0; side < 2; side++) {
    for (int slot = 0; slot < SLOTS; slot++)
      for (int i = 0; i < 2; i++)
        if (end < 0 || i == end) close(channels[side][slot][i]);
    for (int i = 0; i < 2 && end < 0; i++) close(passages[side][i]);
  }
}

void tell(Session *session, int side, int slot, const Command *command) {
  session->operations++;
  session->told[side][slot] = *command;
  if (write(channels[side][slot][0], command, sizeof *command) != sizeof *command) fail("a player cannot be told");
}

Reply hear(Session *session, int side, int slot) {
  struct pollfd look = {.fd = channels[side][slot][0], .events = POLLIN};
  Reply reply;
  const Command *told = &session->told[side][slot];
  if (poll(&look, 1, 4 * PATIENCE_MS) != 1)
    fail("operation %llu: player %d.%d does not answer to %s, way %u, handle %u, count %u, position %llu",
         (unsigned long long)session->operations, side, slot, op_names[told->op], told->way, told->handle, told->count,
         (unsigned long long)told->position);
  if (read(look.fd, &reply, sizeof reply) != sizeof reply) fail("player %d.%d is gone", side, slot);
  session->late += reply.late;
  return reply;
}

Reply ask(Session *session, int side, int slot, const Command *command) {
  tell(session, side, slot, command);
  return hear(session, side, slot);
}

void expect(Session *session, At at, const Command *command, const Reply *reply, int result, int error) {
  fprintf(session->trace, "%llu connection %d player %d.%d handle %d: %s way %u count %u -> %d %s\n",
          (unsigned long long)session->operations, at.connection, at.side, at.slot, at.handle, op_names[command->op],
          command->way, command->count, reply->result, reply->result < 0 ? strerrorname_np(reply->error) : "");
  if (reply->result == result && (result >= 0 || reply->error == error)) return;
  fail("operation %llu: connection %d, player %d.%d, handle %d: %s, way %u, count %u, position %llu: %d %s instead of %d %s",
       (unsigned long long)session->operations, at.connection, at.side, at.slot, at.handle, op_names[command->op],
       command->way, command->count, (unsigned long long)command->position, reply->result,
       reply->result < 0 ? strerrorname_np(reply->error) : "", result, result < 0 ? strerrorname_np(error) : "");
}

void ask_expecting(Session *session, At at, const Command *command, int result, int error) {
  Reply reply = ask(session, at.side, at.slot, command);
  expect(session, at, command, &reply, result, error);
}

uint64_t in_flight(const Session *session, int connection, int receiving_side) {
  const Stream *stream = &session->connections[connection].streams[!receiving_side];
  return stream->sent - stream->received;
}

int handles_of(const Session *session, int connection, int side) {
  int count = 0;
  for (int slot = 0; slot < SLOTS; slot++)
    for (int handle = 0; handle < HANDLES; handle++)
      count += session->holders[side][slot].lives && session->holders[side][slot].held[handle] == connection;
  return count;
}

static At holder_after(const Session *session, int connection, int side, int skip) {
  for (int slot = 0; slot < SLOTS; slot++)
    for (int handle = 0; handle < HANDLES; handle++)
      if (session->holders[side][slot].lives && session->holders[side][slot].held[handle] == connection && skip-- == 0)
        return (At){side, slot, handle, connection};
  fail("nobody holds side %d of connection %d", side, connection);
}

At some_holder(Session *session, int connection, int side) {
  return holder_after(session, connection, side, (int)below(&session->random, (uint32_t)handles_of(session, connection, side)));
}

At first_holder(const Session *session, int connection, int side) {
  return holder_after(session, connection, side, 0);
}

int free_handle(const Holder *holder) {
  for (int handle = 0; handle < HANDLES; handle++)
    if (holder->held[handle] < 0) return handle;
  return -1;
}

/* Everybody who watches the receiving side has news. */
static void tell_news(Session *session, int connection, int side) {
  for (int slot = 0; slot < SLOTS; slot++)
    for (int handle = 0; handle < HANDLES; handle++)
      if (session->holders[side][slot].held[handle] == connection) session->holders[side][slot].news[handle] = true;
}

void send_some(Session *session, At at, uint32_t count, uint32_t pause_us) {
  Stream *stream = &session->connections[at.connection].streams[at.side];
  uint32_t way = below(&session->random, session->calm ? STDIO : SEND_WAYS);
  Command command = {.op = OP_SEND, .way = way, .handle = (uint32_t)at.handle, .count = count, .pause_us = pause_us,
                     .key = stream->key, .position = stream->sent};
  ask_expecting(session, at, &command, (int)count, 0);
  stream->sent += count;
  stream->sends++;
  tell_news(session, at.connection, !at.side);
}

/* What a receive of `count` bytes must bring, and the stream after it. */
static uint32_t taken(Session *session, At at, uint32_t count) {
  Stream *stream = &session->connections[at.connection].streams[!at.side];
  uint64_t there = stream->sent - stream->received;
  uint32_t taken = count < there ? count : (uint32_t)there;
  stream->received += taken;
  if (stream->received == stream->sent) stream->sends = 0;
  return taken;
}

void receive_some(Session *session, At at, uint32_t way, uint32_t count) {
  const Stream *stream = &session->connections[at.connection].streams[!at.side];
  uint64_t there = in_flight(session, at.connection, at.side);
  if (way == RECV_WAITALL && count > there) count = (uint32_t)there;
  Command command = {.op = OP_RECEIVE, .way = way, .handle = (uint32_t)at.handle, .count = count, .key = stream->key,
                     .position = stream->received};
  command.expected = taken(session, at, count);
  ask_expecting(session, at, &command, (int)command.expected, 0);
}

static pid_t start_player(int side) {
  fflush(NULL);
  pid_t child = fork();
  check_call(child, "fork");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close_channels(0);
  enter_host(side);
  play(side, 0);
}

static void open_session(Session *session) {
  make_channels();
  memset(session->connections, 0, sizeof session->connections);
  memset(session->holders, 0, sizeof session->holders);
  for (int side = 0; side < 2; side++) {
    for (int slot = 0; slot < SLOTS; slot++)
      for (int handle = 0; handle < HANDLES; handle++) session->holders[side][slot].held[handle] = -1;
    Holder *holder = &session->holders[side][0];
    *holder = (Holder){.lives = true, .parent = -1, .pid = start_player(side)};
    for (int handle = 0; handle < HANDLES; handle++) holder->held[handle] = -1;
  }
  Command listening = {.op = OP_LISTEN};
  session->port = ask(session, 1, 0, &listening).result;
  session->calm = !one_in(&session->random, 3);
  session->brief = has_hosts && !one_in(&session->random, 4);
}

static int hold(Session *session, int side, int connection, bool cloexec) {
  Holder *holder = &session->holders[side][0];
  int handle = free_handle(holder);
  holder->held[handle] = connection;
  holder->cloexec[handle] = cloexec;
  holder->watched[handle] = 0;
  return handle;
}

static void open_connection(Session *session, int connection) {
  Random *random = &session->random;
  Connection *opened = &session->connections[connection];
  bool full = free_handle(&session->holders[0][0]) < 0 || free_handle(&session->holders[1][0]) < 0;
  if (full && connection > 0) return;
  *opened = (Connection){.open = true};
  for (int side = 0; side < 2; side++) opened->streams[side].key = next(random);
  static const uint32_t families[3] = {0, FLAG_IPV6, FLAG_MAPPED};
  uint32_t flags = families[below(random, 3)];
  if (one_in(random, 3)) flags |= FLAG_NONBLOCK;
  if (one_in(random, 3)) flags |= FLAG_EARLY_EPOLL;
  if (one_in(random, 4)) flags |= FLAG_CLOEXEC;
  opened->nonblocking[0] = flags & FLAG_NONBLOCK;
  int handle = hold(session, 0, connection, flags & FLAG_CLOEXEC);
  Command command = {.op = OP_CONNECT, .handle = (uint32_t)handle, .key = (uint64_t)session->port, .flags = flags};
  if (flags & FLAG_EARLY_EPOLL) {
    session->holders[0][0].watched[handle] = 1 | 0x2000; /* EPOLLIN | EPOLLRDHUP */
    session->holders[0][0].armed[handle] = true;
  }
  ask_expecting(session, (At){0, 0, handle, connection}, &command, 0, 0);
  flags = (one_in(random, 3) ? FLAG_NONBLOCK : 0) | (one_in(random, 4) ? FLAG_CLOEXEC : 0);
  opened->nonblocking[1] = flags & FLAG_NONBLOCK;
  handle = hold(session, 1, connection, flags & FLAG_CLOEXEC);
  command = (Command){.op = OP_ACCEPT, .handle = (uint32_t)handle, .flags = flags};
  ask_expecting(session, (At){1, 0, handle, connection}, &command, 0, 0);
}

/* Ends all players in good order, or has one side killed. */
static void close_session(Session *session) {
  if (one_in(&session->random, 6)) end_by_kill(session);
  for (int connection = 0; connection < CONNECTIONS; connection++)
    if (session->connections[connection].open) end_connection(session, connection);
  Command leave = {.op = OP_EXIT};
  for (int side = 0; side < 2; side++)
    for (int slot = SLOTS - 1; slot >= 0; slot--)
      if (session->holders[side][slot].lives) ask(session, side, slot, &leave);
  for (int status; wait(&status) > 0;)
    if (WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : WEXITSTATUS(status) != 0)
      fail("a player ended with %#x", (unsigned)status);
  close_channels(-1);
}

void run_lockstep(const Run *run) {
  Session session = {.random = {mix(run->seed)}, .trace = run->trace};
  while (session.operations < run->operations) {
    open_session(&session);
    session.left = 20u << below(&session.random, 9);
    while (session.left-- > 0) {
      int connection = 1 + (int)below(&session.random, CONNECTIONS - 1);
      /* The first one is always there; the others come and go. */
      if (!session.connections[0].open) open_connection(&session, 0);
      if (!session.connections[connection].open && one_in(&session.random, 20)) open_connection(&session, connection);
      step(&session);
    }
    close_session(&session);
  }
  printf("lockstep: %llu operations, %llu later than hoped\n", (unsigned long long)session.operations,
         (unsigned long long)session.late);
}
