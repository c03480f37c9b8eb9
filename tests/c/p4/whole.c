/* P4 through its C interface, alone on a host or under weft run (argument: whether processes share memory). */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "p4.h"

#define NEED(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            p4_error("not so: " #what ", line", __LINE__);                                                             \
    } while (0)

enum { LONGEST = 3000000, TASKS = 400 };

static const int LENGTHS[] = {0, 1, 48, 49, 64, 4096, 65536, 65537, LONGEST};
enum { KINDS = sizeof LENGTHS / sizeof LENGTHS[0] };

struct shared {
    p4_barrier_monitor_t barrier;
    p4_getsub_monitor_t getsub;
    p4_askfor_monitor_t askfor;
    p4_lock_t lock;
    int count, taken[TASKS], left, resets, bred;
} *shared;

static int me, all;

static void fill(char *bytes, int length, int seed) {
    for (int i = 0; i < length; i++)
        bytes[i] = (char)(i * 7 + i / 251 + seed);
}

static int is_filled(const char *bytes, int length, int seed) {
    for (int i = 0; i < length; i++)
        if (bytes[i] != (char)(i * 7 + i / 251 + seed))
            return 0;
    return 1;
}

/* All send to their neighbours before anybody receives: no send waits. */
static void ring(void) {
    int right = (me + 1) % all, left = (me + all - 1) % all;
    char *out = p4_msg_alloc(LONGEST);
    for (int kind = 0; kind < KINDS; kind++) {
        fill(out, LENGTHS[kind], me + kind);
        if (kind % 2)
            p4_sendb(kind, right, out, LENGTHS[kind]);
        else
            p4_sendx(kind, right, out, LENGTHS[kind], P4INT);
    }
    fill(out, LONGEST, 0);
    /* Backwards, so that types are selected. */
    for (int kind = KINDS - 1; kind >= 0; kind--) {
        int type = kind, from = left, length = -1;
        char *in = NULL;
        NEED(p4_recv(&type, &from, &in, &length) == 0);
        NEED(type == kind && from == left && length == LENGTHS[kind] && is_filled(in, length, left + kind));
        p4_msg_free(in);
    }
    p4_msg_free(out);
}

static void wildcards(void) {
    if (me == 0) {
        char *mine = p4_msg_alloc(10);
        for (int each = 1; each < all; each++) {
            int type = -1, from = -1, length = -1;
            NEED(p4_waitformsg() == 1 && p4_any_messages_available());
            NEED(p4_messages_available(&type, &from) && type == 20 + from);
            int seen = from;
            type = -1;
            NEED(p4_recv(&type, &from, &mine, &length) == 0 && from == seen && type == 20 + from);
            /* The message has 12 bytes, its buffer has 10. */
            NEED(length == 10 && !memcmp(mine, "a message of", 10));
        }
        int type = 99, from = -1;
        NEED(!p4_messages_available(&type, &from) && type == 99 && from == -1);
        p4_msg_free(mine);
    } else {
        p4_sendr(20 + me, 0, "a message of", 12);
    }
    p4_global_barrier(21);
}

static void together(void) {
    enum { MANY = 3000 };
    double x[MANY];
    float f[2] = {1.5f + me, -1.0f * me};
    int n[2] = {me + 1, -me};
    for (int i = 0; i < MANY; i++)
        x[i] = 0.5 * i * me;
    NEED(p4_global_op(30, x, MANY, sizeof *x, p4_dbl_sum_op, P4DBL) == 0);
    for (int i = 0; i < MANY; i++)
        NEED(x[i] == 0.5 * i * (all * (all - 1) / 2));
    p4_global_op(31, f, 2, sizeof *f, p4_flt_absmax_op, P4FLT);
    NEED(f[0] == 0.5f + all && f[1] * f[1] == (all - 1) * (all - 1));
    p4_global_op(32, n, 2, sizeof *n, p4_int_min_op, P4INT);
    NEED(n[0] == 1 && n[1] == 1 - all);
    for (int root = 0; root < all; root++) {
        int type = 33, from = root, length;
        char *in = NULL;
        if (me == root) {
            p4_broadcast(33, "to all of you", 14);
            continue;
        }
        p4_recv(&type, &from, &in, &length);
        NEED(length == 14 && !strcmp(in, "to all of you"));
        p4_msg_free(in);
    }
}

static int get_problem(void *problem) {
    if (shared->left == 0)
        return 1;
    *(int *)problem = --shared->left;
    return 0;
}

static int put_problem(void *problem) {
    (void)problem;
    shared->left++;
    shared->bred++;
    return 1;
}

static void reset(void) {
    shared->resets++;
}

static void monitors(void) {
    for (int round = 0; round < 2; round++) {
        int next = 0;
        while (p4_getsub(&shared->getsub, &next, TASKS - 1, all), next >= 0)
            shared->taken[next]++;
        p4_barrier(&shared->barrier, all);
    }
    for (int task = 0; task < TASKS; task++)
        NEED(shared->taken[task] == 2);
    for (int i = 0; i < 3000; i++) {
        p4_lock(&shared->lock);
        shared->count++;
        p4_unlock(&shared->lock);
    }
    p4_barrier(&shared->barrier, all);
    NEED(shared->count == 3000 * all);
    /* Each of 50 problems brings another one. */
    if (me == 0)
        shared->left = 50;
    p4_barrier(&shared->barrier, all);
    int problem, solved = 0, code;
    while ((code = p4_askfor(&shared->askfor, all, get_problem, &problem, reset)) == 0)
        if (++solved, problem >= 0 && shared->bred < 50)
            p4_update(&shared->askfor, put_problem, &problem);
    NEED(code == 1);
    p4_barrier(&shared->barrier, all);
    p4_global_op(40, &solved, 1, sizeof solved, p4_int_sum_op, P4INT);
    NEED(solved == 50 + shared->bred && shared->resets == 1);
    if (me == 0)
        p4_progend(&shared->askfor);
    p4_barrier(&shared->barrier, all);
    NEED(p4_askfor(&shared->askfor, all, get_problem, &problem, reset) == -1);
    /* Who waits for a lock lets go what it has sent. */
    if (all > 1 && me < 2) {
        char *out = p4_msg_alloc(LONGEST), *in = NULL;
        int type = 50, from = 1, length;
        fill(out, LONGEST, 5);
        if (me == 0)
            p4_lock(&shared->lock);
        p4_barrier(&shared->barrier, 2);
        if (me == 1) {
            p4_send(50, 0, out, LONGEST);
            p4_lock(&shared->lock);
        } else {
            p4_recv(&type, &from, &in, &length);
            NEED(length == LONGEST && is_filled(in, length, 5));
        }
        p4_unlock(&shared->lock);
    }
}

static int by_itself(void) {
    if (p4_get_my_id() != -1)
        return 1;
    p4_lock(&shared->lock);
    shared->count = -5;
    p4_unlock(&shared->lock);
    return 0;
}

int main(int argc, char **argv) {
    NEED(argc > 3);
    p4_initenv(&argc, argv);
    NEED(argc == 3);
    int expected = atoi(argv[1]), is_cluster = atoi(argv[2]), first, last, count, masters[100];
    shared = (struct shared *)p4_shmalloc(sizeof *shared);
    NEED(shared);
    memset(shared, 0, sizeof *shared);
    NEED(p4_barrier_init(&shared->barrier) == 0 && p4_getsub_init(&shared->getsub) == 0);
    NEED(p4_askfor_init(&shared->askfor) == 0);
    p4_lock_init(&shared->lock);
    NEED(p4_create_procgroup() == 0);
    me = p4_get_my_id();
    all = p4_num_total_ids();
    p4_get_cluster_ids(&first, &last);
    p4_get_cluster_masters(&count, masters);
    NEED(all == expected && me >= 0 && me < all && p4_num_total_slaves() == all - 1);
    NEED(p4_num_cluster_ids() == (is_cluster ? all : 1) && last - first + 1 == p4_num_cluster_ids());
    NEED(p4_get_my_cluster_id() == me - first && count == (is_cluster ? 1 : all) && masters[count - 1] == count - 1);
    /* A copy of a process that ends takes nothing of the process with it. */
    int status = -1;
    pid_t copy = fork();
    if (copy == 0)
        exit(0);
    NEED(copy > 0 && waitpid(copy, &status, 0) == copy && status == 0);
    ring();
    wildcards();
    together();
    if (is_cluster)
        monitors();
    p4_global_barrier(60);
    NEED(p4_clock() >= 0 && p4_ustimer() > 0);
    char *more = p4_shmalloc(100);
    NEED(more);
    p4_shfree(more);
    if (me == 0)
        p4_create(by_itself);
    p4_wait_for_end();
    if (me == 0) {
        NEED(shared->count == -5);
        puts("ok");
    }
    return 0;
}
