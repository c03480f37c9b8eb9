/* Endpoints besides those of the start: bundles that are polled apart, tags, what comes back, and what is refused. */
#include <amudp_spmd.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                              \
  do {                                                           \
    if (!(what)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                   \
    }                                                            \
  } while (0)
#define OK(call) CHECK((call) == AM_OK)

enum { COUNT = 1, COUNT_REPLY, NOBODY, PLACE, FLOOD = 20000 };

static int counted, replied, returned, status_seen, opcode_seen;
static char memory[100];

static void on_count(void *token) {
  counted++;
  OK(AM_Reply0(token, COUNT_REPLY));
}

static void on_reply(void *token) {
  (void)token;
  replied++;
}

static void on_place(void *token, void *data, size_t length) {
  (void)token;
  CHECK((char *)data == memory + 90 && length == 10);
  counted++;
}

static void on_returned(int status, op_t opcode, void *token) {
  CHECK(AM_Reply0(token, COUNT_REPLY) == AM_ERR_RESOURCE);
  status_seen = status;
  opcode_seen = opcode;
  returned++;
}

static void until(eb_t bundle, int *what, int number) {
  while (*what < number) OK(AM_Poll(bundle));
  CHECK(*what == number);
}

static void expect_returned(eb_t bundle, int status, int opcode) {
  int before = returned;
  until(bundle, &returned, before + 1);
  CHECK(status_seen == status && opcode_seen == opcode);
}

static void set_handlers(ep_t ep) {
  OK(AM_SetHandler(ep, COUNT, on_count));
  OK(AM_SetHandler(ep, COUNT_REPLY, on_reply));
  OK(AM_SetHandler(ep, PLACE, on_place));
  OK(AM_SetHandler(ep, 0, on_returned));
}

/* Two endpoints of this process in two bundles. */
static void two_bundles(void) {
  eb_t a, b;
  ep_t one, other;
  en_t name_one, name_other;
  int index = -1, count = 0, mask = -1;
  tag_t tag = 0;
  OK(AM_AllocateBundle(AM_SEQ, &a));
  OK(AM_AllocateBundle(AM_SEQ, &b));
  OK(AM_AllocateEndpoint(a, &one, &name_one));
  OK(AM_AllocateEndpoint(b, &other, &name_other));
  CHECK(AMUDP_enEqual(name_one, name_one) && !AMUDP_enEqual(name_one, name_other));
  set_handlers(one);
  set_handlers(other);
  OK(AM_SetTag(other, 1234));
  OK(AM_SetNumTranslations(one, 300));
  OK(AM_GetNumTranslations(one, &count));
  CHECK(count == 300);
  OK(AM_Map(one, 299, name_other, 1234));
  CHECK(AM_SetNumTranslations(one, 256) == AM_ERR_RESOURCE);
  CHECK(AM_Map(one, 299, name_other, 1234) == AM_ERR_RESOURCE && AM_Map(one, 300, name_other, 1) == AM_ERR_BAD_ARG);
  OK(AM_GetTranslationTag(one, 299, &tag));
  CHECK(tag == 1234);
  OK(AM_Request0(one, 299, COUNT));
  for (int at = 0; at < 100; at++) OK(AM_Poll(a));
  CHECK(counted == 0);
  OK(AM_MoveEndpoint(other, b, a));
  CHECK(AM_MoveEndpoint(other, b, a) == AM_ERR_RESOURCE);
  until(a, &counted, 1);
  until(a, &replied, 1);
  OK(AM_GetEventMask(a, &mask));
  CHECK(mask == AM_NOEVENTS && AM_WaitSema(a) == AM_ERR_BAD_ARG && AM_SetEventMask(a, 7) == AM_ERR_BAD_ARG);

  /* What does not fit comes back. */
  OK(AMUDP_SetTranslationTag(one, 299, 1235));
  OK(AM_Request0(one, 299, COUNT));
  expect_returned(a, EBADTAG, AM_REQUEST_M);
  OK(AM_SetTag(other, AM_ALL));
  OK(AM_Request0(one, 299, NOBODY));
  expect_returned(a, EBADHANDLER, AM_REQUEST_M);
  OK(AM_RequestI0(one, 299, NOBODY, memory, 50));
  expect_returned(a, EBADHANDLER, AM_REQUEST_IM);
  OK(AM_RequestXfer0(one, 299, 0, PLACE, memory, 10));
  expect_returned(a, EBADSEGOFF, AM_REQUEST_XFER_M);
  OK(AM_SetSeg(other, memory, sizeof memory));
  OK(AM_RequestXfer0(one, 299, 91, PLACE, memory, 10));
  expect_returned(a, EBADLENGTH, AM_REQUEST_XFER_M);
  static char much[200000];
  OK(AM_RequestXfer0(one, 299, 0, PLACE, much, sizeof much));
  expect_returned(a, EBADLENGTH, AM_REQUEST_XFER_M);
  OK(AM_RequestXfer0(one, 299, 90, PLACE, much, 10));
  until(a, &counted, 2);
  OK(AM_FreeEndpoint(other));
  OK(AM_Request0(one, 299, COUNT));
  expect_returned(a, EBADENDPOINT, AM_REQUEST_M);

  /* Wrong arguments. */
  CHECK(AM_FreeEndpoint(other) == AM_ERR_BAD_ARG && AM_SetTag(other, 1) == AM_ERR_BAD_ARG);
  CHECK(AM_SetTag((ep_t)memory, 1) == AM_ERR_BAD_ARG && AM_Poll((eb_t)one) == AM_ERR_BAD_ARG);
  CHECK(AM_Poll(NULL) == AM_ERR_BAD_ARG && AM_GetTag(one, NULL) == AM_ERR_BAD_ARG);
  CHECK(AM_Request0(one, 298, COUNT) == AM_ERR_BAD_ARG && AM_Request0(one, ~0u, COUNT) == AM_ERR_BAD_ARG);
  CHECK(AM_RequestI0(one, 299, COUNT, NULL, 1) == AM_ERR_BAD_ARG);
  CHECK(AM_RequestI0(one, 299, COUNT, much, AM_MaxMedium() + 1) == AM_ERR_BAD_ARG);
  CHECK(AM_RequestXfer0(one, 299, 0, COUNT, much, AM_MaxLong() + 1) == AM_ERR_BAD_ARG);
  CHECK(AMUDP_Request(one, 299, COUNT, 17) == AM_ERR_BAD_ARG && AMUDP_Request(one, 299, COUNT, -1) == AM_ERR_BAD_ARG);
  CHECK(AM_Reply0(memory, COUNT) == AM_ERR_BAD_ARG && AM_Reply0(NULL, COUNT) == AM_ERR_BAD_ARG);
  CHECK(AM_AllocateBundle(2, &b) == AM_ERR_BAD_ARG && AM_AllocateBundle(AM_SEQ, NULL) == AM_ERR_BAD_ARG);
  name_one.sin_family = 0;
  CHECK(AM_MapAny(one, &index, name_one, 1) == AM_ERR_BAD_ARG);
  OK(AM_UnMap(one, 299));
  CHECK(AM_UnMap(one, 299) == AM_ERR_RESOURCE);
  OK(AM_FreeBundle(a));
  CHECK(AM_GetTag(one, &tag) == AM_ERR_BAD_ARG);
}

int main(int argc, char **argv) {
  eb_t bundle;
  ep_t ep;
  CHECK(AM_AllocateBundle(AM_SEQ, &bundle) == AM_ERR_NOT_INIT && AM_Poll(NULL) == AM_ERR_NOT_INIT);
  CHECK(AMUDP_SPMDExit(1) == AM_ERR_NOT_INIT);
  OK(AMUDP_SPMDStartup(&argc, &argv, 0, 0, NULL, NULL, &bundle, &ep));
  int me = AMUDP_SPMDMyProc(), processes = AMUDP_SPMDNumProcs();
  set_handlers(ep);
  OK(AMUDP_SPMDBarrier());
  if (argc > 1) {
    if (me == 1) return AMUDP_SPMDExit(7);
    for (;;) AM_Poll(bundle);
  }
  two_bundles();
  counted = replied = 0;
  OK(AMUDP_SPMDBarrier());

  /* All send much to the next one, before anybody looks at what has come. */
  for (int at = 0; at < FLOOD; at++) OK(AM_Request0(ep, (me + 1) % processes, COUNT));
  until(bundle, &replied, FLOOD);
  until(bundle, &counted, FLOOD);
  amudp_stats_t stats, sum = AMUDP_initial_stats;
  OK(AMUDP_GetEndpointStatistics(ep, &stats));
  OK(AMUDP_AggregateStatistics(&sum, &stats));
  CHECK(sum.RequestsSent[amudp_Short] == FLOOD && sum.RepliesReceived[amudp_Short] == FLOOD);
  CHECK(strstr(AMUDP_DumpStatistics(NULL, &sum, 0), "20000 short"));

  int *all = calloc((size_t)processes, sizeof *all);
  OK(AMUDP_SPMDAllGather(&me, all, sizeof me));
  for (int at = 0; at < processes; at++) CHECK(all[at] == at);
  OK(AMUDP_SPMDBarrier());
  if (me == 0) printf("ok\n");
  OK(AMUDP_SPMDBarrier());
  return AMUDP_SPMDExit(0);
}
