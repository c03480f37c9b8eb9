/* Panda 2.0, one group of all platforms, whose messages come to all in one order. */
#ifndef WEFT_PAN_BG_H
#define WEFT_PAN_BG_H

#include "pan_sys.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The call returns when the message has its place in the order; pan_bg_finish_send does; nothing waits for that, and the
 * message is cleared by the library. */
#define BG_MODE_SYNC 0
#define BG_MODE_SYNC2 1
#define BG_MODE_ASYNC 2

/* All platforms call these. */
extern void pan_bg_init(void);
extern void pan_bg_end(void);

extern int pan_bg_send_message(pan_msg_p message, int mode);
extern void pan_bg_finish_send(int entry);
/* Upcalls run one after the other, and clear the message. */
extern void pan_bg_register(void (*func)(pan_msg_p message));

#ifdef __cplusplus
}
#endif

#endif
