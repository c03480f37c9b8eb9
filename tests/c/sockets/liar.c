/* A library to be preloaded that breaks TCP in one way each: what the oracle must notice. LIE says how. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is(const char *lie) {
  const char *wanted = getenv("LIE");
  return wanted && !strcmp(wanted, lie);
}

/* One in so many; the oracle's processes are many, so not by a count of calls. */
static int one_in(int many) {
  static unsigned seed;
  if (!seed) seed = (unsigned)getpid();
  return rand_r(&seed) % many == 0;
}

ssize_t recv(int fd, void *buffer, size_t count, int flags) {
  ssize_t got = syscall(SYS_recvfrom, fd, buffer, count, flags, NULL, NULL);
  if (got > 1 && buffer && !(flags & MSG_PEEK) && one_in(100)) {
    if (is("lost")) memmove(buffer, (char *)buffer + 1, (size_t)--got);
    if (is("swapped")) {
      char *bytes = buffer, first = bytes[0];
      bytes[0] = bytes[got - 1];
      bytes[got - 1] = first;
    }
  }
  if (got < 0 && errno == EAGAIN && is("ended") && one_in(10)) return 0;
  if (got < 0 && errno == EAGAIN && is("errno") && one_in(10)) errno = ENOTCONN;
  return got;
}

ssize_t send(int fd, const void *buffer, size_t count, int flags) {
  ssize_t sent = syscall(SYS_sendto, fd, buffer, count, flags, NULL, 0);
  if (sent > 0 && is("twice") && one_in(100)) syscall(SYS_sendto, fd, buffer, 1, flags, NULL, 0);
  return sent;
}
