// The command line that the programs share, and what they say at the end.
#ifndef RUN_H
#define RUN_H

struct run {
    const char *program;
    char class;          // one of the letters of `classes`
    const char *picture; // the file to write; NULL: none
    const char *word;    // that of the program's own option; NULL: none was given
};

// What a program takes.
struct usage {
    const char *program;
    const char *text;    // what it computes
    const char *classes; // letters of --class; without the option it is the first
    const char *picture; // what --picture shows; NULL: no such option
    const char *option;  // the program's own; NULL: none
    const char *about;   // what it chooses
    const char *words;   // what it can be, separated by spaces
};

// Begins all ranks and reads the command line. With wrong use or `--help` it ends all.
struct run run_begin(const struct usage *usage, int count, char **words);

// Says in one line how it went, and ends all ranks. Returns the exit status: that of rank 0 tells of a wrong result.
int run_end(const struct run *run, double seconds, int wrong);

// One line on standard error, and the end of all ranks.
_Noreturn void run_fail(const char *format, ...);

#endif
