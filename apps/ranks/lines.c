#include "lines.h"
#include "ranks.h"

#include <math.h>
#include <stdlib.h>

// Rows are far from each other, which no processor foresees: they are asked for so many ahead. Of the rows that become
// lines whole cache lines are taken by turns, as the same element of all would fall into one set of the cache.
enum { AHEAD = 8, BLOCK = 4 };

static const double TURN = 6.283185307179586476925;

void lines_open(struct lines *lines, int n)
{
    size_t bytes = (size_t)n * LINES * sizeof(double);
    lines->n = n;
    lines->re = ranks_memory(bytes);
    lines->im = ranks_memory(bytes);
    lines->other_re = ranks_memory(bytes);
    lines->other_im = ranks_memory(bytes);
    lines->cosines = ranks_memory((size_t)n * sizeof(double));
    lines->sines = ranks_memory((size_t)n * sizeof(double));
    for (int k = 0; k < n; k++) {
        lines->cosines[k] = cos(TURN * k / n);
        lines->sines[k] = sin(TURN * k / n);
    }
}

void lines_close(struct lines *lines)
{
    double *all[] = {lines->re, lines->im, lines->other_re, lines->other_im, lines->cosines, lines->sines};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static inline void swap(double **a, double **b)
{
    double *kept = *a;
    *a = *b;
    *b = kept;
}

// One step of four for one root: `quarter` lies between the four inputs, `width` between the four outputs.
static void four(const double *restrict re, const double *restrict im, double *restrict to_re, double *restrict to_im,
                 int quarter, int width, const struct cell roots[3])
{
    struct cell w1 = roots[0], w2 = roots[1], w3 = roots[2];
    for (int i = 0; i < width; i++) {
        double sum_re = re[i] + re[i + 2 * quarter], sum_im = im[i] + im[i + 2 * quarter];
        double gap_re = re[i] - re[i + 2 * quarter], gap_im = im[i] - im[i + 2 * quarter];
        double odd_re = re[i + quarter] + re[i + 3 * quarter], odd_im = im[i + quarter] + im[i + 3 * quarter];
        double turned_re = im[i + quarter] - im[i + 3 * quarter], turned_im = re[i + 3 * quarter] - re[i + quarter];
        double a_re = gap_re + turned_re, a_im = gap_im + turned_im;
        double b_re = sum_re - odd_re, b_im = sum_im - odd_im;
        double c_re = gap_re - turned_re, c_im = gap_im - turned_im;
        to_re[i] = sum_re + odd_re;
        to_im[i] = sum_im + odd_im;
        to_re[i + width] = a_re * w1.re + a_im * w1.im;
        to_im[i + width] = a_im * w1.re - a_re * w1.im;
        to_re[i + 2 * width] = b_re * w2.re + b_im * w2.im;
        to_im[i + 2 * width] = b_im * w2.re - b_re * w2.im;
        to_re[i + 3 * width] = c_re * w3.re + c_im * w3.im;
        to_im[i + 3 * width] = c_im * w3.re - c_re * w3.im;
    }
}

static void two(const double *restrict re, const double *restrict im, double *restrict to_re, double *restrict to_im,
                int width)
{
    for (int i = 0; i < width; i++) {
        to_re[i] = re[i] + re[i + width];
        to_im[i] = im[i] + im[i + width];
        to_re[i + width] = re[i] - re[i + width];
        to_im[i + width] = im[i] - im[i + width];
    }
}

void lines_forward(struct lines *lines)
{
    int left = lines->n, width = LINES;
    for (; left >= 4; left /= 4, width *= 4) {
        int quarter = left / 4 * width, turn = lines->n / left;
        for (int p = 0; p < left / 4; p++) {
            struct cell roots[3];
            for (int power = 1; power <= 3; power++)
                roots[power - 1] = (struct cell){lines->cosines[p * power * turn], lines->sines[p * power * turn]};
            four(lines->re + p * width, lines->im + p * width, lines->other_re + 4 * p * width,
                 lines->other_im + 4 * p * width, quarter, width, roots);
        }
        swap(&lines->re, &lines->other_re);
        swap(&lines->im, &lines->other_im);
    }
    if (left == 2) {
        two(lines->re, lines->im, lines->other_re, lines->other_im, width);
        swap(&lines->re, &lines->other_re);
        swap(&lines->im, &lines->other_im);
    }
}

// With real and imaginary parts exchanged, before and after, it goes the other way round.
void lines_back(struct lines *lines)
{
    swap(&lines->re, &lines->im);
    swap(&lines->other_re, &lines->other_im);
    lines_forward(lines);
    swap(&lines->re, &lines->im);
    swap(&lines->other_re, &lines->other_im);
}

void lines_take(struct lines *lines, struct cell *const *rows, int offset)
{
    double *restrict re = lines->re, *restrict im = lines->im;
    for (int e = 0; e < lines->n; e++) {
        const struct cell *row = rows[e] + offset;
        const struct cell *soon = rows[e + AHEAD < lines->n ? e + AHEAD : e] + offset;
        for (int l = 0; l < LINES; l += 4)
            __builtin_prefetch(soon + l);
        for (int l = 0; l < LINES; l++) {
            re[e * LINES + l] = row[l].re;
            im[e * LINES + l] = row[l].im;
        }
    }
}

void lines_put(const struct lines *lines, struct cell *const *rows, int offset)
{
    const double *restrict re = lines->re, *restrict im = lines->im;
    for (int e = 0; e < lines->n; e++) {
        struct cell *restrict row = rows[e] + offset;
        const struct cell *soon = rows[e + AHEAD < lines->n ? e + AHEAD : e] + offset;
        for (int l = 0; l < LINES; l += 4)
            __builtin_prefetch(soon + l, 1);
        for (int l = 0; l < LINES; l++)
            row[l] = (struct cell){re[e * LINES + l], im[e * LINES + l]};
    }
}

void lines_take_rows(struct lines *lines, struct cell *const *rows)
{
    double *restrict re = lines->re, *restrict im = lines->im;
    for (int block = 0; block < lines->n; block += BLOCK) {
        for (int l = 0; l < LINES; l++) {
            for (int e = block; e < block + BLOCK; e++) {
                re[e * LINES + l] = rows[l][e].re;
                im[e * LINES + l] = rows[l][e].im;
            }
        }
    }
}

void lines_put_rows(const struct lines *lines, struct cell *const *rows)
{
    const double *restrict re = lines->re, *restrict im = lines->im;
    for (int block = 0; block < lines->n; block += BLOCK)
        for (int l = 0; l < LINES; l++)
            for (int e = block; e < block + BLOCK; e++)
                rows[l][e] = (struct cell){re[e * LINES + l], im[e * LINES + l]};
}
