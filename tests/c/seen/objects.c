/* Process 0 computes, the others wait for a number; with an argument the last one ends without leave. */
#include <unistd.h>
#include <weft_objects.h>

int main(int count, char **words)
{
    (void)words;
    int number;
    if (weft_objects_init() < 0 || (number = weft_integer_share("number", 0)) < 0)
        return 1;
    if (count > 1 && weft_objects_me() == weft_objects_size() - 1)
        _exit(0);
    /* The others have opened it before the first one computes. */
    if (count == 1)
        weft_barrier_pass(weft_barrier_share("barrier", weft_objects_size()));
    while (count == 1 && weft_objects_me() == 0)
        ;
    weft_integer_await(number, 1, NULL);
    return weft_objects_finish();
}
