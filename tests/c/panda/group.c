/* Groups: all members get the same messages in the same order, whoever sends, also upcalls. */
#include "check.h"
#include <pan_bg.h>
#include <pan_group.h>
#include <unistd.h>

enum { MESSAGES = 500, LONG = 40000 };

static int me, all;
static pan_group_p group, other;
static struct tally came, others, broadcasts;
static unsigned long order, broadcast_order;
static int depth, numbers[16];
/* The sender gets its own messages back, and not copies. */
static pan_msg_p sent[MESSAGES];

static pan_msg_p message_of(int from, int number, int answer)
{
    pan_msg_p message = pan_msg_create();
    if (number % 100 == 7)
        memset(pan_msg_push(message, LONG, 1), from, LONG);
    tm_push_int(message, from);
    tm_push_int(message, number);
    tm_push_int(message, answer);
    return message;
}

static void take(pan_msg_p message, unsigned long *order, int *from, int *number, int *answer)
{
    tm_pop_int(message, answer);
    tm_pop_int(message, number);
    tm_pop_int(message, from);
    if (*number % 100 == 7) {
        char *bytes = pan_msg_pop(message, LONG, 1);
        CHECK(bytes[0] == *from && bytes[LONG - 1] == *from);
    }
    *order = 31 * *order + 1000 * *from + 2 * *number + *answer;
    pan_msg_clear(message);
}

static void receive(pan_msg_p message)
{
    int from, number, answer;
    pan_msg_p as_came = message;
    CHECK(depth++ == 0);
    take(message, &order, &from, &number, &answer);
    if (!answer) {
        CHECK(number == numbers[from]++);
        CHECK(from != me || as_came == sent[number]);
    }
    /* Each tenth is answered by all, with a call to another platform before. */
    if (!answer && number % 10 == 0) {
        pan_msg_p out = message_of(me, number, 1), in;
        pan_rpc_trans((me + 1) % all, out, &in);
        pan_msg_clear(in);
        pan_group_send(group, out);
    }
    depth--;
    count(&came);
}

static void serve(pan_upcall_p upcall, pan_msg_p request)
{
    pan_rpc_reply(upcall, request);
}

static void receive_other(pan_msg_p message)
{
    pan_msg_clear(message);
    count(&others);
}

static volatile int ended, waits;
static struct tally passing, woken;

/* Who is woken in an upcall does not overtake it. */
static void receive_slowly(pan_msg_p message)
{
    pan_msg_clear(message);
    while (!waits)
        usleep(100);
    /* It waits once the lock is free. */
    count(&woken);
    usleep(2000);
    ended++;
}

/* Waits, and so runs upcalls. */
static void wait_beside(void *nothing)
{
    (void)nothing;
    pan_mutex_lock(passing.lock);
    passing.count++;
    while (passing.count < 2)
        pan_cond_wait(passing.changed);
    pan_mutex_unlock(passing.lock);
    pan_thread_exit();
}

static void overtake(void)
{
    int i;
    passing = tally();
    woken = tally();
    pan_group_p alone = pan_group_join(me == 0 ? "zero" : me == 1 ? "one alone" : "more", receive_slowly);
    if (me < 2) {
        pan_thread_p beside = pan_thread_create(wait_beside, NULL, 0L, 0, 0);
        /* Not by a wait, since who waits first runs the upcalls. */
        for (i = 0; i == 0; pan_thread_yield()) {
            pan_mutex_lock(passing.lock);
            i = passing.count;
            pan_mutex_unlock(passing.lock);
        }
        for (i = 1; i <= 20; i++) {
            pan_group_send(alone, pan_msg_create());
            pan_mutex_lock(woken.lock);
            waits = 1;
            while (woken.count < i)
                pan_cond_wait(woken.changed);
            waits = 0;
            pan_mutex_unlock(woken.lock);
            CHECK(ended == i);
        }
        count(&passing);
        pan_thread_join(beside);
        pan_thread_clear(beside);
    }
    pan_group_leave(alone);
    pan_group_clear(alone);
}

static void receive_broadcast(pan_msg_p message)
{
    int from, number, answer;
    take(message, &broadcast_order, &from, &number, &answer);
    count(&broadcasts);
}

/* What platform 0 has is what all have. */
static void compare(int map, unsigned long mine)
{
    pan_msg_p message = pan_msg_create();
    unsigned long first;
    int i;
    if (me == 0) {
        tm_push_ulong(message, mine);
        for (i = 1; i < all; i++)
            pan_mp_send_message(i, map, message, MODE_SYNC);
    } else {
        pan_mp_receive_message(map, message, MODE_SYNC);
        tm_pop_ulong(message, &first);
        CHECK(first == mine);
    }
    pan_msg_clear(message);
}

int main(int argc, char **argv)
{
    int i, members = 0, sequencer = -1;
    pan_init(&argc, argv);
    me = pan_my_pid();
    all = pan_nr_platforms();
    came = tally();
    others = tally();
    broadcasts = tally();
    int map = pan_mp_register_map();
    pan_group_init();
    pan_bg_init();
    pan_rpc_register(serve);
    pan_group_va_set_params(NULL, "PAN_GRP_hist_size", 32, "PAN_GRP_hist_status", 0.5, "PAN_GRP_send_timeout", 120.0,
                            "bb_large", 1024, NULL);
    pan_start();

    group = pan_group_join("one", receive);
    pan_group_await_size(group, all);
    pan_group_va_get_g_params(group, "PAN_GRP_n_members", &members, "PAN_GRP_sequencer", &sequencer, NULL);
    CHECK(members == all && sequencer >= 0 && sequencer < all);
    meet(map);
    for (i = 0; i < MESSAGES; i++) {
        pan_msg_p message = message_of(me, i, 0);
        sent[i] = message;
        pan_group_send(group, message);
    }
    await(&came, all * MESSAGES + all * all * MESSAGES / 10);
    compare(map, order);

    /* A second group of some of them, which the others join later. */
    if (me < 2)
        other = pan_group_join("other", receive_other);
    meet(map);
    if (me >= 2)
        other = pan_group_join("other", receive_other);
    pan_group_await_size(other, all);
    meet(map);
    pan_msg_p message = message_of(me, 0, 0);
    pan_group_send(other, message);
    await(&others, all);
    message = message_of(me, 0, 0);
    meet(map);
    pan_group_leave(other);
    pan_group_clear(other);

    overtake();
    meet(map);

    /* The handler comes late. */
    int entry = pan_bg_send_message(message, BG_MODE_SYNC2);
    pan_bg_finish_send(entry);
    pan_bg_send_message(message, BG_MODE_SYNC);
    pan_bg_register(receive_broadcast);
    for (i = 0; i < MESSAGES; i++)
        pan_bg_send_message(message_of(me, i, 0), BG_MODE_ASYNC);
    await(&broadcasts, all * (MESSAGES + 2));
    compare(map, broadcast_order);
    pan_msg_clear(message);
    meet(map);
    pan_bg_end();
    pan_group_leave(group);
    pan_group_clear(group);
    pan_group_end();
    say_ok();
    pan_end();
    return 0;
}
