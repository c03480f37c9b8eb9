/* A player's calls that move bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "player.h"

static uint8_t buffer[64 * 1024];

/* Cuts `count` bytes into up to five pieces, some of them empty, in a way that follows from `seed`. */
static int cut(struct iovec *pieces, uint8_t *bytes, size_t count, uint64_t seed) {
  Random random = {seed};
  int n = 0;
  while (n < 4 && count > 0) {
    size_t piece = below(&random, (uint32_t)count + 1);
    pieces[n++] = (struct iovec){bytes, piece};
    bytes += piece;
    count -= piece;
  }
  pieces[n++] = (struct iovec){bytes, count};
  return n;
}

static ssize_t send_messages(int fd, struct iovec *pieces, int n) {
  struct mmsghdr messages[5];
  memset(messages, 0, sizeof messages);
  for (int i = 0; i < n; i++) messages[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i], .msg_iovlen = 1};
  int sent = sendmmsg(fd, messages, (unsigned)n, MSG_NOSIGNAL);
  if (sent < 0) return -1;
  ssize_t bytes = 0;
  for (int i = 0; i < sent; i++) bytes += messages[i].msg_len;
  return bytes;
}

static ssize_t send_file(int fd, size_t count) {
  int file = memfd_create("oracle", MFD_CLOEXEC);
  check_call(file, "memfd_create");
  check_call(write(file, buffer, count), "write to memory");
  off_t at = 0;
  ssize_t sent = sendfile(fd, file, &at, count);
  int error = errno;
  if (sent >= 0 && at != sent) fail("sendfile says %zd and moved its offset to %ld", sent, (long)at);
  close(file);
  errno = error;
  return sent;
}

static ssize_t splice_in(int fd, size_t count) {
  int ends[2];
  check_call(pipe2(ends, O_CLOEXEC), "pipe2");
  ssize_t piped = write(ends[1], buffer, count < 4096 ? count : 4096);
  check_call(piped, "write to a pipe");
  ssize_t sent = 0;
  while (sent < piped) {
    ssize_t moved = splice(ends[0], NULL, fd, NULL, (size_t)(piped - sent), 0);
    if (moved < 0) fail("splice into a socket: %s", strerror(errno));
    sent += moved;
  }
  close(ends[0]);
  close(ends[1]);
  return sent;
}

/* Through a FILE on a duplicate: libc writes where no hook sees it. */
static ssize_t send_by_stdio(int fd, size_t count) {
  int flags = fcntl(fd, F_GETFL);
  if (flags & O_NONBLOCK) check_call(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK), "F_SETFL");
  FILE *file = fdopen(dup(fd), "w");
  if (!file) fail("fdopen: %s", strerror(errno));
  if (fwrite(buffer, 1, count, file) != count || fclose(file) != 0) fail("stdio on a socket: %s", strerror(errno));
  if (flags & O_NONBLOCK) check_call(fcntl(fd, F_SETFL, flags), "F_SETFL");
  return (ssize_t)count;
}

static ssize_t send_once(int fd, size_t count, const Command *command) {
  struct iovec pieces[5];
  int n = cut(pieces, buffer, count, command->position);
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n};
  switch (command->way) {
    case SEND: return send(fd, buffer, count, MSG_NOSIGNAL);
    case SEND_DONTWAIT: return send(fd, buffer, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    case SENDTO: return sendto(fd, buffer, count, MSG_NOSIGNAL, NULL, 0);
    case WRITE: return write(fd, buffer, count);
    case WRITEV: return writev(fd, pieces, n);
    case SENDMSG: return sendmsg(fd, &message, MSG_NOSIGNAL);
    case SENDMMSG: return send_messages(fd, pieces, n);
    case PWRITEV2: return pwritev2(fd, pieces, n, -1, 0);
    case SENDFILE: return send_file(fd, count);
    case SPLICE_IN: return splice_in(fd, count);
    default: return send_by_stdio(fd, count);
  }
}

/* Sends `count` bytes of the stream; there is room for them. */
void play_send(Player *player, const Command *command, Reply *reply) {
  if (command->pause_us) usleep(command->pause_us);
  double end = now_ms() + PATIENCE_MS;
  size_t sent = 0;
  while (sent < command->count) {
    fill_stream(buffer, command->key, command->position + sent, command->count - sent);
    ssize_t once = send_once(player->fds[command->handle], command->count - sent, command);
    /* Between hosts a change of ways takes as long as the network. Who may not wait is told when there is room. */
    if (once < 0 && errno == EAGAIN && has_hosts && now_ms() < end) {
      struct pollfd look = {.fd = player->fds[command->handle], .events = POLLOUT};
      if (poll(&look, 1, PATIENCE_MS) != 1) fail("no room within %d ms", PATIENCE_MS);
      player->late++;
      continue;
    }
    if (once <= 0) {
      *reply = (Reply){.result = -1, .error = once < 0 ? errno : 0};
      return;
    }
    if (sent > 0) player->late++;
    sent += (size_t)once;
  }
  reply->result = (int32_t)sent;
}

static ssize_t receive_messages(int fd, struct iovec *pieces, int n) {
  struct mmsghdr messages[5];
  memset(messages, 0, sizeof messages);
  for (int i = 0; i < n; i++) messages[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i], .msg_iovlen = 1};
  /* Waits for the first message only; an empty piece would count as one. */
  int got = recvmmsg(fd, messages, 1, 0, NULL);
  return got < 0 ? -1 : (ssize_t)messages[0].msg_len;
}

static ssize_t splice_out(int fd, size_t count) {
  int ends[2];
  check_call(pipe2(ends, O_CLOEXEC), "pipe2");
  ssize_t moved = splice(fd, NULL, ends[1], NULL, count < 4096 ? count : 4096, 0);
  int error = errno;
  if (moved > 0 && read(ends[0], buffer, (size_t)moved) != moved) fail("a pipe lost what was spliced into it");
  close(ends[0]);
  close(ends[1]);
  errno = error;
  return moved;
}

static ssize_t receive_message(int fd, struct iovec *pieces, int n, int flags) {
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n, .msg_flags = -1};
  ssize_t got = recvmsg(fd, &message, flags);
  if (got > 0 && (message.msg_flags & ~MSG_EOR) != 0) fail("recvmsg: flags %#x", (unsigned)message.msg_flags);
  if (got > 0 && message.msg_controllen != 0) fail("recvmsg: control data of nobody");
  return got;
}

static ssize_t receive_once(int fd, size_t count, uint32_t way, uint64_t seed) {
  struct iovec pieces[5];
  int n = cut(pieces, buffer, count, seed);
  struct iovec whole = {buffer, count};
  struct sockaddr_storage from;
  socklen_t from_bytes = sizeof from;
  switch (way) {
    case RECV: return recv(fd, buffer, count, 0);
    case RECV_DONTWAIT: return recv(fd, buffer, count, MSG_DONTWAIT);
    case RECV_WAITALL: return recv(fd, buffer, count, MSG_WAITALL);
    case RECVFROM: return recvfrom(fd, buffer, count, 0, (struct sockaddr *)&from, &from_bytes);
    case READ: return read(fd, buffer, count);
    case READV: return readv(fd, pieces, n);
    case RECVMSG: return receive_message(fd, pieces, n, 0);
    case RECVMMSG: return receive_messages(fd, &whole, 1);
    case PREADV2: return preadv2(fd, pieces, n, -1, 0);
    case SPLICE_OUT: return splice_out(fd, count);
    default: return recv(fd, NULL, count, MSG_TRUNC);
  }
}

/* Up to PATIENCE_MS for something to be read. */
static void wait_readable(int fd) {
  struct pollfd look = {.fd = fd, .events = POLLIN};
  int ready;
  do ready = poll(&look, 1, PATIENCE_MS);
  while (ready < 0 && errno == EINTR);
  if (ready <= 0) fail("nothing to read within %d ms", PATIENCE_MS);
}

/* Receives with calls of `count` bytes until `expected` bytes have come: usually one call. */
void play_receive(Player *player, const Command *command, Reply *reply) {
  int fd = player->fds[command->handle];
  bool blocking = !(fcntl(fd, F_GETFL) & O_NONBLOCK) && command->way != RECV_DONTWAIT;
  double end = now_ms() + PATIENCE_MS;
  if (command->flags == SIGNALS_RESTART) start_signals(true);
  size_t got = 0;
  while (got < command->expected) {
    if (!blocking) wait_readable(fd);
    /* What is asked for again is no more than what is missing: the rest is the next call's. */
    size_t count = got ? command->expected - got : command->count;
    ssize_t once = receive_once(fd, count, command->way, command->position + got);
    /* Also where a time limit is set and the bytes take longer. */
    if (once < 0 && errno == EAGAIN && now_ms() < end) {
      player->late++;
      continue;
    }
    if (once <= 0) {
      *reply = (Reply){.result = once < 0 ? -1 : (int32_t)got, .error = once < 0 ? errno : 0};
      stop_signals();
      return;
    }
    if ((size_t)once > command->expected - got) {
      fail("%zd bytes received, only %zu are on their way", once, command->expected - got);
    }
    if (command->way != RECV_TRUNC)
      check_stream(buffer, command->key, command->position + got, (size_t)once, "received");
    if (got > 0) player->late++;
    got += (size_t)once;
  }
  stop_signals();
  reply->result = (int32_t)got;
}

void play_peek(Player *player, const Command *command, Reply *reply) {
  int fd = player->fds[command->handle];
  double end = now_ms() + PATIENCE_MS;
  struct iovec pieces[5];
  int n = cut(pieces, buffer, command->count, command->position);
  for (;;) {
    wait_readable(fd);
    ssize_t seen = command->way ? receive_message(fd, pieces, n, MSG_PEEK) : recv(fd, buffer, command->count, MSG_PEEK);
    if (seen > (ssize_t)command->expected) fail("%zd bytes seen, only %u are on their way", seen, command->expected);
    if (seen > 0) check_stream(buffer, command->key, command->position, (size_t)seen, "peeked at");
    if (seen == (ssize_t)command->expected || now_ms() > end) {
      *reply = (Reply){.result = (int32_t)seen, .error = seen < 0 ? errno : 0};
      return;
    }
    player->late++;
  }
}

/* A receive while nothing is on its way and it must not wait: non-blocking, or with a time limit. */
void play_empty(Player *player, const Command *command, Reply *reply) {
  int fd = player->fds[command->handle];
  ssize_t got;
  if (command->way == RECV_TRUNC || command->way == SPLICE_OUT || command->way == RECV_DONTWAIT)
    got = recv(fd, buffer, command->count, MSG_DONTWAIT | (command->way == RECV_TRUNC ? MSG_PEEK : 0));
  else
    got = receive_once(fd, command->count, command->way, command->position);
  *reply = (Reply){.result = (int32_t)got, .error = got < 0 ? errno : 0};
}

/* A receive when the stream has ended, or is going to: waits for it. Twice, since an end stays. */
void play_end_of_stream(Player *player, const Command *command, Reply *reply) {
  int fd = player->fds[command->handle];
  for (int round = 0; round < 2; round++) {
    /* With a flag the receive itself waits. */
    if (!command->flags) wait_readable(fd);
    ssize_t got = receive_once(fd, command->count, command->way == RECV_TRUNC ? RECV : command->way, 0);
    if (got != 0) {
      *reply = (Reply){.result = (int32_t)got, .error = got < 0 ? errno : 0};
      return;
    }
  }
}

/* Sends until the connection is found broken: the error, and with `way` the signal that goes with it. */
void play_broken(Player *player, const Command *command, Reply *reply) {
  int fd = player->fds[command->handle];
  double end = now_ms() + PATIENCE_MS;
  int before = broken_pipes;
  ssize_t sent;
  do sent = command->way ? write(fd, buffer, 1) : send(fd, buffer, 1, MSG_NOSIGNAL);
  while ((sent == 1 || (sent < 0 && errno == EAGAIN)) && now_ms() < end);
  *reply = (Reply){.result = (int32_t)sent, .error = sent < 0 ? errno : 0};
  if (sent < 0 && errno == EPIPE && broken_pipes - before != (command->way ? 1 : 0))
    fail("EPIPE came with %d signals", broken_pipes - before);
}

/* Sends without waiting until nothing more fits. */
void play_flood(Player *player, const Command *command, Reply *reply) {
  int fd = player->fds[command->handle];
  for (;;) {
    fill_stream(buffer, command->key, command->position + reply->bytes, command->count);
    ssize_t sent = send(fd, buffer, command->count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) fail("flood: %s", strerror(errno));
    if (sent < 0) break;
    reply->bytes += (uint64_t)sent;
  }
}

/* Receives exactly `bytes`, which stand in `pause_us` and `other` (low and high half). */
void play_drain(Player *player, const Command *command, Reply *reply) {
  int fd = player->fds[command->handle];
  uint64_t left = (uint64_t)command->other << 32 | command->pause_us;
  while (left > 0) {
    wait_readable(fd);
    size_t count = left < command->count ? (size_t)left : command->count;
    ssize_t got = recv(fd, buffer, count, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) continue;
    if (got <= 0) fail("%llu bytes of a flood are missing: %s", (unsigned long long)left, got ? strerror(errno) : "end");
    check_stream(buffer, command->key, command->position + reply->bytes, (size_t)got, "flood");
    reply->bytes += (uint64_t)got;
    left -= (uint64_t)got;
  }
}

/* FIONREAD, until it says what must be there. */
void play_pending(Player *player, const Command *command, Reply *reply) {
  double end = now_ms() + PATIENCE_MS;
  int count = -1;
  do {
    check_call(ioctl(player->fds[command->handle], FIONREAD, &count), "FIONREAD");
    if (count > (int)command->expected) break;
  } while (count != (int)command->expected && now_ms() < end);
  reply->result = count;
}
