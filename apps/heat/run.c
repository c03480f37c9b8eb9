// The ordinary run: relax, gather and show, report.
#define _POSIX_C_SOURCE 200809L
#include "run.h"
#include "picture.h"
#include "plate.h"
#include "screen.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIVE_FPS = 25 }; // without --fps: more is not seen

// What rank 0 needs to show the plate.
struct show {
    const struct options *options;
    const struct scene *scene;
    struct screen screen;
    int live;
    double *whole;         // the gathered plate
    unsigned char *pixels; // n x n colour numbers
    long frames;           // written so far
    double seconds;        // spent on pictures
};

void run_fail(const char *format, ...)
{
    char reason[OPTIONS_MESSAGE + 256];
    int rank;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "heat: rank %d: %s\n", rank, reason);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void open_show(struct show *show, const struct job *job, const struct options *options,
                      const struct scene *scene)
{
    size_t n = (size_t)job->n;
    *show = (struct show){.options = options, .scene = scene};
    show->whole = malloc(plate_cells(job->n) * sizeof(double));
    show->pixels = malloc(n * n);
    if (!show->whole || !show->pixels)
        run_fail("-n %d: no memory for showing the plate", job->n);
    // The corners are dealt to nobody's cells, but they are gathered: no byte stays undefined.
    memcpy(show->whole, scene->whole, plate_cells(job->n) * sizeof(double));
    int wanted = screen_is_terminal() && !options->quiet;
    show->live = options->live > 0 || (options->live == 0 && wanted);
    if (show->live)
        screen_open(&show->screen, scene->low, scene->high);
}

static void close_show(struct show *show)
{
    if (show->live)
        screen_close(&show->screen);
    free(show->whole);
    free(show->pixels);
}

static void write_frame(struct show *show, int step)
{
    const char *directory = show->options->out;
    char reason[PICTURE_MESSAGE], path[4096];
    int n = show->scene->n;
    if (snprintf(path, sizeof path, "%s/frame-%08d.png", directory, step) >= (int)sizeof path)
        run_fail("--out %.100s...: a name of more than 4000 bytes", directory);
    picture_paint(show->whole, n, show->scene->low, show->scene->high, show->pixels);
    if (picture_write(path, show->pixels, n, reason) != 0)
        run_fail("--out %s: cannot write %s: %s", directory, path, reason);
    show->frames++;
}

static void sleep_until(double then)
{
    double left = then - MPI_Wtime();
    if (left <= 0)
        return;
    struct timespec pause = {.tv_sec = (time_t)left};
    pause.tv_nsec = (long)((left - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
}

// Draws, unless the last picture is so young that this one would not be seen; the first and the last
// are always drawn.
static void draw_live(struct show *show, const struct job *job, int step, double change)
{
    int fps = show->options->fps;
    double due = show->screen.last + 1.0 / (fps > 0 ? fps : LIVE_FPS);
    int between = step != 0 && step != job->steps;
    if (fps > 0 && step != 0)
        sleep_until(due);
    else if (between && MPI_Wtime() < due)
        return;
    struct progress progress = {step, job->steps, change};
    screen_draw(&show->screen, show->whole, show->scene->n, progress, MPI_Wtime());
}

// Gathers and shows the plate. Collective.
static void show_plate(struct show *show, struct plate *plate, const struct job *job, int step)
{
    double change = plate_change(plate);
    plate_gather(plate, show->whole);
    if (plate->rank != 0)
        return;
    double start = MPI_Wtime();
    if (show->options->frames)
        write_frame(show, step);
    if (show->live)
        draw_live(show, job, step, change);
    show->seconds += MPI_Wtime() - start;
}

// Mean, least and most of the cells, added up in the order of the rows whoever computed them.
static void print_temperatures(const double *whole, int n)
{
    double sum = 0, least = whole[n + 3], most = least;
    for (int row = 1; row <= n; row++) {
        const double *cells = whole + (size_t)row * (size_t)(n + 2) + 1;
        for (int column = 0; column < n; column++) {
            sum += cells[column];
            least = cells[column] < least ? cells[column] : least;
            most = cells[column] > most ? cells[column] : most;
        }
    }
    double mean = sum / ((double)n * n);
    printf("heat: temperature min %.6f  mean %.6f  max %.6f\n", least, mean, most);
}

static void print_beginning(const struct job *job)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    printf("heat: %d x %d plate on %d rank%s, %d steps, shown every %d\n", job->n, job->n, ranks,
           ranks == 1 ? "" : "s", job->steps, job->every);
    fflush(stdout);
}

static void print_results(const struct show *show, const struct job *job, double seconds)
{
    if (!show->options->quiet) {
        double computing = seconds - show->seconds;
        printf("heat: %.3f s, of which %.3f s for pictures", seconds, show->seconds);
        if (job->steps > 0)
            printf("; %.4f ms per iteration without them", 1e3 * computing / job->steps);
        printf("\n");
        if (show->frames > 0)
            printf("heat: %ld frames in %s\n", show->frames, show->options->out);
        print_temperatures(show->whole, job->n);
    }
    printf("heat: checksum %016" PRIx64 "\n", plate_checksum(show->whole, job->n));
}

int run_plate(const struct job *job, const struct options *options, const struct scene *scene)
{
    struct plate plate;
    struct show show = {0};
    if (plate_open(&plate, MPI_COMM_WORLD, job->n) != 0)
        run_fail("-n %d: no memory for a block of the plate", job->n);
    if (plate.rank == 0) {
        if (!options->quiet)
            print_beginning(job);
        open_show(&show, job, options, scene);
    }
    if (plate_deal(&plate, scene->whole, scene->held) != 0)
        run_fail("-n %d: no memory for the held cells", job->n);

    double start = MPI_Wtime();
    show_plate(&show, &plate, job, 0);
    for (int step = 1; step <= job->steps; step++) {
        plate_step(&plate);
        if (step % job->every == 0 || step == job->steps)
            show_plate(&show, &plate, job, step);
    }
    if (plate.rank == 0) {
        print_results(&show, job, MPI_Wtime() - start);
        close_show(&show);
    }
    plate_close(&plate);
    return 0;
}
