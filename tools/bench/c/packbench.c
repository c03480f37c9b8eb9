/*
 * Packing, for `weft bench imb`: plain MPI, one rank, compiled by every library's own wrapper.
 *
 *     packbench SECONDS
 *
 * Prints for each type what it takes to pack it, and to unpack it: `packbench: TYPE/pack VALUE s`. What is packed is
 * compared with what a loop over the type's own description gives; wrong bytes end the program with status 3.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A matrix of so many rows and columns of doubles. */
enum { ROWS = 1024, COLUMNS = 1024, CELLS = ROWS * COLUMNS };
/* Pieces of the irregular type. */
enum { PIECES = 100000 };

static double *matrix, *other;
static char *packed;
static int displacements[PIECES], lengths[PIECES];
static double least_seconds;

static void die(const char *type, const char *what) {
    fprintf(stderr, "packbench: error: %s: %s\n", type, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* The doubles that a type shows, by number, in its order. */
typedef long (*place_fn)(long at);

static void check(const char *name, place_fn place, long count) {
    const double *got = (const double *)packed;
    for (long at = 0; at < count; at++)
        if (got[at] != matrix[place(at)]) die(name, "packed bytes are wrong");
    memset(other, 0, sizeof(double) * CELLS);
    for (long at = 0; at < count; at++) ((double *)packed)[at] += 0.5;
}

static void check_back(const char *name, place_fn place, long count) {
    for (long at = 0; at < count; at++)
        if (other[place(at)] != matrix[place(at)] + 0.5) die(name, "unpacked bytes are wrong");
    double sum = 0;
    for (long at = 0; at < CELLS; at++) sum += other[at] != 0;
    if (sum != (double)count) die(name, "unpacking wrote beside the type");
}

/* Seconds of one, by batches until the time is spent; the shortest batch counts, for nobody else is in it. */
static double timed(MPI_Datatype type, int count, long bytes, int unpack) {
    double best = 1e9, begun = MPI_Wtime();
    for (long n = 1; MPI_Wtime() - begun < least_seconds || best == 1e9;) {
        double from = MPI_Wtime();
        for (long i = 0; i < n; i++) {
            int at = 0;
            if (unpack) MPI_Unpack(packed, (int)bytes, &at, other, count, type, MPI_COMM_SELF);
            else MPI_Pack(matrix, count, type, packed, (int)bytes, &at, MPI_COMM_SELF);
        }
        double took = MPI_Wtime() - from;
        if (took < least_seconds / 20) n *= 2;
        else if (took / (double)n < best) best = took / (double)n;
    }
    return best;
}

static void measure(const char *name, MPI_Datatype type, int count, place_fn place) {
    int size;
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    long bytes = (long)size * count, doubles = bytes / (long)sizeof(double);
    double pack = timed(type, count, bytes, 0);
    check(name, place, doubles);
    double unpack = timed(type, count, bytes, 1);
    check_back(name, place, doubles);
    printf("packbench: %s/pack %.9e s\npackbench: %s/unpack %.9e s\n", name, pack, name, unpack);
    fflush(stdout);
    MPI_Type_free(&type);
}

static long in_column(long at) { return at * COLUMNS; }
static long in_columns(long at) { return at / 4 * COLUMNS + at % 4; }
static long in_transposed(long at) { return at % 64 * COLUMNS + at / 64; }
static long in_face(long at) { return at / 32 * 1024 + at % 32 * 32; }
static long in_block(long at) { return at / 512 * COLUMNS + at % 512; }
static long in_pieces(long at) { return displacements[at / 2] + at % 2; }
static long in_records(long at) { return at / 3 * 8 + (at % 3 == 2 ? 5 : at % 3); }

int main(int argc, char **argv) {
    MPI_Datatype type, inner;
    MPI_Init(&argc, &argv);
    least_seconds = argc > 1 ? atof(argv[1]) : 0.1;
    matrix = malloc(sizeof(double) * CELLS);
    other = malloc(sizeof(double) * CELLS);
    packed = malloc(sizeof(double) * CELLS);
    if (!matrix || !other || !packed) die("start", "out of memory");
    for (long i = 0; i < CELLS; i++) matrix[i] = (double)i + 1;

    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &type);
    measure("column", type, 1, in_column);

    MPI_Type_vector(ROWS, 4, COLUMNS, MPI_DOUBLE, &type);
    measure("four-columns", type, 1, in_columns);

    /* Columns one after the other: a block of a matrix, transposed. */
    MPI_Type_vector(64, 1, COLUMNS, MPI_DOUBLE, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(double), &type);
    MPI_Type_free(&inner);
    measure("transposed-64", type, 64, in_transposed);

    /* A face of a cube of 32 x 32 x 32, across its lines: a vector of vectors. */
    MPI_Type_vector(32, 1, 32, MPI_DOUBLE, &inner);
    MPI_Type_create_hvector(32, 1, 32 * 32 * sizeof(double), inner, &type);
    MPI_Type_free(&inner);
    measure("face-of-cube", type, 1, in_face);

    int sizes[2] = {ROWS, COLUMNS}, parts[2] = {512, 512}, starts[2] = {0, 0};
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    measure("block-512", type, 1, in_block);

    for (int i = 0; i < PIECES; i++) displacements[i] = 10 * i + i % 7, lengths[i] = 2;
    MPI_Type_indexed(PIECES, lengths, displacements, MPI_DOUBLE, &type);
    measure("indexed-100000", type, 1, in_pieces);

    /* Records with a hole in them. */
    int counts[2] = {2, 1};
    MPI_Aint places[2] = {0, 5 * sizeof(double)};
    MPI_Datatype kinds[2] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Type_create_struct(2, counts, places, kinds, &inner);
    MPI_Type_create_resized(inner, 0, 8 * sizeof(double), &type);
    MPI_Type_free(&inner);
    measure("records", type, 10000, in_records);

    MPI_Finalize();
    return 0;
}
