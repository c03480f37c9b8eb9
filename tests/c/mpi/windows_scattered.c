/* Operations on many elements far and near, forwards and backwards, on memory of the program's own: what was meant is changed,
 * and nothing else. Also on memory with a hole, which a dynamic window has between what is attached to it. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>

enum { MANY = 3000, WORDS = 200000, NEAR = 600 };

/* The words that an operation touches: close together, then ever farther apart, the last ones backwards. */
static int places[MANY], lengths[MANY];
static int *memory, *expected, *fetched;

static void choose(void)
{
    int at = 3, word = 0;
    for (int i = 0; i < MANY; i++) {
        lengths[i] = 1 + i % 3;
        places[i] = at;
        at += lengths[i] + 1 + (i < NEAR ? i % 2 : i % 97) + (i == 1500 ? 5000 : 0);
    }
    CHECK(at < WORDS);
    for (int i = 2000, j = MANY - 1; i < j; i++, j--) {
        word = places[i], places[i] = places[j], places[j] = word;
        word = lengths[i], lengths[i] = lengths[j], lengths[j] = word;
    }
}

static int words(void)
{
    int sum = 0;
    for (int i = 0; i < MANY; i++)
        sum += lengths[i];
    return sum;
}

/* What the target should hold after each of its words has been changed to or by first, first + 1, ... */
static void model(int first, int adds)
{
    int value = first;
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < lengths[i]; k++, value++)
            expected[places[i] + k] = value + (adds ? expected[places[i] + k] : 0);
}

static void same(MPI_Win win, int target, MPI_Datatype scattered, int count)
{
    memset(fetched, -1, WORDS * sizeof(int));
    OK(MPI_Get(fetched, 1, scattered, target, 0, 1, scattered, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < MANY; i++)
        CHECK(memcmp(fetched + places[i], expected + places[i], (size_t)lengths[i] * sizeof(int)) == 0);
    CHECK(fetched[0] == -1 && fetched[places[0] + lengths[0]] == -1);
    OK(MPI_Get(fetched, count, MPI_INT, target, 0, 1, scattered, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0, n = 0; i < MANY; n += lengths[i++])
        CHECK(memcmp(fetched + n, expected + places[i], (size_t)lengths[i] * sizeof(int)) == 0);
    OK(MPI_Get(fetched, WORDS, MPI_INT, target, 0, WORDS, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    CHECK(memcmp(fetched, expected, WORDS * sizeof(int)) == 0);
}

static void changed(MPI_Win win, int target)
{
    MPI_Datatype scattered;
    int count = words(), *values = malloc(2 * (size_t)count * sizeof(int)), *before = values + count;
    OK(MPI_Type_indexed(MANY, lengths, places, MPI_INT, &scattered));
    OK(MPI_Type_commit(&scattered));
    for (int i = 0; i < count; i++)
        values[i] = 100 + i;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Put(values, count, MPI_INT, target, 0, 1, scattered, win));
    OK(MPI_Win_flush(target, win));
    model(100, 0);
    same(win, target, scattered, count);
    OK(MPI_Accumulate(values, count, MPI_INT, target, 0, 1, scattered, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    model(100, 1);
    same(win, target, scattered, count);
    OK(MPI_Get_accumulate(values, count, MPI_INT, before, count, MPI_INT, target, 0, 1, scattered, MPI_REPLACE, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < count; i++)
        CHECK(before[i] == 2 * (100 + i));
    model(100, 0);
    same(win, target, scattered, count);
    values[7] = -5;
    OK(MPI_Accumulate(values, count, MPI_INT, target, 0, 1, scattered, MPI_REPLACE, win));
    OK(MPI_Accumulate(values, count, MPI_INT, target, 0, 1, scattered, MPI_MAX, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_INT, before, count, MPI_INT, target, 0, 1, scattered, MPI_NO_OP, win));
    OK(MPI_Win_unlock(target, win));
    CHECK(before[7] == -5 && before[6] == 106 && before[count - 1] == 99 + count);
    values[7] = 107;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(values, count, MPI_INT, target, 0, 1, scattered, win));
    OK(MPI_Win_fence(0, win));
    memset(fetched, -1, WORDS * sizeof(int));
    OK(MPI_Get(fetched, WORDS, MPI_INT, target, 0, WORDS, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memcmp(fetched, expected, WORDS * sizeof(int)) == 0);
    OK(MPI_Type_free(&scattered));
    free(values);
}

static void with_a_hole(int target)
{
    MPI_Win win;
    MPI_Aint theirs, mine;
    long page = sysconf(_SC_PAGESIZE);
    char *three = mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(three != MAP_FAILED && munmap(three + page, (size_t)page) == 0);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, three, page));
    OK(MPI_Win_attach(win, three + 2 * page, page));
    OK(MPI_Get_address(three, &mine));
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, before, 0, &theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(next == target);
    /* One element at the end of the first page, one at the beginning of the third. */
    MPI_Datatype two;
    OK(MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){page - 4, 2 * page}, MPI_INT, &two));
    OK(MPI_Type_commit(&two));
    int values[2] = {31, 32}, found[2] = {0, 0};
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Put(values, 2, MPI_INT, target, theirs, 1, two, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Accumulate(values, 2, MPI_INT, target, theirs, 1, two, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(found, 2, MPI_INT, target, theirs, 1, two, win));
    OK(MPI_Win_unlock(target, win));
    CHECK(found[0] == 62 && found[1] == 64);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(*(int *)(void *)(three + page - 4) == 62 && *(int *)(void *)(three + 2 * page) == 64);
    OK(MPI_Type_free(&two));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    size_t bytes = WORDS * sizeof(int);
    check_begin(&argc, &argv);
    choose();
    memory = malloc(3 * bytes), expected = memory + WORDS, fetched = expected + WORDS;
    for (int i = 0; i < WORDS; i++)
        memory[i] = expected[i] = -i;
    OK(MPI_Win_create(memory, (MPI_Aint)bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    changed(win, (check_rank + 1) % check_size);
    OK(MPI_Win_free(&win));
    with_a_hole((check_rank + 1) % check_size);
    free(memory);
    OK(MPI_Finalize());
    return 0;
}
