#include "picture.h"

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One point of the scale: lightness 0 to 1, chroma, hue in degrees (OKLCh).
struct point {
    double lightness, chroma, hue;
};

// Evenly spaced from cold to hot; lightness is evenly spaced too.
static const struct point POINTS[] = {
    {0.130, 0.035, 275}, {0.235, 0.105, 288}, {0.340, 0.150, 308}, {0.445, 0.172, 345},
    {0.550, 0.190, 375}, {0.655, 0.185, 398}, {0.760, 0.165, 420}, {0.865, 0.150, 446},
    {0.970, 0.075, 463},
};

static struct point point_at(double where)
{
    int last = (int)(sizeof POINTS / sizeof POINTS[0]) - 1;
    double scaled = where * last;
    int i = (int)scaled < last ? (int)scaled : last - 1;
    double share = scaled - i;
    const struct point *a = &POINTS[i], *b = &POINTS[i + 1];
    return (struct point){
        a->lightness + share * (b->lightness - a->lightness),
        a->chroma + share * (b->chroma - a->chroma),
        a->hue + share * (b->hue - a->hue),
    };
}

// Linear light to the 8-bit value of the sRGB curve.
static unsigned char encode(double linear)
{
    double light = fmin(fmax(linear, 0), 1);
    double value = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
    return (unsigned char)(255 * value + 0.5);
}

// OKLCh to sRGB: OKLab to cone responses, cubed, to linear sRGB.
static struct colour convert(struct point p)
{
    double turn = p.hue * 3.14159265358979323846 / 180;
    double a = p.chroma * cos(turn);
    double b = p.chroma * sin(turn);
    double l = pow(p.lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
    double m = pow(p.lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
    double s = pow(p.lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
    return (struct colour){
        encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
        encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
        encode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s),
    };
}

const struct colour *picture_colours(void)
{
    static struct colour colours[PICTURE_COLOURS];
    static int ready;
    for (; ready < PICTURE_COLOURS; ready++)
        colours[ready] = convert(point_at((double)ready / (PICTURE_COLOURS - 1)));
    return colours;
}

// Colour numbers per degree. A plate of one temperature has no scale: it is cold everywhere.
static double scale_of(double low, double high)
{
    return high > low ? (PICTURE_COLOURS - 1) / (high - low) : 0;
}

// Written so that a value that is no number comes out as cold, never as an index out of range.
static inline int number_of(double temperature, double low, double scale)
{
    double number = (temperature - low) * scale + 0.5;
    number = number > 0 ? number : 0;
    return (int)(number < PICTURE_COLOURS - 1 ? number : PICTURE_COLOURS - 1);
}

int picture_colour_of(double temperature, double low, double high)
{
    return number_of(temperature, low, scale_of(low, high));
}

void picture_paint(const double *whole, int n, double low, double high, unsigned char *pixels)
{
    double scale = scale_of(low, high);
    for (int row = 1; row <= n; row++) {
        const double *cells = whole + (size_t)row * (size_t)(n + 2) + 1;
        for (int column = 0; column < n; column++)
            *pixels++ = (unsigned char)number_of(cells[column], low, scale);
    }
}

static int failed(char *message, const char *reason)
{
    snprintf(message, PICTURE_MESSAGE, "%s", reason);
    return -1;
}

static int write_png(FILE *file, const unsigned char *pixels, int n, char *message)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)n,
                       .height = (png_uint_32)n,
                       .format = PNG_FORMAT_RGB_COLORMAP,
                       .colormap_entries = PICTURE_COLOURS};
    if (!png_image_write_to_stdio(&image, file, 0, pixels, n, picture_colours()))
        return failed(message, image.message);
    return 0;
}

int picture_write(const char *path, const unsigned char *pixels, int n, char *message)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return failed(message, strerror(errno));
    int result = write_png(file, pixels, n, message);
    if (fclose(file) != 0 && result == 0)
        result = failed(message, strerror(errno));
    if (result != 0)
        remove(path); // half a picture is worse than none
    return result;
}

static int read_png(FILE *file, int limit, struct image *out, char *message)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_stdio(&image, file))
        return failed(message, image.message);
    if (image.width > (png_uint_32)limit || image.height > (png_uint_32)limit) {
        snprintf(message, PICTURE_MESSAGE, "%lu x %lu pixels, allowed are %d x %d",
                 (unsigned long)image.width, (unsigned long)image.height, limit, limit);
        png_image_free(&image);
        return -1;
    }
    image.format = PNG_FORMAT_RGBA;
    out->width = (int)image.width;
    out->height = (int)image.height;
    out->pixels = malloc(PNG_IMAGE_SIZE(image));
    if (!out->pixels) {
        png_image_free(&image);
        return failed(message, "no memory for its pixels");
    }
    if (!png_image_finish_read(&image, NULL, out->pixels, 0, NULL)) {
        free(out->pixels);
        out->pixels = NULL;
        return failed(message, image.message);
    }
    return 0;
}

int picture_read(const char *path, int limit, struct image *image, char *message)
{
    *image = (struct image){0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return failed(message, strerror(errno));
    int result = read_png(file, limit, image, message);
    fclose(file);
    return result;
}
