/* Active Messages II: names, types and numbers as programs know them from AMUDP.
 *
 * An endpoint has handlers, a tag, a segment of memory and a table of the endpoints that it sends to. A bundle is what
 * is polled: the endpoints in it get their messages there. A request calls a handler of its receiver, which may reply
 * once; a reply calls a handler of the requester. All calls answer AM_OK or an AM_ERR_... number.
 *
 * Processes are those of a job (`weft run -n N program`); AMUDP_SPMDStartup makes an endpoint in each that is mapped in
 * all others, by its rank. */
#ifndef WEFT_AM_H
#define WEFT_AM_H

#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers */

#define AM_OK 0
#define AM_ERR_NOT_INIT 1
#define AM_ERR_BAD_ARG 2
#define AM_ERR_RESOURCE 3
#define AM_ERR_NOT_SENT 4
#define AM_ERR_IN_USE 5

/* Tags of an endpoint: no message is for it, or every one is. */
#define AM_NONE 0
#define AM_ALL 1

typedef enum { AM_NOEVENTS, AM_NOTEMPTY, AM_NUMEVENTMASKS } amudp_eventmask_t;
typedef enum { AM_SEQ, AM_PAR, AM_NUM_BUNDLE_MODES } amudp_bundle_mode_t;

/* What kind of call a message that comes back was made by. */
#define AM_REQUEST_M 1
#define AM_REQUEST_IM 2
#define AM_REQUEST_XFER_M 3
#define AM_REPLY_M 4
#define AM_REPLY_IM 5
#define AM_REPLY_XFER_M 6

/* Why it comes back; EBADARGS and others are not those of errno.h. */
#define EBADARGS 1
#define EBADENTRY 2
#define EBADTAG 3
#define EBADHANDLER 4
#define EBADSEGOFF 5
#define EBADLENGTH 6
#define EBADENDPOINT 7
#define ECONGESTION 8
#define EUNREACHABLE 9
#define EREPLYREJECTED 10

#define AMUDP 1
#define AMUDP_MAX_SHORT 16
#define AMUDP_MAX_MEDIUM 65000
#define AMUDP_MAX_LONG 1048576
#define AMUDP_MAX_NUMHANDLERS 256
#define AMUDP_INIT_NUMTRANSLATIONS 256
#define AMUDP_MAX_NUMTRANSLATIONS (1U << 20)
#define AMUDP_MAX_SEGLENGTH ((uintptr_t)-1)
#define AMUDP_MAX_BUNDLES 255
#define AMUDP_MAX_NETWORKDEPTH 1024
#define AMUDP_MAX_SPMDPROCS AMUDP_MAX_NUMTRANSLATIONS
#define AMUDP_LIBRARY_VERSION_MAJOR 3
#define AMUDP_LIBRARY_VERSION_MINOR 21
#define AMUDP_LIBRARY_VERSION 3.21
#define AMUDP_LIBRARY_VERSION_STR "3.21"

#define AM_MaxShort() AMUDP_MAX_SHORT
#define AM_MaxMedium() AMUDP_MAX_MEDIUM
#define AM_MaxLong() AMUDP_MAX_LONG
#define AM_MaxNumHandlers() AMUDP_MAX_NUMHANDLERS
#define AM_MaxNumTranslations(most) (*(most) = AMUDP_MAX_NUMTRANSLATIONS, AM_OK)
#define AM_GetNumHandlers(ep, count) ((ep) ? (*(count) = AMUDP_MAX_NUMHANDLERS, AM_OK) : AM_ERR_BAD_ARG)
#define AM_SetNumHandlers(ep, count) \
  (!(ep) ? AM_ERR_BAD_ARG : (count) == AMUDP_MAX_NUMHANDLERS ? AM_OK : AM_ERR_RESOURCE)

/* Types */

typedef uint64_t tag_t;
typedef uint8_t handler_t;
/* Where an endpoint is, in all the job. */
typedef struct sockaddr_in en_t;
typedef uint32_t amudp_node_t;
#define _AMX_TICK_T
typedef uint64_t amx_tick_t;
typedef int op_t;
typedef struct amudp_eb *eb_t;
typedef struct amudp_ep *ep_t;

/* Of a short message: handler(token, a0, ...). Of the others: handler(token, bytes, size_t length, a0, ...), where those
 * of a medium one are valid while the handler runs. Handler 0 gets what comes back: handler(status, op_t, token). */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
typedef void (*amudp_handler_fn_t)(...);
#else
typedef void (*amudp_handler_fn_t)();
#endif

typedef enum { amudp_Short, amudp_Medium, amudp_Long, amudp_NumCategories } amudp_category_t;

/* What an endpoint has counted. Nothing is sent twice here, so some are always 0. */
typedef struct {
  uint64_t RequestsSent[amudp_NumCategories], RepliesSent[amudp_NumCategories];
  uint64_t RequestsRetransmitted[amudp_NumCategories], RepliesRetransmitted[amudp_NumCategories];
  uint64_t RepliesSquashed[amudp_NumCategories];
  uint64_t RequestsReceived[amudp_NumCategories], RepliesReceived[amudp_NumCategories];
  uint64_t ReturnedMessages, OutOfOrderRequests, OutOfOrderReplies;
  amx_tick_t RequestMinLatency, RequestMaxLatency, RequestSumLatency;
  uint64_t RequestDataBytesSent[amudp_NumCategories], ReplyDataBytesSent[amudp_NumCategories];
  uint64_t RequestTotalBytesSent[amudp_NumCategories], ReplyTotalBytesSent[amudp_NumCategories];
  uint64_t TotalBytesSent;
} amudp_stats_t;

/* Beginning and end */

extern int AM_Init(void);
extern int AM_Terminate(void);

/* Bundles and endpoints */

extern int AM_AllocateBundle(int mode, eb_t *bundle);
extern int AM_FreeBundle(eb_t bundle);
extern int AM_AllocateEndpoint(eb_t bundle, ep_t *ep, en_t *name);
extern int AM_FreeEndpoint(ep_t ep);
extern int AM_MoveEndpoint(ep_t ep, eb_t from, eb_t to);
extern int AM_MaxSegLength(uintptr_t *length);
extern int AM_GetSeg(ep_t ep, void **begin, uintptr_t *length);
extern int AM_SetSeg(ep_t ep, void *begin, uintptr_t length);
extern int AM_GetTag(ep_t ep, tag_t *tag);
extern int AM_SetTag(ep_t ep, tag_t tag);

/* The endpoints that one sends to, by their index */

extern int AM_Map(ep_t ep, int index, en_t name, tag_t tag);
extern int AM_MapAny(ep_t ep, int *index, en_t name, tag_t tag);
extern int AM_UnMap(ep_t ep, int index);
extern int AM_GetNumTranslations(ep_t ep, int *count);
extern int AM_SetNumTranslations(ep_t ep, int count);
extern int AM_GetTranslationInuse(ep_t ep, int index);
extern int AM_GetTranslationTag(ep_t ep, int index, tag_t *tag);
extern int AM_GetTranslationName(ep_t ep, int index, en_t *name);
extern int AMUDP_SetTranslationTag(ep_t ep, int index, tag_t tag);
extern int AM_SetExpectedResources(ep_t ep, int endpoints, int requests);

/* Handlers */

extern int AMUDP_SetHandler(ep_t ep, handler_t handler, amudp_handler_fn_t function);
extern int AMUDP_SetHandlerAny(ep_t ep, handler_t *handler, amudp_handler_fn_t function);
#define AM_SetHandler(ep, handler, function) AMUDP_SetHandler(ep, handler, (amudp_handler_fn_t)(function))
#define AM_SetHandlerAny(ep, handler, function) AMUDP_SetHandlerAny(ep, handler, (amudp_handler_fn_t)(function))

/* What has come */

extern int AM_Poll(eb_t bundle);
extern int AM_GetEventMask(eb_t bundle, int *mask);
extern int AM_SetEventMask(eb_t bundle, int mask);
extern int AM_WaitSema(eb_t bundle);

/* Of the message whose handler runs */

extern int AM_GetSourceEndpoint(void *token, en_t *name);
extern int AM_GetDestEndpoint(void *token, ep_t *ep);
extern int AM_GetMsgTag(void *token, tag_t *tag);
extern int AMUDP_GetSourceId(void *token, int *index);
extern int AMUDP_GetTokenInfo(void *token, handler_t *handler, amudp_category_t *category, int *is_request);
extern int AMUDP_enEqual(en_t one, en_t other);

/* What is counted, and calls around handlers */

extern const amudp_stats_t AMUDP_initial_stats;
extern int AMUDP_GetEndpointStatistics(ep_t ep, amudp_stats_t *stats);
extern int AMUDP_ResetEndpointStatistics(ep_t ep);
extern int AMUDP_AggregateStatistics(amudp_stats_t *sum, amudp_stats_t *more);
extern const char *AMUDP_DumpStatistics(void *file, amudp_stats_t *stats, int of_all);

typedef void (*AMUDP_preHandlerCallback_t)(amudp_category_t category, int is_request, int handler, void *token,
                                           void *bytes, size_t length, int count, uint32_t *arguments);
typedef void (*AMUDP_postHandlerCallback_t)(amudp_category_t category, int is_request);
extern int AMUDP_SetHandlerCallbacks(ep_t ep, AMUDP_preHandlerCallback_t before, AMUDP_postHandlerCallback_t after);

/* Knobs: lines on errors, none besides; what this process is called there. Waiting is polite always. */
extern int AMX_VerboseErrors, AMX_SilentMode, AMUDP_PoliteSync;
extern const char *AMX_ProcessLabel;
extern int AMUDP_SetUDPInterface(uint32_t address);
extern void weft_am_fatal(const char *text);

/* Says why, and ends the process. */
static inline void AMX_FatalErr(const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  weft_am_fatal(text);
}

/* Requests and replies, with arguments in an array */

extern int weft_am_request(ep_t ep, amudp_node_t to, handler_t handler, int count, const int32_t *arguments);
extern int weft_am_request_medium(ep_t ep, amudp_node_t to, handler_t handler, const void *bytes, size_t length,
                                  int count, const int32_t *arguments);
extern int weft_am_request_long(ep_t ep, amudp_node_t to, handler_t handler, const void *bytes, size_t length,
                                uintptr_t offset, int async, int count, const int32_t *arguments);
extern int weft_am_reply(void *token, handler_t handler, int count, const int32_t *arguments);
extern int weft_am_reply_medium(void *token, handler_t handler, const void *bytes, size_t length, int count,
                                const int32_t *arguments);
extern int weft_am_reply_long(void *token, handler_t handler, const void *bytes, size_t length, uintptr_t offset,
                              int count, const int32_t *arguments);

/* The same with arguments in a list, and one after the other */

#define WEFT_AM_TAKE(count, list) \
  int32_t arguments[AMUDP_MAX_SHORT]; \
  for (int at = 0; at < (count) && at < AMUDP_MAX_SHORT; at++) arguments[at] = va_arg(list, int)

static inline int AMUDP_RequestVA(ep_t ep, amudp_node_t to, handler_t handler, int count, va_list list) {
  WEFT_AM_TAKE(count, list);
  return weft_am_request(ep, to, handler, count, arguments);
}
static inline int AMUDP_RequestIVA(ep_t ep, amudp_node_t to, handler_t handler, void *bytes, size_t length, int count,
                                   va_list list) {
  WEFT_AM_TAKE(count, list);
  return weft_am_request_medium(ep, to, handler, bytes, length, count, arguments);
}
static inline int AMUDP_RequestXferVA(ep_t ep, amudp_node_t to, handler_t handler, void *bytes, size_t length,
                                      uintptr_t offset, int async, int count, va_list list) {
  WEFT_AM_TAKE(count, list);
  return weft_am_request_long(ep, to, handler, bytes, length, offset, async, count, arguments);
}
static inline int AMUDP_ReplyVA(void *token, handler_t handler, int count, va_list list) {
  WEFT_AM_TAKE(count, list);
  return weft_am_reply(token, handler, count, arguments);
}
static inline int AMUDP_ReplyIVA(void *token, handler_t handler, void *bytes, size_t length, int count, va_list list) {
  WEFT_AM_TAKE(count, list);
  return weft_am_reply_medium(token, handler, bytes, length, count, arguments);
}
static inline int AMUDP_ReplyXferVA(void *token, handler_t handler, void *bytes, size_t length, uintptr_t offset,
                                    int count, va_list list) {
  WEFT_AM_TAKE(count, list);
  return weft_am_reply_long(token, handler, bytes, length, offset, count, arguments);
}

#define WEFT_AM_LISTED(call, ...) \
  va_list list; \
  va_start(list, count); \
  int answer = call(__VA_ARGS__, count, list); \
  va_end(list); \
  return answer

static inline int AMUDP_Request(ep_t ep, amudp_node_t to, handler_t handler, int count, ...) {
  WEFT_AM_LISTED(AMUDP_RequestVA, ep, to, handler);
}
static inline int AMUDP_RequestI(ep_t ep, amudp_node_t to, handler_t handler, void *bytes, size_t length, int count,
                                 ...) {
  WEFT_AM_LISTED(AMUDP_RequestIVA, ep, to, handler, bytes, length);
}
static inline int AMUDP_RequestXfer(ep_t ep, amudp_node_t to, handler_t handler, void *bytes, size_t length,
                                    uintptr_t offset, int async, int count, ...) {
  WEFT_AM_LISTED(AMUDP_RequestXferVA, ep, to, handler, bytes, length, offset, async);
}
static inline int AMUDP_Reply(void *token, handler_t handler, int count, ...) {
  WEFT_AM_LISTED(AMUDP_ReplyVA, token, handler);
}
static inline int AMUDP_ReplyI(void *token, handler_t handler, void *bytes, size_t length, int count, ...) {
  WEFT_AM_LISTED(AMUDP_ReplyIVA, token, handler, bytes, length);
}
static inline int AMUDP_ReplyXfer(void *token, handler_t handler, void *bytes, size_t length, uintptr_t offset,
                                  int count, ...) {
  WEFT_AM_LISTED(AMUDP_ReplyXferVA, token, handler, bytes, length, offset);
}

#ifdef __cplusplus
}
#endif

/* The arguments of a call, each as the 32 bits that travel. */
#define WEFT_AM_ARGS1(a) (int32_t)(a)
#define WEFT_AM_ARGS2(a, ...) (int32_t)(a), WEFT_AM_ARGS1(__VA_ARGS__)
#define WEFT_AM_ARGS3(a, ...) (int32_t)(a), WEFT_AM_ARGS2(__VA_ARGS__)
#define WEFT_AM_ARGS4(a, ...) (int32_t)(a), WEFT_AM_ARGS3(__VA_ARGS__)
#define WEFT_AM_ARGS5(a, ...) (int32_t)(a), WEFT_AM_ARGS4(__VA_ARGS__)
#define WEFT_AM_ARGS6(a, ...) (int32_t)(a), WEFT_AM_ARGS5(__VA_ARGS__)
#define WEFT_AM_ARGS7(a, ...) (int32_t)(a), WEFT_AM_ARGS6(__VA_ARGS__)
#define WEFT_AM_ARGS8(a, ...) (int32_t)(a), WEFT_AM_ARGS7(__VA_ARGS__)
#define WEFT_AM_ARGS9(a, ...) (int32_t)(a), WEFT_AM_ARGS8(__VA_ARGS__)
#define WEFT_AM_ARGS10(a, ...) (int32_t)(a), WEFT_AM_ARGS9(__VA_ARGS__)
#define WEFT_AM_ARGS11(a, ...) (int32_t)(a), WEFT_AM_ARGS10(__VA_ARGS__)
#define WEFT_AM_ARGS12(a, ...) (int32_t)(a), WEFT_AM_ARGS11(__VA_ARGS__)
#define WEFT_AM_ARGS13(a, ...) (int32_t)(a), WEFT_AM_ARGS12(__VA_ARGS__)
#define WEFT_AM_ARGS14(a, ...) (int32_t)(a), WEFT_AM_ARGS13(__VA_ARGS__)
#define WEFT_AM_ARGS15(a, ...) (int32_t)(a), WEFT_AM_ARGS14(__VA_ARGS__)
#define WEFT_AM_ARGS16(a, ...) (int32_t)(a), WEFT_AM_ARGS15(__VA_ARGS__)

#define AM_Request0(ep, to, h) AMUDP_Request(ep, to, h, 0)
#define AM_Request1(ep, to, h, ...) AMUDP_Request(ep, to, h, 1, WEFT_AM_ARGS1(__VA_ARGS__))
#define AM_Request2(ep, to, h, ...) AMUDP_Request(ep, to, h, 2, WEFT_AM_ARGS2(__VA_ARGS__))
#define AM_Request3(ep, to, h, ...) AMUDP_Request(ep, to, h, 3, WEFT_AM_ARGS3(__VA_ARGS__))
#define AM_Request4(ep, to, h, ...) AMUDP_Request(ep, to, h, 4, WEFT_AM_ARGS4(__VA_ARGS__))
#define AM_Request5(ep, to, h, ...) AMUDP_Request(ep, to, h, 5, WEFT_AM_ARGS5(__VA_ARGS__))
#define AM_Request6(ep, to, h, ...) AMUDP_Request(ep, to, h, 6, WEFT_AM_ARGS6(__VA_ARGS__))
#define AM_Request7(ep, to, h, ...) AMUDP_Request(ep, to, h, 7, WEFT_AM_ARGS7(__VA_ARGS__))
#define AM_Request8(ep, to, h, ...) AMUDP_Request(ep, to, h, 8, WEFT_AM_ARGS8(__VA_ARGS__))
#define AM_Request9(ep, to, h, ...) AMUDP_Request(ep, to, h, 9, WEFT_AM_ARGS9(__VA_ARGS__))
#define AM_Request10(ep, to, h, ...) AMUDP_Request(ep, to, h, 10, WEFT_AM_ARGS10(__VA_ARGS__))
#define AM_Request11(ep, to, h, ...) AMUDP_Request(ep, to, h, 11, WEFT_AM_ARGS11(__VA_ARGS__))
#define AM_Request12(ep, to, h, ...) AMUDP_Request(ep, to, h, 12, WEFT_AM_ARGS12(__VA_ARGS__))
#define AM_Request13(ep, to, h, ...) AMUDP_Request(ep, to, h, 13, WEFT_AM_ARGS13(__VA_ARGS__))
#define AM_Request14(ep, to, h, ...) AMUDP_Request(ep, to, h, 14, WEFT_AM_ARGS14(__VA_ARGS__))
#define AM_Request15(ep, to, h, ...) AMUDP_Request(ep, to, h, 15, WEFT_AM_ARGS15(__VA_ARGS__))
#define AM_Request16(ep, to, h, ...) AMUDP_Request(ep, to, h, 16, WEFT_AM_ARGS16(__VA_ARGS__))

#define AM_RequestI0(ep, to, h, p, n) AMUDP_RequestI(ep, to, h, p, n, 0)
#define AM_RequestI1(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 1, WEFT_AM_ARGS1(__VA_ARGS__))
#define AM_RequestI2(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 2, WEFT_AM_ARGS2(__VA_ARGS__))
#define AM_RequestI3(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 3, WEFT_AM_ARGS3(__VA_ARGS__))
#define AM_RequestI4(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 4, WEFT_AM_ARGS4(__VA_ARGS__))
#define AM_RequestI5(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 5, WEFT_AM_ARGS5(__VA_ARGS__))
#define AM_RequestI6(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 6, WEFT_AM_ARGS6(__VA_ARGS__))
#define AM_RequestI7(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 7, WEFT_AM_ARGS7(__VA_ARGS__))
#define AM_RequestI8(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 8, WEFT_AM_ARGS8(__VA_ARGS__))
#define AM_RequestI9(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 9, WEFT_AM_ARGS9(__VA_ARGS__))
#define AM_RequestI10(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 10, WEFT_AM_ARGS10(__VA_ARGS__))
#define AM_RequestI11(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 11, WEFT_AM_ARGS11(__VA_ARGS__))
#define AM_RequestI12(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 12, WEFT_AM_ARGS12(__VA_ARGS__))
#define AM_RequestI13(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 13, WEFT_AM_ARGS13(__VA_ARGS__))
#define AM_RequestI14(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 14, WEFT_AM_ARGS14(__VA_ARGS__))
#define AM_RequestI15(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 15, WEFT_AM_ARGS15(__VA_ARGS__))
#define AM_RequestI16(ep, to, h, p, n, ...) AMUDP_RequestI(ep, to, h, p, n, 16, WEFT_AM_ARGS16(__VA_ARGS__))

#define AM_RequestXfer0(ep, to, at, h, p, n) AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 0)
#define AM_RequestXfer1(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 1, WEFT_AM_ARGS1(__VA_ARGS__))
#define AM_RequestXfer2(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 2, WEFT_AM_ARGS2(__VA_ARGS__))
#define AM_RequestXfer3(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 3, WEFT_AM_ARGS3(__VA_ARGS__))
#define AM_RequestXfer4(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 4, WEFT_AM_ARGS4(__VA_ARGS__))
#define AM_RequestXfer5(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 5, WEFT_AM_ARGS5(__VA_ARGS__))
#define AM_RequestXfer6(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 6, WEFT_AM_ARGS6(__VA_ARGS__))
#define AM_RequestXfer7(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 7, WEFT_AM_ARGS7(__VA_ARGS__))
#define AM_RequestXfer8(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 8, WEFT_AM_ARGS8(__VA_ARGS__))
#define AM_RequestXfer9(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 9, WEFT_AM_ARGS9(__VA_ARGS__))
#define AM_RequestXfer10(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 10, WEFT_AM_ARGS10(__VA_ARGS__))
#define AM_RequestXfer11(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 11, WEFT_AM_ARGS11(__VA_ARGS__))
#define AM_RequestXfer12(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 12, WEFT_AM_ARGS12(__VA_ARGS__))
#define AM_RequestXfer13(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 13, WEFT_AM_ARGS13(__VA_ARGS__))
#define AM_RequestXfer14(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 14, WEFT_AM_ARGS14(__VA_ARGS__))
#define AM_RequestXfer15(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 15, WEFT_AM_ARGS15(__VA_ARGS__))
#define AM_RequestXfer16(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 0, 16, WEFT_AM_ARGS16(__VA_ARGS__))

#define AM_RequestXferAsync0(ep, to, at, h, p, n) AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 0)
#define AM_RequestXferAsync1(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 1, WEFT_AM_ARGS1(__VA_ARGS__))
#define AM_RequestXferAsync2(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 2, WEFT_AM_ARGS2(__VA_ARGS__))
#define AM_RequestXferAsync3(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 3, WEFT_AM_ARGS3(__VA_ARGS__))
#define AM_RequestXferAsync4(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 4, WEFT_AM_ARGS4(__VA_ARGS__))
#define AM_RequestXferAsync5(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 5, WEFT_AM_ARGS5(__VA_ARGS__))
#define AM_RequestXferAsync6(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 6, WEFT_AM_ARGS6(__VA_ARGS__))
#define AM_RequestXferAsync7(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 7, WEFT_AM_ARGS7(__VA_ARGS__))
#define AM_RequestXferAsync8(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 8, WEFT_AM_ARGS8(__VA_ARGS__))
#define AM_RequestXferAsync9(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 9, WEFT_AM_ARGS9(__VA_ARGS__))
#define AM_RequestXferAsync10(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 10, WEFT_AM_ARGS10(__VA_ARGS__))
#define AM_RequestXferAsync11(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 11, WEFT_AM_ARGS11(__VA_ARGS__))
#define AM_RequestXferAsync12(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 12, WEFT_AM_ARGS12(__VA_ARGS__))
#define AM_RequestXferAsync13(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 13, WEFT_AM_ARGS13(__VA_ARGS__))
#define AM_RequestXferAsync14(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 14, WEFT_AM_ARGS14(__VA_ARGS__))
#define AM_RequestXferAsync15(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 15, WEFT_AM_ARGS15(__VA_ARGS__))
#define AM_RequestXferAsync16(ep, to, at, h, p, n, ...) \
  AMUDP_RequestXfer(ep, to, h, p, n, at, 1, 16, WEFT_AM_ARGS16(__VA_ARGS__))

#define AM_Reply0(token, h) AMUDP_Reply(token, h, 0)
#define AM_Reply1(token, h, ...) AMUDP_Reply(token, h, 1, WEFT_AM_ARGS1(__VA_ARGS__))
#define AM_Reply2(token, h, ...) AMUDP_Reply(token, h, 2, WEFT_AM_ARGS2(__VA_ARGS__))
#define AM_Reply3(token, h, ...) AMUDP_Reply(token, h, 3, WEFT_AM_ARGS3(__VA_ARGS__))
#define AM_Reply4(token, h, ...) AMUDP_Reply(token, h, 4, WEFT_AM_ARGS4(__VA_ARGS__))
#define AM_Reply5(token, h, ...) AMUDP_Reply(token, h, 5, WEFT_AM_ARGS5(__VA_ARGS__))
#define AM_Reply6(token, h, ...) AMUDP_Reply(token, h, 6, WEFT_AM_ARGS6(__VA_ARGS__))
#define AM_Reply7(token, h, ...) AMUDP_Reply(token, h, 7, WEFT_AM_ARGS7(__VA_ARGS__))
#define AM_Reply8(token, h, ...) AMUDP_Reply(token, h, 8, WEFT_AM_ARGS8(__VA_ARGS__))
#define AM_Reply9(token, h, ...) AMUDP_Reply(token, h, 9, WEFT_AM_ARGS9(__VA_ARGS__))
#define AM_Reply10(token, h, ...) AMUDP_Reply(token, h, 10, WEFT_AM_ARGS10(__VA_ARGS__))
#define AM_Reply11(token, h, ...) AMUDP_Reply(token, h, 11, WEFT_AM_ARGS11(__VA_ARGS__))
#define AM_Reply12(token, h, ...) AMUDP_Reply(token, h, 12, WEFT_AM_ARGS12(__VA_ARGS__))
#define AM_Reply13(token, h, ...) AMUDP_Reply(token, h, 13, WEFT_AM_ARGS13(__VA_ARGS__))
#define AM_Reply14(token, h, ...) AMUDP_Reply(token, h, 14, WEFT_AM_ARGS14(__VA_ARGS__))
#define AM_Reply15(token, h, ...) AMUDP_Reply(token, h, 15, WEFT_AM_ARGS15(__VA_ARGS__))
#define AM_Reply16(token, h, ...) AMUDP_Reply(token, h, 16, WEFT_AM_ARGS16(__VA_ARGS__))

#define AM_ReplyI0(token, h, p, n) AMUDP_ReplyI(token, h, p, n, 0)
#define AM_ReplyI1(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 1, WEFT_AM_ARGS1(__VA_ARGS__))
#define AM_ReplyI2(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 2, WEFT_AM_ARGS2(__VA_ARGS__))
#define AM_ReplyI3(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 3, WEFT_AM_ARGS3(__VA_ARGS__))
#define AM_ReplyI4(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 4, WEFT_AM_ARGS4(__VA_ARGS__))
#define AM_ReplyI5(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 5, WEFT_AM_ARGS5(__VA_ARGS__))
#define AM_ReplyI6(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 6, WEFT_AM_ARGS6(__VA_ARGS__))
#define AM_ReplyI7(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 7, WEFT_AM_ARGS7(__VA_ARGS__))
#define AM_ReplyI8(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 8, WEFT_AM_ARGS8(__VA_ARGS__))
#define AM_ReplyI9(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 9, WEFT_AM_ARGS9(__VA_ARGS__))
#define AM_ReplyI10(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 10, WEFT_AM_ARGS10(__VA_ARGS__))
#define AM_ReplyI11(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 11, WEFT_AM_ARGS11(__VA_ARGS__))
#define AM_ReplyI12(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 12, WEFT_AM_ARGS12(__VA_ARGS__))
#define AM_ReplyI13(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 13, WEFT_AM_ARGS13(__VA_ARGS__))
#define AM_ReplyI14(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 14, WEFT_AM_ARGS14(__VA_ARGS__))
#define AM_ReplyI15(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 15, WEFT_AM_ARGS15(__VA_ARGS__))
#define AM_ReplyI16(token, h, p, n, ...) AMUDP_ReplyI(token, h, p, n, 16, WEFT_AM_ARGS16(__VA_ARGS__))

#define AM_ReplyXfer0(token, at, h, p, n) AMUDP_ReplyXfer(token, h, p, n, at, 0)
#define AM_ReplyXfer1(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 1, WEFT_AM_ARGS1(__VA_ARGS__))
#define AM_ReplyXfer2(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 2, WEFT_AM_ARGS2(__VA_ARGS__))
#define AM_ReplyXfer3(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 3, WEFT_AM_ARGS3(__VA_ARGS__))
#define AM_ReplyXfer4(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 4, WEFT_AM_ARGS4(__VA_ARGS__))
#define AM_ReplyXfer5(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 5, WEFT_AM_ARGS5(__VA_ARGS__))
#define AM_ReplyXfer6(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 6, WEFT_AM_ARGS6(__VA_ARGS__))
#define AM_ReplyXfer7(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 7, WEFT_AM_ARGS7(__VA_ARGS__))
#define AM_ReplyXfer8(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 8, WEFT_AM_ARGS8(__VA_ARGS__))
#define AM_ReplyXfer9(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 9, WEFT_AM_ARGS9(__VA_ARGS__))
#define AM_ReplyXfer10(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 10, WEFT_AM_ARGS10(__VA_ARGS__))
#define AM_ReplyXfer11(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 11, WEFT_AM_ARGS11(__VA_ARGS__))
#define AM_ReplyXfer12(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 12, WEFT_AM_ARGS12(__VA_ARGS__))
#define AM_ReplyXfer13(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 13, WEFT_AM_ARGS13(__VA_ARGS__))
#define AM_ReplyXfer14(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 14, WEFT_AM_ARGS14(__VA_ARGS__))
#define AM_ReplyXfer15(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 15, WEFT_AM_ARGS15(__VA_ARGS__))
#define AM_ReplyXfer16(token, at, h, p, n, ...) \
  AMUDP_ReplyXfer(token, h, p, n, at, 16, WEFT_AM_ARGS16(__VA_ARGS__))

/* Names that AMUDP and AMMPI have in common */

#define AMX_SetTranslationTag AMUDP_SetTranslationTag
#define AMX_GetEndpointStatistics AMUDP_GetEndpointStatistics
#define AMX_DumpStatistics AMUDP_DumpStatistics
#define AMX_AggregateStatistics AMUDP_AggregateStatistics
#define AMX_initial_stats AMUDP_initial_stats
#define AMX_GetSourceId AMUDP_GetSourceId
#define AMX_enEqual AMUDP_enEqual
#define AMX_GetTokenInfo AMUDP_GetTokenInfo
#define amx_stats_t amudp_stats_t
#define amx_handler_fn_t amudp_handler_fn_t
#define amx_category_t amudp_category_t
#define amx_Short amudp_Short
#define amx_Medium amudp_Medium
#define amx_Long amudp_Long

#endif
