// Pictures: the colours of heat, and PNG files in and out. The only file that knows libpng.
#ifndef HEAT_PICTURE_H
#define HEAT_PICTURE_H

#include <stddef.h>

enum { PICTURE_COLOURS = 256, PICTURE_MESSAGE = 256 };

struct colour {
    unsigned char red, green, blue;
};

// A picture as read: 4 bytes per pixel (red, green, blue, opacity), rows from the top.
struct image {
    int width, height;
    unsigned char *pixels; // from malloc
};

// The 256 colours from cold to hot: dark indigo, violet, red, orange, pale yellow. Lightness rises
// by the same amount from each to the next, so that equal differences in temperature look equal.
const struct colour *picture_colours(void);

// The colour number of a temperature on a scale that runs from `low` to `high`.
int picture_colour_of(double temperature, double low, double high);

// Paints the n x n cells of a bordered plate as colour numbers, one byte per cell.
void picture_paint(const double *whole, int n, double low, double high, unsigned char *pixels);

// Writes n x n colour numbers as a PNG file with a palette. Returns 0, or -1 with the reason in
// `message` (PICTURE_MESSAGE bytes).
int picture_write(const char *path, const unsigned char *pixels, int n, char *message);

// Reads any PNG file of at most `limit` x `limit` pixels. Returns 0, or -1 with the reason in
// `message` (PICTURE_MESSAGE bytes).
int picture_read(const char *path, int limit, struct image *image, char *message);

#endif
