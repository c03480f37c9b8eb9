// What the program can do: each mode runs on all ranks and returns the exit status on rank 0.
#ifndef HEAT_RUN_H
#define HEAT_RUN_H

#include "options.h"
#include "scene.h"

// What every rank must know before it starts.
struct job {
    int mode, n, steps, every;
};

// `options` and `scene` are used on rank 0 only.
int run_plate(const struct job *job, const struct options *options, const struct scene *scene);
int run_table(const struct job *job);
int run_check(const struct job *job);

// Prints one line on standard error and ends all ranks with exit status 1.
_Noreturn void run_fail(const char *format, ...);

#endif
