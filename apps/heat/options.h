// What the command line asks for. Read by rank 0 alone, which tells the others.
#ifndef HEAT_OPTIONS_H
#define HEAT_OPTIONS_H

enum mode { MODE_RUN, MODE_TABLE, MODE_CHECK, MODE_HELP };

enum { SIDE_NORTH, SIDE_SOUTH, SIDE_EAST, SIDE_WEST, SIDES };

enum { SIDE_PARTS = 16, OPTIONS_MESSAGE = 512 };

// Temperatures of the words "source" and "sink", in degrees.
#define SOURCE 100.0
#define SINK 0.0

// A stretch of a side held at one temperature, in percent from the west or north end.
struct part {
    double temperature, from, to;
};

struct side {
    struct part parts[SIDE_PARTS]; // where two overlap the later counts
    int count;
};

struct options {
    enum mode mode;
    int n;     // 0: not given
    int steps;
    int every; // steps between two pictures
    int live;  // 1: wanted, 0: if standard output is a terminal, -1: not wanted
    int fps;   // most live pictures per second, for which the run waits; 0: it does not wait
    int frames, quiet;
    const char *out;
    const char *input; // NULL: none
    double start;      // even temperature of the plate at the start
    struct side sides[SIDES];
};

// The settings of a command line without options.
struct options options_default(void);

// Reads the command line. Returns 0, or -1 with one line in `message` (OPTIONS_MESSAGE bytes) that
// names the option, the value and what is allowed.
int options_read(struct options *options, int argc, char **argv, char *message);

// The text of --help.
const char *options_help(void);

#endif
