/* Memory is the program's again once AM_SetSeg, AM_FreeEndpoint or AM_FreeBundle has returned, whatever is on its way. */
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

enum { PLACE = 1, LONG = 1 << 20, ROUNDS = 90 };

static char bytes[LONG], memory[LONG];
static int ended;

static void on_place(void *token, void *data, size_t length) {
  (void)token, (void)data;
  CHECK(length == LONG);
  ended++;
}

static void on_returned(int status, op_t opcode, void *token) {
  (void)status, (void)opcode, (void)token;
  ended++;
}

int main(int argc, char **argv) {
  uint64_t key = 0;
  eb_t main_bundle;
  ep_t main_ep;
  OK(AMUDP_SPMDStartup(&argc, &argv, 2, 0, NULL, &key, &main_bundle, &main_ep));
  int me = AMUDP_SPMDMyProc();
  OK(AM_SetHandler(main_ep, 0, on_returned));
  memset(bytes, 1, LONG);
  for (int round = 0; round < ROUNDS; round++) {
    eb_t bundle;
    ep_t ep;
    en_t name, names[2];
    OK(AM_AllocateBundle(AM_SEQ, &bundle));
    OK(AM_AllocateEndpoint(bundle, &ep, &name));
    OK(AM_SetTag(ep, AM_ALL));
    OK(AM_SetHandler(ep, PLACE, on_place));
    OK(AM_SetSeg(ep, memory, LONG));
    OK(AMUDP_SPMDAllGather(&name, names, sizeof name));
    if (me == 1) {
      OK(AM_Map(main_ep, 5, names[0], 7));
      OK(AM_RequestXfer0(main_ep, 5, 0, PLACE, bytes, LONG));
      OK(AM_UnMap(main_ep, 5));
    } else {
      for (int polls = 0; polls < round / 3 * 2; polls++) OK(AM_Poll(main_bundle));
      if (round % 3 == 0) OK(AM_SetSeg(ep, NULL, 0));
      if (round % 3 == 1) OK(AM_FreeEndpoint(ep));
      if (round % 3 == 2) OK(AM_FreeBundle(bundle));
      memset(memory, 0x55, LONG);
    }
    OK(AMUDP_SPMDBarrier());
    OK(AMUDP_SPMDBarrier());
    if (me == 0)
      for (int at = 0; at < LONG; at++) CHECK(memory[at] == 0x55);
    if (me == 1 || round % 3 == 0) OK(AM_FreeBundle(bundle));
  }
  OK(AMUDP_SPMDBarrier());
  if (me == 0) puts("ok");
  // The first one to exit ends all.
  OK(AMUDP_SPMDBarrier());
  AMUDP_SPMDExit(0);
}
