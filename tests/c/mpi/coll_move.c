/* Barrier, broadcast, gather, scatter, allgather, all to all: every form, root and kind of count, in place and not. */
#include "coll.h"

static const int counts[] = {0, 1, 5, 700, 9000, 70000};
#define COUNTS (int)(sizeof counts / sizeof counts[0])

/* A vector of every second int: as many ints of data, twice the room. */
static MPI_Datatype every_second(int count)
{
    MPI_Datatype type;
    MPI_Type_vector(count, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void barrier(void)
{
    MPI_Request request;
    doing = "MPI_Barrier";
    switch (form) {
    case NONBLOCKING:
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
        finish(&request);
        break;
    case PERSISTENT:
        OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        start_and_free(&request);
        break;
    default: OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void bcast(int root, int count)
{
    int *data = ints(count);
    if (rank == root) fill(data, root, count);
    COLL_C(Bcast, bcast, MPI_COMM_WORLD, data, count, MPI_INT, root);
    expect(data, root, 0, count);
    untouched(data + count, 1);
    free(data);
    if (count == 0) return;
    /* The root's ints lie with gaps, the others' side by side. */
    MPI_Datatype type = every_second(count);
    data = ints(2 * count);
    if (rank == root) {
        for (int i = 0; i < count; i++) data[2 * i] = value(root, i);
        COLL_C(Bcast, bcast, MPI_COMM_WORLD, data, 1, type, root);
    } else {
        COLL_C(Bcast, bcast, MPI_COMM_WORLD, data, count, MPI_INT, root);
        expect(data, root, 0, count);
    }
    free(data);
    data = ints(2 * count);
    if (rank == root) {
        fill(data, root, count);
        COLL_C(Bcast, bcast, MPI_COMM_WORLD, data, count, MPI_INT, root);
    } else {
        COLL_C(Bcast, bcast, MPI_COMM_WORLD, data, 1, type, root);
        for (int i = 0; i < count; i++) {
            expect(data + 2 * i, root, i, 1);
            untouched(data + 2 * i + 1, 1);
        }
    }
    free(data);
    MPI_Type_free(&type);
}

static void gather_scatter(int root, int count, int in_place)
{
    int *mine = ints(count), *all = ints(count * size);
    fill(mine, rank, count);
    int *all_or_null = rank == root ? all : NULL;
    if (in_place && rank == root) {
        fill(all + root * count, root, count);
        COLL_C(Gather, gather, MPI_COMM_WORLD, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT, root);
    } else {
        COLL_C(Gather, gather, MPI_COMM_WORLD, mine, count, MPI_INT, all_or_null, count, MPI_INT, root);
    }
    for (int r = 0; rank == root && r < size; r++) expect(all + r * count, r, 0, count);
    if (rank != root) untouched(all, count * size);

    for (int i = 0; i < count; i++) mine[i] = -77;
    if (in_place && rank == root) {
        COLL_C(Scatter, scatter, MPI_COMM_WORLD, all, count, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root);
        untouched(mine, count);
    } else {
        COLL_C(Scatter, scatter, MPI_COMM_WORLD, all_or_null, count, MPI_INT, mine, count, MPI_INT, root);
        expect(mine, rank, 0, count);
    }
    free(mine);
    free(all);
}

/* Rank r has count * (r % 3) elements; the places lie in reverse order with a gap after each. */
static int layout(int count, int *lengths, int *places)
{
    int at = 0;
    for (int r = size - 1; r >= 0; r--) {
        lengths[r] = count * (r % 3);
        places[r] = at;
        at += lengths[r] + 1;
    }
    return at;
}

static void variable(int root, int count, int in_place)
{
    int lengths[64], places[64];
    int room = layout(count, lengths, places), own = lengths[rank];
    int *mine = ints(own), *all = ints(room);
    MPI_Count wide_lengths[64];
    MPI_Aint wide_places[64];
    for (int r = 0; r < size; r++) wide_lengths[r] = lengths[r], wide_places[r] = places[r];

    fill(mine, rank, own);
    if (in_place && rank == root) {
        fill(all + places[root], root, own);
        COLL(Gatherv, gatherv, MPI_COMM_WORLD, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, lengths, places, MPI_INT,
             root);
    } else if (form == LARGE) {
        OK(MPI_Gatherv_c(mine, own, MPI_INT, all, wide_lengths, wide_places, MPI_INT, root, MPI_COMM_WORLD));
    } else {
        COLL(Gatherv, gatherv, MPI_COMM_WORLD, mine, own, MPI_INT, all, lengths, places, MPI_INT, root);
    }
    for (int r = 0; rank == root && r < size; r++) {
        expect(all + places[r], r, 0, lengths[r]);
        untouched(all + places[r] + lengths[r], 1);
    }

    for (int i = 0; i < own; i++) mine[i] = -77;
    if (in_place && rank == root) {
        COLL(Scatterv, scatterv, MPI_COMM_WORLD, all, lengths, places, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
             root);
    } else if (form == LARGE) {
        OK(MPI_Scatterv_c(all, wide_lengths, wide_places, MPI_INT, mine, own, MPI_INT, root, MPI_COMM_WORLD));
        expect(mine, rank, 0, own);
    } else {
        COLL(Scatterv, scatterv, MPI_COMM_WORLD, all, lengths, places, MPI_INT, mine, own, MPI_INT, root);
        expect(mine, rank, 0, own);
    }

    fill(mine, rank, own);
    for (int i = 0; i < room; i++) all[i] = -77;
    if (in_place) {
        fill(all + places[rank], rank, own);
        COLL(Allgatherv, allgatherv, MPI_COMM_WORLD, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, lengths, places,
             MPI_INT);
    } else if (form == LARGE) {
        OK(MPI_Allgatherv_c(mine, own, MPI_INT, all, wide_lengths, wide_places, MPI_INT, MPI_COMM_WORLD));
    } else {
        COLL(Allgatherv, allgatherv, MPI_COMM_WORLD, mine, own, MPI_INT, all, lengths, places, MPI_INT);
    }
    for (int r = 0; r < size; r++) {
        expect(all + places[r], r, 0, lengths[r]);
        untouched(all + places[r] + lengths[r], 1);
    }
    free(mine);
    free(all);
}

static void allgather(int count, int in_place)
{
    int *mine = ints(count), *all = ints(count * size);
    fill(mine, rank, count);
    if (in_place) {
        fill(all + rank * count, rank, count);
        COLL_C(Allgather, allgather, MPI_COMM_WORLD, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT);
    } else {
        COLL_C(Allgather, allgather, MPI_COMM_WORLD, mine, count, MPI_INT, all, count, MPI_INT);
    }
    for (int r = 0; r < size; r++) expect(all + r * count, r, 0, count);
    untouched(all + size * count, 1);
    if (count > 0) {
        /* Received with gaps. */
        MPI_Datatype type = every_second(count), resized;
        MPI_Type_create_resized(type, 0, 2 * count * (MPI_Aint)sizeof(int), &resized);
        MPI_Type_commit(&resized);
        int *wide = ints(2 * count * size);
        COLL_C(Allgather, allgather, MPI_COMM_WORLD, mine, count, MPI_INT, wide, 1, resized);
        for (int i = 0; i < count * size; i++) {
            expect(wide + 2 * i, i / count, i % count, 1);
            untouched(wide + 2 * i + 1, 1);
        }
        free(wide);
        MPI_Type_free(&type);
        MPI_Type_free(&resized);
    }
    free(mine);
    free(all);
}

static void alltoall(int count, int in_place)
{
    int *out = ints(count * size), *in = ints(count * size);
    for (int r = 0; r < size; r++) fill(out + r * count, rank * 64 + r, count);
    if (in_place) {
        memcpy(in, out, (size_t)count * size * sizeof(int));
        COLL_C(Alltoall, alltoall, MPI_COMM_WORLD, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, count, MPI_INT);
    } else {
        COLL_C(Alltoall, alltoall, MPI_COMM_WORLD, out, count, MPI_INT, in, count, MPI_INT);
    }
    for (int r = 0; r < size; r++) expect(in + r * count, r * 64 + rank, 0, count);
    untouched(in + size * count, 1);
    free(out);
    free(in);
}

/* From rank a to rank b go count * ((a + b) % 3) elements: symmetric, so that it also works in place. */
static void alltoallv(int count, int in_place)
{
    int lengths[64], out_at[64], in_at[64], at = 0;
    for (int r = 0; r < size; r++) {
        lengths[r] = count * ((rank + r) % 3);
        out_at[r] = at;
        at += lengths[r] + 1;
    }
    for (int r = 0; r < size; r++) in_at[r] = at - out_at[r] - lengths[r] - 1;
    int *out = ints(at), *in = ints(at);
    for (int r = 0; r < size; r++) fill(out + out_at[r], rank * 64 + r, lengths[r]);
    if (in_place) {
        for (int r = 0; r < size; r++) fill(in + in_at[r], rank * 64 + r, lengths[r]);
        COLL(Alltoallv, alltoallv, MPI_COMM_WORLD, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, lengths, in_at,
             MPI_INT);
    } else {
        COLL(Alltoallv, alltoallv, MPI_COMM_WORLD, out, lengths, out_at, MPI_INT, in, lengths, in_at, MPI_INT);
    }
    for (int r = 0; r < size; r++) {
        expect(in + in_at[r], r * 64 + rank, 0, lengths[r]);
        untouched(in + in_at[r] + lengths[r], 1);
    }

    /* Displacements in bytes; bytes for odd ranks, ints for the others. */
    int byte_lengths[64], out_bytes[64], in_bytes[64];
    MPI_Datatype types[64];
    for (int r = 0; r < size; r++) {
        types[r] = r % 2 ? MPI_BYTE : MPI_INT;
        byte_lengths[r] = lengths[r] * (r % 2 ? (int)sizeof(int) : 1);
        out_bytes[r] = out_at[r] * (int)sizeof(int);
        in_bytes[r] = in_at[r] * (int)sizeof(int);
    }
    /* What one side calls ints the other calls bytes, which is what MPI_Pack'ed data would be; sizes agree. */
    for (int i = 0; i < at; i++) in[i] = -77;
    if (in_place) {
        for (int r = 0; r < size; r++) fill(in + in_at[r], rank * 64 + r, lengths[r]);
        COLL(Alltoallw, alltoallw, MPI_COMM_WORLD, MPI_IN_PLACE, NULL, NULL, NULL, in, byte_lengths, in_bytes, types);
    } else {
        COLL(Alltoallw, alltoallw, MPI_COMM_WORLD, out, byte_lengths, out_bytes, types, in, byte_lengths, in_bytes,
             types);
    }
    for (int r = 0; r < size; r++) {
        expect(in + in_at[r], r * 64 + rank, 0, lengths[r]);
        untouched(in + in_at[r] + lengths[r], 1);
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (form = 0; form < FORMS; form++) {
        starts = 2;
        for (int i = 0; i < 5; i++) barrier();
        for (int c = 0; c < COUNTS; c++) {
            for (int root = 0; root < size; root++) {
                int at_last = root == size - 1 || root == 0;
                if (counts[c] > 1000 && !at_last) continue;
                starts = 2;
                bcast(root, counts[c]);
                if (counts[c] > 10000) continue;
                for (int in_place = 0; in_place < 2; in_place++) {
                    gather_scatter(root, counts[c], in_place);
                    variable(root, counts[c], in_place);
                }
            }
            if (counts[c] > 10000) continue;
            for (int in_place = 0; in_place < 2; in_place++) {
                allgather(counts[c], in_place);
                starts = in_place ? 1 : 2;
                alltoall(counts[c], in_place);
                alltoallv(counts[c], in_place);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
