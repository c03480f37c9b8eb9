/* P4 1.4b for C over Weft. Programs are to be compiled with this header: sends are macros, and programs keep the
   structures of monitors in their own memory. */
#ifndef _P4_H_
#define _P4_H_

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>

#ifndef P4VOID
#define P4VOID void
#endif
#ifndef P4BOOL
#define P4BOOL int
#endif
#ifndef VOID
#define VOID void
#endif
#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif
#define P4_TRUE 1
#define P4_FALSE 0

/* What a message consists of. */
#define P4NOX 0
#define P4INT 1
#define P4LNG 2
#define P4FLT 3
#define P4DBL 4

#define P4_MAX_MSGLEN (1 << 28)
#define P4_MAXPROCS 4096

#define HOSTNAME_LEN 64
#define P4_MAX_PROCGROUP_ENTRIES 1024

struct p4_procgroup_entry {
    int numslaves_in_group;
    int rm_rank;
    char host_name[HOSTNAME_LEN];
    char slave_full_pathname[256];
    char username[10];
};

struct p4_procgroup {
    struct p4_procgroup_entry entries[P4_MAX_PROCGROUP_ENTRIES];
    int num_entries;
};

/* A lock and what is made of it: in memory of p4_shmalloc. */
struct p4_lock {
    unsigned word;
    unsigned spare;
};
typedef struct p4_lock p4_lock_t;

struct p4_mon_queue {
    int count;
    p4_lock_t delay_lock;
};

struct p4_monitor {
    p4_lock_t mon_lock;
    struct p4_mon_queue *qs;
};
typedef struct p4_monitor p4_monitor_t;

struct p4_getsub_monitor {
    struct p4_monitor m;
    int sub;
};
typedef struct p4_getsub_monitor p4_getsub_monitor_t;

struct p4_barrier_monitor {
    struct p4_monitor m;
};
typedef struct p4_barrier_monitor p4_barrier_monitor_t;

struct p4_askfor_monitor {
    struct p4_monitor m;
    int pgdone;
    int pbdone;
};
typedef struct p4_askfor_monitor p4_askfor_monitor_t;

typedef unsigned long usc_time_t;
typedef unsigned long p4_usc_time_t;

#ifdef __cplusplus
extern "C" {
#endif

/* From p4_initenv, which takes its own arguments away, to p4_wait_for_end. */
int p4_initenv(int *argc, char **argv);
int p4_create_procgroup(void);
struct p4_procgroup *p4_alloc_procgroup(void);
int p4_startup(struct p4_procgroup *pg);
void p4_post_init(void);
int p4_create(int (*fxn)(void));
int p4_wait_for_end(void);

int p4_get_my_id(void);
int p4_get_my_id_from_proc(void);
int p4_num_total_ids(void);
int p4_num_total_slaves(void);
int p4_num_cluster_ids(void);
int p4_get_my_cluster_id(void);
P4BOOL p4_am_i_cluster_master(void);
void p4_get_cluster_ids(int *start, int *end);
void p4_get_cluster_masters(int *numids, int *ids);
int p4_proc_info(int id, char **hostname, char **exename);

/* Messages. */
int send_message(int type, int from, int to, char *msg, int len, int data_type, P4BOOL ack_req, P4BOOL p4_buff_ind);
int p4_recv(int *type, int *from, char **msg, int *len);
P4BOOL p4_messages_available(int *type, int *from);
P4BOOL p4_any_messages_available(void);
int p4_waitformsg(void);
char *p4_msg_alloc(int len);
void p4_msg_free(char *msg);
void p4_set_avail_buff(int bufidx, int size);
void p4_print_avail_buffs(void);

#define p4_send_any_(type, to, msg, len, data_type, ack, buff)                                                         \
    send_message(type, p4_get_my_id(), to, (char *)(msg), len, data_type, ack, buff)
#define p4_send(type, to, msg, len) p4_send_any_(type, to, msg, len, P4NOX, P4_FALSE, P4_FALSE)
#define p4_sendr(type, to, msg, len) p4_send_any_(type, to, msg, len, P4NOX, P4_TRUE, P4_FALSE)
#define p4_sendx(type, to, msg, len, data_type) p4_send_any_(type, to, msg, len, data_type, P4_FALSE, P4_FALSE)
#define p4_sendrx(type, to, msg, len, data_type) p4_send_any_(type, to, msg, len, data_type, P4_TRUE, P4_FALSE)
#define p4_sendb(type, to, msg, len) p4_send_any_(type, to, msg, len, P4NOX, P4_FALSE, P4_TRUE)
#define p4_sendbr(type, to, msg, len) p4_send_any_(type, to, msg, len, P4NOX, P4_TRUE, P4_TRUE)
#define p4_sendbx(type, to, msg, len, data_type) p4_send_any_(type, to, msg, len, data_type, P4_FALSE, P4_TRUE)
#define p4_sendbrx(type, to, msg, len, data_type) p4_send_any_(type, to, msg, len, data_type, P4_TRUE, P4_TRUE)

/* What all processes do together; a broadcast is received as a message is. */
#define p4_broadcast(type, msg, len) p4_broadcastx(type, msg, len, P4NOX)
int p4_broadcastx(int type, void *msg, int len, int data_type);
int p4_global_op(int type, void *x, int nelem, int size, void (*op)(char *, char *, int), int data_type);
void p4_global_barrier(int type);

void p4_int_sum_op(char *x, char *y, int nelem);
void p4_int_mult_op(char *x, char *y, int nelem);
void p4_int_max_op(char *x, char *y, int nelem);
void p4_int_min_op(char *x, char *y, int nelem);
void p4_int_absmax_op(char *x, char *y, int nelem);
void p4_int_absmin_op(char *x, char *y, int nelem);
void p4_flt_sum_op(char *x, char *y, int nelem);
void p4_flt_mult_op(char *x, char *y, int nelem);
void p4_flt_max_op(char *x, char *y, int nelem);
void p4_flt_min_op(char *x, char *y, int nelem);
void p4_flt_absmax_op(char *x, char *y, int nelem);
void p4_flt_absmin_op(char *x, char *y, int nelem);
void p4_dbl_sum_op(char *x, char *y, int nelem);
void p4_dbl_mult_op(char *x, char *y, int nelem);
void p4_dbl_max_op(char *x, char *y, int nelem);
void p4_dbl_min_op(char *x, char *y, int nelem);
void p4_dbl_absmax_op(char *x, char *y, int nelem);
void p4_dbl_absmin_op(char *x, char *y, int nelem);

/* Memory that the processes of a cluster share, and monitors in it. */
char *p4_shmalloc(int bytes);
void p4_shfree(void *part);
void *p4_malloc(int bytes);
void p4_free(void *memory);
void p4_cluster_shmem_sync(void **cluster_shmem);

void p4_lock_init(p4_lock_t *lock);
void p4_lock(p4_lock_t *lock);
void p4_unlock(p4_lock_t *lock);

int p4_moninit(p4_monitor_t *m, int queues);
void p4_menter(p4_monitor_t *m);
void p4_mexit(p4_monitor_t *m);
void p4_mdelay(p4_monitor_t *m, int queue);
void p4_mcontinue(p4_monitor_t *m, int queue);

int p4_barrier_init(p4_barrier_monitor_t *b);
void p4_barrier(p4_barrier_monitor_t *b, int nprocs);

int p4_getsub_init(p4_getsub_monitor_t *gs);
void p4_getsubs(p4_getsub_monitor_t *gs, int *s, int max, int nprocs, int stride);
#define p4_getsub(gs, s, max, nprocs) p4_getsubs(gs, s, max, nprocs, 1)

int p4_askfor_init(p4_askfor_monitor_t *af);
int p4_askfor(p4_askfor_monitor_t *af, int nprocs, int (*getprob_fxn)(void *), void *problem, void (*reset_fxn)(void));
void p4_update(p4_askfor_monitor_t *af, int (*putprob_fxn)(void *), void *problem);
void p4_probend(p4_askfor_monitor_t *af, int code);
void p4_progend(p4_askfor_monitor_t *af);

/* Clocks: milliseconds, seconds, microseconds. */
int p4_clock(void);
double p4_usclock(void);
void init_usclock(void);
void usc_init(void);
usc_time_t usc_clock(void);
#define p4_ustimer() usc_clock()
#define p4_usrollover() (~(usc_time_t)0)

int p4_get_dbg_level(void);
void p4_set_dbg_level(int level);
void p4_error(const char *text, int value);
int p4_soft_errors(int on);
void p4_set_hard_errors(int on);
char *p4_version(void);
char *p4_machine_type(void);

/* printf with the process before it; with a level, only up to that of -p4dbg. */
void p4_vdprintf(const char *format, va_list arguments);

#if defined(__GNUC__)
#define P4_MAY_BE_UNUSED __attribute__((unused))
#else
#define P4_MAY_BE_UNUSED
#endif

static P4_MAY_BE_UNUSED void p4_dprintf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    p4_vdprintf(format, arguments);
    va_end(arguments);
}

static P4_MAY_BE_UNUSED void p4_dprintfl(int level, const char *format, ...)
{
    va_list arguments;
    if (level > p4_get_dbg_level())
        return;
    va_start(arguments, format);
    p4_vdprintf(format, arguments);
    va_end(arguments);
}

#ifdef __cplusplus
}
#endif

/* The log of events of the package ALOG: accepted, and nothing is written. */
#define ALOG_TRUNCATE 0
#define ALOG_WRAP 1
#define ALOG_MASTER(id, flag)
#define ALOG_SETUP(id, flag)
#define ALOG_DEFINE(event, name, format)
#define ALOG_LOG(id, event, data, text)
#define ALOG_SETDIR(directory)
#define ALOG_OUTPUT
#define ALOG_ENABLE
#define ALOG_DISABLE

#endif
