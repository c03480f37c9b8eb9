/* Panda 2.0, the system module: platforms, threads, time, locks, messages, fragments, service points, sets of platforms.
 *
 * The processes are those of a job: `weft run -n N program`. Handlers are upcalls: they run one at a time, by themselves,
 * from pan_start on. What comes for a handler that is not there yet waits for it. */
#ifndef WEFT_PAN_SYS_H
#define WEFT_PAN_SYS_H

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_PANDA_MAY_BE_UNUSED __attribute__((unused))
#else
#define WEFT_PANDA_MAY_BE_UNUSED
#endif

/* All objects are held by pointers; each has a function that makes it and one that clears it. */
typedef struct pan_thread *pan_thread_p;
typedef struct pan_time *pan_time_p;
typedef struct pan_mutex *pan_mutex_p;
typedef struct pan_cond *pan_cond_p;
typedef struct pan_msg *pan_msg_p;
typedef struct pan_fragment *pan_fragment_p;
typedef struct pan_pset *pan_pset_p;
typedef struct pan_nsap *pan_nsap_p;
typedef struct pan_key *pan_key_p;
typedef void (*pan_thread_func_p)(void *arg);

/* Joins the job, which comes before all else. Arguments stay as they are. */
extern void pan_init(int *argc, char *argv[]);
/* From now on upcalls run. */
extern void pan_start(void);
/* Leaves, when all has left that was sent. */
extern void pan_end(void);
extern int pan_nr_platforms(void);
/* This process's number, from 0 on. */
extern int pan_my_pid(void);
/* Runs upcalls of what has come. They run without it, too; a thread that has nothing else to do runs them sooner. */
extern void pan_poll(void);

/* `detach` is 0 if the thread will be joined. Priorities are remembered, and have no effect. */
extern pan_thread_p pan_thread_create(pan_thread_func_p func, void *arg, long stacksize, int priority, int detach);
extern void pan_thread_clear(pan_thread_p thread);
/* Ends the thread that calls. */
static WEFT_PANDA_MAY_BE_UNUSED void pan_thread_exit(void)
{
    pthread_exit(NULL);
}
extern void pan_thread_join(pan_thread_p thread);
extern void pan_thread_yield(void);
extern pan_thread_p pan_thread_self(void);
extern int pan_thread_getprio(void);
/* The priority before. */
extern int pan_thread_setprio(int priority);
extern int pan_thread_minprio(void);
extern int pan_thread_maxprio(void);

/* The time since 1970, or between two moments. */
extern pan_time_p pan_time_create(void);
extern void pan_time_clear(pan_time_p time);
extern void pan_time_copy(pan_time_p to, pan_time_p from);
extern void pan_time_get(pan_time_p now);
extern void pan_time_set(pan_time_p time, long seconds, unsigned long nanoseconds);
/* -1, 0 or 1. */
extern int pan_time_cmp(pan_time_p t1, pan_time_p t2);
extern void pan_time_add(pan_time_p res, pan_time_p delta);
extern void pan_time_sub(pan_time_p res, pan_time_p delta);
extern void pan_time_mul(pan_time_p res, int nr);
extern void pan_time_div(pan_time_p res, int nr);
extern void pan_time_mulf(pan_time_p res, double nr);
/* In seconds. */
extern void pan_time_d2t(pan_time_p t, double d);
extern double pan_time_t2d(pan_time_p t);

struct pan_time_fix {
    long int t_sec;
    long int t_nsec;
};
typedef struct pan_time_fix pan_time_fix_t, *pan_time_fix_p;
extern void pan_time_t2fix(pan_time_p t, pan_time_fix_p f);
extern void pan_time_fix2t(pan_time_fix_p f, pan_time_p t);
/* The difference in nanoseconds, if it fits, which is answered. */
extern int pan_time_sub_fix_small(pan_time_p t1, pan_time_p t2, long int *d);

extern pan_time_p pan_time_infinity;
extern pan_time_p pan_time_zero;

extern int pan_time_size(void);
extern void pan_time_marshall(pan_time_p p, void *buffer);
extern void pan_time_unmarshall(pan_time_p p, void *buffer);

/* A thread that holds a lock runs no upcalls. */
extern pan_mutex_p pan_mutex_create(void);
extern void pan_mutex_clear(pan_mutex_p mutex);
extern void pan_mutex_lock(pan_mutex_p mutex);
extern void pan_mutex_unlock(pan_mutex_p mutex);
/* 1 if it is taken. */
extern int pan_mutex_trylock(pan_mutex_p mutex);

/* A condition belongs to a lock, which is left while a thread waits. */
extern pan_cond_p pan_cond_create(pan_mutex_p mutex);
extern void pan_cond_clear(pan_cond_p cond);
extern void pan_cond_wait(pan_cond_p cond);
/* 1 if it was signalled, 0 if that time has come. */
extern int pan_cond_timedwait(pan_cond_p cond, pan_time_p abstime);
extern void pan_cond_signal(pan_cond_p cond);
extern void pan_cond_broadcast(pan_cond_p cond);

#if !defined(alignof) && !defined(__cplusplus) && !(defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define alignof(type) (sizeof(struct { char i; type c; }) - sizeof(type))
#endif

typedef void (*pan_msg_release_f)(pan_msg_p msg, void *arg);

/* A message is a stack of pieces, which are popped in the reverse order in which they were pushed, with the same lengths,
 * also where they have arrived. A piece stays where it is until others are pushed in its place, or all are thrown away. */
extern pan_msg_p pan_msg_create(void);
/* Calls the release function that was pushed last instead, if there is one. */
extern void pan_msg_clear(pan_msg_p msg);
extern void pan_msg_empty(pan_msg_p msg);
/* An alignment is 8 at most. */
extern void *pan_msg_push(pan_msg_p msg, int length, int align);
extern void *pan_msg_pop(pan_msg_p msg, int length, int align);
extern void *pan_msg_look(pan_msg_p msg, int length, int align);
/* Puts the pieces of the first in the place of those of the second. */
extern void pan_msg_copy(pan_msg_p msg, pan_msg_p copy);
extern void pan_msg_release_push(pan_msg_p msg, pan_msg_release_f func, void *arg);
extern void pan_msg_release_pop(pan_msg_p msg);
/* The first fragment of a message, and the next ones until NULL. Each is the message's. */
extern pan_fragment_p pan_msg_fragment(pan_msg_p msg, pan_nsap_p nsap);
extern pan_fragment_p pan_msg_next(pan_msg_p msg);
/* Puts a fragment behind those before it. */
extern void pan_msg_assemble(pan_msg_p msg, pan_fragment_p frag, int preserve);

#define PAN_FRAGMENT_FIRST 0x01
#define PAN_FRAGMENT_LAST 0x02

extern pan_fragment_p pan_fragment_create(void);
extern void pan_fragment_clear(pan_fragment_p frag);
extern void pan_fragment_nsap(pan_fragment_p frag, pan_nsap_p nsap);
/* 1: the contents of the first are preserved. */
extern int pan_fragment_copy(pan_fragment_p frag, pan_fragment_p copy, int preserve);
extern void *pan_fragment_header(pan_fragment_p frag);
extern int pan_fragment_flags(pan_fragment_p frag);
extern int pan_fragment_length(pan_fragment_p frag);

#define MAX_HEADER_SIZE 32
#define MAX_SMALL_SIZE 16
#define PAN_NSAP_UNICAST 0x01
#define PAN_NSAP_MULTICAST 0x02

/* Service points are made in the same order on all platforms. */
extern pan_nsap_p pan_nsap_create(void);
extern void pan_nsap_clear(pan_nsap_p nsap);
/* A fragment is the upcall's until it returns. */
extern void pan_nsap_fragment(pan_nsap_p nsap, void rec_frag(pan_fragment_p frag), int header_size, int flags);
extern void pan_nsap_small(pan_nsap_p nsap, void rec_small(void *data), int len, int flags);

extern pan_pset_p pan_pset_create(void);
extern void pan_pset_clear(pan_pset_p pset);
extern int pan_pset_isempty(pan_pset_p pset);
extern void pan_pset_add(pan_pset_p pset, int pid);
extern void pan_pset_del(pan_pset_p pset, int pid);
extern void pan_pset_fill(pan_pset_p pset);
/* The first member from that number on, or -1. */
extern int pan_pset_find(pan_pset_p pset, int pid_offset);
extern void pan_pset_empty(pan_pset_p pset);
extern void pan_pset_copy(pan_pset_p pset, pan_pset_p copy);
extern int pan_pset_ismember(pan_pset_p pset, int pid);
extern int pan_pset_size(void);
extern void pan_pset_marshall(pan_pset_p pset, void *buffer);
extern void pan_pset_unmarshall(pan_pset_p pset, void *buffer);
extern int pan_pset_nr_members(pan_pset_p pset);

/* Nothing is lost. A member of the set that is this platform gets it as well. */
extern void pan_comm_unicast_fragment(int dest, pan_fragment_p frag);
extern void pan_comm_multicast_fragment(pan_pset_p pset, pan_fragment_p frag);
extern void pan_comm_unicast_small(int dest, pan_nsap_p nsap, void *data);
extern void pan_comm_multicast_small(pan_pset_p pset, pan_nsap_p nsap, void *data);

extern void *pan_malloc(size_t size);
extern void *pan_calloc(size_t nelem, size_t elsize);
extern void *pan_realloc(void *ptr, size_t size);
extern void pan_free(void *ptr);

/* A place of each thread's own. */
extern pan_key_p pan_key_create(void);
extern void pan_key_clear(pan_key_p key);
extern void pan_key_setspecific(pan_key_p key, void *ptr);
extern void *pan_key_getspecific(pan_key_p key);

extern void weft_panda_panic(const char *text);
/* Ignores a name that Panda has not, with a line. 1 if the value is a double. */
extern int weft_panda_parameter(const char *name, void *place, int asked);

/* Says why, and ends the job. */
static WEFT_PANDA_MAY_BE_UNUSED void pan_panic(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    weft_panda_panic(text);
}

/* Values that are set are numbers; those of times are real. */
#define WEFT_PANDA_SET(first) \
    va_list list; \
    const char *name; \
    (void)first; \
    va_start(list, first); \
    while ((name = va_arg(list, const char *)) != NULL) { \
        if (weft_panda_parameter(name, NULL, 0)) \
            (void)va_arg(list, double); \
        else \
            (void)va_arg(list, void *); \
    } \
    va_end(list)

#define WEFT_PANDA_ASK(first) \
    va_list list; \
    const char *name; \
    (void)first; \
    va_start(list, first); \
    while ((name = va_arg(list, const char *)) != NULL) \
        weft_panda_parameter(name, va_arg(list, void *), 1); \
    va_end(list)

/* Names and values in turn, and NULL. None has an effect; a statistic is an empty text, which the program frees. */
static WEFT_PANDA_MAY_BE_UNUSED void pan_sys_va_set_params(void *dummy, ...)
{
    WEFT_PANDA_SET(dummy);
}

static WEFT_PANDA_MAY_BE_UNUSED void pan_sys_va_get_params(void *dummy, ...)
{
    WEFT_PANDA_ASK(dummy);
}

#ifdef __cplusplus
}
#endif

#endif
