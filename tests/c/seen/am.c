/* Process 0 polls, process 1 waits for a message, the others at a barrier; an argument: the last ends without leave. */
#include <amudp_spmd.h>
#include <unistd.h>

int main(int count, char **words)
{
    eb_t bundle;
    ep_t ep;
    int is_alone = count > 1;
    AMUDP_SPMDStartup(&count, &words, 0, 0, NULL, NULL, &bundle, &ep);
    if (is_alone && AMUDP_SPMDMyProc() == AMUDP_SPMDNumProcs() - 1)
        _exit(0);
    if (AMUDP_SPMDMyProc() == 0)
        for (;;)
            AM_Poll(bundle);
    AM_SetEventMask(bundle, AM_NOTEMPTY);
    if (AMUDP_SPMDMyProc() == 1)
        AM_WaitSema(bundle);
    AMUDP_SPMDBarrier();
    return AMUDP_SPMDExit(0);
}
