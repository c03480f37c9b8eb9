/* Each process waits in another call; with an argument the last one ends without leave. */
#include <tcgmsg.h>
#include <unistd.h>

int main(int count, char **words)
{
    char room[8];
    long length, from;
    tcg_pbegin(count, words);
    if (count > 1 && tcg_nodeid() == tcg_nnodes() - 1)
        _exit(0);
    if (tcg_nodeid() == 0)
        tcg_rcv(5, room, sizeof room, &length, -1, &from, 1);
    else if (tcg_nodeid() == 1)
        tcg_synch(3);
    else
        tcg_nxtval(-tcg_nnodes());
    tcg_pend();
    return 0;
}
