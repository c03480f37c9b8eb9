/* Collectives of communicators that lie on hosts in several ways: whole blocks of ranks, in turn, reversed, and with one
   rank left out. Every result is compared with local computation, and reductions keep the order of ranks. */
#include "coll.h"

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

static void add_all(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((affine *)inout)[i].a += ((affine *)in)[i].a;
        ((affine *)inout)[i].b += ((affine *)in)[i].b;
    }
}

static MPI_Datatype pair;
static MPI_Op composing, adding;
static MPI_Comm comm;

static affine element(int r, int i)
{
    affine e = {2u * (uint32_t)(r * 31 + i) + 3, (uint32_t)(r * 1009 + i * 5)};
    return e;
}

static affine expected(int i, int adds)
{
    affine all = element(0, i);
    for (int r = 1; r < size; r++) {
        affine next = element(r, i);
        if (adds) all.a += next.a, all.b += next.b;
        else all = compose(all, next);
    }
    return all;
}

static void has_all(const affine *got, int count, int adds)
{
    for (int i = 0; i < count; i++) {
        affine want = expected(i, adds);
        CHECK(got[i].a == want.a && got[i].b == want.b, "element %d of %d is (%u, %u), not (%u, %u)", i, count,
              got[i].a, got[i].b, want.a, want.b);
    }
}

static void reductions(int count, int in_place)
{
    affine *mine = malloc((size_t)count * sizeof *mine + 1), *all = malloc((size_t)count * sizeof *all + 1);
    CHECK(mine && all, "no memory");
    for (int i = 0; i < count; i++) mine[i] = element(rank, i);
    for (int adds = 0; adds < 2; adds++) {
        MPI_Op op = adds ? adding : composing;
        memset(all, 0xee, (size_t)count * sizeof *all);
        if (in_place) memcpy(all, mine, (size_t)count * sizeof *all);
        COLL(Allreduce, allreduce, comm, in_place ? MPI_IN_PLACE : mine, all, count, pair, op);
        has_all(all, count, adds);
        for (int root = 0; root < size; root++) {
            if (count > 10000 && root != size - 1) continue;
            int here = rank == root && in_place;
            memset(all, 0xee, (size_t)count * sizeof *all);
            if (here) memcpy(all, mine, (size_t)count * sizeof *all);
            COLL(Reduce, reduce, comm, here ? MPI_IN_PLACE : mine, rank == root ? all : NULL, count, pair, op, root);
            if (rank == root) has_all(all, count, adds);
        }
    }
    for (int i = 0; i < count; i++) CHECK(mine[i].a == element(rank, i).a, "element %d of the input was written", i);
    free(mine), free(all);
}

static void predefined(int count)
{
    long *mine = malloc((size_t)count * sizeof *mine + 1), *all = malloc((size_t)count * sizeof *all + 1);
    for (int i = 0; i < count; i++) mine[i] = value(rank, i);
    COLL_C(Allreduce, allreduce, comm, mine, all, count, MPI_LONG, MPI_SUM);
    for (int i = 0; i < count; i++) {
        long want = 0;
        for (int r = 0; r < size; r++) want += value(r, i);
        CHECK(all[i] == want, "sum %d of %d is %ld, not %ld", i, count, all[i], want);
    }
    COLL_C(Reduce, reduce, comm, mine, all, count, MPI_LONG, MPI_MAX, size / 2);
    for (int i = 0; rank == size / 2 && i < count; i++) CHECK(all[i] == value(size - 1, i), "maximum %d of %d", i, count);
    free(mine), free(all);
}

static void movements(int count)
{
    int *data = ints(count);
    for (int root = 0; root < size; root++) {
        if (count > 10000 && root % 2) continue;
        fill(data, rank, count);
        COLL_C(Bcast, bcast, comm, data, count, MPI_INT, root);
        expect(data, root, 0, count);
        CHECK(data[count] == -77, "something behind the data was written");
    }
    int *lengths = malloc(size * sizeof *lengths), *places = malloc(size * sizeof *places), end = 0;
    for (int r = size - 1; r >= 0; r--) lengths[r] = r % 3 ? count : count / 2, places[r] = end, end += lengths[r] + 1;
    int *all = ints(end);
    fill(data, rank, count);
    COLL(Allgatherv, allgatherv, comm, data, lengths[rank], MPI_INT, all, lengths, places, MPI_INT);
    for (int r = 0; r < size; r++) {
        expect(all + places[r], r, 0, lengths[r]);
        untouched(all + places[r] + lengths[r], 1);
    }
    free(all);
    all = ints(count * size);
    COLL_C(Allgather, allgather, comm, data, count, MPI_INT, all, count, MPI_INT);
    for (int r = 0; r < size; r++) expect(all + r * count, r, 0, count);
    fill(all + rank * count, rank, count);
    COLL_C(Allgather, allgather, comm, MPI_IN_PLACE, 0, MPI_INT, all, count, MPI_INT);
    for (int r = 0; r < size; r++) expect(all + r * count, r, 0, count);
    free(all), free(data), free(lengths), free(places);
}

/* One rank comes late, because it waits for answers of those that are there already. */
static void meetings(void)
{
    for (int late = 0; late < size; late++) {
        int *came = ints(size), mine = late;
        MPI_Request *requests = malloc(2 * size * sizeof *requests);
        for (int r = 0; r < size; r++) OK(MPI_Irecv(&came[r], 1, MPI_INT, r, late, comm, &requests[r]));
        for (int r = 0; r < size; r++) OK(MPI_Issend(&mine, 1, MPI_INT, r, late, comm, &requests[size + r]));
        if (rank == late) OK(MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE));
        doing = "MPI_Barrier";
        OK(MPI_Barrier(comm));
        OK(MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE));
        free(came), free(requests);
    }
}

static int is_truncated(int code)
{
    int class_ = MPI_SUCCESS;
    MPI_Error_class(code, &class_);
    CHECK(class_ == MPI_SUCCESS || class_ == MPI_ERR_TRUNCATE, "class %d", class_);
    return class_ == MPI_ERR_TRUNCATE;
}

/* Rank `who` passes another length, which the standard forbids: where all take the same algorithm nobody hangs, and what comes
   next goes well. */
static void different_lengths(int who, int odd, int even)
{
    int count = rank == who ? odd : even, *data = ints(size * 70000), *all = ints(size * 70000), sum;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    doing = "MPI_Allreduce";
    int said = is_truncated(MPI_Allreduce(data, all, count, MPI_INT, MPI_MAX, comm));
    OK(MPI_Allreduce(&said, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum > 0, "nobody saw that rank %d brought %d elements, not %d", who, odd, even);
    doing = "MPI_Bcast";
    said = is_truncated(MPI_Bcast(data, count, MPI_INT, who, comm));
    /* The root hears of it where it has to ask because others are slow. */
    CHECK(said || rank == who, "rank %d has %d elements, not %d", who, odd, even);
    doing = "MPI_Reduce";
    is_truncated(MPI_Reduce(data, all, count, MPI_INT, MPI_MAX, 0, comm));
    doing = "MPI_Allgather";
    is_truncated(MPI_Allgather(data, count, MPI_INT, all, count, MPI_INT, comm));
    OK(MPI_Barrier(comm));
    doing = "MPI_Allreduce after errors";
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2, "the sum is %d", sum);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    free(data), free(all);
}

static void all_of(MPI_Comm of)
{
    static const int counts[] = {0, 1, 7, 100, 3000, 9000, 70000, 300000};
    comm = of;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (form = 0; form < FORMS; form++) {
            if (counts[i] > 3000 && form != BLOCKING) continue;
            reductions(counts[i], i % 2);
            predefined(counts[i]);
            movements(counts[i]);
        }
    }
    form = BLOCKING;
    meetings();
    if (size < 2) return;
    /* So short that all take the same algorithm. */
    different_lengths(0, 3, 40);
    different_lengths(size - 1, 40, 3);
}

int main(int argc, char **argv)
{
    MPI_Comm part;
    begin(&argc, &argv);
    int me = rank, all = size;
    MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose_all, 0, &composing);
    MPI_Op_create(add_all, 1, &adding);
    all_of(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &part); /* odd and even ranks */
    all_of(part);
    MPI_Comm_free(&part);
    MPI_Comm_split(MPI_COMM_WORLD, 0, me % 2 * all - me, &part); /* backwards, hosts in turn where ranks come in blocks */
    all_of(part);
    MPI_Comm_free(&part);
    MPI_Comm_split(MPI_COMM_WORLD, me == 0, -me, &part); /* all but one */
    all_of(part);
    MPI_Comm_free(&part);
    MPI_Type_free(&pair);
    MPI_Op_free(&composing), MPI_Op_free(&adding);
    MPI_Finalize();
    return 0;
}
