/* Panda 2.0, tracing: there is none, as where TRACING is not defined in the original. */
#ifndef WEFT_PAN_TRACE_H
#define WEFT_PAN_TRACE_H

#include <stdlib.h>

typedef int trc_event_t, *trc_event_p;

#define trc_start(filename, max_buf_size)
#define trc_end()
#define trc_new_thread(buf_size, name)
#define trc_set_level(level) 0
#define trc_new_event(level, u_size, name, fmt) 0
#define trc_event(e, user_info)
#define trc_flush()

#endif
