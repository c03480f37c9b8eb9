// The papers' table: ms per iteration and speed-up for n = 64 to 1024, the plate gathered and
// coloured every 20 iterations ("The ParaStation Project", 1998, table 4).
#define _POSIX_C_SOURCE 200809L
#include "picture.h"
#include "plate.h"
#include "run.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TAG_CALL = 7, GROUPS_MAX = 32, WARM_UP = 50 };

static const int SIZES[] = {64, 128, 256, 512, 1024};

// One column: the first `ranks` ranks of all, or MPI_COMM_NULL on a rank that is not among them.
struct group {
    int ranks;
    MPI_Comm comm;
};

struct result {
    double ms; // per iteration
    uint64_t checksum;
};

// Groups of 1, 2, 4, ... ranks and of all. Collective. Returns how many.
static int make_groups(struct group *groups)
{
    int rank, size, count = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int ranks = 1; count < GROUPS_MAX; ranks = ranks > size / 2 ? size : 2 * ranks) {
        int colour = rank < ranks ? 0 : MPI_UNDEFINED;
        groups[count].ranks = ranks;
        MPI_Comm_split(MPI_COMM_WORLD, colour, rank, &groups[count].comm);
        count++;
        if (ranks == size)
            break;
    }
    return count;
}

// Ranks outside the measured group sleep until rank 0 calls them. In a barrier they would, with
// some MPI libraries, spin and take the cores from those being measured.
static void wait_for_call(void)
{
    int called = 0;
    while (!called) {
        struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL);
        MPI_Iprobe(0, TAG_CALL, MPI_COMM_WORLD, &called, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&called, 1, MPI_INT, 0, TAG_CALL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void call_others(int first)
{
    int size, call = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int rank = first; rank < size; rank++)
        MPI_Send(&call, 1, MPI_INT, rank, TAG_CALL, MPI_COMM_WORLD);
}

// What the papers time: iterations, and every so often the plate on one rank as a picture.
static void iterate(struct plate *plate, const struct scene *scene, double *whole,
                    unsigned char *pixels, int steps, int every)
{
    for (int step = 1; step <= steps; step++) {
        plate_step(plate);
        if (step % every != 0 && step != steps)
            continue;
        plate_gather(plate, whole);
        if (plate->rank == 0)
            picture_paint(whole, plate->n, scene->low, scene->high, pixels);
    }
}

static void deal(struct plate *plate, const struct scene *scene)
{
    if (plate_deal(plate, scene->whole, scene->held) != 0)
        run_fail("--table: no memory for n = %d", plate->n);
}

static void build(struct scene *scene, int n)
{
    struct options options = options_default();
    char message[OPTIONS_MESSAGE];
    if (scene_build(scene, &options, n, message) != 0)
        run_fail("%s", message);
}

// Measures one size on one group. Collective over it; the result counts on rank 0.
static struct result measure(MPI_Comm comm, int n, const struct job *job)
{
    struct plate plate;
    struct scene scene = {0};
    double *whole = NULL;
    unsigned char *pixels = NULL;
    struct result result = {0};
    if (plate_open(&plate, comm, n) != 0)
        run_fail("--table: no memory for n = %d", n);
    if (plate.rank == 0) {
        build(&scene, n);
        whole = malloc(plate_cells(n) * sizeof(double));
        pixels = malloc((size_t)n * (size_t)n);
        if (!whole || !pixels)
            run_fail("--table: no memory for n = %d", n);
    }
    deal(&plate, &scene);
    iterate(&plate, &scene, whole, pixels, WARM_UP, WARM_UP);
    deal(&plate, &scene);
    MPI_Barrier(comm);
    double start = MPI_Wtime();
    iterate(&plate, &scene, whole, pixels, job->steps, job->every);
    double mine = MPI_Wtime() - start, slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    if (plate.rank == 0)
        result = (struct result){1e3 * slowest / job->steps, plate_checksum(whole, n)};
    scene_free(&scene);
    free(whole);
    free(pixels);
    plate_close(&plate);
    return result;
}

static void print_heading(const struct group *groups, int count, const struct job *job)
{
    printf("heat: %d iterations, the plate gathered and coloured every %d\n\n", job->steps, job->every);
    printf("        n |   1 rank");
    for (int g = 1; g < count; g++)
        printf(" | %10d ranks  ", groups[g].ranks);
    printf("\n          |  ms/iter");
    for (int g = 1; g < count; g++)
        printf(" |  ms/iter  speed-up");
    printf("\n");
    fflush(stdout);
}

static void print_cell(int group, struct result result, struct result alone)
{
    if (group == 0)
        printf(" | %8.4f", result.ms);
    else
        printf(" | %8.4f  %8.2f", result.ms, alone.ms / result.ms);
    fflush(stdout);
}

// One line of the table. Returns on rank 0 how many columns differ from the first; collective.
static int measure_line(const struct group *groups, int count, int n, const struct job *job, int rank)
{
    struct result alone = {0};
    int wrong = 0;
    if (rank == 0)
        printf("     %4d", n);
    for (int g = 0; g < count; g++) {
        if (groups[g].ranks > n) {
            if (rank == 0)
                printf(" |        -         -"); // fewer rows than ranks
            continue;
        }
        if (groups[g].comm == MPI_COMM_NULL) {
            wait_for_call();
            continue;
        }
        struct result result = measure(groups[g].comm, n, job);
        if (rank != 0)
            continue;
        alone = g == 0 ? result : alone;
        wrong += result.checksum != alone.checksum;
        print_cell(g, result, alone);
        call_others(groups[g].ranks);
    }
    if (rank == 0)
        printf("\n");
    return wrong;
}

int run_table(const struct job *job)
{
    struct group groups[GROUPS_MAX];
    int rank, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int count = make_groups(groups);
    if (rank == 0)
        print_heading(groups, count, job);
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++)
        wrong += measure_line(groups, count, SIZES[i], job, rank);
    for (int g = 0; g < count; g++)
        if (groups[g].comm != MPI_COMM_NULL)
            MPI_Comm_free(&groups[g].comm);
    if (rank == 0 && wrong > 0)
        printf("\nheat: %d results differ from those of one rank\n", wrong);
    else if (rank == 0)
        printf("\nheat: every line has one result, bit for bit, whatever the number of ranks\n");
    return wrong > 0;
}
