/* Corners of single operations: displacements that differ from rank to rank, a member that comes late, buffers that are not
 * there because nothing is to lie in them, and derived types around the lengths where another way begins. */
#define _DEFAULT_SOURCE
#include "coll.h"
#include <unistd.h>

enum { MOST = 400000 };

static unsigned char of(int from, int to, int at) { return (unsigned char)(from * 31 + to * 7 + at * 3 + 1); }

/* Every rank places the blocks with other gaps. */
static void displacements(int bytes)
{
    int counts[32], places[32];
    unsigned char *mine = malloc(bytes), *all = malloc((size_t)(bytes + 8) * size);
    for (int i = 0; i < size; i++) {
        counts[i] = bytes;
        places[i] = i * (bytes + rank % 3);
    }
    for (int i = 0; i < bytes; i++) mine[i] = of(rank, 0, i);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Request request;
        doing = turn ? "MPI_Iallgatherv" : "MPI_Allgatherv";
        memset(all, 0, (size_t)(bytes + 8) * size);
        if (turn) {
            OK(MPI_Iallgatherv(mine, bytes, MPI_BYTE, all, counts, places, MPI_BYTE, MPI_COMM_WORLD, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Allgatherv(mine, bytes, MPI_BYTE, all, counts, places, MPI_BYTE, MPI_COMM_WORLD));
        }
        for (int i = 0; i < size; i++)
            for (int j = 0; j < bytes; j++)
                CHECK(all[places[i] + j] == of(i, 0, j), "byte %d of %d of rank %d", j, bytes, i);
    }
    free(mine), free(all);
}

/* The last rank computes while the others have begun. */
static void late(int bytes)
{
    unsigned char *mine = malloc(bytes), *all = malloc((size_t)bytes * size);
    for (int i = 0; i < bytes; i++) mine[i] = of(rank, 1, i);
    doing = "MPI_Gather";
    for (int root = 0; root < size; root += size - 1) {
        memset(all, 0, (size_t)bytes * size);
        if (rank == size - 1) sleep(1);
        OK(MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, root, MPI_COMM_WORLD));
        for (int i = 0; rank == root && i < size * bytes; i++)
            CHECK(all[i] == of(i / bytes, 1, i % bytes), "byte %d of rank %d", i % bytes, i / bytes);
        if (size == 1) break;
    }
    free(mine), free(all);
}

/* A share of nothing needs no buffer. */
static void no_share(void)
{
    static const int lengths[] = {1, 20, 5000, 60000};
    int counts[32], *vector = malloc(60000 * sizeof *vector), *share = malloc(60000 * sizeof *share);
    doing = "MPI_Reduce_scatter";
    for (int l = 0; l < 4; l++) {
        for (int nobody = 0; nobody < size; nobody++) {
            int total = 0, first = 0;
            for (int i = 0; i < size; i++) {
                counts[i] = i == nobody ? 0 : lengths[l] / size + 1;
                first += i < rank ? counts[i] : 0;
                total += counts[i];
            }
            for (int i = 0; i < total; i++) vector[i] = rank + i;
            OK(MPI_Reduce_scatter(vector, rank == nobody ? NULL : share, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
            for (int i = 0; i < counts[rank]; i++)
                CHECK(share[i] == size * (first + i) + size * (size - 1) / 2, "element %d is %d", i, share[i]);
        }
    }
    free(vector), free(share);
}

/* `bytes` single bytes with a gap behind each, or all of them in a row. */
static MPI_Datatype type_of(int bytes, int gaps)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(bytes, 1, gaps ? 2 : 1, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static void lay(unsigned char *at, int from, int to, int bytes, int gaps)
{
    for (int i = 0; i < bytes; i++) at[i * (1 + gaps)] = of(from, to, i);
}

static void compare(const unsigned char *at, int from, int to, int bytes, int gaps)
{
    for (int i = 0; i < bytes; i++) {
        CHECK(at[i * (1 + gaps)] == of(from, to, i), "byte %d of %d from %d to %d", i, bytes, from, to);
        if (gaps && i + 1 < bytes) CHECK(at[2 * i + 1] == 0xee, "gap %d of %d", i, bytes);
    }
}

static void derived(int bytes, int sent_gaps, int received_gaps)
{
    const int root = size - 1, room = 2 * MOST / 8;
    unsigned char *mine = malloc((size_t)room * size), *theirs = malloc((size_t)room * size);
    MPI_Datatype out = type_of(bytes, sent_gaps), in = type_of(bytes, received_gaps), outs[32], ins[32], padded;
    int ones[32], out_at[32], in_at[32];
    doing = "MPI_Gather of derived types";
    memset(theirs, 0xee, (size_t)room * size);
    lay(mine, rank, root, bytes, sent_gaps);
    /* At the root the blocks have room between them. */
    OK(MPI_Type_create_resized(in, 0, room, &padded));
    OK(MPI_Type_commit(&padded));
    OK(MPI_Gather(mine, 1, out, theirs, 1, padded, root, MPI_COMM_WORLD));
    for (int i = 0; rank == root && i < size; i++) compare(theirs + (size_t)i * room, i, root, bytes, received_gaps);
    doing = "MPI_Scatter of derived types";
    OK(MPI_Type_free(&padded));
    OK(MPI_Type_create_resized(out, 0, room, &padded));
    OK(MPI_Type_commit(&padded));
    for (int i = 0; i < size; i++) lay(mine + (size_t)i * room, root, i, bytes, sent_gaps);
    memset(theirs, 0xee, (size_t)room * size);
    OK(MPI_Scatter(mine, 1, padded, theirs, 1, in, root, MPI_COMM_WORLD));
    compare(theirs, root, rank, bytes, received_gaps);
    OK(MPI_Type_free(&padded));
    doing = "MPI_Alltoallw of derived types";
    for (int i = 0; i < size; i++) {
        /* The pair's lower rank has gaps where it sends, the other one where it receives. */
        outs[i] = rank < i ? out : in;
        ins[i] = rank < i ? in : out;
        ones[i] = 1;
        out_at[i] = in_at[i] = i * room;
        lay(mine + (size_t)i * room, rank, i, bytes, rank < i ? sent_gaps : received_gaps);
    }
    memset(theirs, 0xee, (size_t)room * size);
    OK(MPI_Alltoallw(mine, ones, out_at, outs, theirs, ones, in_at, ins, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        compare(theirs + (size_t)i * room, i, rank, bytes, rank < i ? received_gaps : sent_gaps);
    OK(MPI_Type_free(&out));
    OK(MPI_Type_free(&in));
    free(mine), free(theirs);
}

/* Whatever came before, all take part in the same operations. */
static void in_step(void)
{
    int one = 1, all = 0;
    doing = "after nothing";
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == size, "%d ranks instead of %d", all, size);
}

/* Operations on nothing, which the ranks describe differently: in place, by a derived type, plainly. */
static void nothing(void)
{
    MPI_Datatype type, folded[] = {MPI_DOUBLE, MPI_DOUBLE_INT, MPI_2INT};
    MPI_Op ops[] = {MPI_SUM, MPI_MAXLOC, MPI_MINLOC};
    char buffer[64] = {0}, other[64];
    MPI_Type_vector(2, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int root = 0; root < size; root += size > 1 ? size - 1 : 1) {
        MPI_Datatype mine = rank % 3 == 1 ? type : MPI_INT;
        const void *from = rank == root ? MPI_IN_PLACE : buffer;
        for (int i = 0; i < 3; i++) {
            doing = "MPI_Reduce of nothing";
            OK(MPI_Reduce(from, other, 0, folded[i], ops[i], root, MPI_COMM_WORLD));
            in_step();
            doing = "MPI_Allreduce of nothing";
            OK(MPI_Allreduce(from, other, 0, folded[i], ops[i], MPI_COMM_WORLD));
            in_step();
        }
        doing = "MPI_Bcast of nothing";
        OK(MPI_Bcast(buffer, 0, mine, root, MPI_COMM_WORLD));
        in_step();
        doing = "MPI_Gather of nothing";
        OK(MPI_Gather(from, 0, mine, other, 0, MPI_INT, root, MPI_COMM_WORLD));
        in_step();
        doing = "MPI_Scatter of nothing";
        OK(MPI_Scatter(buffer, 0, mine, rank == root ? MPI_IN_PLACE : other, 0, MPI_INT, root, MPI_COMM_WORLD));
        in_step();
        doing = "MPI_Allgather of nothing";
        OK(MPI_Allgather(buffer, 0, mine, other, 0, MPI_INT, MPI_COMM_WORLD));
        in_step();
        doing = "MPI_Alltoall of nothing";
        OK(MPI_Alltoall(buffer, 0, mine, other, 0, MPI_INT, MPI_COMM_WORLD));
        in_step();
    }
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    static const int blocks[] = {1, 24, 300, 4000, 16000, 40000};
    /* Around a slot, a block of a gather or scatter, a buffer's part for each of 2, 3, 4 and 5 members, and messages. */
    static const int limits[] = {1, 55, 56, 57, 16383, 16384, 16385, 22020, 25395, 25400, 31744, 42325, 63488, 64000};
    begin(&argc, &argv);
    for (int i = 0; i < 6; i++) displacements(blocks[i]);
    late(256 << 10);
    no_share();
    nothing();
    for (int i = 0; i < (int)(sizeof limits / sizeof *limits); i++)
        for (int gaps = 0; gaps < 4; gaps++)
            if (limits[i] <= 45000 || gaps == 0) derived(limits[i], gaps & 1, gaps >> 1);
    MPI_Finalize();
    return 0;
}
