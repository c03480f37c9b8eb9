/* What goes wrong, by its name. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "p4.h"

int main(int argc, char **argv) {
    p4_initenv(&argc, argv);
    const char *what = argv[1];
    p4_create_procgroup();
    char *msg = NULL;
    int type = 1, from = 1, length = 0;
    int me = p4_get_my_id();
    printf("%d\n", (int)getpid());
    fflush(stdout);
    p4_global_barrier(1);
    if (!strcmp(what, "soft")) {
        if (me == 0) {
            int before = p4_soft_errors(1), sent = p4_send(1, 77, "x", 1);
            printf("%d %d %d\n", before, sent, p4_soft_errors(0));
        }
    } else if (!strcmp(what, "last")) {
        static char bytes[400000];
        if (me == 0)
            p4_send(1, 1, bytes, sizeof bytes);
        from = 0;
        if (me == 1 && usleep(20000) == 0 && p4_recv(&type, &from, &msg, &length) == 0 && length == sizeof bytes)
            puts("arrived");
    } else if (!strcmp(what, "killed")) {
        if (me == 2)
            raise(SIGKILL);
        p4_recv(&type, &from, &msg, &length);
    } else if (!strcmp(what, "master killed")) {
        if (me == 0)
            raise(SIGKILL);
        p4_recv(&type, &from, &msg, &length);
    } else if (!strcmp(what, "computes")) {
        if (me == 1)
            raise(SIGKILL);
        for (;;)
            ;
    } else if (!strcmp(what, "error")) {
        if (me == 2)
            p4_error("the program says so", 42);
        p4_recv(&type, &from, &msg, &length);
    } else if (me == 0) {
        if (!strcmp(what, "process"))
            p4_send(1, 77, "x", 1);
        if (!strcmp(what, "length"))
            p4_send(1, 1, "x", -1);
        if (!strcmp(what, "twice")) {
            msg = p4_msg_alloc(100000);
            p4_msg_free(msg);
            p4_shfree(p4_shmalloc(5));
            p4_shfree(&type);
        }
        if (!strcmp(what, "gone"))
            p4_recv(&type, &from, &msg, &length);
        for (;;)
            pause();
    } else if (strcmp(what, "gone")) {
        for (;;)
            pause();
    }
    p4_wait_for_end();
    return 0;
}
