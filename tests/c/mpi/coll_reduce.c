/* Reductions and scans: predefined and user operations, commutative or not, every form, in place and not. */
#include "coll.h"
#include <complex.h>

/* The function x -> a x + b modulo 2^32. Composing is associative, not commutative. */
typedef struct { uint32_t a, b; } affine;

static affine compose(affine left, affine right)
{
    affine both = {left.a * right.a, left.a * right.b + left.b};
    return both;
}

static void compose_all(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) ((affine *)inout)[i] = compose(((affine *)in)[i], ((affine *)inout)[i]);
}

/* The same on elements that lie 24 bytes apart, data at 8 and 16. */
static void compose_spread(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *count; i++) {
        char *left = (char *)in + i * extent, *right = (char *)inout + i * extent;
        affine l = {*(uint32_t *)(left + 8), *(uint32_t *)(left + 16)};
        affine r = {*(uint32_t *)(right + 8), *(uint32_t *)(right + 16)};
        affine both = compose(l, r);
        *(uint32_t *)(right + 8) = both.a;
        *(uint32_t *)(right + 16) = both.b;
    }
}

static void compose_wide(void *in, void *inout, MPI_Count *count, MPI_Datatype *type)
{
    (void)type;
    for (MPI_Count i = 0; i < *count; i++) ((affine *)inout)[i] = compose(((affine *)in)[i], ((affine *)inout)[i]);
}

static affine element(int r, int i)
{
    affine e = {2u * (uint32_t)(r * 31 + i) + 3, (uint32_t)(r * 1009 + i * 5)};
    return e;
}

/* The composition of the ranks' elements i, first to last. */
static affine composed(int first, int last, int i)
{
    affine all = element(first, i);
    for (int r = first + 1; r <= last; r++) all = compose(all, element(r, i));
    return all;
}

static MPI_Datatype pair, spread;
static MPI_Op dense_op, spread_op, wide_op;

static void make_types(void)
{
    MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
    MPI_Type_commit(&pair);
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {8, 16};
    MPI_Datatype parts[2] = {MPI_UINT32_T, MPI_UINT32_T}, both;
    MPI_Type_create_struct(2, lengths, places, parts, &both);
    MPI_Type_create_resized(both, 0, 24, &spread);
    MPI_Type_commit(&spread);
    MPI_Type_free(&both);
    MPI_Op_create(compose_all, 0, &dense_op);
    MPI_Op_create(compose_spread, 0, &spread_op);
    MPI_Op_create_c(compose_wide, 0, &wide_op);
}

/* A vector of elements in one of the two shapes. */
typedef struct {
    char *bytes;
    int is_spread;
} vector;

static vector new_vector(int is_spread, int count)
{
    vector v = {malloc((size_t)count * 24 + 24), is_spread};
    memset(v.bytes, 0xee, (size_t)count * 24 + 24);
    return v;
}

static void store(vector v, int i, affine e)
{
    char *at = v.bytes + (v.is_spread ? 24 * i : 8 * i);
    memcpy(at + (v.is_spread ? 8 : 0), &e.a, 4);
    memcpy(at + (v.is_spread ? 16 : 4), &e.b, 4);
}

static affine load(vector v, int i)
{
    affine e;
    char *at = v.bytes + (v.is_spread ? 24 * i : 8 * i);
    memcpy(&e.a, at + (v.is_spread ? 8 : 0), 4);
    memcpy(&e.b, at + (v.is_spread ? 16 : 4), 4);
    return e;
}

static void expect_composed(vector v, int first, int last, int from, int count)
{
    for (int i = 0; i < count; i++) {
        affine got = load(v, i), want = composed(first, last, from + i);
        CHECK(got.a == want.a && got.b == want.b, "element %d is (%u, %u), not (%u, %u)", from + i, got.a, got.b,
              want.a, want.b);
    }
    for (int i = 0; v.is_spread && i < count; i++) {
        CHECK((unsigned char)v.bytes[24 * i] == 0xee && (unsigned char)v.bytes[24 * i + 20] == 0xee,
              "the gap of element %d was written", i);
    }
}

static void ordered(int count, int is_spread, int in_place, MPI_Op op)
{
    MPI_Datatype type = is_spread ? spread : pair;
    vector mine = new_vector(is_spread, count), result;
    for (int i = 0; i < count; i++) store(mine, i, element(rank, i));
#define FRESH()                                                                                        \
    do {                                                                                               \
        result = new_vector(is_spread, count);                                                         \
        for (int i = 0; in_place && i < count; i++) store(result, i, element(rank, i));                \
    } while (0)
    void *sent = in_place ? MPI_IN_PLACE : mine.bytes;
    for (int root = 0; root < size; root++) {
        if (count > 100 && root != size / 2) continue;
        FRESH();
        COLL_C(Reduce, reduce, MPI_COMM_WORLD, rank == root ? sent : mine.bytes, rank == root ? result.bytes : NULL,
               count, type, op, root);
        if (rank == root) expect_composed(result, 0, size - 1, 0, count);
        free(result.bytes);
    }
    FRESH();
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, sent, result.bytes, count, type, op);
    expect_composed(result, 0, size - 1, 0, count);
    free(result.bytes);
    FRESH();
    COLL_C(Scan, scan, MPI_COMM_WORLD, sent, result.bytes, count, type, op);
    expect_composed(result, 0, rank, 0, count);
    free(result.bytes);
    FRESH();
    COLL_C(Exscan, exscan, MPI_COMM_WORLD, sent, result.bytes, count, type, op);
    if (rank > 0) expect_composed(result, 0, rank - 1, 0, count);
    free(result.bytes);
    free(mine.bytes);
}

static void scattered(int count, int is_spread, int in_place, MPI_Op op)
{
    MPI_Datatype type = is_spread ? spread : pair;
    int lengths[64], first = 0, total = 0;
    for (int r = 0; r < size; r++) {
        lengths[r] = count * (r % 3);
        if (r < rank) first += lengths[r];
        total += lengths[r];
    }
    int room = total > count * size ? total : count * size;
    vector mine = new_vector(is_spread, room), result = new_vector(is_spread, room);
    for (int i = 0; i < room; i++) store(mine, i, element(rank, i));
    for (int i = 0; in_place && i < room; i++) store(result, i, element(rank, i));
    COLL(Reduce_scatter, reduce_scatter, MPI_COMM_WORLD, in_place ? MPI_IN_PLACE : mine.bytes, result.bytes, lengths,
         type, op);
    expect_composed(result, 0, size - 1, first, lengths[rank]);
    for (int i = 0; in_place && i < room; i++) store(result, i, element(rank, i));
    COLL_C(Reduce_scatter_block, reduce_scatter_block, MPI_COMM_WORLD, in_place ? MPI_IN_PLACE : mine.bytes,
           result.bytes, count, type, op);
    expect_composed(result, 0, size - 1, rank * count, count);
    free(mine.bytes);
    free(result.bytes);
}

#define SUMS(type, handle)                                                                             \
    do {                                                                                               \
        type mine[33], all[33];                                                                        \
        for (int i = 0; i < 33; i++) mine[i] = (type)(rank + i), all[i] = 0;                           \
        COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, mine, all, 33, handle, MPI_SUM);                  \
        for (int i = 0; i < 33; i++) {                                                                 \
            type want = 0;                                                                             \
            for (int r = 0; r < size; r++) want = (type)(want + (type)(r + i));                        \
            CHECK(all[i] == want, "sum %d of " #handle " is wrong", i);                                \
        }                                                                                              \
        COLL_C(Reduce, reduce, MPI_COMM_WORLD, mine, all, 33, handle, MPI_SUM, size - 1);              \
    } while (0)

static void predefined(void)
{
    SUMS(char, MPI_SIGNED_CHAR);
    SUMS(short, MPI_SHORT);
    SUMS(int, MPI_INT);
    SUMS(long, MPI_LONG);
    SUMS(uint8_t, MPI_UINT8_T);
    SUMS(uint64_t, MPI_UINT64_T);
    SUMS(float, MPI_FLOAT);
    SUMS(double, MPI_DOUBLE);
    SUMS(long double, MPI_LONG_DOUBLE);
    SUMS(double complex, MPI_C_DOUBLE_COMPLEX);

    int x = rank + 1, got;
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, &x, &got, 1, MPI_INT, MPI_MAX);
    CHECK(got == size, "the largest is %d", got);
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, &x, &got, 1, MPI_INT, MPI_MIN);
    CHECK(got == 1, "the smallest is %d", got);
    int bits = 1 << rank, all_bits = (1 << size) - 1;
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, &bits, &got, 1, MPI_INT, MPI_BOR);
    CHECK(got == all_bits, "the bits are %x", got);
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, &bits, &got, 1, MPI_INT, MPI_BXOR);
    CHECK(got == all_bits, "the bits are %x", got);
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, &x, &got, 1, MPI_INT, MPI_LAND);
    CHECK(got == 1, "not all are true");
    struct { double value; int where; } place = {rank == size / 2 ? 9.5 : rank % 2, rank}, best;
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, &place, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC);
    CHECK(best.value == 9.5 && best.where == size / 2, "the largest is %g at %d", best.value, best.where);
    place.value = 1.0;
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, &place, &best, 1, MPI_DOUBLE_INT, MPI_MINLOC);
    CHECK(best.value == 1.0 && best.where == 0, "the smallest is %g at %d", best.value, best.where);
}

/* Everyone has the same bits, whatever the order in which partial sums arrive. */
static void same_bits(int count)
{
    double *mine = malloc(count * sizeof(double)), *all = malloc(count * sizeof(double));
    for (int i = 0; i < count; i++) mine[i] = 1.0 / (rank * 3 + i + 1);
    COLL_C(Allreduce, allreduce, MPI_COMM_WORLD, mine, all, count, MPI_DOUBLE, MPI_SUM);
    memcpy(mine, all, count * sizeof(double));
    OK(MPI_Bcast(mine, count, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    CHECK(memcmp(mine, all, count * sizeof(double)) == 0, "the sums differ from rank 0's");
    free(mine);
    free(all);
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 6, 400, 5000};
    begin(&argc, &argv);
    make_types();
    for (form = 0; form < FORMS; form++) {
        starts = 2;
        predefined();
        same_bits(10);
        same_bits(20000);
        for (int in_place = 0; in_place < 2; in_place++) {
            starts = in_place ? 1 : 2;
            for (int c = 0; c < 5; c++) {
                ordered(counts[c], 0, in_place, dense_op);
                ordered(counts[c], 1, in_place, spread_op);
                ordered(counts[c], 0, in_place, wide_op);
                scattered(counts[c], 0, in_place, dense_op);
                scattered(counts[c], 1, in_place, spread_op);
            }
        }
    }
    affine left = element(1, 0), right = element(2, 0), want = compose(left, right);
    OK(MPI_Reduce_local(&left, &right, 1, pair, dense_op));
    CHECK(right.a == want.a && right.b == want.b, "MPI_Reduce_local takes the operands in the wrong order");
    MPI_Op_free(&dense_op);
    MPI_Op_free(&spread_op);
    MPI_Op_free(&wide_op);
    MPI_Type_free(&pair);
    MPI_Type_free(&spread);
    MPI_Finalize();
    return 0;
}
