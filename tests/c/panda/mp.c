/* Message passing: modes, order, direct receives, handlers that send, messages that come early, floods. */
#include "check.h"

enum { MESSAGES = 3000 };

static int me, all, left, right;
static struct tally handled;
static int numbers_map, expected_number;

static pan_msg_p numbered(int number)
{
    pan_msg_p message = pan_msg_create();
    tm_push_int(message, number);
    return message;
}

static void on_number(int map, pan_msg_p message)
{
    int number;
    CHECK(map == numbers_map);
    tm_pop_int(message, &number);
    CHECK(number == expected_number);
    expected_number++;
    pan_msg_clear(message);
    count(&handled);
}

/* Each message goes once round, passed on by upcalls. */
static int round_map;
static struct tally arrived;
static void on_round(int map, pan_msg_p message)
{
    int steps;
    (void)map;
    tm_pop_int(message, &steps);
    if (steps == 0) {
        pan_msg_clear(message);
        count(&arrived);
        return;
    }
    tm_push_int(message, steps - 1);
    pan_mp_send_message(right, round_map, message, MODE_ASYNC);
}

/* Pieces of several lengths, also such that none fits behind the one before. */
static void pieces(int map, int mode)
{
    static const int lengths[] = {20000, 3, 20000, 8, 600, 1, 70000};
    enum { PIECES = sizeof lengths / sizeof *lengths };
    pan_msg_p out = pan_msg_create(), in = pan_msg_create();
    int i, k, sent = -1, received;
    char *places[PIECES];
    for (i = 0; i < PIECES; i++)
        memset(places[i] = pan_msg_push(out, lengths[i], 8), 'a' + i, lengths[i]);
    received = pan_mp_receive_message(map, in, MODE_SYNC2);
    for (i = 0; i < PIECES; i++)
        CHECK(places[i][lengths[i] - 1] == 'a' + i);
    if (mode == MODE_ASYNC)
        pan_mp_send_message(right, map, out, mode);
    else
        sent = pan_mp_send_message(right, map, out, MODE_SYNC2);
    while (!pan_mp_poll_receive(received)) {
    }
    pan_mp_finish_receive(received);
    if (mode != MODE_ASYNC) {
        while (!pan_mp_poll_send(sent)) {
        }
        pan_mp_finish_send(sent);
        pan_msg_clear(out);
    }
    pan_msg_p copy = pan_msg_create();
    pan_msg_copy(in, copy);
    for (k = 0; k < 2; k++) {
        pan_msg_p from = k ? copy : in;
        for (i = PIECES - 1; i >= 0; i--) {
            char *looked = pan_msg_look(from, lengths[i], 8), *place = pan_msg_pop(from, lengths[i], 8);
            CHECK(looked == place && (size_t)place % 8 == 0 && place[0] == 'a' + i && place[lengths[i] - 1] == 'a' + i);
        }
        pan_msg_clear(from);
    }
}

/* The receiver says where to. */
static void direct(int map)
{
    pan_msg_p in = pan_msg_create(), ticket = pan_msg_create();
    int receive = pan_mp_receive_message(DIRECT_MAP, in, MODE_SYNC2), to, number;
    tm_push_int(ticket, receive);
    pan_mp_send_message(left, map, ticket, MODE_SYNC);
    pan_mp_receive_message(map, ticket, MODE_SYNC);
    tm_pop_int(ticket, &to);
    pan_mp_send_message(right, to, numbered(100 + me), MODE_ASYNC);
    pan_mp_finish_receive(receive);
    tm_pop_int(in, &number);
    CHECK(number == 100 + left);
    pan_msg_clear(in);
    pan_msg_clear(ticket);
}

static int released;
static void release(pan_msg_p message, void *argument)
{
    released += *(int *)argument;
    pan_msg_clear(message);
}

int main(int argc, char **argv)
{
    pan_init(&argc, argv);
    me = pan_my_pid();
    all = pan_nr_platforms();
    left = (me + all - 1) % all;
    right = (me + 1) % all;
    pan_mp_init();
    int map = pan_mp_register_map(), pieces_map = pan_mp_register_map(), meet_map = pan_mp_register_map(), i;
    handled = tally();
    arrived = tally();
    pan_start();

    direct(map);
    pieces(pieces_map, MODE_SYNC2);
    pieces(pieces_map, MODE_ASYNC);

    /* These come before the map is there, and before its handler. */
    meet(meet_map);
    int one = 1, two = 20;
    for (i = 0; i < MESSAGES; i++) {
        pan_msg_p message = numbered(i);
        pan_msg_release_push(message, release, &one);
        pan_msg_release_push(message, release, &two);
        pan_mp_send_message(right, meet_map + 1, message, MODE_ASYNC);
    }
    CHECK(released == 21 * MESSAGES);
    meet(meet_map);
    numbers_map = pan_mp_register_map();
    CHECK(numbers_map == meet_map + 1);
    pan_mp_register_async_receive(numbers_map, on_number);
    await(&handled, MESSAGES);

    meet(meet_map);
    round_map = pan_mp_register_map();
    pan_mp_register_async_receive(round_map, on_round);
    meet(meet_map);
    for (i = 0; i < MESSAGES; i++)
        pan_mp_send_message(right, round_map, numbered(2 * all - 1), MODE_ASYNC);
    await(&arrived, MESSAGES);

    /* What nobody has asked for is handed over. */
    meet(meet_map);
    pan_mp_send_message(right, map, numbered(1), MODE_ASYNC);
    meet(meet_map);
    meet(meet_map);
    pan_mp_clear_map(map, pan_msg_clear);
    pan_mp_free_map(map);
    CHECK(pan_mp_register_map() == map);
    pan_mp_end();
    say_ok();
    pan_end();
    return 0;
}
