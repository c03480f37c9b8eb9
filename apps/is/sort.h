// Keys that lie on all ranks, and the rank of each among all: how many keys are smaller.
//
// The values that a key can have are cut into buckets of equal width, and each rank of the job owns a run of buckets.
// It finds the ranks of the keys in them, wherever these keys lie. There are two ways to tell it what it must know:
//
// - by keys, as the benchmark and the paper do: each key is sent to its owner, the runs are such that all receive about
//   the same number of keys;
// - by counts: how often each value occurs is sent instead. It is less as long as keys are many more than values.
#ifndef SORT_H
#define SORT_H

#include <stddef.h>

struct sort {
    int *keys; // those that lie here: a part of the sequence
    size_t first, count; // which part
    int range; // keys are below
    int shift, buckets; // a key belongs to bucket key >> shift
    int *owned; // rank r owns the buckets from owned[r] to owned[r + 1]
    int *below; // for each value owned here, how many keys of all are smaller
    int *sizes; // for each rank, how many of its keys are in each bucket
    int *sorted;   // the keys that lie here, by buckets
    int *received; // the keys in the buckets owned here
    size_t received_count, received_most;
    int *counts, *counts_in; // by counts: how often each value occurs here, and of those owned here on each rank
};

// Makes the keys of the benchmark: so many, below `range`, a power of two. Collective, as are all but the last two.
void sort_open(struct sort *sort, int keys, int range);

void sort_close(struct sort *sort);

void sort_by_keys(struct sort *sort);
void sort_by_counts(struct sort *sort);

// Puts the keys into order by the ranks found. Returns how many keys owned here are then in a wrong place. The ranks
// are used up.
int sort_disorder(struct sort *sort);

// The keys at these places of the sequence, wherever they lie.
void sort_find(const struct sort *sort, const int *places, int count, int *found);

// Does this rank own a key of this value?
int sort_owns(const struct sort *sort, int key);

// The rank of a key that is owned here.
int sort_rank_of(const struct sort *sort, int key);

#endif
