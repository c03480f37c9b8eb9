/* Each process waits in another call; with an argument the last one ends without leave. */
#include <p4.h>
#include <unistd.h>

static struct shared {
    p4_monitor_t monitor;
    p4_barrier_monitor_t barrier;
    p4_lock_t lock;
} *shared;

int main(int count, char **words)
{
    int type = 3, from = -1, length;
    char *message = NULL;
    p4_initenv(&count, words);
    shared = (struct shared *)p4_shmalloc(sizeof *shared);
    p4_moninit(&shared->monitor, 1);
    p4_barrier_init(&shared->barrier);
    p4_lock_init(&shared->lock);
    p4_lock(&shared->lock);
    p4_create_procgroup();
    if (count > 1 && p4_get_my_id() == p4_num_total_ids() - 1)
        _exit(0);
    switch (count > 1 ? 0 : p4_get_my_id()) {
    case 0:
        p4_recv(&type, &from, &message, &length);
        break;
    case 1:
        p4_barrier(&shared->barrier, 9);
        break;
    case 2:
        p4_menter(&shared->monitor);
        p4_mdelay(&shared->monitor, 0);
        break;
    case 3:
        p4_lock(&shared->lock);
        break;
    default:
        p4_global_barrier(1);
    }
    return p4_wait_for_end();
}
