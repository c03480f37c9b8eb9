/* The first task spawns two more and waits at a barrier, one for the mailbox and one for a message. With an argument
 * the last task of a job ends without leave. */
#include <pvm3.h>
#include <unistd.h>

int main(int count, char **words)
{
    int *siblings, all, me = pvm_mytid(), parent = pvm_parent();
    if (count > 1) {
        all = pvm_siblings(&siblings);
        if (siblings[all - 1] == me)
            _exit(0);
        pvm_recv(-1, 5);
    } else if (parent < 0) {
        pvm_spawn(words[0], NULL, PvmTaskDefault, "", 2, NULL);
        pvm_joingroup("seen");
        pvm_barrier("seen", 2);
    } else if (me % 2) {
        pvm_recv(-1, 5);
    } else {
        pvm_recvinfo("seen", 0, PvmMboxWaitForInfo);
    }
    return pvm_exit();
}
