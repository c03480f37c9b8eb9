/*
 * Pi as the area of a quarter of a circle, with TCGMSG: processes take strips by the shared counter NXTVAL, whoever is
 * free the next one, and DGOP adds what all have found.
 *
 *     cc -O2 pi.c -o pi $(pkg-config --cflags --libs weft-tcgmsg) -lm
 *     weft run -n 4 ./pi 1000
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tcgmsg.h>

enum { POINTS = 20000, ADD = 1, COUNT };

/* The area of one strip of so many. */
static double area(long strip, long strips)
{
    double sum = 0, width = 1.0 / ((double)strips * POINTS);
    for (long point = 0; point < POINTS; point++) {
        double x = ((double)strip * POINTS + (double)point + 0.5) * width;
        sum += sqrt(1 - x * x) * width;
    }
    return sum;
}

int main(int count, char **words)
{
    tcg_pbegin(count, words);
    long strips = count > 1 ? atol(words[1]) : 200, me = tcg_nodeid(), all = tcg_nnodes();
    if (strips < 1)
        tcg_error("pi: a number of strips is wanted", strips);
    double sum = 0;
    long done = 0, most, strip;
    while ((strip = tcg_nxtval(all)) < strips) {
        sum += area(strip, strips);
        done++;
    }
    /* Nobody goes on before all have said so; the counter begins at 0 again then. */
    tcg_nxtval(-all);
    tcg_dgop(ADD, &sum, 1, "+");
    most = done;
    tcg_igop(COUNT, &most, 1, "max");
    tcg_igop(COUNT, &done, 1, "+");
    if (me == 0)
        printf("pi is %.9f, by %ld processes in %ld strips, of which one did %ld\n", 4 * sum, all, done, most);
    tcg_pend();
    return 0;
}
