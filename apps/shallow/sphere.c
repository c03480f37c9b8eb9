#include "sphere.h"
#include "harmonics.h"
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

// A complex line takes two fields, if they are of one kind: what is rounded of a great one would be seen in a small
// one.
enum { PAIRS = 3, AT_ONCE = LINES / PAIRS, NONE = -1 };

struct pair {
    int a, b;
};

static const struct pair FIELD_PAIRS[PAIRS] = {{EAST, NORTH}, {VORTICITY, NONE}, {GEOPOTENTIAL, NONE}};
static const struct pair PRODUCT_PAIRS[PAIRS] = {{FLOW_EAST, FLOW_NORTH}, {OTHER_EAST, OTHER_NORTH}, {SCALAR, NONE}};

// Wave numbers are dealt to the ranks in turn and back, as the low ones have more degrees.
static int owner_of(int m)
{
    int turn = m % (2 * ranks.count);
    return turn < ranks.count ? turn : 2 * ranks.count - 1 - turn;
}

static void open_waves(struct sphere *sphere)
{
    int dealt = 0;
    sphere->order = ranks_memory((size_t)(sphere->most + 1) * sizeof(int));
    sphere->below = ranks_memory((size_t)(ranks.count + 1) * sizeof(int));
    for (int rank = 0; rank < ranks.count; rank++) {
        sphere->below[rank] = dealt;
        for (int m = 0; m <= sphere->most; m++)
            if (owner_of(m) == rank)
                sphere->order[dealt++] = m;
    }
    sphere->below[ranks.count] = dealt;
    sphere->wave_count = sphere->below[ranks.me + 1] - sphere->below[ranks.me];
    sphere->waves = ranks_memory((size_t)sphere->wave_count * sizeof *sphere->waves);
    for (int i = 0; i < sphere->wave_count; i++) {
        legendre_open(&sphere->waves[i], &sphere->gauss, sphere->order[sphere->below[ranks.me] + i], sphere->most);
        sphere->count += (size_t)sphere->waves[i].count;
    }
}

void sphere_open(struct sphere *sphere, int latitudes, int most, double radius)
{
    *sphere = (struct sphere){.latitudes = latitudes, .longitudes = 2 * latitudes, .most = most, .radius = radius};
    sphere->first = (int)ranks_first((size_t)latitudes, ranks.me);
    sphere->here = (int)ranks_first((size_t)latitudes, ranks.me + 1) - sphere->first;
    size_t row = (size_t)sphere->longitudes * sizeof(double), here = (size_t)sphere->here;
    sphere->fields = ranks_memory(here * FIELDS * row);
    sphere->products = ranks_memory(here * PRODUCTS * row);
    gauss_open(&sphere->gauss, latitudes / 2);
    open_waves(sphere);
    size_t waves = (size_t)sphere->wave_count, all_waves = (size_t)most + 1;
    sphere->by_wave = ranks_memory((size_t)latitudes * PRODUCTS * waves * sizeof(struct cell));
    sphere->by_latitude = ranks_memory(here * PRODUCTS * all_waves * sizeof(struct cell));
    lines_open(&sphere->lines, sphere->longitudes);
}

void sphere_close(struct sphere *sphere)
{
    for (int i = 0; i < sphere->wave_count; i++)
        legendre_close(&sphere->waves[i]);
    gauss_close(&sphere->gauss);
    lines_close(&sphere->lines);
    free(sphere->order);
    free(sphere->below);
    free(sphere->waves);
    free(sphere->fields);
    free(sphere->products);
    free(sphere->by_wave);
    free(sphere->by_latitude);
}

// The northern latitude that is as far from its pole.
static int mirror(const struct sphere *sphere, int latitude)
{
    return latitude < sphere->gauss.half ? latitude : sphere->latitudes - 1 - latitude;
}

double sphere_sine(const struct sphere *sphere, int latitude)
{
    double sine = sphere->gauss.sines[mirror(sphere, latitude)];
    return latitude < sphere->gauss.half ? sine : -sine;
}

double sphere_share(const struct sphere *sphere, int latitude)
{
    return sphere->gauss.weights[mirror(sphere, latitude)] / 2 / sphere->longitudes;
}

// ---- trading ----

// Parts for so many fields: of what lies by wave the other ranks' latitudes, of what lies by latitude their waves.
static void find_parts(const struct sphere *sphere, int fields, size_t *by_wave, size_t *by_latitude)
{
    for (int rank = 0; rank <= ranks.count; rank++) {
        size_t latitudes = ranks_first((size_t)sphere->latitudes, rank);
        by_wave[rank] = latitudes * (size_t)(fields * sphere->wave_count) * sizeof(struct cell);
        by_latitude[rank] = (size_t)(sphere->here * fields * sphere->below[rank]) * sizeof(struct cell);
    }
}

// Where rank r's waves of a field begin, at a latitude that is here.
static struct cell *waves_at(const struct sphere *sphere, int fields, int latitude, int field, int rank)
{
    int count = sphere->below[rank + 1] - sphere->below[rank];
    struct cell *part = sphere->by_latitude + sphere->here * fields * sphere->below[rank];
    return part + ((latitude - sphere->first) * fields + field) * count;
}

// ---- between waves and the grid ----

// The waves m and -m of a line hold those of both of its fields.
static void waves_to_line(struct sphere *sphere, int latitude, struct pair pair, int line)
{
    int n = sphere->longitudes;
    double *re = sphere->lines.re + line, *im = sphere->lines.im + line;
    for (int rank = 0; rank < ranks.count; rank++) {
        const struct cell *a = waves_at(sphere, FIELDS, latitude, pair.a, rank), nothing = {0, 0};
        const struct cell *second = pair.b == NONE ? NULL : waves_at(sphere, FIELDS, latitude, pair.b, rank);
        for (int i = sphere->below[rank]; i < sphere->below[rank + 1]; i++, a++) {
            int m = sphere->order[i], minus = m == 0 ? 0 : n - m;
            struct cell b = second ? *second++ : nothing;
            re[minus * LINES] = a->re + b.im;
            im[minus * LINES] = b.re - a->im;
            re[m * LINES] = m == 0 ? a->re : a->re - b.im;
            im[m * LINES] = m == 0 ? b.re : a->im + b.re;
        }
    }
}

static void line_to_waves(struct sphere *sphere, int latitude, struct pair pair, int line)
{
    int n = sphere->longitudes;
    double half = 0.5 / n;
    const double *re = sphere->lines.re + line, *im = sphere->lines.im + line;
    for (int rank = 0; rank < ranks.count; rank++) {
        struct cell *a = waves_at(sphere, PRODUCTS, latitude, pair.a, rank);
        struct cell *b = pair.b == NONE ? NULL : waves_at(sphere, PRODUCTS, latitude, pair.b, rank);
        for (int i = sphere->below[rank]; i < sphere->below[rank + 1]; i++) {
            int m = sphere->order[i] * LINES, minus = sphere->order[i] == 0 ? 0 : n * LINES - m;
            *a++ = (struct cell){half * (re[m] + re[minus]), half * (im[m] - im[minus])};
            if (b)
                *b++ = (struct cell){half * (im[m] + im[minus]), half * (re[minus] - re[m])};
        }
    }
}

static void clear_lines(struct lines *lines)
{
    memset(lines->re, 0, (size_t)lines->n * LINES * sizeof(double));
    memset(lines->im, 0, (size_t)lines->n * LINES * sizeof(double));
}

// How many latitudes are done at once, from this one on.
static int at_once(const struct sphere *sphere, int latitude)
{
    int left = sphere->first + sphere->here - latitude;
    return left < AT_ONCE ? left : AT_ONCE;
}

static void waves_to_grid(struct sphere *sphere)
{
    struct lines *lines = &sphere->lines;
    for (int j = sphere->first; j < sphere->first + sphere->here; j += AT_ONCE) {
        int count = at_once(sphere, j) * PAIRS;
        clear_lines(lines);
        for (int line = 0; line < count; line++)
            waves_to_line(sphere, j + line / PAIRS, FIELD_PAIRS[line % PAIRS], line);
        lines_back(lines);
        for (int line = 0; line < count; line++) {
            struct pair pair = FIELD_PAIRS[line % PAIRS];
            double *a = sphere_field(sphere, j + line / PAIRS, pair.a);
            double *b = pair.b == NONE ? NULL : sphere_field(sphere, j + line / PAIRS, pair.b);
            for (int i = 0; i < sphere->longitudes; i++) {
                a[i] = lines->re[i * LINES + line];
                if (b)
                    b[i] = lines->im[i * LINES + line];
            }
        }
    }
}

static void grid_to_waves(struct sphere *sphere)
{
    struct lines *lines = &sphere->lines;
    for (int j = sphere->first; j < sphere->first + sphere->here; j += AT_ONCE) {
        int count = at_once(sphere, j) * PAIRS;
        clear_lines(lines);
        for (int line = 0; line < count; line++) {
            struct pair pair = PRODUCT_PAIRS[line % PAIRS];
            const double *a = sphere_product(sphere, j + line / PAIRS, pair.a);
            const double *b = pair.b == NONE ? NULL : sphere_product(sphere, j + line / PAIRS, pair.b);
            for (int i = 0; i < sphere->longitudes; i++) {
                lines->re[i * LINES + line] = a[i];
                lines->im[i * LINES + line] = b ? b[i] : 0;
            }
        }
        lines_forward(lines);
        for (int line = 0; line < count; line++)
            line_to_waves(sphere, j + line / PAIRS, PRODUCT_PAIRS[line % PAIRS], line);
    }
}

void sphere_to_grid(struct sphere *sphere, const double *state)
{
    size_t by_wave[ranks.count + 1], by_latitude[ranks.count + 1];
    harmonics_to_waves(sphere, state);
    find_parts(sphere, FIELDS, by_wave, by_latitude);
    ranks_trade(sphere->by_wave, by_wave, sphere->by_latitude, by_latitude);
    waves_to_grid(sphere);
}

void sphere_to_harmonics(struct sphere *sphere, double *results)
{
    size_t by_wave[ranks.count + 1], by_latitude[ranks.count + 1];
    grid_to_waves(sphere);
    find_parts(sphere, PRODUCTS, by_wave, by_latitude);
    ranks_trade(sphere->by_latitude, by_latitude, sphere->by_wave, by_wave);
    waves_to_harmonics(sphere, results);
}
