/* Panda 2.0, groups: what members send is delivered to all of them, the sender among them, in one order. */
#ifndef WEFT_PAN_GROUP_H
#define WEFT_PAN_GROUP_H

#include "pan_sys.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PAN_GROUP_T pan_group_t, *pan_group_p;

extern void pan_group_init(void);
extern void pan_group_end(void);

/* Joins the group of that name, which the first one makes. Upcalls run one after the other, and clear the message. */
extern pan_group_p pan_group_join(char *group_name, void (*receive)(pan_msg_p msg_in));
/* Leaves, when all that was sent has its place in the order. */
extern void pan_group_leave(pan_group_p g);
extern void pan_group_clear(pan_group_p g);
/* The message is the library's until the sender's own upcall gets it back in its turn: the same one, which that clears, or
 * sends again. It waits where there is no room, but in no upcall. */
extern void pan_group_send(pan_group_p g, pan_msg_p msg);
/* Waits until there are so many members, or more. */
extern void pan_group_await_size(pan_group_p g, int n);

extern void weft_panda_group_parameter(pan_group_p g, const char *name, void *place);

/* Names and values in turn, and NULL. What is set has no effect. Asked for are "PAN_GRP_n_members" and "PAN_GRP_sequencer",
 * the platform that orders; a statistic is an empty text, which the program frees. */
static WEFT_PANDA_MAY_BE_UNUSED void pan_group_va_set_params(void *dummy, ...)
{
    WEFT_PANDA_SET(dummy);
}

static WEFT_PANDA_MAY_BE_UNUSED void pan_group_va_get_params(void *dummy, ...)
{
    WEFT_PANDA_ASK(dummy);
}

static WEFT_PANDA_MAY_BE_UNUSED void pan_group_va_set_g_params(pan_group_p g, ...)
{
    WEFT_PANDA_SET(g);
}

static WEFT_PANDA_MAY_BE_UNUSED void pan_group_va_get_g_params(pan_group_p g, ...)
{
    va_list list;
    const char *name;
    va_start(list, g);
    while ((name = va_arg(list, const char *)) != NULL)
        weft_panda_group_parameter(g, name, va_arg(list, void *));
    va_end(list);
}

#ifdef __cplusplus
}
#endif

#endif
