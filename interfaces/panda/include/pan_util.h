/* Panda 2.0, what programs are glad of: values as pieces of messages, comparison of clocks, explicit times, sleep. */
#ifndef WEFT_PAN_UTIL_H
#define WEFT_PAN_UTIL_H

#include "pan_sys.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned char byte_t, *byte_p;

extern void pan_util_init(void);
extern void pan_util_end(void);

/* A place that is null: the value is popped, and not wanted. */
extern void tm_push_int(pan_msg_p msg, int n);
extern void tm_pop_int(pan_msg_p msg, int *n);
extern void tm_look_int(pan_msg_p msg, int *n);
extern void tm_push_ulong(pan_msg_p msg, unsigned long n);
extern void tm_pop_ulong(pan_msg_p msg, unsigned long *n);
extern void tm_push_double(pan_msg_p msg, double n);
extern void tm_pop_double(pan_msg_p msg, double *n);
extern void tm_look_double(pan_msg_p msg, double *n);
extern void tm_push_pset(pan_msg_p msg, pan_pset_p pset);
extern void tm_pop_pset(pan_msg_p msg, pan_pset_p pset);
extern void tm_look_pset(pan_msg_p msg, pan_pset_p pset);
extern void tm_push_time(pan_msg_p msg, pan_time_p time);
extern void tm_pop_time(pan_msg_p msg, pan_time_p time);
extern void tm_look_time(pan_msg_p msg, pan_time_p time);
extern void tm_push_ptr(pan_msg_p msg, void *ptr);
extern void tm_pop_ptr(pan_msg_p msg, void **ptr);
extern void tm_look_ptr(pan_msg_p msg, void **ptr);
extern void tm_push_tid(pan_msg_p msg, pan_thread_p tid);
extern void tm_pop_tid(pan_msg_p msg, pan_thread_p *tid);
extern void tm_look_tid(pan_msg_p msg, pan_thread_p *tid);

extern int pan_is_bigendian(void);

/* How far this clock is ahead of that of platform 0, with the standard deviation; of how many samples that is. */
extern int pan_clock_sync(int n_syncs, pan_time_p shift, pan_time_p std);
/* Remembered, and without effect. */
extern void pan_clock_set_timeout(pan_time_p timeout, pan_time_p uc_delay);
extern void pan_clock_get_timeout(pan_time_p timeout, pan_time_p uc_delay);
/* What the last comparison has found; 0 if there was none. */
extern int pan_clock_get_shift(pan_time_p shift, pan_time_p d_shift);

extern pan_time_fix_t pan_time_fix_infinity;
extern pan_time_fix_t pan_time_fix_zero;

#define NANO 1000000000

static WEFT_PANDA_MAY_BE_UNUSED int pan_time_fix_cmp(pan_time_fix_p t1, pan_time_fix_p t2)
{
    if (t1->t_sec != t2->t_sec)
        return t1->t_sec > t2->t_sec ? 1 : -1;
    return (t1->t_nsec > t2->t_nsec) - (t1->t_nsec < t2->t_nsec);
}

static WEFT_PANDA_MAY_BE_UNUSED void pan_time_fix_add(pan_time_fix_p res, pan_time_fix_p delta)
{
    long nanoseconds = res->t_nsec + delta->t_nsec;
    res->t_sec += delta->t_sec + (nanoseconds >= NANO);
    res->t_nsec = nanoseconds - (nanoseconds >= NANO ? NANO : 0);
}

static WEFT_PANDA_MAY_BE_UNUSED void pan_time_fix_sub(pan_time_fix_p res, pan_time_fix_p delta)
{
    long nanoseconds = res->t_nsec - delta->t_nsec;
    res->t_sec -= delta->t_sec + (nanoseconds < 0);
    res->t_nsec = nanoseconds + (nanoseconds < 0 ? NANO : 0);
}

extern void pan_time_fix_mul(pan_time_fix_p res, int nr);
extern void pan_time_fix_div(pan_time_fix_p res, int nr);
extern void pan_time_fix_mulf(pan_time_fix_p res, double nr);
extern void pan_time_fix_d2t(pan_time_fix_p t, double d);
extern double pan_time_fix_t2d(pan_time_fix_p t);

/* Upcalls run meanwhile. */
extern void pan_sleep(pan_time_p t);

#ifdef __cplusplus
}
#endif

#endif
