#include "options.h"
#include "plate.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const SIDE_NAMES[SIDES] = {"--north", "--south", "--east", "--west"};

static const char *const DEFAULT_SIDES[SIDES] = {
    "source@12-42,sink@55-100",
    "sink@0-35,source@60-85",
    "sink@0-20,source@40-60,sink@80-100",
    "source@25-70",
};

// The coldest is the absolute zero.
static const double COLDEST = -273.15, HOTTEST = 10000;

static int complain(char *message, const char *option, const char *value, const char *allowed)
{
    snprintf(message, OPTIONS_MESSAGE, "%s %.100s: allowed is %s", option, value, allowed);
    return -1;
}

static int read_int(int *out, const char *option, const char *value, int least, int most,
                    char *message)
{
    char *end, allowed[64];
    errno = 0;
    long number = strtol(value, &end, 10);
    if (end == value || *end != 0 || errno != 0 || number < least || number > most) {
        snprintf(allowed, sizeof allowed, "a whole number from %d to %d", least, most);
        return complain(message, option, value, allowed);
    }
    *out = (int)number;
    return 0;
}

// A number at the start of `text`; `end` is set behind it. Returns 0, or -1 when there is none.
static int read_number(double *out, const char *text, char **end, double least, double most)
{
    *out = strtod(text, end);
    return *end == text || !isfinite(*out) || *out < least || *out > most ? -1 : 0;
}

// "source", "sink" or a number of degrees at the start of `text`.
static int read_temperature(double *out, const char *text, char **end)
{
    static const struct {
        const char *word;
        double value;
    } WORDS[] = {{"source", SOURCE}, {"sink", SINK}};
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        size_t length = strlen(WORDS[i].word);
        if (strncmp(text, WORDS[i].word, length) == 0) {
            *out = WORDS[i].value;
            *end = (char *)text + length;
            return 0;
        }
    }
    return read_number(out, text, end, COLDEST, HOTTEST);
}

// TEMPERATURE[@FROM-TO] at the start of `text`.
static int read_part(struct part *part, const char *text, char **end)
{
    *part = (struct part){.from = 0, .to = 100};
    if (read_temperature(&part->temperature, text, end) != 0)
        return -1;
    if (**end != '@')
        return 0;
    if (read_number(&part->from, *end + 1, end, 0, 100) != 0 || **end != '-')
        return -1;
    return read_number(&part->to, *end + 1, end, part->from, 100);
}

static int read_side(struct side *side, const char *option, const char *value, char *message)
{
    const char *allowed = "TEMPERATURE[@FROM-TO][,...], at most 16 of them, TEMPERATURE being "
                          "source, sink or -273.15 to 10000, FROM and TO percent from 0 to 100";
    char *at = (char *)value;
    for (side->count = 0; side->count < SIDE_PARTS; at++) {
        if (read_part(&side->parts[side->count++], at, &at) != 0)
            break;
        if (*at == 0)
            return 0;
        if (*at != ',')
            break;
    }
    return complain(message, option, value, allowed);
}

static int read_start(double *out, const char *option, const char *value, char *message)
{
    char *end;
    if (read_temperature(out, value, &end) != 0 || *end != 0)
        return complain(message, option, value, "source, sink or a number from -273.15 to 10000");
    return 0;
}

static int read_name(const char **out, const char *option, const char *value, char *message)
{
    if (*value == 0)
        return complain(message, option, "''", "a name that is not empty");
    *out = value;
    return 0;
}

struct options options_default(void)
{
    char message[OPTIONS_MESSAGE];
    struct options options = {
        .steps = 5000, .every = 20, .frames = 1, .out = "heat.frames", .start = 25};
    for (int side = 0; side < SIDES; side++)
        read_side(&options.sides[side], SIDE_NAMES[side], DEFAULT_SIDES[side], message);
    return options;
}

// Options without a value. Returns 1 when `name` is one.
static int read_switch(struct options *options, const char *name)
{
    if (strcmp(name, "--no-frames") == 0)
        options->frames = 0;
    else if (strcmp(name, "--live") == 0)
        options->live = 1;
    else if (strcmp(name, "--no-live") == 0)
        options->live = -1;
    else if (strcmp(name, "--quiet") == 0)
        options->quiet = 1;
    else if (strcmp(name, "--table") == 0)
        options->mode = MODE_TABLE;
    else if (strcmp(name, "--check") == 0)
        options->mode = MODE_CHECK;
    else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        options->mode = MODE_HELP;
    else
        return 0;
    return 1;
}

static int takes_value(const char *name)
{
    static const char *const NAMES[] = {"-n",      "--steps", "--every", "--out",  "--input", "--fps",
                                        "--start", "--north", "--south", "--east", "--west"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strcmp(name, NAMES[i]) == 0)
            return 1;
    return 0;
}

static int read_valued(struct options *options, const char *name, const char *value, char *message)
{
    for (int side = 0; side < SIDES; side++)
        if (strcmp(name, SIDE_NAMES[side]) == 0)
            return read_side(&options->sides[side], name, value, message);
    if (strcmp(name, "-n") == 0)
        return read_int(&options->n, name, value, 1, PLATE_MAX, message);
    if (strcmp(name, "--steps") == 0)
        return read_int(&options->steps, name, value, 0, 1000000000, message);
    if (strcmp(name, "--every") == 0)
        return read_int(&options->every, name, value, 1, 1000000000, message);
    if (strcmp(name, "--fps") == 0)
        return read_int(&options->fps, name, value, 1, 1000, message);
    if (strcmp(name, "--start") == 0)
        return read_start(&options->start, name, value, message);
    if (strcmp(name, "--out") == 0)
        return read_name(&options->out, name, value, message);
    return read_name(&options->input, name, value, message);
}

static int check_together(const struct options *options, char *message)
{
    if (options->mode == MODE_TABLE && (options->n || options->input || options->steps < 1)) {
        snprintf(message, OPTIONS_MESSAGE,
                 "--table measures n = 64 to 1024 by itself: allowed with it are --every and --steps "
                 "from 1");
        return -1;
    }
    if (options->mode == MODE_CHECK && options->n > 256) {
        snprintf(message, OPTIONS_MESSAGE,
                 "-n %d with --check: allowed is a whole number from 1 to 256", options->n);
        return -1;
    }
    return 0;
}

int options_read(struct options *options, int argc, char **argv, char *message)
{
    char name[32];
    *options = options_default();
    for (int i = 1; i < argc; i++) {
        const char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
        int length = equals ? (int)(equals - argv[i]) : (int)strlen(argv[i]);
        snprintf(name, sizeof name, "%.*s", length, argv[i]);
        if (!equals && read_switch(options, name))
            continue;
        if (length >= (int)sizeof name || !takes_value(name)) {
            snprintf(message, OPTIONS_MESSAGE, "unknown option '%.100s': --help lists the allowed ones",
                     argv[i]);
            return -1;
        }
        const char *value = equals ? equals + 1 : argv[++i];
        if (!value) {
            snprintf(message, OPTIONS_MESSAGE, "%s: a value must follow", name);
            return -1;
        }
        if (read_valued(options, name, value, message) != 0)
            return -1;
    }
    return check_together(options, message);
}

const char *options_help(void)
{
    return "usage: heat [OPTION...], under an MPI launcher such as `weft run -n 4`\n"
           "\n"
           "Heat diffusion on a square plate: Jacobi iteration, row blocks, one per rank.\n"
           "\n"
           "  -n SIZE           cells per side, 1 to 16384 (256, or the width of the input)\n"
           "  --steps COUNT     iterations, 0 to 1000000000 (5000)\n"
           "  --every COUNT     gather and show the plate every COUNT iterations, from 1 (20)\n"
           "  --out DIR         directory of the PNG frames, made when missing (heat.frames)\n"
           "  --no-frames       write no frames\n"
           "  --live            draw in the terminal, also when standard output is none\n"
           "  --no-live         do not draw, also when standard output is a terminal\n"
           "  --fps COUNT       at most COUNT live pictures per second, 1 to 1000; the run waits\n"
           "                    for them (otherwise the picture skips what it cannot show)\n"
           "  --quiet           print the checksum line only\n"
           "\n"
           "  --start TEMPERATURE                    the plate at the start (25)\n"
           "  --north, --south, --east, --west SIDE  what the four sides are held at\n"
           "      TEMPERATURE is source (100), sink (0) or degrees, -273.15 to 10000.\n"
           "      SIDE is TEMPERATURE[@FROM-TO][,...]: FROM and TO are percent of the side, from\n"
           "      its west or north end; the rest of the side is held at the start temperature.\n"
           "  --input FILE.png  the plate from a picture, stretched to SIZE x SIZE:\n"
           "      grey         starts there, black at sink to white at source, and may change\n"
           "      coloured     is held: red is source, blue is sink, others lie between\n"
           "      transparent  is plate at the start temperature\n"
           "\n"
           "  --table           print ms per iteration and speed-up for n = 64 to 1024 on 1, 2, 4, ...\n"
           "                    ranks, up to all that were started\n"
           "  --check           test the solver against known answers (-n 1 to 256, 53)\n"
           "  --help            print this\n"
           "\n"
           "Exit status: 0 done, 1 failed, 2 wrong use.\n";
}
