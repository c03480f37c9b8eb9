/* The oracle: kernel TCP says what is right.
 *
 *   oracle [--operations N] [--only lockstep|free] [--preload LIBRARY] [--hosts NAME,NAME,IPV4,IPV6] [SEED]
 *
 * Runs a random sequence of operations on TCP connections between processes, checks every byte, and compares what each
 * call answered with what the same sequence answers on plain kernel TCP. Without a library to preload only the kernel is
 * run, against the model. A seed that failed is given again as the only argument. With hosts the two sides live in two
 * network namespaces, and connections lead to these addresses of the second. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"

const char *const op_names[OPS] = {
    "listen", "connect", "accept", "send", "receive", "peek", "empty", "eof", "interrupted", "wait", "ready",
    "pending", "flood", "drain", "dup", "close", "fork", "exit", "reap", "spawn", "pass", "take", "shutdown", "nonblock",
    "option", "names", "epoll-set", "epoll-wait", "broken", "reset", "linger", "lowat"};

bool failing_ends_all;
const char *failing_at = "";

void fail(const char *format, ...) {
  va_list arguments;
  char line[600];
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fprintf(stderr, "oracle: error: %s%s\n", line, failing_at);
  if (failing_ends_all) kill(0, SIGKILL);
  _exit(1);
}

void check_call(long result, const char *what) {
  if (result < 0) fail("%s: %s", what, strerror(errno));
}

double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

void fill_stream(uint8_t *bytes, uint64_t key, uint64_t position, size_t count) {
  for (size_t i = 0; i < count; i++) bytes[i] = stream_byte(key, position + i);
}

/* Where else in the stream these bytes stand, for who looks for the reason; -1: nowhere near. */
static long long found_at(const uint8_t *bytes, size_t count, uint64_t key, uint64_t position) {
  uint64_t near = 1 << 20, from = position > near ? position - near : 0;
  size_t some = count < 16 ? count : 16;
  for (uint64_t at = from; some > 3 && at < position + near; at++) {
    size_t same = 0;
    while (same < some && bytes[same] == stream_byte(key, at + same)) same++;
    if (same == some) return (long long)at;
  }
  return -1;
}

void check_stream(const uint8_t *bytes, uint64_t key, uint64_t position, size_t count, const char *what) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != stream_byte(key, position + i))
      fail("%s: byte %llu of the stream is %#x, sent was %#x; what came was sent as byte %lld", what,
           (unsigned long long)(position + i), bytes[i], stream_byte(key, position + i),
           found_at(bytes + i, count - i, key, position + i));
}

typedef struct {
  uint64_t seed, operations;
  const char *preload, *only, *trace, *hosts;
} Options;

static Options read_options(int argc, char **argv) {
  Options options = {.operations = 20000};
  bool seeded = false;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strncmp(argv[i], "--", 2) && !value) fail("%s needs a value", argv[i]);
    if (!strcmp(argv[i], "--operations")) options.operations = strtoull(value, NULL, 0), i++;
    else if (!strcmp(argv[i], "--preload")) options.preload = value, i++;
    else if (!strcmp(argv[i], "--only")) options.only = value, i++;
    else if (!strcmp(argv[i], "--trace")) options.trace = value, i++;
    else if (!strcmp(argv[i], "--hosts")) options.hosts = value, read_hosts(value), i++;
    else if (argv[i][0] != '-') options.seed = strtoull(argv[i], NULL, 0), seeded = true;
    else fail("%s is not known; there are --operations, --only, --preload, --hosts", argv[i]);
  }
  if (!seeded) options.seed = mix((uint64_t)time(NULL) ^ (uint64_t)getpid() << 32);
  return options;
}

/* The sequence itself, in a process of its own. */
static void run_here(const Options *options) {
  /* A group of its own: whoever fails ends it as a whole, and nobody waits for somebody who is gone. */
  check_call(setpgid(0, 0), "setpgid");
  failing_ends_all = true;
  Run run = {options->seed, options->operations, fopen(options->trace, "w")};
  if (!run.trace) fail("%s cannot be written", options->trace);
  /* By lines: who fails ends the run without another word. */
  setvbuf(run.trace, NULL, _IOLBF, 0);
  if (!options->only || !strcmp(options->only, "lockstep")) run_lockstep(&run);
  if (!options->only || !strcmp(options->only, "free")) run_free(&run);
  if (fclose(run.trace) != 0) fail("%s cannot be written", options->trace);
}

/* The sequence in this program started again, with `library` preloaded or without. */
static void run_again(const Options *options, const char *library, const char *trace) {
  char seed[32], operations[32];
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)options->seed);
  snprintf(operations, sizeof operations, "%llu", (unsigned long long)options->operations);
  const char *words[12] = {"oracle", "--operations", operations, "--trace", trace};
  int count = 5;
  if (options->only) words[count++] = "--only", words[count++] = options->only;
  if (options->hosts) words[count++] = "--hosts", words[count++] = options->hosts;
  words[count] = seed;
  fflush(NULL);
  pid_t child = fork();
  check_call(child, "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (library) setenv("LD_PRELOAD", library, 1);
    execv("/proc/self/exe", (char **)words);
    fail("exec: %s", strerror(errno));
  }
  int status;
  check_call(waitpid(child, &status, 0), "waitpid");
  if (status != 0)
    fail("seed %s failed %s (status %#x); what was done stands in %s", seed, library ? "with the library" : "on kernel TCP",
         (unsigned)status, trace);
}

static void compare(const char *kernel, const char *preloaded, uint64_t seed) {
  FILE *left = fopen(kernel, "r"), *right = fopen(preloaded, "r");
  if (!left || !right) fail("a trace is missing");
  char expected[512], got[512];
  for (unsigned long long line = 1;; line++) {
    char *l = fgets(expected, sizeof expected, left), *r = fgets(got, sizeof got, right);
    if (!l && !r) break;
    if (!l || !r || strcmp(expected, got))
      fail("seed %llu: line %llu of the trace differs:\n  kernel:       %s  with library: %s", (unsigned long long)seed, line,
           l ? expected : "(end)\n", r ? got : "(end)");
  }
  fclose(left);
  fclose(right);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "player")) play_after_exec(argc, argv);
  Options options = read_options(argc, argv);
  if (options.trace) {
    run_here(&options);
    return 0;
  }
  const char *above = getenv("TMPDIR");
  char folder[200], kernel[256], preloaded[256];
  snprintf(folder, sizeof folder, "%s/oracle-XXXXXX", above ? above : P_tmpdir);
  printf("seed %llu, %llu operations\n", (unsigned long long)options.seed, (unsigned long long)options.operations);
  if (!mkdtemp(folder)) fail("no temporary folder: %s", strerror(errno));
  snprintf(kernel, sizeof kernel, "%s/kernel", folder);
  snprintf(preloaded, sizeof preloaded, "%s/preloaded", folder);
  run_again(&options, NULL, kernel);
  if (options.preload) {
    run_again(&options, options.preload, preloaded);
    compare(kernel, preloaded, options.seed);
  }
  unlink(kernel);
  unlink(preloaded);
  rmdir(folder);
  printf("ok\n");
  return 0;
}
