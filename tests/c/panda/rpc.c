/* Remote procedure calls: of all lengths, in circles, answered later and in another order, by several threads, and before
 * there is a handler. */
#include "check.h"

enum { ECHO, CIRCLE, LATER, LAST };
enum { THREADS = 3, CALLS = 200 };

static int me, all;
static pan_mutex_p lock;
static pan_cond_p there;
static struct {
    pan_upcall_p upcall;
    int number;
} queue[64];
static int waiting, answered;

static pan_msg_p request(int what, int number)
{
    pan_msg_p message = pan_msg_create();
    tm_push_int(message, number);
    tm_push_int(message, what);
    return message;
}

static int answer(pan_msg_p message)
{
    int number;
    tm_pop_int(message, &number);
    pan_msg_clear(message);
    return number;
}

static int call(int to, int what, int number)
{
    pan_msg_p out = request(what, number), in;
    pan_rpc_trans(to, out, &in);
    pan_msg_clear(out);
    return answer(in);
}

static void serve(pan_upcall_p upcall, pan_msg_p message)
{
    int what, number;
    tm_pop_int(message, &what);
    if (what == ECHO) {
        pan_rpc_reply(upcall, message);
        return;
    }
    tm_pop_int(message, &number);
    pan_msg_empty(message);
    if (what == LATER) {
        pan_msg_clear(message);
        pan_mutex_lock(lock);
        CHECK(waiting < 64);
        queue[waiting].upcall = upcall;
        queue[waiting++].number = number;
        pan_cond_signal(there);
        pan_mutex_unlock(lock);
        return;
    }
    /* The call goes round until the number is 0. */
    tm_push_int(message, number == 0 ? 0 : 1 + call((me + 1) % all, CIRCLE, number - 1));
    pan_rpc_reply(upcall, message);
}

/* Answers the calls that wait, the last one first. */
static void answer_later(void *calls)
{
    pan_mutex_lock(lock);
    while (answered < *(int *)calls) {
        while (waiting == 0)
            pan_cond_wait(there);
        waiting--;
        pan_msg_p message = pan_msg_create();
        tm_push_int(message, queue[waiting].number + 1);
        pan_rpc_reply(queue[waiting].upcall, message);
        answered++;
    }
    pan_mutex_unlock(lock);
    pan_thread_exit();
}

static void call_often(void *argument)
{
    int i, thread = *(int *)argument;
    for (i = 0; i < CALLS; i++) {
        int number = 1000 * thread + i;
        CHECK(call((me + 1) % all, LATER, number) == number + 1);
    }
    pan_thread_exit();
}

static void echo(int length)
{
    pan_msg_p out = pan_msg_create(), in;
    char *bytes = pan_msg_push(out, length, 1), *came;
    memset(bytes, length % 251, length);
    *(int *)pan_msg_push(out, sizeof(int), alignof(int)) = ECHO;
    /* The request stays as it is, so it may be sent again. */
    for (int i = 0; i < 3; i++) {
        pan_rpc_trans((me + 1) % all, out, &in);
        came = pan_msg_pop(in, length, 1);
        CHECK(memcmp(came, bytes, length) == 0);
        pan_msg_clear(in);
    }
    pan_msg_clear(out);
}

int main(int argc, char **argv)
{
    pan_init(&argc, argv);
    me = pan_my_pid();
    all = pan_nr_platforms();
    int map = pan_mp_register_map(), expected = THREADS * CALLS, numbers[THREADS], i;
    static const int lengths[] = {0, 1, 48, 5000, 65000, 65472, 65480, 300000, 3000000};
    lock = pan_mutex_create();
    there = pan_cond_create(lock);
    pan_rpc_init();
    pan_start();
    /* Platform 0 is called before it has a handler. */
    if (me != 0)
        pan_rpc_register(serve);
    pan_thread_p callers[THREADS], answers = pan_thread_create(answer_later, &expected, 0, 0, 0);
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        callers[i] = pan_thread_create(call_often, &numbers[i], 0, 0, 0);
    }
    meet(map);
    if (me == 0)
        pan_rpc_register(serve);
    for (i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++)
        echo(lengths[i]);
    CHECK(call((me + 1) % all, CIRCLE, 3 * all) == 3 * all);
    for (i = 0; i < THREADS; i++) {
        pan_thread_join(callers[i]);
        pan_thread_clear(callers[i]);
    }
    pan_thread_join(answers);
    pan_thread_clear(answers);
    meet(map);
    pan_rpc_end();
    pan_cond_clear(there);
    pan_mutex_clear(lock);
    say_ok();
    pan_end();
    return 0;
}
