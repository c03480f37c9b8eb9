/* Two processes exchange requests and replies of all kinds; `time N` says what a short one and its reply take. */
#include <amudp_spmd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(what)                                                        \
  do {                                                                     \
    if (!(what)) {                                                         \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);           \
      exit(1);                                                             \
    }                                                                      \
  } while (0)
#define OK(call) CHECK((call) == AM_OK)

enum { SHORT = 1, SHORT_REPLY, MANY, MANY_REPLY, MEDIUM, MEDIUM_REPLY, LONG, LONG_REPLY, DONE };
enum { BYTES = 60000, SEGMENT = 3 << 20 };

static int me, other, answered, is_done;
static unsigned char bytes[AMUDP_MAX_LONG], *segment;

static unsigned char pattern(size_t at, int seed) { return (unsigned char)(at * 7 + at / 251 + (size_t)seed); }

static void fill(int seed) {
  for (size_t at = 0; at < sizeof bytes; at++) bytes[at] = pattern(at, seed);
}

static int is_filled(const unsigned char *with, size_t length, int seed) {
  for (size_t at = 0; at < length; at++)
    if (with[at] != pattern(at, seed)) return 0;
  return 1;
}

static void on_short(void *token, int a) { OK(AM_Reply1(token, SHORT_REPLY, a + 1)); }

static void on_short_reply(void *token, int a) {
  CHECK(AM_Reply0(token, SHORT_REPLY) == AM_ERR_RESOURCE);
  answered = a;
}

static void on_many(void *token, int a0, int a1, int a2, int a3, int a4, int a5, int a6, int a7, int a8, int a9, int a10,
                    int a11, int a12, int a13, int a14, int a15) {
  CHECK(a0 == 0 && a1 == -1 && a2 == 2 && a3 == 3 && a4 == 4 && a5 == 5 && a6 == 6 && a7 == 7 && a8 == 8);
  CHECK(a9 == 9 && a10 == 10 && a11 == 11 && a12 == 12 && a13 == 13 && a14 == 14 && a15 == INT32_MIN);
  en_t name;
  int index = -1, is_request = 0;
  handler_t handler = 0;
  amudp_category_t category = amudp_Long;
  OK(AM_GetSourceEndpoint(token, &name));
  OK(AMUDP_GetSourceId(token, &index));
  OK(AMUDP_GetTokenInfo(token, &handler, &category, &is_request));
  CHECK(index == other && handler == MANY && category == amudp_Short && is_request);
  OK(AM_Reply2(token, MANY_REPLY, 1.9, 'x'));
  CHECK(AM_Reply0(token, MANY_REPLY) == AM_ERR_RESOURCE);
}

static void on_many_reply(void *token, int a, int b) {
  (void)token;
  CHECK(a == 1 && b == 'x');
  answered = 1;
}

static void on_medium(void *token, void *data, size_t length, int seed) {
  CHECK((uintptr_t)data % 8 == 0 && is_filled(data, length, seed));
  if (length != 0) ((unsigned char *)data)[0]++;
  OK(AM_ReplyI1(token, MEDIUM_REPLY, data, length, seed));
  memset(data, 0, length);
}

static void on_medium_reply(void *token, void *data, size_t length, int seed) {
  (void)token;
  CHECK(length == 0 || ((unsigned char *)data)[0] == (unsigned char)(pattern(0, seed) + 1));
  CHECK(length < 2 || ((unsigned char *)data)[1] == pattern(1, seed));
  answered = (int)length + 1;
}

static void on_long(void *token, void *data, size_t length, int seed, int at) {
  CHECK((unsigned char *)data == segment + at && is_filled(data, length, seed));
  OK(AM_ReplyXfer1(token, (uintptr_t)at / 2, LONG_REPLY, data, length, at));
}

static void on_long_reply(void *token, void *data, size_t length, int at) {
  (void)token;
  CHECK((unsigned char *)data == segment + at / 2);
  answered = (int)length + 1;
}

static void on_done(void *token) {
  (void)token;
  is_done = 1;
}

static void await(eb_t bundle, int what) {
  while (answered != what) {
    OK(AM_SetEventMask(bundle, AM_NOTEMPTY));
    OK(AM_WaitSema(bundle));
    OK(AM_Poll(bundle));
  }
  answered = 0;
}

/* What a request and its reply bring, in all sizes. */
static void exchange(eb_t bundle, ep_t ep) {
  OK(AM_Request1(ep, other, SHORT, 41));
  await(bundle, 42);
  OK(AM_Request16(ep, other, MANY, 0, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, INT32_MIN));
  await(bundle, 1);
  size_t sizes[] = {0, 1, 7, 8, 24, 100, 4096, BYTES, AM_MaxMedium()};
  for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
    fill((int)at);
    OK(AM_RequestI1(ep, other, MEDIUM, bytes, sizes[at], at));
    memset(bytes, 0, sizes[at]);
    await(bundle, (int)sizes[at] + 1);
  }
  size_t longs[] = {0, 1, 100, BYTES, 65001, 100000, AM_MaxLong()};
  for (size_t at = 0; at < 2 * sizeof longs / sizeof *longs; at++) {
    size_t length = longs[at / 2], place = 1 << 20;
    fill((int)at);
    if (at % 2) {
      OK(AM_RequestXferAsync2(ep, other, place, LONG, bytes, length, at, place));
      await(bundle, (int)length + 1);
    } else {
      OK(AM_RequestXfer2(ep, other, place, LONG, bytes, length, at, place));
      memset(bytes, 0, length);
      await(bundle, (int)length + 1);
    }
    CHECK(is_filled(segment + place / 2, length, (int)at));
  }
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

static void measure(eb_t bundle, ep_t ep, int count) {
  enum { TURNS = 1000 };
  static double times[TURNS];
  for (int turn = 0; turn < TURNS; turn++) {
    double begin = now_us();
    for (int at = 0; at < count; at++) {
      AM_Request1(ep, other, SHORT, at);
      while (answered != at + 1) AM_Poll(bundle);
      answered = 0;
    }
    times[turn] = (now_us() - begin) / count;
  }
  qsort(times, TURNS, sizeof *times, compare);
  printf("%.3f us a request and its reply, in a tenth of all turns %.3f\n", times[TURNS / 2], times[TURNS / 10]);
}

int main(int argc, char **argv) {
  eb_t bundle;
  ep_t ep;
  uint64_t job = 0;
  OK(AMUDP_SPMDStartup(&argc, &argv, 0, 0, NULL, &job, &bundle, &ep));
  me = AMUDP_SPMDMyProc();
  CHECK(AMUDP_SPMDNumProcs() == 2 && job != 0);
  other = 1 - me;
  segment = calloc(SEGMENT, 1);
  OK(AM_SetSeg(ep, segment, SEGMENT));
  OK(AM_SetHandler(ep, SHORT, on_short));
  OK(AM_SetHandler(ep, SHORT_REPLY, on_short_reply));
  OK(AM_SetHandler(ep, MANY, on_many));
  OK(AM_SetHandler(ep, MANY_REPLY, on_many_reply));
  OK(AM_SetHandler(ep, MEDIUM, on_medium));
  OK(AM_SetHandler(ep, MEDIUM_REPLY, on_medium_reply));
  OK(AM_SetHandler(ep, LONG, on_long));
  OK(AM_SetHandler(ep, LONG_REPLY, on_long_reply));
  OK(AM_SetHandler(ep, DONE, on_done));
  OK(AMUDP_SPMDBarrier());
  if (me == 0) {
    if (argc > 2 && !strcmp(argv[1], "time"))
      measure(bundle, ep, atoi(argv[2]));
    else
      exchange(bundle, ep);
    OK(AM_Request0(ep, other, DONE));
  } else {
    while (!is_done) OK(AM_Poll(bundle));
    if (argc < 2) exchange(bundle, ep);
  }
  OK(AMUDP_SPMDBarrier());
  if (me == 0 && argc < 2) printf("ok\n");
  OK(AMUDP_SPMDBarrier());
  AMUDP_SPMDExit(0);
  return 1;
}
