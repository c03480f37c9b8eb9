/* What the parts of the oracle share: the words of the conductor to its players, and the streams.
 *
 * Two sides, 0 (connected) and 1 (accepted), each one or more processes ("players") that hold descriptors of the same
 * sockets. In the lockstep kind one process, the conductor, tells one player at a time what to do, so it knows what kernel
 * TCP must answer. In the free kind both sides run by themselves, and only the bytes and the ends of streams are known. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum {
  SLOTS = 4,              /* players of one side */
  HANDLES = 16,           /* descriptors of one player */
  CONNECTIONS = 3,        /* at a time */
  LARGEST = 16 * 1024,    /* bytes of one call */
  IN_FLIGHT = 48 * 1024,  /* bytes on the way in one direction, below every buffer of the kernel */
  BRIEF = 600,            /* both where a session is brief */
  BRIEF_IN_FLIGHT = 8 * 1024,
  FAR_IN_FLIGHT = 24 * 1024,  /* between hosts a buffer may be smaller */
  SENDS_IN_FLIGHT = 24,   /* and calls: small packets use up receive buffers, too */
  PATIENCE_MS = 5000,     /* until what must come counts as missing */
};

/* Numbers that follow from a seed. */
static inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

typedef struct {
  uint64_t state;
} Random;

static inline uint64_t next(Random *random) { return mix(random->state++); }
static inline uint32_t below(Random *random, uint32_t bound) { return (uint32_t)(next(random) % bound); }
static inline bool one_in(Random *random, uint32_t n) { return below(random, n) == 0; }

/* 1 to `largest`, mostly small. */
static inline uint32_t some_bytes(Random *random, uint32_t largest) {
  uint32_t bits = 1 + below(random, 15);
  uint32_t bytes = 1 + below(random, 1u << bits);
  return bytes < largest ? bytes : largest;
}

/* The byte that stands at a position of a stream. */
static inline uint8_t stream_byte(uint64_t key, uint64_t position) {
  return (uint8_t)(mix(key ^ (position >> 3) * 0xd1342543de82ef95u) >> ((position & 7) * 8));
}

void fill_stream(uint8_t *bytes, uint64_t key, uint64_t position, size_t count);
/* Says where the first wrong byte stands and ends the program. */
void check_stream(const uint8_t *bytes, uint64_t key, uint64_t position, size_t count, const char *what);

/* Ends this process as failed, after one line on standard error; within a run, all processes of the run. */
extern bool failing_ends_all;
extern const char *failing_at; /* added to what is said */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void check_call(long result, const char *what);
double now_ms(void);

/* How a call moves bytes. */
enum send_way { SEND, SEND_DONTWAIT, SENDTO, WRITE, WRITEV, SENDMSG, SENDMMSG, PWRITEV2, SENDFILE, SPLICE_IN, STDIO, SEND_WAYS };
enum receive_way {
  RECV, RECV_DONTWAIT, RECV_WAITALL, RECVFROM, READ, READV, RECVMSG, RECVMMSG, PREADV2, SPLICE_OUT, RECV_TRUNC, RECEIVE_WAYS
};
enum wait_way { POLL, PPOLL, SELECT, PSELECT, EPOLL, WAIT_WAYS };

enum op {
  OP_LISTEN, OP_CONNECT, OP_ACCEPT, OP_SEND, OP_RECEIVE, OP_PEEK, OP_EMPTY, OP_EOF, OP_INTERRUPTED, OP_WAIT, OP_READY,
  OP_PENDING, OP_FLOOD, OP_DRAIN, OP_DUP, OP_CLOSE, OP_FORK, OP_EXIT, OP_REAP, OP_SPAWN, OP_PASS, OP_TAKE, OP_SHUTDOWN, OP_NONBLOCK,
  OP_OPTION, OP_NAMES, OP_EPOLL_SET, OP_EPOLL_WAIT, OP_BROKEN, OP_RESET, OP_LINGER, OP_LOWAT, OPS
};
extern const char *const op_names[OPS];

/* One word of the conductor. What the fields mean depends on `op`. */
typedef struct {
  uint32_t op, way, handle, other, count, expected, flags, pause_us;
  uint64_t key, position;
} Command;

typedef struct {
  int32_t result, error;  /* of the call; `error` is an errno when `result` is -1 */
  uint32_t late;          /* how often something came later than lockstep lets one hope; not an error */
  uint32_t events[HANDLES];
  uint64_t bytes;
} Reply;

/* Flags of OP_CONNECT and OP_ACCEPT, and of OP_FORK. */
enum { FLAG_IPV6 = 1, FLAG_MAPPED = 2, FLAG_NONBLOCK = 4, FLAG_EARLY_EPOLL = 8, FLAG_CLOEXEC = 16 };
enum { FORK_PLAIN, FORK_EXEC };
/* How long an OP_WAIT or OP_RECEIVE is disturbed by a timer's signal. */
enum { CALM, SIGNALS_RESTART };

/* The channels of all players, made before any of them lives; [side][slot][0] is the conductor's end. */
extern int channels[2][SLOTS][2];
extern int passages[2][2];  /* of each side: descriptors go through it */

/* Where the sides live, if not here. */
extern bool has_hosts;
void read_hosts(const char *given);
/* This process is of that side's host from now on. */
void enter_host(int side);
/* Where connections lead; IPv4 or IPv6. */
const char *address_of_listener(int family);

void make_channels(void);
_Noreturn void play(int side, int slot);
/* The command line of a player that was started by exec. */
_Noreturn void play_after_exec(int argc, char **argv);

typedef struct {
  uint64_t seed, operations;
  FILE *trace;
} Run;

void run_lockstep(const Run *run);
void run_free(const Run *run);

#endif
