#include "picture.h"

#include <stdio.h>

struct colour {
    unsigned char red, green, blue;
};

// Of evenly rising lightness.
static const struct colour SCALE[] = {
    {8, 10, 40},   {45, 20, 100},  {110, 25, 120}, {175, 45, 95},
    {225, 85, 60}, {245, 145, 50}, {250, 205, 90}, {255, 250, 215},
};

static unsigned char between(unsigned char from, unsigned char to, double share)
{
    return (unsigned char)(from + share * (to - from) + 0.5);
}

// `where` is from 0 to 1.
static struct colour colour_at(double where)
{
    int last = (int)(sizeof SCALE / sizeof SCALE[0]) - 1;
    int i = (int)(where * last) < last ? (int)(where * last) : last - 1;
    double share = where * last - i;
    const struct colour *a = &SCALE[i], *b = &SCALE[i + 1];
    return (struct colour){between(a->red, b->red, share), between(a->green, b->green, share),
                           between(a->blue, b->blue, share)};
}

int picture_write(const char *path, const double *numbers, int width, int height)
{
    double least = numbers[0], greatest = numbers[0];
    for (int i = 0; i < width * height; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        greatest = numbers[i] > greatest ? numbers[i] : greatest;
    }
    double scale = greatest > least ? 1 / (greatest - least) : 0;
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        return -1;
    }
    fprintf(file, "P6\n%d %d\n255\n", width, height);
    for (int i = 0; i < width * height; i++) {
        struct colour colour = colour_at((numbers[i] - least) * scale);
        fwrite(&colour, sizeof colour, 1, file);
    }
    int failed = ferror(file);
    if (fclose(file) != 0 || failed) {
        perror(path);
        return -1;
    }
    return 0;
}
