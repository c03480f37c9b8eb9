/* PVM 3.4 over Weft, for C and C++: cc prog.c -lpvm3
 *
 * Calls answer a number of at least 0, or an error below it (Pvm...). What
 * each does is told by the manual pages of PVM 3.4; what is different here, by
 * the guide (docs/guide/pvm.md). */

#ifndef _PVM3_H_
#define _PVM3_H_

#include <sys/time.h>

#define PVM_VER "3.4.6"
#define PVM_MAJOR_VERSION 3
#define PVM_MINOR_VERSION 4
#define PVM_PATCH_VERSION 6

#ifdef __cplusplus
extern "C" {
#endif

/* Answers of all calls. */
#define PvmOk 0
#define PvmBadParam (-2)
#define PvmMismatch (-3)
#define PvmOverflow (-4)
#define PvmNoData (-5)
#define PvmNoHost (-6)
#define PvmNoFile (-7)
#define PvmDenied (-8)
#define PvmNoMem (-10)
#define PvmBadMsg (-12)
#define PvmSysErr (-14)
#define PvmNoBuf (-15)
#define PvmNoSuchBuf (-16)
#define PvmNullGroup (-17)
#define PvmDupGroup (-18)
#define PvmNoGroup (-19)
#define PvmNotInGroup (-20)
#define PvmNoInst (-21)
#define PvmHostFail (-22)
#define PvmNoParent (-23)
#define PvmNotImpl (-24)
#define PvmDSysErr (-25)
#define PvmBadVersion (-26)
#define PvmOutOfRes (-27)
#define PvmDupHost (-28)
#define PvmCantStart (-29)
#define PvmAlready (-30)
#define PvmNoTask (-31)
#define PvmNotFound (-32)
#define PvmExists (-33)
#define PvmHostrNMstr (-34)
#define PvmParentNotSet (-35)
#define PvmIPLoopback (-36)
/* As PVM 3.3 named two of them. */
#define PvmNoEntry PvmNotFound
#define PvmDupEntry PvmDenied

int pvm_perror(char *what);
char *pvm_strerror(void);

/* Tasks. */
int pvm_mytid(void);
int pvm_parent(void);
int pvm_exit(void);

#define PvmTaskDefault 0
#define PvmTaskHost 1
#define PvmTaskArch 2
#define PvmTaskDebug 4
#define PvmTaskTrace 8
#define PvmMppFront 16
#define PvmHostCompl 32
#define PvmNoSpawnParent 64

int pvm_spawn(char *program, char **arguments, int flags, char *where, int count, int *tids);
int pvm_siblings(int **tids);
int pvm_export(char *variable);
int pvm_unexport(char *variable);
int pvm_kill(int tid);
int pvm_sendsig(int tid, int signal);
int pvm_pstat(int tid);
int pvm_tidtohost(int tid);

struct pvmtaskinfo {
    int ti_tid;
    int ti_ptid; /* the parent */
    int ti_host; /* the daemon of its host */
    int ti_flag;
    char *ti_a_out;
    int ti_pid;
};

int pvm_tasks(int where, int *count, struct pvmtaskinfo **tasks);

/* Who includes stdio.h before has this one, too. */
#ifdef EOF
int pvm_catchout(FILE *to);
#endif

/* The virtual machine. */
struct pvmhostinfo {
    int hi_tid; /* its daemon */
    char *hi_name;
    char *hi_arch;
    int hi_speed;
    int hi_dsig; /* what its numbers look like */
};

int pvm_config(int *hosts, int *formats, struct pvmhostinfo **list);
int pvm_mstat(char *host);
int pvm_addhosts(char **hosts, int count, int *infos);
int pvm_delhosts(char **hosts, int count, int *infos);
int pvm_start_pvmd(int count, char **arguments, int block);
int pvm_halt(void);
int pvm_hostsync(int host, struct timeval *clock, struct timeval *difference);
int pvm_tickle(int count, int *numbers, int *answered, int *answers);
int pvm_archcode(char *arch);
int pvm_getnoresets(int **tids, int *count);
char *pvm_version(void);
char *pvmgetrsh(void);
char *pvmgettmp(void);
#ifdef NOTMPNAM
char *pvmtmpnam(char *name);
#define PVMTMPNAMFUN(x) pvmtmpnam(x)
#define PVMTMPNAMLEN 128
#else
#define PVMTMPNAMFUN(x) tmpnam(x)
#ifdef L_tmpnam
#define PVMTMPNAMLEN L_tmpnam
#else
#define PVMTMPNAMLEN 128
#endif
#endif

#define PvmTaskExit 1
#define PvmHostDelete 2
#define PvmHostAdd 3
#define PvmRouteAdd 4
#define PvmRouteDelete 5
#define PvmNotifyCancel 256 /* beside one of these */

int pvm_notify(int about, int tag, int count, int *tids);

int pvm_reg_hoster(void);
int pvm_reg_rm(struct pvmhostinfo **hosts);
int pvm_reg_tasker(void);
int pvm_reg_tracer(int tid, int context, int tag, int output_context, char *mask, int buffer, int options);

/* Message buffers. */
#define PvmDataDefault 0 /* XDR */
#define PvmDataRaw 1
#define PvmDataInPlace 2
#define PvmDataFoo PvmDataDefault
#define PvmDataTrace 4

struct pvmminfo {
    int len;
    int ctx;
    int tag;
    int wid;
    int enc;
    int crc;
    int src;
    int dst;
};

int pvm_initsend(int encoding);
int pvm_mkbuf(int encoding);
int pvm_freebuf(int buffer);
int pvm_getsbuf(void);
int pvm_setsbuf(int buffer);
int pvm_getrbuf(void);
int pvm_setrbuf(int buffer);
int pvm_bufinfo(int buffer, int *bytes, int *tag, int *tid);
int pvm_getminfo(int buffer, struct pvmminfo *info);
int pvm_setminfo(int buffer, struct pvmminfo *info);
#ifdef PVM33COMPAT
int pvm_getmwid(int buffer);
int pvm_setmwid(int buffer, int wait);
#endif

/* Packing: so many elements, each `stride` elements after the one before. */
int pvm_pkbyte(char *first, int count, int stride);
int pvm_pkshort(short *first, int count, int stride);
int pvm_pkushort(unsigned short *first, int count, int stride);
int pvm_pkint(int *first, int count, int stride);
int pvm_pkuint(unsigned int *first, int count, int stride);
int pvm_pklong(long *first, int count, int stride);
int pvm_pkulong(unsigned long *first, int count, int stride);
int pvm_pkfloat(float *first, int count, int stride);
int pvm_pkdouble(double *first, int count, int stride);
int pvm_pkcplx(float *first, int count, int stride);
int pvm_pkdcplx(double *first, int count, int stride);
int pvm_pkstr(char *text);
int pvm_packf(const char *format, ...);
int pvm_pkmesg(int buffer);
int pvm_pkmesgbody(int buffer);

int pvm_upkbyte(char *first, int count, int stride);
int pvm_upkshort(short *first, int count, int stride);
int pvm_upkushort(unsigned short *first, int count, int stride);
int pvm_upkint(int *first, int count, int stride);
int pvm_upkuint(unsigned int *first, int count, int stride);
int pvm_upklong(long *first, int count, int stride);
int pvm_upkulong(unsigned long *first, int count, int stride);
int pvm_upkfloat(float *first, int count, int stride);
int pvm_upkdouble(double *first, int count, int stride);
int pvm_upkcplx(float *first, int count, int stride);
int pvm_upkdcplx(double *first, int count, int stride);
int pvm_upkstr(char *text);
int pvm_unpackf(const char *format, ...);
int pvm_upkmesg(void);

/* Sending and receiving; a tid or tag of -1 is any. */
int pvm_send(int tid, int tag);
int pvm_mcast(int *tids, int count, int tag);
int pvm_psend(int tid, int tag, void *data, int count, int type);
int pvm_recv(int tid, int tag);
int pvm_nrecv(int tid, int tag);
int pvm_trecv(int tid, int tag, struct timeval *time);
int pvm_precv(int tid, int tag, void *data, int count, int type, int *from, int *tag_came, int *count_came);
int pvm_probe(int tid, int tag);
int (*pvm_recvf(int (*matcher)(int, int, int)))(int, int, int);
int pvm_getfds(int **descriptors);
int pvm_addmhf(int tid, int tag, int context, int (*handler)(int));
int pvm_delmhf(int handler);

#define PvmBaseContext 0

int pvm_newcontext(void);
int pvm_setcontext(int context);
int pvm_getcontext(void);
int pvm_freecontext(int context);

/* The mailbox. */
#define PvmMboxDefault 0
#define PvmMboxPersistent 1
#define PvmMboxMultiInstance 2
#define PvmMboxOverWritable 4
#define PvmMboxFirstAvail 8
#define PvmMboxReadAndDelete 16
#define PvmMboxWaitForInfo 32
#define PvmMboxMaxFlag 512
/* An index stands in the bits above the flags. */
#define PvmMboxDirectIndexShift 10
#define PvmMboxMaxDirectIndex (1U << (31 - PvmMboxDirectIndexShift))
#define PvmMboxDirectIndexOf(flags) (((flags) >> PvmMboxDirectIndexShift) & (PvmMboxMaxDirectIndex - 1))
#define PvmMboxDirectIndex(index) \
    ((unsigned) (index) < PvmMboxMaxDirectIndex ? (index) << PvmMboxDirectIndexShift : 0)

#define PVMNORESETCLASS "###_PVM_NO_RESET_###"
#define PVMHOSTERCLASS "###_PVM_HOSTER_###"
#define PVMTASKERCLASS "###_PVM_TASKER_###"
#define PVMTRACERCLASS "###_PVM_TRACER_###"
#define PVMRMCLASS "###_PVM_RM_###"

struct pvmmboxinfo {
    char *mi_name;
    int mi_nentries;
    int *mi_indices;
    int *mi_owners;
    int *mi_flags;
};

int pvm_putinfo(char *name, int buffer, int flags);
int pvm_recvinfo(char *name, int index, int flags);
int pvm_delinfo(char *name, int index, int flags);
int pvm_getmboxinfo(char *pattern, int *count, struct pvmmboxinfo **classes);
int pvm_insert(char *name, int index, int data);
int pvm_lookup(char *name, int index, int *data);
int pvm_delete(char *name, int index);

/* Options. */
#define PvmRoute 1
#define PvmDontRoute 1
#define PvmAllowDirect 2
#define PvmRouteDirect 3
#define PvmDebugMask 2
#define PvmAutoErr 3
#define PvmOutputTid 4
#define PvmOutputCode 5
#define PvmTraceTid 6
#define PvmTraceCode 7
#define PvmTraceBuffer 8
#define PvmTraceOptions 9
#define PvmTraceFull 1
#define PvmTraceTime 2
#define PvmTraceCount 3
#define PvmFragSize 10
#define PvmResvTids 11
#define PvmSelfOutputTid 12
#define PvmSelfOutputCode 13
#define PvmSelfTraceTid 14
#define PvmSelfTraceCode 15
#define PvmSelfTraceBuffer 16
#define PvmSelfTraceOptions 17
#define PvmShowTids 18
#define PvmPollType 19
#define PvmPollConstant 1
#define PvmPollSleep 2
#define PvmPollTime 20
#define PvmOutputContext 21
#define PvmTraceContext 22
#define PvmSelfOutputContext 23
#define PvmSelfTraceContext 24
#define PvmNoReset 25
/* Whose trace mask. */
#define PvmTaskSelf 0
#define PvmTaskChild 1

int pvm_setopt(int what, int value);
int pvm_getopt(int what);

/* Groups. */
#define PVM_STR 0
#define PVM_BYTE 1
#define PVM_SHORT 2
#define PVM_INT 3
#define PVM_FLOAT 4
#define PVM_CPLX 5
#define PVM_DOUBLE 6
#define PVM_DCPLX 7
#define PVM_LONG 8
#define PVM_USHORT 9
#define PVM_UINT 10
#define PVM_ULONG 11

int pvm_joingroup(char *group);
int pvm_lvgroup(char *group);
int pvm_gsize(char *group);
int pvm_gettid(char *group, int instance);
int pvm_getinst(char *group, int tid);
int pvm_freezegroup(char *group, int count);
int pvm_barrier(char *group, int count);
int pvm_bcast(char *group, int tag);
int pvm_gather(void *into, void *data, int count, int type, int tag, char *group, int root);
int pvm_scatter(void *into, void *data, int count, int type, int tag, char *group, int root);
int pvm_reduce(void (*function)(int *, void *, void *, int *, int *), void *data, int count, int type, int tag,
               char *group, int root);

void PvmMax(int *type, void *into, void *from, int *count, int *info);
void PvmMin(int *type, void *into, void *from, int *count, int *info);
void PvmSum(int *type, void *into, void *from, int *count, int *info);
void PvmProduct(int *type, void *into, void *from, int *count, int *info);

#ifdef __cplusplus
}
#endif

#endif
