#define _DEFAULT_SOURCE
#include "screen.h"
#include "picture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// Colours back to normal, the cursor visible.
#define RESTORE "\033[0m\033[?25h"
// The terminal collects between these two and shows a frame at once; one that does not know them
// ignores them.
#define HOLD "\033[?2026h"
#define RELEASE "\033[?2026l"

enum { LINES_BELOW = 2 }; // the progress bar, and the line the cursor rests on

int screen_is_terminal(void)
{
    return isatty(STDOUT_FILENO);
}

static int size_from(const char *name, int otherwise)
{
    const char *value = getenv(name);
    int size = value ? atoi(value) : 0;
    return size > 0 ? size : otherwise;
}

static int ask_size(int descriptor, struct winsize *size)
{
    return ioctl(descriptor, TIOCGWINSZ, size) == 0 && size->ws_col > 0 && size->ws_row > 0;
}

// Under a launcher standard output is a pipe to the terminal: then the controlling terminal knows
// the size, and where there is none, the environment may.
static void measure(struct screen *screen)
{
    struct winsize size;
    int known = ask_size(STDOUT_FILENO, &size) || ask_size(STDERR_FILENO, &size);
    if (!known) {
        int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
        if (terminal >= 0) {
            known = ask_size(terminal, &size);
            close(terminal);
        }
    }
    int columns = known ? size.ws_col : size_from("COLUMNS", 80);
    int lines = known ? size.ws_row : size_from("LINES", 24);
    if (columns != screen->columns || lines != screen->lines)
        screen->drawn = 0; // the old picture has been moved about: begin a new one
    screen->columns = columns;
    screen->lines = lines;
}

static void restore_and_die(int signal_number)
{
    int ignored = (int)write(STDOUT_FILENO, RESTORE RELEASE "\n", sizeof(RESTORE RELEASE "\n") - 1);
    (void)ignored;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void screen_open(struct screen *screen, double low, double high)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    *screen = (struct screen){.low = low, .high = high};
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) {
        struct sigaction action = {.sa_handler = restore_and_die}, before;
        sigemptyset(&action.sa_mask);
        // What was ignored at the start (nohup) stays ignored.
        if (sigaction(SIGNALS[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(SIGNALS[i], &action, NULL);
    }
}

static void put(struct screen *screen, const char *format, ...)
{
    char piece[128];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= (int)sizeof piece)
        return;
    if (screen->length + (unsigned long)length > screen->room) {
        unsigned long room = 2 * screen->room + 65536;
        char *text = realloc(screen->text, room);
        if (!text) {
            screen->broken = 1;
            return;
        }
        screen->text = text;
        screen->room = room;
    }
    memcpy(screen->text + screen->length, piece, (size_t)length);
    screen->length += (unsigned long)length;
}

// The mean over the cells that one point of the screen stands for; a few of them are enough.
static double sample(const double *whole, int n, int points, int y, int x)
{
    enum { SAMPLES = 4 };
    long top = (long)y * n / points, bottom = (long)(y + 1) * n / points;
    long left = (long)x * n / points, right = (long)(x + 1) * n / points;
    long step = (bottom - top + SAMPLES - 1) / SAMPLES;
    double sum = 0;
    int count = 0;
    step = step > 0 ? step : 1;
    for (long row = top; row == top || row < bottom; row += step) {
        for (long column = left; column == left || column < right; column += step) {
            sum += whole[(size_t)(row + 1) * (size_t)(n + 2) + (size_t)column + 1];
            count++;
        }
    }
    return sum / count;
}

// One line of characters is two rows of points: the upper half block has the colour of the upper
// one, its background that of the lower one. Colours are sent only where they change.
static void put_line(struct screen *screen, const double *whole, int n, int points, int line)
{
    const struct colour *colours = picture_colours();
    int upper = -1, lower = -1;
    for (int x = 0; x < points; x++) {
        double above = sample(whole, n, points, 2 * line, x);
        double below = sample(whole, n, points, 2 * line + 1, x);
        int a = picture_colour_of(above, screen->low, screen->high);
        int b = picture_colour_of(below, screen->low, screen->high);
        if (a != upper)
            put(screen, "\033[38;2;%d;%d;%dm", colours[a].red, colours[a].green, colours[a].blue);
        if (b != lower)
            put(screen, "\033[48;2;%d;%d;%dm", colours[b].red, colours[b].green, colours[b].blue);
        put(screen, "\u2580");
        upper = a;
        lower = b;
    }
    put(screen, "\033[0m\033[K\n");
}

// A bar in the colours of the scale, so that it is the legend too, then the numbers.
static void put_progress(struct screen *screen, struct progress progress, int width)
{
    static const char *const EIGHTHS[] = {"", "\u258f", "\u258e", "\u258d",
                                          "\u258c", "\u258b", "\u258a", "\u2589"};
    const struct colour *colours = picture_colours();
    char text[96];
    double share = progress.steps > 0 ? (double)progress.step / (double)progress.steps : 1;
    int length = snprintf(text, sizeof text, " %3d %%  step %ld of %ld  change %.2g", (int)(100 * share),
                          progress.step, progress.steps, progress.change);
    int bar = width - length;
    if (bar < 8) { // a narrow terminal: the percentage alone
        length = snprintf(text, sizeof text, " %3d %%", (int)(100 * share));
        bar = width > length ? width - length : 0;
    }
    int eighths = (int)(share * bar * 8);
    put(screen, "\033[48;2;48;48;52m");
    for (int x = 0; x < bar; x++) {
        // From a third upwards: the darkest colours would not stand out from the ground.
        int c = PICTURE_COLOURS / 3 + x * (PICTURE_COLOURS - PICTURE_COLOURS / 3) / bar;
        put(screen, "\033[38;2;%d;%d;%dm", colours[c].red, colours[c].green, colours[c].blue);
        int filled = eighths - 8 * x;
        put(screen, "%s", filled >= 8 ? "\u2588" : filled > 0 ? EIGHTHS[filled] : " ");
    }
    put(screen, "\033[0m%s\033[K", text);
}

static void flush_text(struct screen *screen)
{
    unsigned long sent = 0;
    while (sent < screen->length && !screen->broken) {
        ssize_t count = write(STDOUT_FILENO, screen->text + sent, screen->length - sent);
        if (count >= 0)
            sent += (unsigned long)count;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR)
            screen->broken = 1;
    }
    screen->length = 0;
}

void screen_draw(struct screen *screen, const double *whole, int n, struct progress progress,
                 double now)
{
    measure(screen);
    int points = 2 * (screen->lines - LINES_BELOW);
    // Not the last column: what a terminal does after it differs.
    points = points < screen->columns ? points : (screen->columns - 1) & ~1;
    if (points < 2 || screen->broken)
        return;
    int lines = points / 2;
    // The width of the picture is too little for the numbers of a small terminal.
    int width = points > 64 ? points : screen->columns - 1 < 64 ? screen->columns - 1 : 64;
    put(screen, "%s", HOLD "\033[?25l");
    if (screen->drawn > 0)
        put(screen, "\r\033[%dA", screen->drawn);
    for (int line = 0; line < lines; line++)
        put_line(screen, whole, n, points, line);
    put_progress(screen, progress, width);
    // Every frame leaves the terminal as it should be found, even if the next one never comes. The
    // newline is last: a launcher that passes on whole lines then holds nothing back.
    put(screen, "%s", RESTORE RELEASE "\n");
    flush_text(screen);
    screen->drawn = lines + 1;
    screen->last = now;
}

void screen_close(struct screen *screen)
{
    free(screen->text);
    *screen = (struct screen){0};
}
