/* Illinois Fast Messages: streams of pieces to a handler of the receiver (2.x), and the calls of FM 1.1.
 *
 * The processes are those of a job: `weft run -n N program`. Messages arrive whole and in the order in which each sender
 * began them; a handler runs in FM_extract only, when all of its message has come. */
#ifndef WEFT_FM_H
#define WEFT_FM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FM_CONTINUE 1
#define FM_ABORT 0
#define FM_ANY_ID -1
#define FM_MAX_HANDLERS 64

#ifndef WEFT_FM_NO_ULONG
typedef unsigned long ULONG;
#endif

/* A message while it is sent or received. */
typedef void *FM_stream;
/* Receives the pieces of a message, as many and as long as it likes. What it leaves is thrown away; after FM_ABORT, too. */
typedef int FM_handler(FM_stream *, unsigned sender);

/* This process's number, and how many there are. */
extern unsigned long FM_nodeid;
extern unsigned long FM_numnodes;
/* By number; set through FM_register_handler. */
extern FM_handler **FM_handler_table;

extern void FM_initialize(void);
extern void FM_finalize(void);
/* With FM_ANY_ID the answer is the next free number. */
extern unsigned long FM_register_handler(unsigned long id, FM_handler *handler);

/* `length`: how many bytes the pieces have at most. Handlers may send, and nothing blocks there. */
extern FM_stream *FM_begin_message(unsigned long node, unsigned long length, unsigned long handler);
extern void FM_send_piece(FM_stream *stream, void *bytes, unsigned long length);
extern void FM_end_message(FM_stream *stream);

/* In a handler: the next bytes of its message. */
extern void FM_receive(void *bytes, FM_stream *stream, unsigned int length);
/* Runs handlers until so many bytes were handled, or nothing has come; how many bytes that were. */
#ifndef FM_1_1
extern int FM_extract(unsigned int most);
#endif

/* Taken, and without effect. */
extern void FM_set_parameter(int parameter, int value);
extern int FM_debug_level(int level);

/* FM 1.1, for programs that define FM_1_1 before this is included: the handler is given by its function, which stands at the
 * same place in the program of all processes. */
typedef void FM_handler_1(void *bytes, int length);
extern void FM_send_4(int node, FM_handler_1 *handler, int a, int b, int c, int d);
extern void FM_send(int node, FM_handler_1 *handler, void *bytes, int length);
/* Runs the handlers of all that has come; how many messages that were. */
extern int FM_extract_1(void);
#ifdef FM_1_1
#define FM_extract FM_extract_1
#endif

#ifdef __cplusplus
}
#endif

#endif
