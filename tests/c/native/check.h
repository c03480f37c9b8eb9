/* What the programs of this folder share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>

#define CHECK(condition)                                                                                            \
    do {                                                                                                            \
        if (!(condition)) {                                                                                         \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, weft_error());              \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)

#define FAILS(call, number, words)                                                                                  \
    do {                                                                                                            \
        CHECK((call) == (number));                                                                                  \
        CHECK(strstr(weft_error(), words));                                                                         \
    } while (0)

/* Process 0 says that all is well; the others have said so to it, at port 9999. */
static inline void finish(void)
{
    int others = weft_size() - 1;
    CHECK(weft_port_open(9999) == 9999);
    if (weft_me() != 0)
        CHECK(weft_send(0, 9999, 0, NULL, 0) == 0);
    else
        while (others-- > 0)
            CHECK(weft_receive(9999, WEFT_ANY, 0, NULL, 0, NULL) == 0);
    if (weft_me() == 0)
        puts("ok");
    CHECK(weft_finish() == 0);
}
