/* What the programs of this folder have in common. */
#ifndef CHECK_H
#define CHECK_H

#include <pan_mp.h>
#include <pan_rpc.h>
#include <pan_sys.h>
#include <pan_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%d: %s:%d: %s\n", pan_my_pid(), __FILE__, __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

/* A number that upcalls count up, and a thread waits for. */
struct tally {
    pan_mutex_p lock;
    pan_cond_p changed;
    int count;
};

static inline struct tally tally(void)
{
    struct tally made = {pan_mutex_create(), NULL, 0};
    made.changed = pan_cond_create(made.lock);
    return made;
}

static inline void count(struct tally *tally)
{
    pan_mutex_lock(tally->lock);
    tally->count++;
    pan_cond_broadcast(tally->changed);
    pan_mutex_unlock(tally->lock);
}

static inline void await(struct tally *tally, int least)
{
    pan_mutex_lock(tally->lock);
    while (tally->count < least)
        pan_cond_wait(tally->changed);
    pan_mutex_unlock(tally->lock);
}

/* All have come here, over a map of their own. */
static inline void meet(int map)
{
    int others = pan_nr_platforms() - 1, i;
    pan_msg_p message = pan_msg_create();
    if (pan_my_pid() == 0) {
        for (i = 0; i < others; i++)
            pan_mp_receive_message(map, message, MODE_SYNC);
        for (i = 1; i <= others; i++)
            pan_mp_send_message(i, map, message, MODE_SYNC);
    } else {
        pan_mp_send_message(0, map, message, MODE_SYNC);
        pan_mp_receive_message(map, message, MODE_SYNC);
    }
    pan_msg_clear(message);
}

static inline void say_ok(void)
{
    if (pan_my_pid() == 0)
        printf("ok\n");
}

#endif
