/* Longer sequences: full buffers, minimums, and the ways in which a connection ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "model.h"

static void simple(Session *session, At at, uint32_t op, uint32_t way, int result, int error) {
  Command command = {.op = op, .way = way, .handle = (uint32_t)at.handle, .count = 10};
  ask_expecting(session, at, &command, result, error);
}

/* Takes everything that is on its way to this side. Not by recvmmsg, which asks for a reset before it looks for bytes. */
static void take_all(Session *session, int connection, int side) {
  while (in_flight(session, connection, side) > 0) {
    uint32_t way = below(&session->random, RECV_TRUNC);
    receive_some(session, some_holder(session, connection, side), way == RECVMMSG ? READ : way, LARGEST);
  }
}

/* Fills the way to the other side until nothing more fits, has somebody wait for room, and empties it. How much fits is
 * not the same over rings and the kernel, and does not stand in the trace. */
void flood(Session *session, At at) {
  Connection *connection = &session->connections[at.connection];
  Stream *stream = &connection->streams[at.side];
  take_all(session, at.connection, !at.side);
  Command fill = {.op = OP_FLOOD, .handle = (uint32_t)at.handle, .count = LARGEST, .key = stream->key, .position = stream->sent};
  Reply filled = ask(session, at.side, at.slot, &fill);
  uint64_t start = stream->sent, more = connection->nonblocking[at.side] ? 0 : LARGEST;
  stream->sent += filled.bytes;
  Command wait = {.op = OP_WAIT, .way = below(&session->random, WAIT_WAYS), .handle = (uint32_t)at.handle, .expected = POLLOUT, .flags = 1};
  Command send = {.op = OP_SEND, .way = WRITE, .handle = (uint32_t)at.handle, .count = LARGEST, .key = stream->key, .position = stream->sent};
  const Command *waiting = more ? &send : &wait;
  tell(session, at.side, at.slot, waiting);
  At other = some_holder(session, at.connection, !at.side);
  uint64_t bytes = filled.bytes + more;
  Command drain = {.op = OP_DRAIN, .handle = (uint32_t)other.handle, .count = LARGEST, .key = stream->key, .position = start,
                   .pause_us = (uint32_t)bytes, .other = (uint32_t)(bytes >> 32)};
  Reply drained = ask(session, other.side, other.slot, &drain);
  Reply answer = hear(session, at.side, at.slot);
  stream->sent = stream->received = start + drained.bytes;
  stream->sends = 0;
  drained.result = 0;
  expect(session, other, &drain, &drained, 0, 0);
  expect(session, at, waiting, &answer, more ? LARGEST : POLLOUT, 0);
  for (int slot = 0; slot < SLOTS; slot++)
    for (int handle = 0; handle < HANDLES; handle++) session->holders[!at.side][slot].news[handle] = false;
}

/* SO_RCVLOWAT: fewer bytes do not make it readable. */
void minimum(Session *session, At at) {
  take_all(session, at.connection, at.side);
  uint32_t least = 2 + below(&session->random, 60), first = 1 + below(&session->random, least - 1);
  Command set = {.op = OP_LOWAT, .handle = (uint32_t)at.handle, .count = least};
  ask_expecting(session, at, &set, 0, 0);
  send_some(session, some_holder(session, at.connection, !at.side), first, 0);
  Command look = {.op = OP_READY, .way = below(&session->random, WAIT_WAYS), .handle = (uint32_t)at.handle, .flags = POLLIN};
  ask_expecting(session, at, &look, 0, 0);
  send_some(session, some_holder(session, at.connection, !at.side), least - first, 0);
  look.expected = POLLIN;
  ask_expecting(session, at, &look, POLLIN, 0);
  set.count = 1;
  ask_expecting(session, at, &set, 0, 0);
}

/* Every descriptor of this side is closed, the last one as well. */
void close_side(Session *session, int connection, int side) {
  for (int slot = 0; slot < SLOTS; slot++) {
    Holder *holder = &session->holders[side][slot];
    for (int handle = 0; handle < HANDLES; handle++) {
      if (!holder->lives || holder->held[handle] != connection) continue;
      At at = {side, slot, handle, connection};
      if (holder->watched[handle]) simple(session, at, OP_EPOLL_SET, 0, 0, 0);
      simple(session, at, OP_CLOSE, 0, 0, 0);
      holder->held[handle] = -1;
      holder->watched[handle] = 0;
    }
  }
}

static void look(Session *session, At at, uint32_t way, uint32_t asked, uint32_t expected) {
  Command command = {.op = OP_READY, .way = way, .handle = (uint32_t)at.handle, .flags = asked, .expected = expected};
  ask_expecting(session, at, &command, (int)expected, 0);
}

/* One side says that it sends no more; the other answers for a while and then ends, too. */
static void end_in_halves(Session *session, int connection) {
  int first = (int)below(&session->random, 2);
  At at = some_holder(session, connection, first), other = some_holder(session, connection, !first);
  simple(session, at, OP_SHUTDOWN, SHUT_WR, 0, 0);
  simple(session, at, OP_BROKEN, below(&session->random, 2), -1, EPIPE);
  take_all(session, connection, !first);
  simple(session, other, OP_EOF, below(&session->random, RECV_TRUNC), 0, 0);
  look(session, other, one_in(&session->random, 2) ? POLL : EPOLL, POLLIN | POLLRDHUP, POLLIN | POLLRDHUP);
  for (int i = 0; i < 3; i++) {
    send_some(session, some_holder(session, connection, !first), some_bytes(&session->random, session->brief ? BRIEF : LARGEST), 0);
    receive_some(session, some_holder(session, connection, first), RECV, some_bytes(&session->random, LARGEST));
  }
  simple(session, other, OP_SHUTDOWN, one_in(&session->random, 2) ? SHUT_WR : SHUT_RDWR, 0, 0);
  take_all(session, connection, first);
  simple(session, at, OP_EOF, RECV, 0, 0);
  look(session, at, POLL, POLLIN, POLLIN | POLLHUP);
}

/* A receiver sleeps when the end comes. */
static void end_under_a_waiter(Session *session, int connection) {
  int first = (int)below(&session->random, 2);
  take_all(session, connection, !first);
  At other = some_holder(session, connection, !first);
  const Connection *ending = &session->connections[connection];
  Command wait = {.op = OP_EOF, .way = RECV, .handle = (uint32_t)other.handle, .count = 10,
                  .flags = !ending->nonblocking[!first] && !ending->limited[!first]};
  tell(session, other.side, other.slot, &wait);
  if (one_in(&session->random, 2) && in_flight(session, connection, first) == 0)
    close_side(session, connection, first);
  else
    simple(session, some_holder(session, connection, first), OP_SHUTDOWN, SHUT_WR, 0, 0);
  Reply reply = hear(session, other.side, other.slot);
  expect(session, other, &wait, &reply, 0, 0);
}

/* One side closes after it has read everything; the other reads to the end and then cannot send. */
static void end_by_close(Session *session, int connection) {
  int first = (int)below(&session->random, 2);
  take_all(session, connection, first);
  close_side(session, connection, first);
  take_all(session, connection, !first);
  At other = some_holder(session, connection, !first);
  simple(session, other, OP_EOF, below(&session->random, RECV_TRUNC), 0, 0);
  simple(session, other, OP_BROKEN, below(&session->random, 2), -1, EPIPE);
}

/* Everything that is on its way to `at` has arrived. */
static void await_all(Session *session, At at) {
  Command pending = {.op = OP_PENDING, .handle = (uint32_t)at.handle, .expected = (uint32_t)in_flight(session, at.connection, at.side)};
  ask_expecting(session, at, &pending, (int)pending.expected, 0);
}

/* One side closes with bytes unread, or with a linger time of 0: a reset, after what was sent before. */
static void end_by_reset(Session *session, int connection) {
  int first = (int)below(&session->random, 2);
  At at = some_holder(session, connection, first);
  /* A reset overtakes what still waits to be sent. */
  for (int side = 0; side < 2; side++) await_all(session, some_holder(session, connection, side));
  if (in_flight(session, connection, first) == 0 || one_in(&session->random, 2)) simple(session, at, OP_LINGER, 0, 0, 0);
  close_side(session, connection, first);
  take_all(session, connection, !first);
  At other = some_holder(session, connection, !first);
  simple(session, other, OP_RESET, 0, -1, ECONNRESET);
  simple(session, other, OP_BROKEN, 1, -1, EPIPE);
}

/* Nothing is read any more, and nothing comes. */
static void end_of_reading(Session *session, int connection) {
  int first = (int)below(&session->random, 2);
  take_all(session, connection, first);
  At at = some_holder(session, connection, first);
  simple(session, at, OP_SHUTDOWN, SHUT_RD, 0, 0);
  simple(session, at, OP_EOF, RECV, 0, 0);
  take_all(session, connection, !first);
}

void end_connection(Session *session, int connection) {
  static void (*const endings[])(Session *, int) = {end_in_halves, end_by_close, end_by_reset, end_under_a_waiter, end_of_reading};
  endings[below(&session->random, 5)](session, connection);
  for (int side = 0; side < 2; side++) close_side(session, connection, side);
  session->connections[connection].open = false;
}

/* All processes of one side are killed. What they had sent is read; then comes an end or a reset, which overtakes what
 * still waits to be sent. */
void end_by_kill(Session *session) {
  int killed = (int)below(&session->random, 2);
  for (int connection = 0; connection < CONNECTIONS; connection++)
    if (session->connections[connection].open) await_all(session, first_holder(session, connection, !killed));
  for (int slot = SLOTS - 1; slot >= 0; slot--) {
    Holder *holder = &session->holders[killed][slot];
    if (holder->lives && kill(holder->pid, SIGKILL) != 0) fail("a player cannot be killed");
    holder->lives = false;
    for (int handle = 0; handle < HANDLES; handle++) holder->held[handle] = -1;
  }
  for (int connection = 0; connection < CONNECTIONS; connection++) {
    if (!session->connections[connection].open) continue;
    take_all(session, connection, !killed);
    At other = some_holder(session, connection, !killed);
    Command end = {.op = OP_EOF, .way = RECV, .handle = (uint32_t)other.handle, .count = 10};
    Reply reply = ask(session, other.side, other.slot, &end);
    if (reply.result != 0 && reply.error != ECONNRESET)
      fail("operation %llu: after the other side was killed: %d, errno %d", (unsigned long long)session->operations,
           reply.result, reply.error);
    close_side(session, connection, !killed);
    session->connections[connection].open = false;
  }
}
