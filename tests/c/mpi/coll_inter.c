/* Collectives of intercommunicators: what one group gives the other one gets. */
#include "coll.h"

static MPI_Comm inter;
static int me, mine, theirs, side;

/* The world's rank of a member of a group: even ranks are side 0. */
static int world_rank(int which, int r) { return 2 * r + which; }

static void rooted(int root_side, int root)
{
    int here = side == root_side;
    int argument = !here ? root : me == root ? MPI_ROOT : MPI_PROC_NULL;
    int across = here ? theirs : mine, buffer[64], word = -1;
    if (here && me == root) word = 4321;
    COLL_C(Bcast, bcast, inter, &word, 1, MPI_INT, argument);
    if (!here) CHECK(word == 4321, "got %d", word);

    for (int i = 0; i < 64; i++) buffer[i] = -77;
    COLL_C(Gather, gather, inter, &rank, 1, MPI_INT, buffer, 1, MPI_INT, argument);
    for (int r = 0; argument == MPI_ROOT && r < across; r++) {
        CHECK(buffer[r] == world_rank(1 - side, r), "place %d has %d", r, buffer[r]);
    }
    for (int r = 0; r < across; r++) buffer[r] = 50 + r;
    word = -1;
    COLL_C(Scatter, scatter, inter, buffer, 1, MPI_INT, &word, 1, MPI_INT, argument);
    if (!here) CHECK(word == 50 + me, "got %d", word);

    int sum = -1, want = 0;
    for (int r = 0; r < across; r++) want += world_rank(1 - root_side, r);
    /* Who has no part may pass anything: bytes cannot be added. */
    MPI_Datatype type = argument == MPI_PROC_NULL ? MPI_BYTE : MPI_INT;
    COLL_C(Reduce, reduce, inter, &rank, &sum, 1, type, MPI_SUM, argument);
    if (argument == MPI_ROOT) CHECK(sum == want, "the sum is %d, not %d", sum, want);
}

static void everyone(void)
{
    int all[64], sum = -1, want = 0, out[64];
    for (int i = 0; i < 64; i++) all[i] = -77, out[i] = rank * 100 + i;
    COLL_C(Allgather, allgather, inter, &rank, 1, MPI_INT, all, 1, MPI_INT);
    for (int r = 0; r < theirs; r++) CHECK(all[r] == world_rank(1 - side, r), "place %d has %d", r, all[r]);
    COLL_C(Alltoall, alltoall, inter, out, 1, MPI_INT, all, 1, MPI_INT);
    for (int r = 0; r < theirs; r++) CHECK(all[r] == world_rank(1 - side, r) * 100 + me, "place %d has %d", r, all[r]);
    for (int r = 0; r < theirs; r++) want += world_rank(1 - side, r);
    COLL_C(Allreduce, allreduce, inter, &rank, &sum, 1, MPI_INT, MPI_SUM);
    CHECK(sum == want, "the sum is %d, not %d", sum, want);
    /* The vector has a block for each of theirs times each of ours, so that both sides agree on its length. */
    int vector[256], block[64];
    for (int i = 0; i < mine * theirs; i++) vector[i] = rank + i;
    COLL_C(Reduce_scatter_block, reduce_scatter_block, inter, vector, block, theirs, MPI_INT, MPI_SUM);
    for (int i = 0; i < theirs; i++) {
        CHECK(block[i] == want + theirs * (me * theirs + i), "element %d is %d", i, block[i]);
    }
    MPI_Request request;
    OK(MPI_Barrier(inter));
    OK(MPI_Ibarrier(inter, &request));
    finish(&request);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (size >= 2) {
        MPI_Comm half;
        side = rank % 2;
        OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half));
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 9, &inter));
        MPI_Comm_rank(inter, &me);
        MPI_Comm_size(inter, &mine);
        MPI_Comm_remote_size(inter, &theirs);
        starts = 2;
        for (form = 0; form < FORMS; form++) {
            for (int s = 0; s < 2; s++) {
                for (int root = 0; root < (s == side ? mine : theirs); root++) rooted(s, root);
            }
            everyone();
        }
        OK(MPI_Comm_free(&inter));
        OK(MPI_Comm_free(&half));
    }
    MPI_Finalize();
    return 0;
}
