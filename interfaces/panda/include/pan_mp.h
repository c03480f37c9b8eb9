/* Panda 2.0, message passing: messages to a map of a platform, or to one receive there. */
#ifndef WEFT_PAN_MP_H
#define WEFT_PAN_MP_H

#include "pan_sys.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DIRECT_MAP 0

/* The call returns when it is over; it is ended by a second call; it is over by itself. */
#define MODE_SYNC 0
#define MODE_SYNC2 1
#define MODE_ASYNC 2

extern void pan_mp_init(void);
extern void pan_mp_end(void);

/* Maps are registered in the same order on all platforms. */
extern int pan_mp_register_map(void);
extern void pan_mp_free_map(int map);
/* Hands over what has come for a map and was not received. */
extern void pan_mp_clear_map(int map, void (*clear)(pan_msg_p message));

/* `entry` is a map, or the number of a receive for DIRECT_MAP there. The answer of MODE_SYNC2 is what the send is finished
 * by; of MODE_ASYNC the message is cleared by the library. */
extern int pan_mp_send_message(int cpu, int entry, pan_msg_p message, int mode);
extern void pan_mp_finish_send(int entry);
extern int pan_mp_poll_send(int entry);
/* MODE_SYNC or MODE_SYNC2. A receive for DIRECT_MAP gets what is sent to its number. */
extern int pan_mp_receive_message(int map, pan_msg_p message, int mode);
extern void pan_mp_finish_receive(int entry);
extern int pan_mp_poll_receive(int entry);
/* Has an upcall for all messages of a map, which clears them. */
extern void pan_mp_register_async_receive(int map, void (*handler)(int map, pan_msg_p msg));

#ifdef __cplusplus
}
#endif

#endif
