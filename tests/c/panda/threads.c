/* Threads, locks, conditions, keys, time, and the comparison of clocks. */
#include "check.h"
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 2000 };

static pan_mutex_p lock;
static pan_cond_p turn_changed;
static pan_key_p key;
static int turn, turns;

/* Each in its turn. */
static void take_turns(void *argument)
{
    int number = *(int *)argument, i;
    CHECK(pan_thread_self() != NULL);
    pan_key_setspecific(key, argument);
    for (i = 0; i < ROUNDS; i++) {
        pan_mutex_lock(lock);
        while (turn != number)
            pan_cond_wait(turn_changed);
        turn = (turn + 1) % THREADS;
        turns++;
        pan_cond_broadcast(turn_changed);
        pan_mutex_unlock(lock);
        pan_thread_yield();
    }
    CHECK(pan_key_getspecific(key) == argument);
    pan_thread_exit();
}

static void threads(void)
{
    pan_thread_p all[THREADS];
    int numbers[THREADS], i;
    lock = pan_mutex_create();
    turn_changed = pan_cond_create(lock);
    key = pan_key_create();
    CHECK(pan_key_getspecific(key) == NULL);
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        all[i] = pan_thread_create(take_turns, &numbers[i], i % 2 ? 100000L : 0L, 0, 0);
    }
    for (i = 0; i < THREADS; i++) {
        pan_thread_join(all[i]);
        pan_thread_clear(all[i]);
    }
    CHECK(turns == THREADS * ROUNDS);
    CHECK(pan_thread_self() == pan_thread_self());
    CHECK(pan_thread_minprio() <= pan_thread_getprio() && pan_thread_getprio() <= pan_thread_maxprio());
    int before = pan_thread_getprio();
    CHECK(pan_thread_setprio(pan_thread_maxprio()) == before && pan_thread_getprio() == pan_thread_maxprio());

    CHECK(pan_mutex_trylock(lock) == 1);
    CHECK(pan_mutex_trylock(lock) == 0);
    pan_time_p until = pan_time_create(), tenth = pan_time_create();
    pan_time_get(until);
    pan_time_d2t(tenth, 0.01);
    pan_time_add(until, tenth);
    CHECK(pan_cond_timedwait(turn_changed, until) == 0);
    pan_time_get(tenth);
    CHECK(pan_time_cmp(tenth, until) >= 0);
    pan_mutex_unlock(lock);
    pan_time_clear(until);
    pan_time_clear(tenth);
    pan_key_clear(key);
    pan_cond_clear(turn_changed);
    pan_mutex_clear(lock);
}

static int entered, left;

static void wait_once(void *argument)
{
    (void)argument;
    pan_mutex_lock(lock);
    entered++;
    pan_cond_wait(turn_changed);
    left++;
    pan_mutex_unlock(lock);
    pan_thread_exit();
}

static int of(const int *number)
{
    pan_mutex_lock(lock);
    int read = *number;
    pan_mutex_unlock(lock);
    return read;
}

/* A signal wakes one thread, also where one of those that wait moves the fabric. */
static void signals(void)
{
    enum { WAITERS = 3 };
    pan_thread_p all[WAITERS];
    int i;
    lock = pan_mutex_create();
    turn_changed = pan_cond_create(lock);
    for (i = 0; i < WAITERS; i++)
        all[i] = pan_thread_create(wait_once, NULL, 0L, 0, 0);
    while (of(&entered) < WAITERS)
        pan_thread_yield();
    for (i = 1; i <= WAITERS; i++) {
        pan_mutex_lock(lock);
        pan_cond_signal(turn_changed);
        pan_mutex_unlock(lock);
        while (of(&left) < i)
            pan_thread_yield();
        usleep(20000);
        CHECK(of(&left) == i);
    }
    for (i = 0; i < WAITERS; i++) {
        pan_thread_join(all[i]);
        pan_thread_clear(all[i]);
    }
    pan_cond_clear(turn_changed);
    pan_mutex_clear(lock);
}

static void times(void)
{
    pan_time_p a = pan_time_create(), b = pan_time_create();
    long difference;
    pan_time_fix_t fix, other = {1, 999999999};
    pan_time_set(a, 3, 500000000UL);
    pan_time_set(b, 1, 700000000UL);
    pan_time_sub(b, a);
    CHECK(pan_time_t2d(b) == -1.8 && pan_time_cmp(b, pan_time_zero) == -1);
    pan_time_mul(b, -2);
    CHECK(pan_time_t2d(b) == 3.6 && pan_time_cmp(b, a) == 1 && pan_time_cmp(b, b) == 0);
    pan_time_div(b, 3);
    CHECK(pan_time_t2d(b) == 1.2);
    pan_time_mulf(b, 0.5);
    CHECK(pan_time_t2d(b) == 0.6 && pan_time_cmp(b, pan_time_infinity) < 0);
    CHECK(pan_time_sub_fix_small(a, b, &difference) == 1 && difference == 2900000000L);
    pan_time_t2fix(a, &fix);
    CHECK(fix.t_sec == 3 && fix.t_nsec == 500000000 && pan_time_fix_cmp(&fix, &other) == 1);
    pan_time_fix_add(&fix, &other);
    CHECK(fix.t_sec == 5 && fix.t_nsec == 499999999);
    pan_time_fix_sub(&fix, &other);
    CHECK(fix.t_sec == 3 && fix.t_nsec == 500000000 && pan_time_fix_t2d(&fix) == 3.5);
    pan_time_fix2t(&other, b);
    pan_msg_p message = pan_msg_create();
    tm_push_time(message, a);
    tm_push_double(message, 2.5);
    tm_push_ulong(message, 7);
    pan_pset_p set = pan_pset_create(), same = pan_pset_create();
    pan_pset_add(set, 0);
    tm_push_pset(message, set);
    tm_look_pset(message, same);
    tm_pop_pset(message, NULL);
    unsigned long number;
    double real;
    tm_pop_ulong(message, &number);
    tm_look_double(message, &real);
    tm_pop_double(message, NULL);
    tm_pop_time(message, b);
    CHECK(number == 7 && real == 2.5 && pan_time_cmp(a, b) == 0 && pan_pset_ismember(same, 0));
    pan_pset_clear(set);
    pan_pset_clear(same);
    pan_msg_clear(message);
    pan_time_clear(a);
    pan_time_clear(b);
}

static void clocks(void)
{
    pan_time_p shift = pan_time_create(), deviation = pan_time_create();
    CHECK(pan_clock_get_shift(shift, deviation) == 0);
    int counted = pan_clock_sync(20, shift, deviation);
    CHECK(counted > 0 && counted <= 20);
    /* All have one clock here. */
    CHECK(pan_time_t2d(shift) < 0.1 && pan_time_t2d(shift) > -0.1);
    CHECK(pan_clock_get_shift(shift, deviation) == 1);
    pan_time_clear(shift);
    pan_time_clear(deviation);
}

int main(int argc, char **argv)
{
    int word = 1;
    pan_init(&argc, argv);
    pan_util_init();
    int map = pan_mp_register_map();
    CHECK(pan_is_bigendian() == !*(char *)&word);
    pan_start();
    times();
    threads();
    signals();
    clocks();
    /* Who asks for the time of platform 0 finds it there. */
    meet(map);
    pan_util_end();
    say_ok();
    pan_end();
    return 0;
}
