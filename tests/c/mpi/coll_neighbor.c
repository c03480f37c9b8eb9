/* Neighbourhood collectives over grids, graphs and distributed graphs. */
#include "coll.h"

#define BLOCK 3

/* What `from` says to its neighbour in slot `slot`. */
static int word(int from, int slot, int i) { return from * 1000 + slot * 10 + i; }

/* Runs every operation. `sources[k]` sends us the block of its slot `slots[k]`; -1 where there is no neighbour. */
static void all(MPI_Comm comm, int in, const int *sources, const int *slots, int out)
{
    int me;
    MPI_Comm_rank(comm, &me);
    int sent[32 * BLOCK], got[32 * BLOCK], counts[32], places[32], bytes[32];
    MPI_Aint addresses[32];
    MPI_Datatype types[32];
    for (int k = 0; k < 32; k++) {
        counts[k] = BLOCK, places[k] = k * BLOCK, bytes[k] = BLOCK * (int)sizeof(int);
        addresses[k] = k * BLOCK * (MPI_Aint)sizeof(int), types[k] = MPI_INT;
    }
#define RESET()                                                                                        \
    do {                                                                                               \
        for (int k = 0; k < 32 * BLOCK; k++) got[k] = -77;                                             \
    } while (0)
#define EXPECT(slot_of)                                                                                \
    do {                                                                                               \
        for (int k = 0; k < in; k++) {                                                                 \
            for (int i = 0; i < BLOCK; i++) {                                                          \
                int want = sources[k] < 0 ? -77 : word(sources[k], slot_of, i);                        \
                CHECK(got[k * BLOCK + i] == want, "block %d of %d is %d, not %d", k, in, got[k * BLOCK + i], want); \
            }                                                                                          \
        }                                                                                              \
        untouched(got + in * BLOCK, 1);                                                                \
    } while (0)
    for (int i = 0; i < BLOCK; i++) sent[i] = word(me, 0, i);
    RESET();
    COLL_C(Neighbor_allgather, neighbor_allgather, comm, sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT);
    EXPECT(0);
    RESET();
    COLL(Neighbor_allgatherv, neighbor_allgatherv, comm, sent, BLOCK, MPI_INT, got, counts, places, MPI_INT);
    EXPECT(0);
    for (int k = 0; k < out; k++) {
        for (int i = 0; i < BLOCK; i++) sent[k * BLOCK + i] = word(me, k, i);
    }
    RESET();
    COLL_C(Neighbor_alltoall, neighbor_alltoall, comm, sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT);
    EXPECT(slots[k]);
    RESET();
    COLL(Neighbor_alltoallv, neighbor_alltoallv, comm, sent, counts, places, MPI_INT, got, counts, places, MPI_INT);
    EXPECT(slots[k]);
    RESET();
    COLL(Neighbor_alltoallw, neighbor_alltoallw, comm, sent, counts, addresses, types, got, counts, addresses, types);
    EXPECT(slots[k]);
    (void)bytes;
}

static void grid(int dims, const int *sizes, const int *periodic)
{
    MPI_Comm comm;
    OK(MPI_Cart_create(MPI_COMM_WORLD, dims, sizes, periodic, 0, &comm));
    if (comm == MPI_COMM_NULL) return;
    int sources[8], slots[8];
    for (int d = 0; d < dims; d++) {
        int below, above;
        OK(MPI_Cart_shift(comm, d, 1, &below, &above));
        /* From below comes what it sent upwards. */
        sources[2 * d] = below == MPI_PROC_NULL ? -1 : below, slots[2 * d] = 2 * d + 1;
        sources[2 * d + 1] = above == MPI_PROC_NULL ? -1 : above, slots[2 * d + 1] = 2 * d;
    }
    all(comm, 2 * dims, sources, slots, 2 * dims);
    MPI_Comm_free(&comm);
}

static void grids(void)
{
    int line[1] = {size}, yes[2] = {1, 1}, no[2] = {0, 0}, mixed[2] = {0, 1};
    grid(1, line, yes);
    grid(1, line, no);
    int plane[2] = {0, 0};
    MPI_Dims_create(size, 2, plane);
    grid(2, plane, yes);
    grid(2, plane, no);
    grid(2, plane, mixed);
    if (size >= 2) {
        int two[2] = {1, 2};
        grid(2, two, yes);
    }
}

/* A star: rank 0 knows everybody. */
static void star(void)
{
    if (size < 2) return;
    int index[64], edges[128];
    for (int r = 0; r < size; r++) index[r] = size - 1 + r;
    for (int r = 1; r < size; r++) edges[r - 1] = r, edges[size - 2 + r] = 0;
    MPI_Comm comm;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm));
    int sources[64], slots[64];
    if (rank == 0) {
        for (int r = 1; r < size; r++) sources[r - 1] = r, slots[r - 1] = 0;
        all(comm, size - 1, sources, slots, size - 1);
    } else {
        sources[0] = 0, slots[0] = rank - 1;
        all(comm, 1, sources, slots, 1);
    }
    MPI_Comm_free(&comm);
}

/* Everyone sends to the next one twice and to itself once; nothing comes back. */
static void circle(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int to[3] = {next, rank, next}, from[3] = {before, rank, before};
    MPI_Comm comm;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, from, MPI_UNWEIGHTED, 3, to, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                      0, &comm));
    int slots[3] = {0, 1, 2};
    if (size > 1) all(comm, 3, from, slots, 3);
    MPI_Comm_free(&comm);
    /* A graph in which odd ranks only receive. */
    int lower = rank - 1, upper = rank + 1, is_odd = rank % 2;
    int sources = is_odd ? 1 : 0, targets = !is_odd && upper < size ? 1 : 0, zero[1] = {0};
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sources, &lower, MPI_UNWEIGHTED, targets, &upper,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    all(comm, sources, &lower, zero, targets);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    starts = 2;
    for (form = 0; form < FORMS; form++) {
        grids();
        star();
        circle();
    }
    MPI_Finalize();
    return 0;
}
