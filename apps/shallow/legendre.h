// Gaussian latitudes and associated Legendre functions.
//
// Only the northern half of the latitudes is here: for each southern one the functions are the same, but for the sign
// of those that are odd, n - m being an odd number.
#ifndef LEGENDRE_H
#define LEGENDRE_H

#include <stddef.h>

struct gauss {
    int half;        // latitudes of one half, from the pole to the equator
    double *sines;   // of the latitudes
    double *weights; // of a mean over all latitudes: they add up to 1 on either half
};

void gauss_open(struct gauss *gauss, int half);
void gauss_close(struct gauss *gauss);

// The functions of one wave number m up to degree `most`: first those that are even, n = m, m + 2, ..., then the odd
// ones. Their squares have the integral 1 over the sine of the latitude, from -1 to 1. A slope is the derivative by the
// sine, by the square of the cosine.
struct legendre {
    int m, count, evens;
    int *degrees;                       // n of each
    double *by_degree, *slopes_by_degree; // [function][latitude]
    double *by_place, *slopes_by_place;   // [latitude][function]
};

void legendre_open(struct legendre *legendre, const struct gauss *gauss, int m, int most);
void legendre_close(struct legendre *legendre);

#endif
