// Integer sort, after the NAS parallel benchmarks: the rank of each of many whole numbers among all.
#include "problem.h"
#include "ranks.h"
#include "run.h"
#include "sort.h"

#include <stdio.h>
#include <string.h>

enum { ITERATIONS = 10 };

// On the owner of each test key: is its rank the published one?
static int wrong_ranks(const struct sort *sort, const struct problem *problem, const int *test_keys, int iteration)
{
    int wrong = 0;
    for (int test = 0; test < problem->tests; test++)
        if (sort_owns(sort, test_keys[test]))
            wrong += sort_rank_of(sort, test_keys[test]) != problem_rank(problem, test, iteration);
    return wrong;
}

// Each iteration changes two keys, so that it is not the same work again.
static void change(struct sort *sort, int iteration)
{
    if (ranks.me != 0)
        return;
    sort->keys[iteration] = iteration;
    sort->keys[iteration + ITERATIONS] = sort->range - iteration;
}

static void iterate(struct sort *sort, int by_counts, int iteration)
{
    change(sort, iteration);
    if (by_counts)
        sort_by_counts(sort);
    else
        sort_by_keys(sort);
}

static int total(int mine)
{
    int all[ranks.count], sum = 0;
    all[ranks.me] = mine;
    ranks_gather_equal(all, sizeof mine);
    for (int rank = 0; rank < ranks.count; rank++)
        sum += all[rank];
    return sum;
}

// Counts weigh a word for each value, and go to all others; of the keys each goes to one.
static int counts_are_less(const struct problem *problem)
{
    return (double)problem->range * ranks.count < (double)problem->keys;
}

int main(int count, char **words)
{
    static const struct usage USAGE = {.program = "is",
                                       .text = "Ranks whole numbers (NAS integer sort), ten times.",
                                       .classes = PROBLEM_CLASSES,
                                       .option = "--way",
                                       .about = "what ranks exchange",
                                       .words = "keys counts"};
    struct run run = run_begin(&USAGE, count, words);
    const struct problem *problem = problem_of(run.class);
    int by_counts = run.word ? strcmp(run.word, "counts") == 0 : counts_are_less(problem);
    int test_keys[PROBLEM_TESTS], wrong = 0;
    struct sort sort;
    sort_open(&sort, problem->keys, problem->range);
    sort_find(&sort, problem->places, problem->tests, test_keys);
    iterate(&sort, by_counts, 1); // touches all memory once
    double start = ranks_meet();
    for (int iteration = 1; iteration <= ITERATIONS; iteration++) {
        iterate(&sort, by_counts, iteration);
        wrong += wrong_ranks(&sort, problem, test_keys, iteration);
    }
    double seconds = ranks_meet() - start;
    int disorder = total(sort_disorder(&sort));
    wrong = total(wrong);
    if (ranks.me == 0) {
        printf("is: %d keys below %d by %s, %d times\n", problem->keys, problem->range,
               by_counts ? "counts" : "keys", ITERATIONS);
        printf("is: %d of %d test keys have a wrong rank, %d keys are out of order\n", wrong,
               problem->tests * ITERATIONS, disorder);
    }
    sort_close(&sort);
    return run_end(&run, seconds, wrong + disorder > 0);
}
