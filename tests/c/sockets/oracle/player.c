/* A player: a process of one side that does what the conductor says, one call at a time. */
#define _GNU_SOURCE
#include "player.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void ignore(int signal) {
  (void)signal;
  broken_pipes++;
}

static void be_ready(Player *player) {
  struct sigaction action = {.sa_handler = ignore};
  check_call(sigaction(SIGPIPE, &action, NULL), "sigaction");
  player->epoll = epoll_create1(EPOLL_CLOEXEC);
  check_call(player->epoll, "epoll_create1");
}

static socklen_t listener_address(struct sockaddr_storage *address, uint32_t flags, int port) {
  memset(address, 0, sizeof *address);
  if (!(flags & (FLAG_IPV6 | FLAG_MAPPED))) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address_of_listener(AF_INET), &v4->sin_addr);
    return sizeof *v4;
  }
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
  *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  char mapped[64];
  snprintf(mapped, sizeof mapped, "::ffff:%s", address_of_listener(AF_INET));
  inet_pton(AF_INET6, flags & FLAG_MAPPED ? mapped : address_of_listener(AF_INET6), &v6->sin6_addr);
  return sizeof *v6;
}

/* One listener for both families; its port is the answer. */
static void listen_anywhere(Player *player, Reply *reply) {
  struct sockaddr_in6 address = {.sin6_family = AF_INET6};
  socklen_t bytes = sizeof address;
  int off = 0;
  player->listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check_call(player->listener, "socket");
  check_call(setsockopt(player->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), "IPV6_V6ONLY");
  check_call(bind(player->listener, (struct sockaddr *)&address, sizeof address), "bind");
  check_call(listen(player->listener, 16), "listen");
  check_call(getsockname(player->listener, (struct sockaddr *)&address, &bytes), "getsockname");
  reply->result = ntohs(address.sin6_port);
}

static void without_delay(int fd) {
  int on = 1;
  check_call(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
}

static void connect_to(Player *player, const Command *command) {
  struct sockaddr_storage address;
  socklen_t bytes = listener_address(&address, command->flags, (int)command->key);
  int type = SOCK_STREAM | (command->flags & FLAG_NONBLOCK ? SOCK_NONBLOCK : 0);
  if (command->flags & FLAG_CLOEXEC) type |= SOCK_CLOEXEC;
  int fd = socket(address.ss_family, type, 0);
  check_call(fd, "socket");
  player->fds[command->handle] = fd;
  if (command->flags & FLAG_EARLY_EPOLL) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = command->handle};
    check_call(epoll_ctl(player->epoll, EPOLL_CTL_ADD, fd, &event), "EPOLL_CTL_ADD before connect");
    player->watched[command->handle] = event.events;
  }
  if (connect(fd, (struct sockaddr *)&address, bytes) < 0) {
    if (errno != EINPROGRESS) fail("connect: %s", strerror(errno));
    struct pollfd look = {.fd = fd, .events = POLLOUT};
    if (poll(&look, 1, PATIENCE_MS) != 1 || look.revents != POLLOUT) fail("connect does not end");
    int error = 0;
    socklen_t size = sizeof error;
    check_call(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), "SO_ERROR");
    if (error) fail("connect: %s", strerror(error));
  }
  without_delay(fd);
}

static void accept_one(Player *player, const Command *command) {
  int flags = (command->flags & FLAG_NONBLOCK ? SOCK_NONBLOCK : 0) | (command->flags & FLAG_CLOEXEC ? SOCK_CLOEXEC : 0);
  struct sockaddr_storage from;
  socklen_t bytes = sizeof from;
  int fd = flags ? accept4(player->listener, (struct sockaddr *)&from, &bytes, flags)
                 : accept(player->listener, (struct sockaddr *)&from, &bytes);
  check_call(fd, "accept");
  if (from.ss_family != AF_INET6) fail("accept: family %d", from.ss_family);
  player->fds[command->handle] = fd;
  without_delay(fd);
}

/* `other` becomes a duplicate of `handle`, in one of five ways. */
static void duplicate(Player *player, const Command *command) {
  int fd = player->fds[command->handle], copy;
  switch (command->way) {
    case 0: copy = dup(fd); break;
    case 1: copy = fcntl(fd, F_DUPFD, 20); break;
    case 2: copy = fcntl(fd, F_DUPFD_CLOEXEC, 0); break;
    default:
      /* Over a descriptor of another kind. */
      copy = open("/dev/null", O_RDONLY | O_CLOEXEC);
      check_call(copy, "open /dev/null");
      check_call(command->way == 3 ? dup2(fd, copy) : dup3(fd, copy, O_CLOEXEC), "dup2 or dup3");
  }
  check_call(copy, "a duplicate");
  player->fds[command->other] = copy;
}

static void forget(Player *player, uint32_t handle) {
  player->fds[handle] = -1;
  player->watched[handle] = 0;
}

static void close_handle(Player *player, const Command *command) {
  int fd = player->fds[command->handle];
  switch (command->way) {
    case 0: check_call(close(fd), "close"); break;
    case 1: check_call(close_range((unsigned)fd, (unsigned)fd, 0), "close_range"); break;
    default: {
      /* Closed by another descriptor put over it. */
      int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
      check_call(dup2(null, fd), "dup2");
      close(null);
      close(fd);
    }
  }
  forget(player, command->handle);
}

static void play_on(Player *player);

/* What a fresh program must be told: its side and slot, the passages, the channels of its side, and its descriptors. */
enum { WORDS = 4 + SLOTS + HANDLES };

/* Starts this program again as a player, with the descriptors that stay open. */
static void become_fresh(Player *player) {
  int numbers[WORDS] = {player->side, player->slot, passages[player->side][0], passages[player->side][1]};
  for (int i = 0; i < SLOTS; i++) numbers[4 + i] = channels[player->side][i][1];
  for (int i = 2; i < 4 + SLOTS; i++) check_call(fcntl(numbers[i], F_SETFD, 0), "F_SETFD");
  for (int i = 0; i < HANDLES; i++) {
    int fd = player->fds[i];
    numbers[4 + SLOTS + i] = fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) ? -1 : fd;
  }
  char words[WORDS][16], *arguments[WORDS + 3] = {"oracle", "player"};
  for (int i = 0; i < WORDS; i++) {
    snprintf(words[i], sizeof words[i], "%d", numbers[i]);
    arguments[2 + i] = words[i];
  }
  execv("/proc/self/exe", arguments);
  fail("exec: %s", strerror(errno));
}

_Noreturn void play_after_exec(int argc, char **argv) {
  int numbers[WORDS];
  failing_ends_all = true;
  if (argc != 2 + WORDS) fail("a player has %d arguments", argc);
  for (int i = 0; i < WORDS; i++) numbers[i] = atoi(argv[2 + i]);
  Player player = {.side = numbers[0], .slot = numbers[1], .listener = -1};
  for (int i = 0; i < 2; i++) passages[player.side][i] = numbers[2 + i];
  for (int i = 0; i < SLOTS; i++) channels[player.side][i][1] = numbers[4 + i];
  for (int i = 0; i < HANDLES; i++) player.fds[i] = numbers[4 + SLOTS + i];
  be_ready(&player);
  play_on(&player);
  _exit(0);
}

/* A child that plays in slot `other`, perhaps as a fresh program. */
static void fork_player(Player *player, const Command *command, Reply *reply) {
  fflush(NULL);
  pid_t child = fork();
  check_call(child, "fork");
  reply->result = child;
  if (child > 0) return;
  player->slot = (int)command->other;
  close(player->epoll);
  for (int i = 0; i < HANDLES; i++) player->watched[i] = 0;
  if (command->way == FORK_PLAIN) {
    be_ready(player);
    play_on(player);
  }
  become_fresh(player);
}

/* A program that inherits everything and does nothing. */
static void spawn_nothing(void) {
  char *arguments[] = {"true", NULL};
  pid_t child;
  int status, error = posix_spawnp(&child, "true", NULL, NULL, arguments, environ);
  if (error) fail("posix_spawnp: %s", strerror(error));
  check_call(waitpid(child, &status, 0), "waitpid");
  if (status != 0) fail("true ended with %#x", (unsigned)status);
}

static void pass(Player *player, const Command *command) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec piece = {&byte, 1};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  bool taking = command->op == OP_TAKE;
  if (taking) {
    check_call(recvmsg(passages[player->side][1], &message, command->way ? MSG_CMSG_CLOEXEC : 0), "recvmsg");
  } else {
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &player->fds[command->handle], sizeof(int));
    check_call(sendmsg(passages[player->side][0], &message, 0), "sendmsg");
  }
  if (!taking) return;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS) fail("no descriptor came");
  memcpy(&player->fds[command->handle], CMSG_DATA(header), sizeof(int));
}

/* Sets O_NONBLOCK by fcntl or FIONBIO, and looks whether this descriptor shows it. */
static void set_nonblocking(Player *player, const Command *command) {
  int fd = player->fds[command->handle], on = command->count != 0;
  int flags = fcntl(fd, F_GETFL);
  if (!!(flags & O_NONBLOCK) != (command->expected != 0)) fail("O_NONBLOCK of a duplicate is not that of the socket");
  if (command->way)
    check_call(ioctl(fd, FIONBIO, &on), "FIONBIO");
  else
    check_call(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK), "F_SETFL");
}

/* A receive time limit in `count` ms, or the minimum that wakes a receiver. */
static void set_option(Player *player, const Command *command) {
  int fd = player->fds[command->handle], value = (int)command->count, off = 0;
  socklen_t size = sizeof value;
  if (command->op == OP_LOWAT) {
    check_call(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value), "SO_RCVLOWAT");
    return;
  }
  struct timeval time = {0, value * 1000}, back;
  socklen_t time_size = sizeof back;
  int name = command->way ? SO_SNDTIMEO : SO_RCVTIMEO;
  check_call(setsockopt(fd, SOL_SOCKET, name, &time, sizeof time), "a time limit");
  check_call(getsockopt(fd, SOL_SOCKET, name, &back, &time_size), "a time limit");
  if ((back.tv_usec != 0) != (time.tv_usec != 0)) fail("a time limit of %d ms is read back as %ld us", value, (long)back.tv_usec);
  check_call(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof off), "TCP_NODELAY");
  check_call(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size), "TCP_NODELAY");
  if (value != 0) fail("TCP_NODELAY is still %d", value);
  without_delay(fd);
}

/* What a socket says of itself. */
static void look_at(Player *player, const Command *command) {
  int fd = player->fds[command->handle], value = -1;
  struct sockaddr_storage own, peer;
  socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer, size = sizeof value;
  struct stat stat;
  char byte;
  check_call(getsockname(fd, (struct sockaddr *)&own, &own_bytes), "getsockname");
  check_call(getpeername(fd, (struct sockaddr *)&peer, &peer_bytes), "getpeername");
  check_call(fstat(fd, &stat), "fstat");
  if (!S_ISSOCK(stat.st_mode)) fail("a socket is no socket to fstat");
  if (lseek(fd, 0, SEEK_CUR) != -1 || errno != ESPIPE) fail("lseek on a socket: %s", strerror(errno));
  if (pread(fd, &byte, 1, 0) != -1 || errno != ESPIPE) fail("pread on a socket: %s", strerror(errno));
  check_call(getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &size), "SO_ERROR");
  if (value != 0) fail("SO_ERROR: %s", strerror(value));
  check_call(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size), "SO_TYPE");
  if (value != SOCK_STREAM) fail("SO_TYPE: %d", value);
  struct tcp_info info;
  socklen_t info_bytes = sizeof info;
  check_call(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes), "TCP_INFO");
  if (info.tcpi_state == TCP_CLOSE) fail("TCP_INFO: a closed connection");
}

static void linger(Player *player, const Command *command) {
  struct linger now = {1, 0};
  check_call(setsockopt(player->fds[command->handle], SOL_SOCKET, SO_LINGER, &now, sizeof now), "SO_LINGER");
}

/* Waits until the connection has been reset, and reads the error that this leaves. */
static void reset(Player *player, const Command *command, Reply *reply) {
  struct pollfd look = {.fd = player->fds[command->handle], .events = POLLIN};
  double end = now_ms() + PATIENCE_MS;
  while (poll(&look, 1, PATIENCE_MS) != 1 || !(look.revents & POLLHUP))
    if (now_ms() > end) fail("no reset: events %#x", (unsigned)look.revents);
  char byte;
  ssize_t got = recv(look.fd, &byte, 1, 0);
  *reply = (Reply){.result = (int32_t)got, .error = got < 0 ? errno : 0};
}

static void play_one(Player *player, const Command *command, Reply *reply) {
  static char at[160];
  snprintf(at, sizeof at, " (player %d.%d, handle %u: %s, way %u, count %u, position %llu)", player->side, player->slot,
           command->handle, op_names[command->op], command->way, command->count, (unsigned long long)command->position);
  failing_at = at;
  switch (command->op) {
    case OP_LISTEN: listen_anywhere(player, reply); break;
    case OP_CONNECT: connect_to(player, command); break;
    case OP_ACCEPT: accept_one(player, command); break;
    case OP_SEND: play_send(player, command, reply); break;
    case OP_RECEIVE: play_receive(player, command, reply); break;
    case OP_PEEK: play_peek(player, command, reply); break;
    case OP_EMPTY: play_empty(player, command, reply); break;
    case OP_EOF: play_end_of_stream(player, command, reply); break;
    case OP_INTERRUPTED: play_interrupted(player, command, reply); break;
    case OP_WAIT: play_wait(player, command, reply); break;
    case OP_READY: play_ready(player, command, reply); break;
    case OP_PENDING: play_pending(player, command, reply); break;
    case OP_FLOOD: play_flood(player, command, reply); break;
    case OP_DRAIN: play_drain(player, command, reply); break;
    case OP_DUP: duplicate(player, command); break;
    case OP_CLOSE: close_handle(player, command); break;
    case OP_FORK: fork_player(player, command, reply); break;
    case OP_REAP: check_call(wait(NULL), "wait"); break;
    case OP_SPAWN: spawn_nothing(); break;
    case OP_PASS:
    case OP_TAKE: pass(player, command); break;
    case OP_SHUTDOWN: check_call(shutdown(player->fds[command->handle], (int)command->way), "shutdown"); break;
    case OP_NONBLOCK: set_nonblocking(player, command); break;
    case OP_OPTION:
    case OP_LOWAT: set_option(player, command); break;
    case OP_NAMES: look_at(player, command); break;
    case OP_EPOLL_SET: play_epoll_set(player, command, reply); break;
    case OP_EPOLL_WAIT: play_epoll_wait(player, command, reply); break;
    case OP_BROKEN: play_broken(player, command, reply); break;
    case OP_RESET: reset(player, command, reply); break;
    case OP_LINGER: linger(player, command); break;
    default: fail("a player does not know %u", command->op);
  }
}

static void play_on(Player *player) {
  int channel = channels[player->side][player->slot][1];
  for (;;) {
    Command command;
    ssize_t got;
    do got = read(channel, &command, sizeof command);
    while (got < 0 && errno == EINTR);
    if (got != sizeof command) _exit(1); /* The conductor is gone. */
    Reply reply = {0};
    player->late = 0;
    if (command.op != OP_EXIT) play_one(player, &command, &reply);
    reply.late = player->late;
    if (write(channel, &reply, sizeof reply) != sizeof reply) _exit(1);
    if (command.op == OP_EXIT) exit(0);
  }
}

_Noreturn void play(int side, int slot) {
  Player player = {.side = side, .slot = slot, .listener = -1};
  for (int i = 0; i < HANDLES; i++) player.fds[i] = -1;
  be_ready(&player);
  play_on(&player);
  _exit(0);
}
