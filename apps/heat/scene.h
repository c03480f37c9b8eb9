// The plate before the first step: sides, start temperature, input picture. Built on rank 0.
#ifndef HEAT_SCENE_H
#define HEAT_SCENE_H

#include "options.h"

struct scene {
    int n;
    double *whole;       // bordered plate, (n + 2) x (n + 2)
    unsigned char *held; // n x n, non-zero: the cell keeps its temperature
    double low, high;    // coldest and hottest of it; no later temperature lies outside
};

// Builds it from the options; `n` is the size when neither option nor picture says one.
// Returns 0, or -1 with one line in `message` (OPTIONS_MESSAGE bytes).
int scene_build(struct scene *scene, const struct options *options, int n, char *message);

void scene_free(struct scene *scene);

#endif
