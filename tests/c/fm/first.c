/* The calls of FM 1.1: a message calls a function. */
#define FM_1_1
#include <fm.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what)                                              \
  do {                                                           \
    if (!(what)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

static unsigned long words, blocks;

static void on_words(void *bytes, int length) {
  int *values = bytes;
  CHECK(length == 16 && values[0] == 1 && values[1] == -2 && values[2] == 3 && values[3] == 1 << 30);
  words++;
}

static void on_block(void *bytes, int length) {
  CHECK(length == 100000);
  for (int at = 0; at < length; at++) CHECK(((char *)bytes)[at] == (char)at);
  blocks++;
}

int main(void) {
  FM_initialize();
  static char block[100000];
  for (int at = 0; at < 100000; at++) block[at] = (char)at;
  for (int to = 0; to < (int)FM_numnodes; to++) {
    FM_send_4(to, on_words, 1, -2, 3, 1 << 30);
    FM_send(to, on_block, block, sizeof block);
  }
  /* No function of the program, no node, no bytes: a line each. */
  FM_send_4(0, (FM_handler_1 *)(void *)block + (1 << 20), 1, 2, 3, 4);
  FM_send((int)FM_numnodes, on_block, block, 4);
  FM_send(0, on_block, NULL, 4);
  while (words < FM_numnodes || blocks < FM_numnodes) FM_extract();
  if (FM_nodeid == 0) printf("ok\n");
  FM_finalize();
  return 0;
}
