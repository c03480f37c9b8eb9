// The live picture: the plate in a terminal, two cells per character, redrawn in place, with a
// progress bar below. Needs a terminal with 24-bit colour and Unicode.
#ifndef HEAT_SCREEN_H
#define HEAT_SCREEN_H

struct screen {
    int columns, lines; // size of the terminal
    int drawn;          // lines of the picture on the screen, 0: none yet
    int broken;         // the terminal is gone: draw no more
    double last;        // when the last picture was drawn, in seconds
    double low, high;   // the scale of the colours
    char *text;         // one frame being put together
    unsigned long length, room;
};

// What the progress line says.
struct progress {
    long step, steps;
    double change; // of the last step, in degrees
};

// Is standard output a terminal?
int screen_is_terminal(void);

// Prepares drawing on standard output and restores the terminal when a signal ends the program.
void screen_open(struct screen *screen, double low, double high);

// Draws the n x n cells of a bordered plate. `now` is the time in seconds.
void screen_draw(struct screen *screen, const double *whole, int n, struct progress progress,
                 double now);

void screen_close(struct screen *screen);

#endif
