// Heat diffusion on a square metal plate, the application benchmark of the ParaStation papers
// ("The ParaStation Project", 1998, section "Heat diffusion", table 4), in plain C and MPI.
//
// Rank 0 reads the command line and builds the plate; plate.c deals it out, relaxes and collects it.
// Build: mpicc -O2 apps/heat/*.c -o heat -lpng -lm
#define _POSIX_C_SOURCE 200809L
#include "options.h"
#include "plate.h"
#include "run.h"
#include "scene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// The check takes a prime: nothing divides evenly, neither ranks nor the blocks of the inner loop.
enum { DEFAULT_SIZE = 256, CHECK_SIZE = 53 };

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

// What rank 0 tells the others: go on with the job, or end.
struct order {
    struct job job;
    int go;
};

static int refuse(const char *message)
{
    fprintf(stderr, "heat: %s\n", message);
    return EXIT_USAGE;
}

static int make_directory(const char *path, char *message)
{
    struct stat found;
    if (mkdir(path, 0777) == 0 || (stat(path, &found) == 0 && S_ISDIR(found.st_mode)))
        return 0;
    snprintf(message, OPTIONS_MESSAGE, "--out %.300s: not a directory, and none could be made: %s", path,
             strerror(errno));
    return -1;
}

// On rank 0: reads the command line, builds the plate and fills in the order. Returns the exit
// status for the case that there is nothing to do.
static int prepare(int argc, char **argv, int ranks, struct options *options, struct scene *scene,
                   struct order *order)
{
    char message[OPTIONS_MESSAGE];
    if (options_read(options, argc, argv, message) != 0)
        return refuse(message);
    if (options->mode == MODE_HELP) {
        fputs(options_help(), stdout);
        return EXIT_DONE;
    }
    int n = options->n ? options->n : CHECK_SIZE;
    if (options->mode == MODE_RUN) {
        if (scene_build(scene, options, DEFAULT_SIZE, message) != 0)
            return refuse(message);
        n = scene->n;
    }
    if (options->mode != MODE_TABLE && ranks > n) {
        snprintf(message, sizeof message,
                 "%d ranks for %d rows: allowed are 1 to %d ranks, so that each has a row", ranks, n, n);
        return refuse(message);
    }
    if (options->mode == MODE_RUN && options->frames && make_directory(options->out, message) != 0)
        return refuse(message);
    order->job = (struct job){options->mode, n, options->steps, options->every};
    order->go = 1;
    return EXIT_DONE;
}

static int perform(const struct job *job, const struct options *options, const struct scene *scene)
{
    switch (job->mode) {
    case MODE_TABLE:
        return run_table(job);
    case MODE_CHECK:
        return run_check(job);
    default:
        return run_plate(job, options, scene);
    }
}

int main(int argc, char **argv)
{
    struct options options;
    struct scene scene = {0};
    struct order order = {0};
    int rank, ranks, status = EXIT_DONE;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0)
        status = prepare(argc, argv, ranks, &options, &scene, &order);
    MPI_Bcast(&order, (int)sizeof order, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (order.go)
        status = perform(&order.job, &options, &scene);
    scene_free(&scene);
    MPI_Finalize();
    // The others end with 0, so that one failure is reported once.
    if (rank != 0)
        return EXIT_DONE;
    if (fflush(stdout) != 0 && status == EXIT_DONE) {
        perror("heat: standard output");
        status = EXIT_FAILED;
    }
    return status;
}
