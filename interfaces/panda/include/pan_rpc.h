/* Panda 2.0, remote procedure calls: each is handled once. */
#ifndef WEFT_PAN_RPC_H
#define WEFT_PAN_RPC_H

#include "pan_sys.h"
#include "pan_mp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who is to be answered. */
typedef struct pan_upcall *pan_upcall_p;

/* Clears the request, or answers with it. */
typedef void (*pan_rpc_handler_f)(pan_upcall_p upcall, pan_msg_p request);

extern void pan_rpc_init(void);
extern void pan_rpc_end(void);
extern void pan_rpc_register(pan_rpc_handler_f handler);
/* Returns with the answer, which the caller clears. The request stays. */
extern void pan_rpc_trans(int dest, pan_msg_p request, pan_msg_p *reply);
/* In the handler, or later, by any thread. The library clears the answer. */
extern void pan_rpc_reply(pan_upcall_p upcall, pan_msg_p reply);

#ifdef __cplusplus
}
#endif

#endif
