/* The hosts of the two sides: network namespaces. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "oracle.h"

bool has_hosts;
static char names[2][64], addresses[2][64];

void read_hosts(const char *given) {
  if (sscanf(given, "%63[^,],%63[^,],%63[^,],%63[^,]", names[0], names[1], addresses[0], addresses[1]) != 4)
    fail("'%s' is not two names and two addresses", given);
  has_hosts = true;
}

void enter_host(int side) {
  if (!has_hosts) return;
  char path[100];
  snprintf(path, sizeof path, "/run/netns/%s", names[side]);
  int name = open(path, O_RDONLY | O_CLOEXEC);
  check_call(name, path);
  check_call(setns(name, CLONE_NEWNET), "setns");
  close(name);
}

const char *address_of_listener(int family) {
  if (!has_hosts) return family == AF_INET ? "127.0.0.1" : "::1";
  return addresses[family == AF_INET6];
}
