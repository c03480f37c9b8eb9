/* Streams of pieces to all, received in other pieces; floods both ways; what is wrong; `time N`: half a round trip. */
#include <fm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(what)                                              \
  do {                                                           \
    if (!(what)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

enum { PIECES = 3, PART, ECHO, DONE, FLOOD = 5000, LONG = 3000000 };

static unsigned long came[64], done, echoed;
static unsigned echo;

static unsigned char pattern(size_t at, unsigned seed) { return (unsigned char)(at * 7 + at / 251 + seed); }

/* A word that says how many bytes follow, and those, in pieces of another size than they were sent in. */
static int on_pieces(FM_stream *stream, unsigned sender) {
  unsigned length, at = 0;
  static unsigned char bytes[LONG];
  FM_receive(&length, stream, sizeof length);
  CHECK(length <= LONG);
  while (at < length) {
    unsigned piece = length - at < 1000 ? length - at : 1000;
    FM_receive(bytes + at, stream, piece);
    at += piece;
  }
  for (at = 0; at < length; at++) CHECK(bytes[at] == pattern(at, sender));
  CHECK(FM_extract(1000) == 0);
  came[sender]++;
  return FM_CONTINUE;
}

/* Takes its number only, and leaves the rest. */
static int on_part(FM_stream *stream, unsigned sender) {
  unsigned long number;
  FM_receive(&number, stream, sizeof number);
  CHECK(number == came[sender]);
  came[sender]++;
  return number % 2 ? FM_CONTINUE : FM_ABORT;
}

static int on_echo(FM_stream *stream, unsigned sender) {
  char bytes[64];
  unsigned char left;
  FM_receive(&left, stream, 1);
  FM_receive(bytes, stream, 63);
  echoed++;
  if (left) {
    left--;
    FM_stream *back = FM_begin_message(sender, 64, echo);
    FM_send_piece(back, &left, 1);
    FM_send_piece(back, bytes, 63);
    FM_end_message(back);
  }
  return FM_CONTINUE;
}

static int on_done(FM_stream *stream, unsigned sender) {
  (void)stream, (void)sender;
  done++;
  return FM_CONTINUE;
}

static void tell_done(void) {
  for (unsigned long to = 0; to < FM_numnodes; to++) FM_end_message(FM_begin_message(to, 0, DONE));
  while (done < FM_numnodes) FM_extract(~0u);
  /* Others may be done again already. */
  done -= FM_numnodes;
}

static void pieces_to_all(void) {
  static unsigned char bytes[LONG];
  unsigned lengths[] = {0, 1, 43, 44, 45, 1000, 65000, 65470, 65536, LONG};
  for (size_t at = 0; at < LONG; at++) bytes[at] = pattern(at, (unsigned)FM_nodeid);
  for (size_t which = 0; which < sizeof lengths / sizeof *lengths; which++)
    for (unsigned long to = 0; to < FM_numnodes; to++) {
      unsigned length = lengths[which], first = length / 3;
      FM_stream *stream = FM_begin_message(to, length + 100, PIECES);
      CHECK(stream);
      FM_send_piece(stream, &length, sizeof length);
      FM_send_piece(stream, bytes, first);
      FM_send_piece(stream, bytes + first, length - first);
      FM_end_message(stream);
    }
  for (unsigned long from = 0; from < FM_numnodes; from++)
    while (came[from] < sizeof lengths / sizeof *lengths) FM_extract(1);
  memset(came, 0, sizeof came);
  tell_done();
}

/* All send much before anybody extracts. */
static void flood(void) {
  for (unsigned long number = 0; number < FLOOD; number++)
    for (unsigned long to = 0; to < FM_numnodes; to++) {
      FM_stream *stream = FM_begin_message(to, 2 * sizeof number, PART);
      FM_send_piece(stream, &number, sizeof number);
      FM_send_piece(stream, &number, sizeof number);
      FM_end_message(stream);
    }
  /* The limit is soft: a whole message more at most. */
  while (came[FM_nodeid] < FLOOD) CHECK(FM_extract(20) <= 32);
  for (unsigned long from = 0; from < FM_numnodes; from++)
    while (came[from] < FLOOD) FM_extract(~0u);
  memset(came, 0, sizeof came);
  tell_done();
}

static void begin_echo(unsigned char left) {
  char bytes[63] = {0};
  FM_stream *stream = FM_begin_message(1, 64, echo);
  FM_send_piece(stream, &left, 1);
  FM_send_piece(stream, bytes, 63);
  FM_end_message(stream);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static void measure(int turns) {
  double *times = malloc((size_t)turns * sizeof *times);
  for (int turn = 0; turn < turns; turn++) {
    double begin = now_us();
    if (FM_nodeid == 0) begin_echo(199);
    while (echoed < 100) FM_extract(~0u);
    times[turn] = (now_us() - begin) / 200;
    echoed = 0;
    tell_done();
  }
  qsort(times, (size_t)turns, sizeof *times, compare);
  if (FM_nodeid == 0) printf("%.3f us one way, in a tenth of all turns %.3f\n", times[turns / 2], times[turns / 10]);
}

/* Each costs a line and nothing else. */
static void wrong(void) {
  char byte = 0;
  CHECK(!FM_begin_message(FM_numnodes, 1, PART) && !FM_begin_message(0, 1, FM_MAX_HANDLERS));
  CHECK(FM_register_handler(FM_MAX_HANDLERS, on_part) == (unsigned long)FM_ANY_ID);
  FM_stream *stream = FM_begin_message(FM_nodeid, 8, 50);
  FM_send_piece(stream, &byte, 9);
  FM_send_piece(stream, NULL, 1);
  FM_send_piece((FM_stream *)&byte, &byte, 1);
  FM_receive(&byte, stream, 1);
  FM_end_message(stream);
  FM_end_message(stream);
  FM_extract(~0u);
  while (FM_extract(~0u)) continue;
}

int main(int argc, char **argv) {
  FM_initialize();
  FM_register_handler(PIECES, on_pieces);
  FM_register_handler(PART, on_part);
  FM_register_handler(DONE, on_done);
  echo = (unsigned)FM_register_handler(FM_ANY_ID, on_echo);
  CHECK(echo == 0 && FM_handler_table[PART] == on_part);
  tell_done();
  if (argc > 2 && !strcmp(argv[1], "time")) {
    measure(atoi(argv[2]));
  } else if (argc > 1) {
    wrong();
  } else {
    pieces_to_all();
    flood();
    if (FM_numnodes > 1 && FM_nodeid < 2) {
      if (FM_nodeid == 0) begin_echo(99);
      while (echoed < 50) FM_extract(~0u);
    }
    tell_done();
    if (FM_nodeid == 0) printf("ok\n");
  }
  tell_done();
  FM_finalize();
  return 0;
}
