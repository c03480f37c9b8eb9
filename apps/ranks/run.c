#define _GNU_SOURCE // madvise
#include "run.h"
#include "ranks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { EXIT_USAGE = 2, CACHE_LINE = 64, LARGE_PAGE = 2 << 20 };

void *ranks_memory(size_t length)
{
    void *memory = NULL;
    size_t unit = length < LARGE_PAGE ? CACHE_LINE : LARGE_PAGE;
    if (posix_memalign(&memory, unit, length > 0 ? length : 1) != 0)
        run_fail("no memory for %zu bytes", length);
    // With small pages most steps of a walk across planes would be in a page that the processor has to look up.
    if (unit == LARGE_PAGE)
        madvise(memory, length, MADV_HUGEPAGE);
    return memory;
}

void ranks_gather_equal(void *all, size_t length)
{
    size_t starts[ranks.count + 1];
    for (int rank = 0; rank <= ranks.count; rank++)
        starts[rank] = (size_t)rank * length;
    ranks_gather(all, starts);
}

double ranks_meet(void)
{
    char here[ranks.count];
    struct timespec now;
    here[ranks.me] = 0;
    ranks_gather_equal(here, 1);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void run_fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    ranks_abort();
}

// Ends all ranks before there was anything to do: rank 0 alone has a status, so that one failure is told once.
static _Noreturn void leave(int status)
{
    ranks_end();
    exit(ranks.me == 0 ? status : 0);
}

static _Noreturn void refuse(const struct usage *usage, const char *option, const char *value, const char *allowed)
{
    if (ranks.me == 0)
        fprintf(stderr, "%s: %s %s: allowed is %s\n", usage->program, option, value, allowed);
    leave(EXIT_USAGE);
}

static _Noreturn void help(const struct usage *usage)
{
    if (ranks.me == 0) {
        printf("usage: %s [OPTION VALUE]...\n\n%s\n\n", usage->program, usage->text);
        printf("  --class LETTER   how much: one of %s (%c)\n", usage->classes, usage->classes[0]);
        if (usage->picture)
            printf("  --picture FILE   writes %s, as PPM\n", usage->picture);
        if (usage->option)
            printf("  %s WORD       %s: one of %s\n", usage->option, usage->about, usage->words);
    }
    leave(0);
}

// Is `word` one of those in `words`, which are separated by spaces?
static int is_among(const char *word, const char *words)
{
    size_t length = strlen(word);
    for (const char *found = words; length > 0 && (found = strstr(found, word)); found += length)
        if ((found == words || found[-1] == ' ') && (found[length] == ' ' || found[length] == 0))
            return 1;
    return 0;
}

static void take(struct run *run, const struct usage *usage, const char *option, const char *value)
{
    if (strcmp(option, "--class") == 0) {
        if (strlen(value) != 1 || !strchr(usage->classes, value[0]))
            refuse(usage, option, value, usage->classes);
        run->class = value[0];
    } else if (strcmp(option, "--picture") == 0 && usage->picture) {
        run->picture = value;
    } else if (usage->option && strcmp(option, usage->option) == 0) {
        if (!is_among(value, usage->words))
            refuse(usage, option, value, usage->words);
        run->word = value;
    } else {
        refuse(usage, "option", option, "what --help shows");
    }
}

struct run run_begin(const struct usage *usage, int count, char **words)
{
    struct run run = {.program = usage->program, .class = usage->classes[0]};
    ranks_begin(&count, &words);
    for (int i = 1; i < count; i += 2) {
        if (strcmp(words[i], "--help") == 0)
            help(usage);
        if (i + 1 == count)
            refuse(usage, "option", words[i], "what --help shows, and a value after it");
        take(&run, usage, words[i], words[i + 1]);
    }
    return run;
}

int run_end(const struct run *run, double seconds, int wrong)
{
    int failed = wrong;
    if (ranks.me == 0) {
        printf("%s: class %c, %d %s, %.4f s: %s\n", run->program, run->class, ranks.count,
               ranks.count == 1 ? "rank" : "ranks", seconds, wrong ? "WRONG" : "right");
        failed |= fflush(stdout) != 0;
    }
    ranks_end();
    return ranks.me == 0 && failed;
}
