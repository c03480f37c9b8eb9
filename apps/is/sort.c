#include "sort.h"
#include "nas.h"
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

// Keys are written to all buckets by turns, which is twice as fast if these are no more than 64. But there must be many
// for each rank, so that all own about the same number of keys.
enum { FEW = 64, MOST = 1024, PER_RANK = 16 };

static size_t bytes_of(size_t count)
{
    return count * sizeof(int);
}

// Each key is the mean of four random numbers, so that those in the middle are frequent.
static void make_keys(struct sort *sort)
{
    uint64_t x = nas_after(4 * (uint64_t)sort->first), width = ((uint64_t)4 << NAS_BITS) / (uint64_t)sort->range;
    for (size_t i = 0; i < sort->count; i++) {
        uint64_t sum = 0;
        for (int part = 0; part < 4; part++)
            sum += x = nas_next(x);
        sort->keys[i] = (int)(sum / width);
    }
}

void sort_open(struct sort *sort, int keys, int range)
{
    *sort = (struct sort){.first = ranks_first((size_t)keys, ranks.me), .range = range};
    sort->count = ranks_first((size_t)keys, ranks.me + 1) - sort->first;
    sort->buckets = FEW;
    while (sort->buckets < MOST && sort->buckets < PER_RANK * ranks.count)
        sort->buckets *= 2;
    while (range >> sort->shift > sort->buckets)
        sort->shift++;
    sort->keys = ranks_memory(bytes_of(sort->count));
    sort->owned = ranks_memory(bytes_of((size_t)ranks.count + 1));
    sort->below = ranks_memory(bytes_of((size_t)range));
    sort->sizes = ranks_memory(bytes_of((size_t)ranks.count * (size_t)sort->buckets));
    make_keys(sort);
}

void sort_close(struct sort *sort)
{
    int *all[] = {sort->keys, sort->owned, sort->below, sort->sizes, sort->sorted, sort->received, sort->counts,
                  sort->counts_in};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

// The values owned by a rank: from this one to the next rank's.
static int first_value(const struct sort *sort, int rank)
{
    return sort->owned[rank] << sort->shift;
}

static int values_here(const struct sort *sort)
{
    return first_value(sort, ranks.me + 1) - first_value(sort, ranks.me);
}

// Each value's count becomes the number of keys that are smaller; `smaller` are below the first value.
static void add_up(int *below, int values, int smaller)
{
    for (int value = 0; value < values; value++) {
        int here = below[value];
        below[value] = smaller;
        smaller += here;
    }
}

static void count_keys(const int *keys, size_t count, int *counts, int first, int values)
{
    memset(counts, 0, bytes_of((size_t)values));
    for (size_t i = 0; i < count; i++)
        counts[keys[i] - first]++;
}

// ---- by counts ----

// The sum of all ranks' counts of the values owned here, for which they are traded.
static void sum_counts(struct sort *sort)
{
    size_t out_starts[ranks.count + 1], in_starts[ranks.count + 1];
    size_t values = (size_t)values_here(sort);
    for (int rank = 0; rank <= ranks.count; rank++) {
        out_starts[rank] = bytes_of((size_t)first_value(sort, rank));
        in_starts[rank] = bytes_of((size_t)rank * values);
    }
    ranks_trade(sort->counts, out_starts, sort->counts_in, in_starts);
    memcpy(sort->below, sort->counts_in, bytes_of(values));
    for (int rank = 1; rank < ranks.count; rank++) {
        const int *restrict in = sort->counts_in + (size_t)rank * values;
        int *restrict below = sort->below;
        for (size_t value = 0; value < values; value++)
            below[value] += in[value];
    }
}

// How many keys are smaller than all those owned here.
static int smaller_keys(const struct sort *sort)
{
    int totals[ranks.count], smaller = 0, mine = 0, values = values_here(sort);
    for (int value = 0; value < values; value++)
        mine += sort->below[value];
    totals[ranks.me] = mine;
    ranks_gather_equal(totals, sizeof mine);
    for (int rank = 0; rank < ranks.me; rank++)
        smaller += totals[rank];
    return smaller;
}

void sort_by_counts(struct sort *sort)
{
    for (int rank = 0; rank <= ranks.count; rank++)
        sort->owned[rank] = (int)ranks_first((size_t)sort->buckets, rank);
    if (ranks.count == 1) {
        count_keys(sort->keys, sort->count, sort->below, 0, sort->range);
        add_up(sort->below, sort->range, 0);
        return;
    }
    if (!sort->counts) {
        sort->counts = ranks_memory(bytes_of((size_t)sort->range));
        sort->counts_in = ranks_memory(bytes_of((size_t)ranks.count * (size_t)values_here(sort)));
    }
    count_keys(sort->keys, sort->count, sort->counts, 0, sort->range);
    sum_counts(sort);
    add_up(sort->below, values_here(sort), smaller_keys(sort));
}

// ---- by keys ----

// How many keys of each rank are in each bucket: counted here, and told to all.
static void find_sizes(struct sort *sort)
{
    int *mine = sort->sizes + (size_t)ranks.me * (size_t)sort->buckets;
    memset(mine, 0, bytes_of((size_t)sort->buckets));
    for (size_t i = 0; i < sort->count; i++)
        mine[sort->keys[i] >> sort->shift]++;
    ranks_gather_equal(sort->sizes, bytes_of((size_t)sort->buckets));
}

// The keys that lie on `rank`, or on all ranks if it is -1, in the buckets from `from` to before `to`.
static size_t keys_in(const struct sort *sort, int rank, int from, int to)
{
    size_t count = 0;
    for (int of = rank < 0 ? 0 : rank; of < (rank < 0 ? ranks.count : rank + 1); of++)
        for (int bucket = from; bucket < to; bucket++)
            count += (size_t)sort->sizes[(size_t)of * (size_t)sort->buckets + (size_t)bucket];
    return count;
}

// Owners such that all have about the same number of keys. All ranks find the same ones.
static void choose_owners(struct sort *sort)
{
    size_t all = keys_in(sort, -1, 0, sort->buckets), seen = 0;
    int rank = 0;
    for (int bucket = 0; bucket < sort->buckets; bucket++) {
        while (rank <= ranks.count && seen >= ranks_first(all, rank))
            sort->owned[rank++] = bucket;
        seen += keys_in(sort, -1, bucket, bucket + 1);
    }
    while (rank <= ranks.count)
        sort->owned[rank++] = sort->buckets;
}

static void sort_into_buckets(struct sort *sort)
{
    const int *sizes = sort->sizes + (size_t)ranks.me * (size_t)sort->buckets;
    const int *restrict keys = sort->keys;
    int *restrict sorted = sort->sorted;
    int next[MOST], place = 0, shift = sort->shift;
    for (int bucket = 0; bucket < sort->buckets; bucket++) {
        next[bucket] = place;
        place += sizes[bucket];
    }
    for (size_t i = 0; i < sort->count; i++)
        sorted[next[keys[i] >> shift]++] = keys[i];
}

// Sends each key to its owner.
static void bring_keys(struct sort *sort)
{
    size_t out_starts[ranks.count + 1], in_starts[ranks.count + 1];
    int first = sort->owned[ranks.me], end = sort->owned[ranks.me + 1];
    out_starts[0] = in_starts[0] = 0;
    for (int rank = 0; rank < ranks.count; rank++) {
        out_starts[rank + 1] =
            out_starts[rank] + bytes_of(keys_in(sort, ranks.me, sort->owned[rank], sort->owned[rank + 1]));
        in_starts[rank + 1] = in_starts[rank] + bytes_of(keys_in(sort, rank, first, end));
    }
    sort->received_count = in_starts[ranks.count] / sizeof(int);
    if (sort->received_count > sort->received_most) {
        // With room for the keys that change, so that it stays where it is.
        free(sort->received);
        sort->received_most = sort->received_count + sort->received_count / 16;
        sort->received = ranks_memory(bytes_of(sort->received_most));
    }
    ranks_trade(sort->sorted, out_starts, sort->received, in_starts);
}

// From here on `sorted` has the keys by buckets, and `received` those owned here.
static void share_keys(struct sort *sort)
{
    if (!sort->sorted)
        sort->sorted = ranks_memory(bytes_of(sort->count));
    sort_into_buckets(sort);
    bring_keys(sort);
}

void sort_by_keys(struct sort *sort)
{
    find_sizes(sort);
    choose_owners(sort);
    share_keys(sort);
    int first = first_value(sort, ranks.me), values = values_here(sort);
    count_keys(sort->received, sort->received_count, sort->below, first, values);
    add_up(sort->below, values, (int)keys_in(sort, -1, 0, sort->owned[ranks.me]));
}

// ---- what was found ----

int sort_disorder(struct sort *sort)
{
    int first = first_value(sort, ranks.me), wrong = 0;
    find_sizes(sort);
    share_keys(sort);
    size_t smaller = keys_in(sort, -1, 0, sort->owned[ranks.me]), count = sort->received_count;
    int *ordered = ranks_memory(bytes_of(count));
    memset(ordered, -1, bytes_of(count));
    for (size_t i = 0; i < count; i++) {
        size_t place = (size_t)sort->below[sort->received[i] - first]++ - smaller;
        if (place < count && ordered[place] < 0)
            ordered[place] = sort->received[i];
        else
            wrong++;
    }
    for (size_t i = 1; i < count; i++)
        wrong += ordered[i - 1] > ordered[i];
    free(ordered);
    return wrong;
}

void sort_find(const struct sort *sort, const int *places, int count, int *found)
{
    int all[ranks.count];
    for (int i = 0; i < count; i++) {
        size_t offset = (size_t)places[i] - sort->first;
        all[ranks.me] = offset < sort->count ? sort->keys[offset] : -1;
        ranks_gather_equal(all, sizeof all[0]);
        found[i] = -1;
        for (int rank = 0; rank < ranks.count; rank++)
            found[i] = all[rank] >= 0 ? all[rank] : found[i];
    }
}

int sort_owns(const struct sort *sort, int key)
{
    return key >= first_value(sort, ranks.me) && key < first_value(sort, ranks.me + 1);
}

int sort_rank_of(const struct sort *sort, int key)
{
    return sort->below[key - first_value(sort, ranks.me)];
}
