#include "legendre.h"
#include "ranks.h"

#include <math.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

// The Legendre polynomial of degree n at x, and its derivative.
static double polynomial(int n, double x, double *slope)
{
    double before = 1, now = x;
    for (int k = 2; k <= n; k++) {
        double next = ((2 * k - 1) * x * now - (k - 1) * before) / k;
        before = now;
        now = next;
    }
    *slope = n * (before - x * now) / (1 - x * x);
    return now;
}

// The sines are the roots of the polynomial, found by Newton's method.
void gauss_open(struct gauss *gauss, int half)
{
    int n = 2 * half;
    gauss->half = half;
    gauss->sines = ranks_memory((size_t)half * sizeof(double));
    gauss->weights = ranks_memory((size_t)half * sizeof(double));
    for (int j = 0; j < half; j++) {
        double x = cos(PI * (j + 0.75) / (n + 0.5)), slope;
        for (int i = 0; i < 10; i++)
            x -= polynomial(n, x, &slope) / slope;
        polynomial(n, x, &slope);
        gauss->sines[j] = x;
        gauss->weights[j] = 2 / ((1 - x * x) * slope * slope);
    }
}

void gauss_close(struct gauss *gauss)
{
    free(gauss->sines);
    free(gauss->weights);
}

// The factor between functions of neighbouring degrees.
static double link(int n, int m)
{
    return sqrt(((double)n * n - (double)m * m) / (4.0 * n * n - 1));
}

// Puts the function of degree n at latitude j, and its slope, where they belong.
static void put(struct legendre *legendre, int half, int n, int j, double value, double slope)
{
    int odd = (n - legendre->m) & 1, place = (odd ? legendre->evens : 0) + (n - legendre->m) / 2;
    legendre->degrees[place] = n;
    legendre->by_degree[place * half + j] = legendre->by_place[j * legendre->count + place] = value;
    legendre->slopes_by_degree[place * half + j] = legendre->slopes_by_place[j * legendre->count + place] = slope;
}

void legendre_open(struct legendre *legendre, const struct gauss *gauss, int m, int most)
{
    int count = most - m + 1, half = gauss->half;
    size_t bytes = (size_t)count * (size_t)half * sizeof(double);
    *legendre = (struct legendre){.m = m, .count = count, .evens = (count + 1) / 2};
    legendre->degrees = ranks_memory((size_t)count * sizeof(int));
    legendre->by_degree = ranks_memory(bytes);
    legendre->slopes_by_degree = ranks_memory(bytes);
    legendre->by_place = ranks_memory(bytes);
    legendre->slopes_by_place = ranks_memory(bytes);
    for (int j = 0; j < half; j++) {
        double x = gauss->sines[j], before = 0, now = sqrt(0.5);
        for (int k = 1; k <= m; k++)
            now *= sqrt((2.0 * k + 1) / (2.0 * k) * (1 - x * x));
        for (int n = m; n <= most; n++) {
            double below = n > m ? link(n, m) * before : 0;
            put(legendre, half, n, j, now, (2 * n + 1) * below - n * x * now);
            double next = (x * now - below) / link(n + 1, m);
            before = now;
            now = next;
        }
    }
}

void legendre_close(struct legendre *legendre)
{
    free(legendre->degrees);
    free(legendre->by_degree);
    free(legendre->slopes_by_degree);
    free(legendre->by_place);
    free(legendre->slopes_by_place);
}
