/* The rank that the first argument names fails in `innermost`, which `main` calls through `between`; the others wait to be
   ended. With "abort" as the second argument it calls abort there. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int *nowhere;

__attribute__((noinline)) int innermost(int how) {
    if (how)
        abort();
    *nowhere = 1;
    return 2;
}

__attribute__((noinline)) int between(int how) { return innermost(how) + 1; }

int main(int argc, char **argv) {
    const char *rank = getenv("PMI_RANK");
    if (argc > 1 && rank && !strcmp(rank, argv[1]))
        return between(argc > 2 && !strcmp(argv[2], "abort")) - 3;
    for (;;)
        pause();
}
