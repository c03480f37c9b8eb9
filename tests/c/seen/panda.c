/* Process 0 polls, process 1 calls process 2, which waits for a condition; with an argument the last one ends without
 * leave. */
#include <pan_rpc.h>
#include <unistd.h>

int main(int count, char **words)
{
    pan_mutex_p lock = pan_mutex_create();
    pan_cond_p never = pan_cond_create(lock);
    pan_msg_p message = pan_msg_create(), answer;
    pan_init(&count, words);
    pan_start();
    if (count > 1 && pan_my_pid() == pan_nr_platforms() - 1)
        _exit(0);
    if (pan_my_pid() == 1)
        pan_rpc_trans(2, message, &answer);
    while (pan_my_pid() == 0)
        pan_poll();
    pan_mutex_lock(lock);
    pan_cond_wait(never);
    pan_end();
    return 0;
}
