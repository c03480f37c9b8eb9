// The classes of the benchmark, and the checksums that they must have.
#ifndef PROBLEM_H
#define PROBLEM_H

#include "lines.h"

#define PROBLEM_CLASSES "SWABC"

enum { PROBLEM_MOST_STEPS = 20 };

struct problem {
    char class;
    int nx, ny, nz;
    int steps;
    struct cell checksums[PROBLEM_MOST_STEPS]; // after each step
};

// `class` is one of PROBLEM_CLASSES.
const struct problem *problem_of(char class);

#endif
