/* Children that send and end at once, before their parent asks for them: what they have sent is received. */
#include <pvm3.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int tid, number = 7;
    (void)argc;
    if (pvm_parent() > 0) {
        pvm_initsend(PvmDataDefault);
        pvm_pkint(&number, 1, 1);
        return pvm_send(pvm_parent(), 1) != 0 || pvm_exit() != 0;
    }
    for (int round = 0; round < 20; round++) {
        if (pvm_spawn(argv[0], 0, PvmTaskDefault, 0, 1, &tid) != 1)
            return 1;
        usleep(round * 500);
        if (pvm_recv(tid, 1) <= 0 || pvm_upkint(&number, 1, 1) != 0 || number != 7)
            return 2;
    }
    return pvm_exit() != 0 || puts("ok") < 0;
}
