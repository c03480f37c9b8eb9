// The classes of the benchmark, and the ranks that some of their keys must have.
#ifndef PROBLEM_H
#define PROBLEM_H

#define PROBLEM_CLASSES "SWABCP"

enum { PROBLEM_TESTS = 5 };

struct problem {
    char class;
    int keys;  // how many
    int range; // they are from 0 to below this; a power of two
    int tests; // how many of the following there are
    int places[PROBLEM_TESTS]; // where in the sequence of keys a test key stands
    int ranks[PROBLEM_TESTS];  // its rank before the first iteration ...
    int steps[PROBLEM_TESTS];  // ... and what each iteration adds
};

// `class` is one of PROBLEM_CLASSES.
const struct problem *problem_of(char class);

// The rank of a test key in an iteration, from 1.
static inline int problem_rank(const struct problem *problem, int test, int iteration)
{
    return problem->ranks[test] + problem->steps[test] * iteration;
}

#endif
