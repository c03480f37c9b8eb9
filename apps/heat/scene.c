#include "scene.h"
#include "picture.h"
#include "plate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Channels of a grey pixel may differ by this much: pictures that were scaled or compressed are
// rarely exactly grey.
enum { GREY_SPREAD = 32, OPAQUE = 128 };

// Fills the n cells of a side that begins at `first`; neighbours are `stride` apart.
static void fill_side(const struct side *side, double start, double *first, size_t stride, int n)
{
    for (int i = 0; i < n; i++) {
        double percent = 100 * (i + 0.5) / n;
        double *cell = first + stride * (size_t)i;
        *cell = start;
        for (int k = 0; k < side->count; k++)
            if (percent >= side->parts[k].from && percent <= side->parts[k].to)
                *cell = side->parts[k].temperature;
    }
}

static void fill_plate(struct scene *scene, const struct options *options)
{
    size_t stride = (size_t)scene->n + 2;
    double *whole = scene->whole;
    for (size_t i = 0; i < stride * stride; i++)
        whole[i] = options->start;
    double *firsts[SIDES] = {
        [SIDE_NORTH] = whole + 1,
        [SIDE_SOUTH] = whole + stride * (stride - 1) + 1,
        [SIDE_EAST] = whole + stride + stride - 1,
        [SIDE_WEST] = whole + stride,
    };
    for (int side = 0; side < SIDES; side++) {
        size_t step = side == SIDE_NORTH || side == SIDE_SOUTH ? 1 : stride;
        fill_side(&options->sides[side], options->start, firsts[side], step, scene->n);
    }
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

// What a pixel says about its cell; see the help text for the meaning of the colours.
static void apply_pixel(const unsigned char *pixel, double *cell, unsigned char *held)
{
    int red = pixel[0], green = pixel[1], blue = pixel[2];
    int brightest = most(red, most(green, blue));
    int darkest = -most(-red, most(-green, -blue));
    if (pixel[3] < OPAQUE)
        return;
    if (brightest - darkest > GREY_SPREAD) {
        *held = 1;
        *cell = SINK + (SOURCE - SINK) * (255 + red - blue) / 510;
    } else {
        *cell = SINK + (SOURCE - SINK) * (red + green + blue) / 765;
    }
}

static void apply_image(struct scene *scene, const struct image *image)
{
    int n = scene->n;
    for (int row = 0; row < n; row++) {
        // The pixel under the middle of the cell.
        size_t y = (size_t)(2 * row + 1) * (size_t)image->height / (2 * (size_t)n);
        for (int column = 0; column < n; column++) {
            size_t x = (size_t)(2 * column + 1) * (size_t)image->width / (2 * (size_t)n);
            size_t cell = (size_t)(row + 1) * (size_t)(n + 2) + (size_t)column + 1;
            apply_pixel(image->pixels + 4 * (y * (size_t)image->width + x), scene->whole + cell,
                        scene->held + (size_t)row * (size_t)n + (size_t)column);
        }
    }
}

static void find_range(struct scene *scene)
{
    size_t stride = (size_t)scene->n + 2;
    scene->low = scene->high = scene->whole[1];
    for (size_t i = 0; i < stride * stride; i++) {
        size_t row = i / stride, column = i % stride;
        int corner = (row == 0 || row == stride - 1) && (column == 0 || column == stride - 1);
        if (corner)
            continue; // no cell ever looks at it
        if (scene->whole[i] < scene->low)
            scene->low = scene->whole[i];
        if (scene->whole[i] > scene->high)
            scene->high = scene->whole[i];
    }
}

static int make(struct scene *scene, char *message)
{
    size_t cells = plate_cells(scene->n);
    scene->whole = malloc(cells * sizeof(double));
    scene->held = calloc((size_t)scene->n, (size_t)scene->n);
    if (scene->whole && scene->held)
        return 0;
    snprintf(message, OPTIONS_MESSAGE, "-n %d: no memory for a plate of %zu MiB", scene->n,
             cells * sizeof(double) >> 20);
    return -1;
}

int scene_build(struct scene *scene, const struct options *options, int n, char *message)
{
    struct image image = {0};
    char reason[PICTURE_MESSAGE];
    *scene = (struct scene){0};
    if (options->input && picture_read(options->input, PLATE_MAX, &image, reason) != 0) {
        snprintf(message, OPTIONS_MESSAGE, "--input %.200s: not read as a PNG picture: %.250s",
                 options->input, reason);
        return -1;
    }
    scene->n = options->n ? options->n : options->input ? image.width : n;
    int result = make(scene, message);
    if (result == 0) {
        fill_plate(scene, options);
        if (options->input)
            apply_image(scene, &image);
        find_range(scene);
    }
    free(image.pixels);
    return result;
}

void scene_free(struct scene *scene)
{
    free(scene->whole);
    free(scene->held);
    *scene = (struct scene){0};
}
