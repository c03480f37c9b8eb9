/* Upcalls run while the program computes, and while a thread holds a lock in a call; what is wrong ends the job. */
#include "check.h"

static volatile int came;
static pan_mutex_p lock;

static void serve(pan_upcall_p upcall, pan_msg_p request)
{
    /* Its holder waits for an answer of the other one. */
    pan_mutex_lock(lock);
    came++;
    pan_mutex_unlock(lock);
    pan_rpc_reply(upcall, request);
}

static void compute(int map)
{
    int me = pan_my_pid(), i;
    pan_msg_p message = pan_msg_create(), answer;
    for (i = 0; i < 50; i++) {
        if (me == 0) {
            pan_rpc_trans(1, message, &answer);
            pan_msg_clear(answer);
        } else {
            while (came <= i) {
            }
        }
    }
    meet(map);
    for (i = 0; i < 50; i++) {
        if (me == 0)
            pan_mutex_lock(lock);
        pan_rpc_trans(1 - me, message, &answer);
        if (me == 0)
            pan_mutex_unlock(lock);
        pan_msg_clear(answer);
    }
    pan_msg_clear(message);
    meet(map);
}

static void wrong(const char *what)
{
    pan_msg_p message = pan_msg_create(), answer;
    if (strcmp(what, "pop") == 0)
        pan_msg_pop(message, 4, 4);
    if (strcmp(what, "alignment") == 0)
        pan_msg_push(message, 16, 16);
    if (strcmp(what, "platform") == 0)
        pan_rpc_trans(7, message, &answer);
    if (strcmp(what, "mode") == 0)
        pan_mp_send_message(0, 1, message, 3);
    if (strcmp(what, "map") == 0)
        pan_mp_receive_message(1023, message, MODE_SYNC);
    if (strcmp(what, "ended") == 0)
        pan_rpc_trans(1, message, &answer);
    if (strcmp(what, "panic") == 0)
        pan_panic("%d is %s", 7, "odd");
    if (strcmp(what, "early") == 0) {
        int i;
        pan_msg_push(message, 1 << 20, 1);
        for (i = 0; i < 300; i++)
            pan_mp_send_message(1, 1000, message, MODE_SYNC);
    }
}

int main(int argc, char **argv)
{
    pan_init(&argc, argv);
    int map = pan_mp_register_map();
    lock = pan_mutex_create();
    if (argc > 1) {
        pan_start();
        if (pan_my_pid() == 0)
            wrong(argv[1]);
        else if (strcmp(argv[1], "early") == 0)
            pan_mp_receive_message(map, pan_msg_create(), MODE_SYNC);
    } else {
        pan_rpc_register(serve);
        pan_start();
        compute(map);
        say_ok();
    }
    pan_end();
    return 0;
}
