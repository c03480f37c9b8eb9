/* One step of the random walk through the socket interface. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "model.h"

static Connection *connection_of(Session *session, At at) { return &session->connections[at.connection]; }
static Holder *holder_of(Session *session, At at) { return &session->holders[at.side][at.slot]; }

/* Bytes that may be sent now without filling anything. */
static uint32_t room(Session *session, At at) {
  const Stream *stream = &connection_of(session, at)->streams[at.side];
  uint64_t there = stream->sent - stream->received;
  uint32_t most = session->brief ? BRIEF_IN_FLIGHT : has_hosts ? FAR_IN_FLIGHT : IN_FLIGHT;
  return there >= most || stream->sends >= SENDS_IN_FLIGHT ? 0 : (uint32_t)(most - there);
}

static uint32_t some_count(Session *session) { return some_bytes(&session->random, session->brief ? BRIEF : LARGEST); }

static void send_step(Session *session, At at) {
  uint32_t most = room(session, at), count = some_count(session);
  if (most > 0) send_some(session, at, count < most ? count : most, 0);
}

static void empty_step(Session *session, At at) {
  const Connection *connection = connection_of(session, at);
  bool returns = connection->nonblocking[at.side] || connection->limited[at.side];
  uint32_t way = returns ? below(&session->random, RECEIVE_WAYS) : RECV_DONTWAIT;
  Command command = {.op = OP_EMPTY, .way = way, .handle = (uint32_t)at.handle, .count = some_count(session)};
  ask_expecting(session, at, &command, -1, EAGAIN);
}

static void receive_step(Session *session, At at) {
  if (in_flight(session, at.connection, at.side) == 0) {
    empty_step(session, at);
    return;
  }
  receive_some(session, at, below(&session->random, RECEIVE_WAYS), some_count(session));
}

/* The other side sends while this one is (or soon will be) waiting. */
static void woken_step(Session *session, At at) {
  Connection *connection = connection_of(session, at);
  if (in_flight(session, at.connection, at.side) > 0 || connection->nonblocking[at.side] || connection->limited[at.side]) return;
  static const uint32_t ways[] = {RECV, RECV_WAITALL, RECVFROM, READ, READV, RECVMSG, RECVMMSG, PREADV2};
  static const uint32_t pauses[] = {0, 0, 30, 300};
  Stream *stream = &connection->streams[!at.side];
  uint32_t sent = some_count(session), count = some_count(session);
  Command command = {.op = OP_RECEIVE, .way = ways[below(&session->random, 8)], .handle = (uint32_t)at.handle,
                     .key = stream->key, .position = stream->received};
  if (command.way == RECV_WAITALL && count > sent) count = sent;
  command.count = count;
  command.expected = count < sent ? count : sent;
  command.flags = one_in(&session->random, 4) ? SIGNALS_RESTART : CALM;
  tell(session, at.side, at.slot, &command);
  send_some(session, some_holder(session, at.connection, !at.side), sent, pauses[below(&session->random, 4)]);
  Reply reply = hear(session, at.side, at.slot);
  stream->received += command.expected;
  if (stream->received == stream->sent) stream->sends = 0;
  expect(session, at, &command, &reply, (int)command.expected, 0);
}

/* The same with poll and its relatives. */
static void waited_step(Session *session, At at) {
  if (in_flight(session, at.connection, at.side) > 0) return;
  Command command = {.op = OP_WAIT, .way = below(&session->random, WAIT_WAYS), .handle = (uint32_t)at.handle,
                     .expected = POLLIN, .flags = one_in(&session->random, 2)};
  tell(session, at.side, at.slot, &command);
  send_some(session, some_holder(session, at.connection, !at.side), some_count(session), below(&session->random, 3) * 100);
  Reply reply = hear(session, at.side, at.slot);
  expect(session, at, &command, &reply, POLLIN, 0);
}

static void ready_step(Session *session, At at) {
  static const uint32_t asked[] = {POLLIN, POLLOUT, POLLIN | POLLOUT, POLLIN | POLLRDHUP};
  uint32_t way = below(&session->random, WAIT_WAYS);
  uint32_t events = asked[below(&session->random, way == SELECT || way == PSELECT ? 3 : 4)];
  uint32_t shown = (in_flight(session, at.connection, at.side) > 0 ? POLLIN : 0) | POLLOUT;
  Command command = {.op = OP_READY, .way = way, .handle = (uint32_t)at.handle, .flags = events, .expected = shown & events};
  ask_expecting(session, at, &command, (int)command.expected, 0);
}

static void peek_step(Session *session, At at) {
  uint64_t there = in_flight(session, at.connection, at.side);
  if (there == 0) return;
  const Stream *stream = &connection_of(session, at)->streams[!at.side];
  Command command = {.op = OP_PEEK, .way = below(&session->random, 2), .handle = (uint32_t)at.handle,
                     .count = some_count(session), .key = stream->key, .position = stream->received};
  command.expected = command.count < there ? command.count : (uint32_t)there;
  ask_expecting(session, at, &command, (int)command.expected, 0);
}

static void pending_step(Session *session, At at) {
  Command command = {.op = OP_PENDING, .handle = (uint32_t)at.handle,
                     .expected = (uint32_t)in_flight(session, at.connection, at.side)};
  ask_expecting(session, at, &command, (int)command.expected, 0);
}

static void epoll_set_step(Session *session, At at) {
  static const uint32_t wishes[] = {EPOLLIN, EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLRDHUP, EPOLLOUT, EPOLLIN | EPOLLET,
                                    EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, EPOLLIN | EPOLLONESHOT,
                                    EPOLLIN | EPOLLET | EPOLLONESHOT};
  Holder *holder = holder_of(session, at);
  uint32_t flags = holder->watched[at.handle] && one_in(&session->random, 3) ? 0 : wishes[below(&session->random, 8)];
  Command command = {.op = OP_EPOLL_SET, .handle = (uint32_t)at.handle, .flags = flags};
  ask_expecting(session, at, &command, 0, 0);
  holder->watched[at.handle] = flags;
  holder->armed[at.handle] = true;
  holder->news[at.handle] = true;
}

/* What this handle shows in full, as EPOLL* bits. */
static uint32_t shows(const Session *session, int connection, int side) {
  return (in_flight(session, connection, side) > 0 ? EPOLLIN : 0) | EPOLLOUT;
}

/* Looks at the player's own set, and holds every event against what may and what must come. */
static void epoll_wait_step(Session *session, At at) {
  Holder *holder = holder_of(session, at);
  uint32_t must[HANDLES] = {0}, may[HANDLES] = {0};
  Command command = {.op = OP_EPOLL_WAIT, .way = below(&session->random, 2) * 20, .flags = 1};
  for (int handle = 0; handle < HANDLES; handle++) {
    uint32_t watched = holder->watched[handle];
    if (holder->held[handle] < 0 || !watched || !holder->armed[handle]) continue;
    may[handle] = shows(session, holder->held[handle], at.side) & watched;
    bool edge = watched & EPOLLET;
    if (!edge || (holder->news[handle] && may[handle] & EPOLLIN)) must[handle] = may[handle];
    if (edge) command.flags = 0; /* How a set shows itself is only clear for levels. */
    command.key |= (uint64_t)((must[handle] & EPOLLIN ? 1 : 0) | (must[handle] & EPOLLOUT ? 2 : 0)) << (4 * handle);
  }
  Reply reply = ask(session, at.side, at.slot, &command);
  uint64_t summary = 0;
  for (int handle = 0; handle < HANDLES; handle++) {
    uint32_t got = reply.events[handle];
    if ((got & ~may[handle]) || (must[handle] & ~got))
      fail("operation %llu: epoll set of player %d.%d, handle %d watched for %#x: events %#x, may %#x, must %#x",
           (unsigned long long)session->operations, at.side, at.slot, handle, holder->watched[handle], got, may[handle],
           must[handle]);
    /* An edge may be told once more than it must, and then is not owed the next time: checked above, and not compared. */
    if (!(holder->watched[handle] & EPOLLET)) summary = mix(summary ^ (must[handle] & got));
    if (!got) continue;
    holder->news[handle] = false;
    if (holder->watched[handle] & EPOLLONESHOT) holder->armed[handle] = false;
  }
  reply.result = (int32_t)(summary & 0xffff);
  expect(session, at, &command, &reply, reply.result, 0);
}

static void dup_step(Session *session, At at) {
  Holder *holder = holder_of(session, at);
  int copy = free_handle(holder);
  if (copy < 0) return;
  Command command = {.op = OP_DUP, .way = below(&session->random, 5), .handle = (uint32_t)at.handle, .other = (uint32_t)copy};
  ask_expecting(session, at, &command, 0, 0);
  holder->held[copy] = at.connection;
  holder->cloexec[copy] = command.way == 2 || command.way == 4;
  holder->watched[copy] = 0;
}

static void close_step(Session *session, At at) {
  if (handles_of(session, at.connection, at.side) < 2) return;
  Holder *holder = holder_of(session, at);
  if (holder->watched[at.handle]) {
    Command unwatch = {.op = OP_EPOLL_SET, .handle = (uint32_t)at.handle};
    ask_expecting(session, at, &unwatch, 0, 0);
  }
  Command command = {.op = OP_CLOSE, .way = below(&session->random, 3), .handle = (uint32_t)at.handle};
  ask_expecting(session, at, &command, 0, 0);
  holder->held[at.handle] = -1;
  holder->watched[at.handle] = 0;
}

static void fork_step(Session *session, At at) {
  int slot = 0;
  while (slot < SLOTS && session->holders[at.side][slot].lives) slot++;
  if (slot == SLOTS || session->brief) return;
  bool exec = !session->calm && one_in(&session->random, 2);
  Command command = {.op = OP_FORK, .way = exec ? FORK_EXEC : FORK_PLAIN, .handle = (uint32_t)at.handle, .other = (uint32_t)slot};
  Reply reply = ask(session, at.side, at.slot, &command);
  Holder *parent = holder_of(session, at), *child = &session->holders[at.side][slot];
  *child = (Holder){.lives = true, .parent = at.slot, .pid = reply.result};
  for (int handle = 0; handle < HANDLES; handle++)
    child->held[handle] = exec && parent->cloexec[handle] ? -1 : parent->held[handle];
  for (int handle = 0; handle < HANDLES; handle++) child->cloexec[handle] = parent->cloexec[handle];
  reply.result = 0;
  expect(session, at, &command, &reply, 0, 0);
}

/* A child that holds nothing alone leaves. */
static void exit_step(Session *session, At at) {
  Holder *leaving = holder_of(session, at);
  if (at.slot == 0) return;
  for (int connection = 0; connection < CONNECTIONS; connection++) {
    int own = 0;
    for (int handle = 0; handle < HANDLES; handle++) own += leaving->held[handle] == connection;
    if (own > 0 && own == handles_of(session, connection, at.side)) return;
  }
  Command leave = {.op = OP_EXIT}, reap = {.op = OP_REAP};
  ask_expecting(session, at, &leave, 0, 0);
  leaving->lives = false;
  for (int handle = 0; handle < HANDLES; handle++) leaving->held[handle] = -1;
  for (int slot = 1; slot < SLOTS; slot++)
    if (session->holders[at.side][slot].parent == at.slot) session->holders[at.side][slot].parent = -1;
  if (leaving->parent >= 0) ask(session, at.side, leaving->parent, &reap);
}

static void nonblock_step(Session *session, At at) {
  bool *now = &connection_of(session, at)->nonblocking[at.side];
  Command command = {.op = OP_NONBLOCK, .way = below(&session->random, 2), .handle = (uint32_t)at.handle, .count = !*now,
                     .expected = *now};
  ask_expecting(session, at, &command, 0, 0);
  *now = !*now;
}

static void option_step(Session *session, At at) {
  bool *limited = &connection_of(session, at)->limited[at.side];
  Command command = {.op = OP_OPTION, .handle = (uint32_t)at.handle, .count = *limited ? 0 : 2};
  ask_expecting(session, at, &command, 0, 0);
  *limited = !*limited;
}

static void interrupted_step(Session *session, At at) {
  const Connection *connection = connection_of(session, at);
  if (in_flight(session, at.connection, at.side) > 0 || connection->nonblocking[at.side] || connection->limited[at.side]) return;
  Command command = {.op = OP_INTERRUPTED, .way = below(&session->random, WAIT_WAYS + 2), .handle = (uint32_t)at.handle};
  ask_expecting(session, at, &command, -1, EINTR);
}

static void pass_step(Session *session, At at) {
  int slot = (int)below(&session->random, SLOTS);
  Holder *taker = &session->holders[at.side][slot];
  if (session->calm || !taker->lives || free_handle(taker) < 0) return;
  int handle = free_handle(taker);
  Command give = {.op = OP_PASS, .handle = (uint32_t)at.handle};
  Command take = {.op = OP_TAKE, .way = below(&session->random, 2), .handle = (uint32_t)handle};
  ask_expecting(session, at, &give, 0, 0);
  ask_expecting(session, (At){at.side, slot, handle, at.connection}, &take, 0, 0);
  taker->held[handle] = at.connection;
  taker->cloexec[handle] = take.way;
  taker->watched[handle] = 0;
}

static void simple_step(Session *session, At at, uint32_t op) {
  Command command = {.op = op, .handle = (uint32_t)at.handle};
  ask_expecting(session, at, &command, 0, 0);
}

static void flood_step(Session *session, At at) {
  if (!session->brief) flood(session, at);
}

/* What steps there are and how often one is taken; `rare`: only one in so many of those. */
static const struct {
  uint32_t weight, rare;
  void (*take)(Session *, At);
} steps[] = {
    {30, 1, send_step},   {29, 1, receive_step},    {6, 1, woken_step},      {3, 1, waited_step},  {5, 1, ready_step},
    {3, 1, peek_step},    {2, 1, pending_step},     {3, 1, epoll_set_step},  {4, 1, epoll_wait_step}, {2, 1, dup_step},
    {2, 1, close_step},   {2, 4, fork_step},        {2, 3, exit_step},       {1, 1, nonblock_step}, {1, 2, option_step},
    {1, 3, interrupted_step}, {1, 10, flood_step},       {1, 5, minimum},         {1, 1, pass_step},
};

void step(Session *session) {
  int connection = (int)below(&session->random, CONNECTIONS);
  if (!session->connections[connection].open) connection = 0;
  if (one_in(&session->random, 400)) {
    end_connection(session, connection);
    return;
  }
  At at = some_holder(session, connection, (int)below(&session->random, 2));
  if (one_in(&session->random, 100)) simple_step(session, at, one_in(&session->random, 5) ? OP_SPAWN : OP_NAMES);
  uint32_t roll = below(&session->random, 99), chosen = 0;
  while (roll >= steps[chosen].weight) roll -= steps[chosen++].weight;
  if (one_in(&session->random, steps[chosen].rare)) steps[chosen].take(session, at);
}
