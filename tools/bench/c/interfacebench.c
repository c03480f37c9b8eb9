/*
 * The measuring program of the rows of `weft bench layers` that are interfaces of their own: two processes of a job of
 * `weft run`, over the library that -DNATIVE, -DPVM, -DP4, -DTCGMSG, -DAM, -DFM or -DPANDA
 * chooses.
 *
 *     interfacebench pingpong|exchange BYTES SECONDS
 *
 * Process 0 prints `figure pingpong SECONDS s` (half of there and back) or `figure exchange SECONDS s` (both send, then both receive).
 * Messages carry their number, which is checked. Rounds are timed in batches; the clock is read around a batch only.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "interfacebench: error: %s\n", what);
    exit(1);
}

enum { TAG = 7, MOST = 1 << 26 };

/* Set in the number of a message that says how many rounds come. */
#define ROUNDS (1ULL << 63)

static int me;
static uint64_t number; /* of the next message to be received */

#if defined(AM) || defined(FM)
/* Where handlers are called, the next message may come before this one was asked for: it is looked at when it comes. */
static uint64_t arrived, asked, rounds_to_come;
static int rounds_arrived;
static void take_in(uint64_t first, size_t length) {
    static uint64_t expected;
    if (first & ROUNDS) {
        rounds_to_come = first;
        rounds_arrived = 1;
        return;
    }
    if (first != expected++) fail("a message with another number has arrived");
    arrived += length;
}
/* Calls `poll` until so many bytes more have come; what the program looks at is told. */
#define RECEIVE(poll)                                     \
    do {                                                  \
        if (length == 8 && asking_rounds) {               \
            while (!rounds_arrived) poll;                 \
            rounds_arrived = 0;                           \
            memcpy(bytes, &rounds_to_come, 8);            \
            break;                                        \
        }                                                 \
        asked += length;                                  \
        while (arrived < asked) poll;                     \
        memcpy(bytes, &number, 8);                        \
    } while (0)
#endif
static int asking_rounds;

/* What each interface gives: join, two processes; send to the other one; receive from it; leave. */
static void join(int *argc, char ***argv);
static void send_to_other(const void *bytes, size_t length);
static void receive(void *bytes, size_t length);
static void leave(void);

#if defined(NATIVE)
#include <weft.h>
static int port;
static void join(int *argc, char ***argv) {
    (void)argc, (void)argv;
    if (weft_init(0) < 0 || weft_size() != 2 || (port = weft_port_open(TAG)) < 0) fail("weft_init");
    me = weft_me();
}
static void send_to_other(const void *bytes, size_t length) {
    if (weft_send_copy(1 - me, TAG, 0, bytes, length) < 0) fail("weft_send_copy");
}
static void receive(void *bytes, size_t length) {
    struct weft_message message;
    if (weft_receive(port, 1 - me, 0, bytes, length, &message) < 0) fail("weft_receive");
}
static void leave(void) { weft_finish(); }

#elif defined(PVM)
#include <pvm3.h>
static int other;
static void join(int *argc, char ***argv) {
    (void)argc, (void)argv;
    int *tids, mine = pvm_mytid();
    if (mine < 0 || pvm_siblings(&tids) != 2) fail("pvm_siblings");
    me = tids[1] == mine;
    other = tids[1 - me];
}
static void send_to_other(const void *bytes, size_t length) {
    pvm_initsend(PvmDataRaw);
    pvm_pkbyte((char *)bytes, (int)length, 1);
    if (pvm_send(other, TAG) < 0) fail("pvm_send");
}
static void receive(void *bytes, size_t length) {
    if (pvm_recv(other, TAG) < 0 || pvm_upkbyte(bytes, (int)length, 1) < 0) fail("pvm_recv");
}
static void leave(void) { pvm_exit(); }

#elif defined(P4)
#include <p4.h>
static void join(int *argc, char ***argv) {
    p4_initenv(argc, *argv);
    p4_create_procgroup();
    me = p4_get_my_id();
}
static void send_to_other(const void *bytes, size_t length) {
    if (p4_send(TAG, 1 - me, (char *)bytes, (int)length) < 0) fail("p4_send");
}
static void receive(void *bytes, size_t length) {
    int type = TAG, from = 1 - me, came = 0;
    char *message = NULL;
    if (p4_recv(&type, &from, &message, &came) < 0 || came != (int)length) fail("p4_recv");
    memcpy(bytes, message, length);
    p4_msg_free(message);
}
static void leave(void) { p4_wait_for_end(); }

#elif defined(TCGMSG)
#include <tcgmsg.h>
static void join(int *argc, char ***argv) {
    tcg_pbegin(*argc, *argv);
    if (tcg_nnodes() != 2) fail("two processes are needed");
    me = (int)tcg_nodeid();
}
/* A synchronous send of a long message waits for its receiver, so it is begun here and over after the receive. */
static void send_to_other(const void *bytes, size_t length) { tcg_snd(TAG, (void *)bytes, (long)length, 1 - me, 0); }
static void receive(void *bytes, size_t length) {
    long came = 0, from = 1 - me;
    tcg_rcv(TAG, bytes, (long)length, &came, 1 - me, &from, 1);
    if (came != (long)length) fail("tcg_rcv");
    tcg_waitcom(1 - me);
}
static void leave(void) { tcg_pend(); }

#elif defined(AM)
#include <amudp_spmd.h>
enum { SHORT = 1, MEDIUM, LONG };
static ep_t endpoint;
static eb_t bundle;
/* A long message is not overwritten by the next one before its handler has run: both may be on their way. */
static unsigned char landing[2][MOST];
static uint64_t first_of(const void *bytes) {
    uint64_t first;
    memcpy(&first, bytes, 8);
    return first;
}
static void on_short(void *token, int low, int high) {
    (void)token;
    take_in((uint64_t)(uint32_t)high << 32 | (uint32_t)low, 8);
}
static void on_medium(void *token, void *bytes, size_t length) {
    (void)token;
    take_in(first_of(bytes), length);
}
static void on_long(void *token, void *bytes, size_t length) {
    (void)token;
    take_in(first_of(bytes), length);
}
static void join(int *argc, char ***argv) {
    uint64_t key = 0;
    if (AMUDP_SPMDStartup(argc, argv, 2, 0, NULL, &key, &bundle, &endpoint) != AM_OK) fail("AMUDP_SPMDStartup");
    me = AMUDP_SPMDMyProc();
    AM_SetHandler(endpoint, SHORT, on_short);
    AM_SetHandler(endpoint, MEDIUM, on_medium);
    AM_SetHandler(endpoint, LONG, on_long);
    if (AM_SetSeg(endpoint, landing, sizeof landing) != AM_OK) fail("AM_SetSeg");
    AMUDP_SPMDBarrier();
}
static void send_to_other(const void *bytes, size_t length) {
    int words[2];
    if (length == sizeof words) {
        memcpy(words, bytes, sizeof words);
        if (AM_Request2(endpoint, 1 - me, SHORT, words[0], words[1]) != AM_OK) fail("AM_Request");
    } else if (length <= AMUDP_MAX_MEDIUM) {
        if (AM_RequestI0(endpoint, 1 - me, MEDIUM, (void *)bytes, length) != AM_OK) fail("AM_RequestI");
    } else {
        static size_t half;
        half = MOST - half;
        if (length > AMUDP_MAX_LONG || AM_RequestXfer0(endpoint, 1 - me, half, LONG, (void *)bytes, length) != AM_OK) {
            fail("AM_RequestXfer");
        }
    }
}
static void receive(void *bytes, size_t length) { RECEIVE(AM_Poll(bundle)); }
static void leave(void) { AMUDP_SPMDExit(0); }

#elif defined(FM)
#include <fm.h>
static unsigned char *place;
static int on_message(FM_stream *stream, unsigned sender) {
    (void)sender;
    uint64_t head[2];
    FM_receive(head, stream, sizeof head);
    FM_receive(place, stream, (unsigned)(head[0] - 8));
    take_in(head[1], head[0]);
    return FM_CONTINUE;
}
static void join(int *argc, char ***argv) {
    (void)argc, (void)argv;
    place = malloc(MOST);
    FM_register_handler(1, on_message);
    FM_initialize();
    me = (int)FM_nodeid;
}
static void send_to_other(const void *bytes, size_t length) {
    uint64_t head = length;
    FM_stream *stream = FM_begin_message((unsigned long)(1 - me), sizeof head + length, 1);
    FM_send_piece(stream, &head, sizeof head);
    FM_send_piece(stream, (void *)bytes, length);
    FM_end_message(stream);
}
static void receive(void *bytes, size_t length) { RECEIVE(FM_extract(~0u)); }
static void leave(void) { FM_finalize(); }

#elif defined(PANDA)
#include <pan_mp.h>
static int map;
static pan_msg_p received;
static void join(int *argc, char ***argv) {
    pan_init(argc, *argv);
    if (pan_nr_platforms() != 2) fail("two processes are needed");
    me = pan_my_pid();
    map = pan_mp_register_map();
    received = pan_msg_create();
    pan_start();
}
static void send_to_other(const void *bytes, size_t length) {
    pan_msg_p message = pan_msg_create();
    memcpy(pan_msg_push(message, (int)length, 8), bytes, length);
    pan_mp_send_message(1 - me, map, message, MODE_ASYNC);
}
static void receive(void *bytes, size_t length) {
    pan_mp_receive_message(map, received, MODE_SYNC);
    memcpy(bytes, pan_msg_pop(received, (int)length, 8), length);
}
static void leave(void) { pan_end(); }
#else
#error "an interface is chosen by -DNATIVE, -DPVM, -DP4, -DTCGMSG, -DAM, -DFM or -DPANDA"
#endif

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned char *out, *in;
static size_t bytes;

static void send_next(void) {
    memcpy(out, &number, 8);
    send_to_other(out, bytes);
}

static void receive_next(void) {
    uint64_t came;
    receive(in, bytes);
    memcpy(&came, in, 8);
    if (came != number) fail("a message with another number has arrived");
}

static void rounds(int exchange, long n) {
    for (long i = 0; i < n; i++, number++) {
        if (exchange || me == 0) {
            send_next();
            receive_next();
        } else {
            receive_next();
            send_next();
        }
    }
}

int main(int argc, char **argv) {
    join(&argc, &argv);
    if (argc != 4) fail("usage: interfacebench pingpong|exchange BYTES SECONDS");
    int exchange = strcmp(argv[1], "exchange") == 0;
    double seconds = atof(argv[3]), best = 0, spent = 0;
    bytes = (size_t)atol(argv[2]);
    if (bytes < 8 || bytes > MOST) fail("BYTES is 8 to 64 MiB");
    out = calloc(1, bytes);
    in = calloc(1, bytes);
    memset(out, 1, bytes);
    /* Both count the same rounds: process 0 says before each batch how many there are, 0 at the end. */
    long n = 8, done = 0;
    for (;;) {
        uint64_t count = (uint64_t)n | ROUNDS;
        if (me == 0) {
            send_to_other(&count, 8);
        } else {
            asking_rounds = 1;
            receive(&count, 8);
            asking_rounds = 0;
        }
        count &= ~ROUNDS;
        if (count == 0) break;
        double begin = now();
        rounds(exchange, (long)count);
        double took = now() - begin;
        if (me != 0) continue;
        if (took < seconds / 20) {
            n *= 2; /* the warm-up */
        } else {
            spent += took;
            done += n;
        }
        if (spent >= seconds) {
            best = spent / (double)done / (exchange ? 1 : 2);
            n = 0;
        }
    }
    if (me == 0) printf("figure %s %.9g s\n", argv[1], best);
    fflush(stdout);
    leave();
    return 0;
}
