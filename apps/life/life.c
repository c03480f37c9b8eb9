/*
 * Conway's life on a torus, with Fast Messages: each process has some rows, and sends its first and its last one to its
 * neighbours, whose handler puts them beside theirs.
 *
 *     cc -O2 life.c -o life $(pkg-config --cflags --libs weft-fm)
 *     weft run -n 4 ./life 500
 */
#include <fm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 48, ROW = 1, POPULATION = 2 };

/* Where a row belongs: its generation, and whether it is the one above or below. */
struct place {
    int generation, is_below;
};

/* The rows of this process begin at 1; of generations that are odd and even, since a neighbour may be ahead by one. */
static char rows[2][SIDE + 2][SIDE];
static int first, count, came[2], told;
static long population;

static int on_row(FM_stream *stream, unsigned sender)
{
    struct place place;
    (void)sender;
    FM_receive(&place, stream, sizeof place);
    int parity = place.generation % 2;
    FM_receive(rows[parity][place.is_below ? count + 1 : 0], stream, SIDE);
    came[parity]++;
    return FM_CONTINUE;
}

static int on_population(FM_stream *stream, unsigned sender)
{
    long part;
    (void)sender;
    FM_receive(&part, stream, sizeof part);
    population += part;
    told++;
    return FM_CONTINUE;
}

static void send_row(unsigned long to, int generation, int is_below, char *row)
{
    struct place place = {generation, is_below};
    FM_stream *stream = FM_begin_message(to, sizeof place + SIDE, ROW);
    FM_send_piece(stream, &place, sizeof place);
    FM_send_piece(stream, row, SIDE);
    FM_end_message(stream);
}

static void step(int generation)
{
    int parity = generation % 2;
    char(*now)[SIDE] = rows[parity], (*next)[SIDE] = rows[!parity];
    unsigned long all = FM_numnodes, me = FM_nodeid;
    send_row((me + all - 1) % all, generation, 1, now[1]);
    send_row((me + 1) % all, generation, 0, now[count]);
    while (came[parity] < 2)
        FM_extract(SIDE * SIDE);
    came[parity] = 0;
    for (int row = 1; row <= count; row++)
        for (int column = 0; column < SIDE; column++) {
            int left = (column + SIDE - 1) % SIDE, right = (column + 1) % SIDE, near = now[row][left] + now[row][right];
            for (int beside = -1; beside <= 1; beside += 2)
                near += now[row + beside][left] + now[row + beside][column] + now[row + beside][right];
            next[row][column] = near == 3 || (near == 2 && now[row][column]);
        }
}

int main(int argc, char **argv)
{
    static const int PENTOMINO[5][2] = {{0, 1}, {0, 2}, {1, 0}, {1, 1}, {2, 1}};
    int generations = argc > 1 ? atoi(argv[1]) : 100;
    FM_initialize();
    FM_register_handler(ROW, on_row);
    FM_register_handler(POPULATION, on_population);
    if (FM_numnodes > SIDE)
        return 1;
    first = (int)(FM_nodeid * SIDE / FM_numnodes);
    count = (int)((FM_nodeid + 1) * SIDE / FM_numnodes) - first;
    for (int cell = 0; cell < 5; cell++) {
        int row = SIDE / 2 + PENTOMINO[cell][0] - first + 1;
        if (row >= 1 && row <= count)
            rows[0][row][SIDE / 2 + PENTOMINO[cell][1]] = 1;
    }
    for (int generation = 0; generation < generations; generation++)
        step(generation);

    long own = 0;
    for (int row = 1; row <= count; row++)
        for (int column = 0; column < SIDE; column++)
            own += rows[generations % 2][row][column];
    FM_stream *stream = FM_begin_message(0, sizeof own, POPULATION);
    FM_send_piece(stream, &own, sizeof own);
    FM_end_message(stream);
    while (FM_nodeid == 0 && told < (int)FM_numnodes)
        FM_extract(SIDE);
    if (FM_nodeid == 0)
        printf("%ld cells live after %d generations\n", population, generations);
    FM_finalize();
    return 0;
}
