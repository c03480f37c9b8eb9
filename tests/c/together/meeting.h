/* What a PVM program and a P4 program have in common that meet at a port of the native interface. */
#include <stdio.h>
#include <stdlib.h>
#include <weft.h>

enum { LONGEST = 400000, TURNS = 30 };

static const int LENGTHS[] = {1, 48, 1000, 5000, 70000, LONGEST};
static unsigned char bytes[LONGEST];

#define NEED(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #what, weft_error());                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
