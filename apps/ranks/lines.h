// Fourier transforms of several lines at once.
//
// The lines lie side by side, element by element, real and imaginary parts apart, so that the inner loop runs over
// lines and processors with vectors do several of them at once. The transform is Stockham's: from one array into the
// other and back, by steps of four and at last of two, without any reordering.
#ifndef LINES_H
#define LINES_H

// Side by side.
enum { LINES = 8 };

struct cell {
    double re, im;
};

struct lines {
    int n; // elements of a line; a power of two
    double *re, *im; // element e of line l is at e * LINES + l
    double *other_re, *other_im;
    double *cosines, *sines; // of k / n of a turn
};

void lines_open(struct lines *lines, int n);
void lines_close(struct lines *lines);

// The sum over e of value e by the root of unity to the power of -e k, or of e k for the way back; not divided by n.
void lines_forward(struct lines *lines);
void lines_back(struct lines *lines);

// Element e of all lines from rows[e] + offset on, and there.
void lines_take(struct lines *lines, struct cell *const *rows, int offset);
void lines_put(const struct lines *lines, struct cell *const *rows, int offset);

// Line l is rows[l].
void lines_take_rows(struct lines *lines, struct cell *const *rows);
void lines_put_rows(const struct lines *lines, struct cell *const *rows);

#endif
