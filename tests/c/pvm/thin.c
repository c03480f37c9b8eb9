/* Enrols, spawns a copy of itself, and exchanges a packed integer with it. */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int me = pvm_mytid(), number = 0, child = 0;
    (void)argc;
    if (me < 0)
        return 1;
    if (pvm_parent() == PvmNoParent) {
        int started = pvm_spawn(argv[0], NULL, PvmTaskDefault, "", 1, &child);
        if (started != 1)
            return 2;
        number = 41;
        pvm_initsend(PvmDataDefault);
        pvm_pkint(&number, 1, 1);
        if (pvm_send(child, 7) != 0)
            return 3;
        if (pvm_recv(child, 8) <= 0 || pvm_upkint(&number, 1, 1) != 0)
            return 4;
        if (number != 42)
            return 5;
        puts("ok");
    } else {
        if (pvm_recv(pvm_parent(), 7) <= 0 || pvm_upkint(&number, 1, 1) != 0)
            return 6;
        number++;
        pvm_initsend(PvmDataRaw);
        pvm_pkint(&number, 1, 1);
        if (pvm_send(pvm_parent(), 8) != 0)
            return 7;
    }
    return pvm_exit() == 0 ? 0 : 8;
}
