/*
 * The Mandelbrot set by a farm of PVM tasks: the first task hands rows out one by one and writes the picture; workers
 * compute rows. A worker that is killed costs its row's time: another one gets the row.
 *
 *     cc -O2 fractal.c -o fractal $(pkg-config --cflags --libs weft-pvm)
 *     ./fractal 4 fractal.pgm
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 720, HEIGHT = 480, GREYS = 255, MOST = 64 };
enum { ROW = 1, DONE, END, LOST };

static unsigned char picture[HEIGHT][WIDTH];

static void compute(int row, unsigned char *greys)
{
    double y = (row - HEIGHT / 2) * 2.4 / HEIGHT;
    for (int column = 0; column < WIDTH; column++) {
        double x = (column - WIDTH * 2 / 3) * 3.6 / WIDTH, a = 0, b = 0;
        int step = 0;
        while (step < GREYS && a * a + b * b < 4) {
            double next = a * a - b * b + x;
            b = 2 * a * b + y;
            a = next;
            step++;
        }
        greys[column] = (unsigned char)(GREYS - step);
    }
}

static void work(int farmer)
{
    unsigned char greys[WIDTH];
    int bytes, tag, from, row;
    while (pvm_bufinfo(pvm_recv(farmer, -1), &bytes, &tag, &from) == PvmOk && tag == ROW) {
        pvm_upkint(&row, 1, 1);
        compute(row, greys);
        pvm_initsend(PvmDataRaw);
        pvm_pkint(&row, 1, 1);
        pvm_pkbyte((char *)greys, WIDTH, 1);
        pvm_send(farmer, DONE);
    }
}

static int rows_left[HEIGHT], left, rows_of[MOST], tids[MOST], workers;

/* Gives a worker its next row, or none any more. */
static void feed(int worker)
{
    rows_of[worker] = left > 0 ? rows_left[--left] : -1;
    if (rows_of[worker] < 0)
        return;
    pvm_initsend(PvmDataRaw);
    pvm_pkint(&rows_of[worker], 1, 1);
    pvm_send(tids[worker], ROW);
}

static int worker_of(int tid)
{
    int worker = 0;
    while (worker < workers && tids[worker] != tid)
        worker++;
    return worker;
}

static int farm(char *program, int wanted)
{
    int bytes, tag, from, row, living, missing = HEIGHT;
    workers = living = pvm_spawn(program, NULL, PvmTaskDefault, "", wanted, tids);
    if (workers < 1)
        return 1;
    pvm_notify(PvmTaskExit, LOST, workers, tids);
    for (left = 0; left < HEIGHT; left++)
        rows_left[left] = HEIGHT - 1 - left;
    for (int worker = 0; worker < workers; worker++)
        feed(worker);
    while (missing > 0 && living > 0) {
        pvm_bufinfo(pvm_recv(-1, -1), &bytes, &tag, &from);
        pvm_upkint(tag == LOST ? &from : &row, 1, 1);
        int worker = worker_of(from);
        if (tag == DONE) {
            pvm_upkbyte((char *)picture[row], WIDTH, 1);
            missing--;
            feed(worker);
        } else if (tag == LOST && worker < workers) {
            living--;
            if (rows_of[worker] >= 0)
                rows_left[left++] = rows_of[worker];
            rows_of[worker] = -1;
            tids[worker] = 0;
            /* Those that had nothing more to do have now. */
            for (worker = 0; worker < workers; worker++)
                if (tids[worker] != 0 && rows_of[worker] < 0)
                    feed(worker);
        }
    }
    pvm_initsend(PvmDataRaw);
    for (int worker = 0; worker < workers; worker++)
        if (tids[worker] != 0)
            pvm_send(tids[worker], END);
    return missing > 0;
}

int main(int count, char **words)
{
    int failed = 0, wanted = count > 1 ? atoi(words[1]) : 2;
    pvm_mytid();
    if (pvm_parent() > 0) {
        work(pvm_parent());
    } else {
        failed = farm(words[0], wanted < 1 ? 1 : wanted > MOST ? MOST : wanted);
        FILE *file = fopen(count > 2 ? words[2] : "fractal.pgm", "wb");
        failed |= !file || fprintf(file, "P5\n%d %d\n%d\n", WIDTH, HEIGHT, GREYS) < 0;
        failed |= !file || fwrite(picture, sizeof picture, 1, file) != 1 || fclose(file) != 0;
        printf("%d workers, %s\n", workers, failed ? "failed" : "done");
    }
    pvm_exit();
    return failed;
}
