/* Ranks that pass lengths for which the library takes different algorithms, or of which one sends what the other does
   not expect. The standard forbids it; nobody hangs, who cannot have a result says so, and the next operation works. */
#include "coll.h"

enum { MOST = 1 << 20 };
static char *data, *result;
static int counts[64], places[64];

/* Success or the one error; answers whether it is the error. */
static int ended(int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int class_ = -1, length;
    if (code == MPI_SUCCESS) return 0;
    MPI_Error_class(code, &class_);
    MPI_Error_string(code, text, &length);
    CHECK(class_ == MPI_ERR_TRUNCATE && strstr(text, "the same"), "class %d: %s", class_, text);
    return 1;
}

static int waited(MPI_Request *request, int by_testing)
{
    int flag = 0, code = MPI_SUCCESS;
    if (!by_testing) return ended(MPI_Wait(request, MPI_STATUS_IGNORE));
    while (!flag) code = MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    return ended(code);
}

/* What comes next goes well. `saw`: this rank has an error to show; `least`: so many must have one. */
static void goes_on(int saw, int least)
{
    int sum = 0, all = 0;
    MPI_Request request;
    OK(MPI_Allreduce(&saw, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum >= least, "%d ranks saw an error", sum);
    OK(MPI_Iallreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(all == size * (size - 1) / 2, "the sum is %d", all);
}

/* Rank `who` passes `odd` bytes, all the others `even`. */
static void nonblocking(int who, int odd, int even)
{
    int n = rank == who ? odd : even, by_testing = odd % 3 == 0;
    MPI_Request request;
    doing = "MPI_Ibcast";
    OK(MPI_Ibcast(data, n, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
    /* With more than the root brings nobody can be served. */
    goes_on(waited(&request, by_testing), who == 0 ? even > 0 : odd > 0);
    doing = "MPI_Ireduce";
    OK(MPI_Ireduce(data, result, n, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD, &request));
    goes_on(waited(&request, by_testing), who == 0 ? odd > 0 : 0);
    doing = "MPI_Iallreduce";
    OK(MPI_Iallreduce(data, result, n, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD, &request));
    goes_on(waited(&request, by_testing), 1);
    doing = "MPI_Iscan";
    OK(MPI_Iscan(data, result, n, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD, &request));
    goes_on(waited(&request, by_testing), 1);
    doing = "MPI_Ireduce_scatter_block";
    OK(MPI_Ireduce_scatter_block(data, result, n / 16, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD, &request));
    goes_on(waited(&request, by_testing), 0);
    doing = "MPI_Iallgather";
    OK(MPI_Iallgather(data, n / 16, MPI_BYTE, result, n / 16, MPI_BYTE, MPI_COMM_WORLD, &request));
    goes_on(waited(&request, by_testing), 1);
    doing = "MPI_Ialltoall";
    OK(MPI_Ialltoall(data, n / 16, MPI_BYTE, result, n / 16, MPI_BYTE, MPI_COMM_WORLD, &request));
    goes_on(waited(&request, by_testing), 1);
}

static void blocking(int who, int odd, int even)
{
    int n = (rank == who ? odd : even) / 16;
    doing = "MPI_Gather";
    goes_on(ended(MPI_Gather(data, n, MPI_BYTE, result, n, MPI_BYTE, 0, MPI_COMM_WORLD)), who == 0 ? odd / 16 > 0 : 0);
    doing = "MPI_Scatter";
    goes_on(ended(MPI_Scatter(data, n, MPI_BYTE, result, n, MPI_BYTE, 0, MPI_COMM_WORLD)), who == 0 ? even / 16 > 0 : 0);
    doing = "MPI_Allgather";
    goes_on(ended(MPI_Allgather(data, n, MPI_BYTE, result, n, MPI_BYTE, MPI_COMM_WORLD)), 1);
    doing = "MPI_Alltoall";
    goes_on(ended(MPI_Alltoall(data, n, MPI_BYTE, result, n, MPI_BYTE, MPI_COMM_WORLD)), 1);
}

/* The root's list and what the last rank brings differ: one of them is 0. */
static void lists(int listed, int brought)
{
    int last = size - 1, mine = rank == last ? brought : 8;
    for (int i = 0; i < size; i++) counts[i] = i == last ? listed : 8, places[i] = 8 * i;
    doing = "MPI_Gatherv";
    goes_on(ended(MPI_Gatherv(data, mine, MPI_BYTE, result, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD)), listed > 0);
    doing = "MPI_Scatterv";
    goes_on(ended(MPI_Scatterv(data, counts, places, MPI_BYTE, result, mine, MPI_BYTE, 0, MPI_COMM_WORLD)), brought > 0);
    doing = "MPI_Alltoallv";
    for (int i = 0; i < size; i++) counts[i] = rank == 0 && i == last ? listed : 0, places[i] = 0;
    int got[64] = {0};
    got[0] = rank == last ? brought : 0;
    goes_on(ended(MPI_Alltoallv(data, counts, places, MPI_BYTE, result, got, places, MPI_BYTE, MPI_COMM_WORLD)), brought > 0);
}

/* A communicator that those who are done free at once; somebody still waits on it. */
static void freed(void)
{
    MPI_Comm comm;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    doing = "MPI_Ibcast on a freed communicator";
    OK(MPI_Ibcast(data, rank == 0 ? 0 : 100000, MPI_BYTE, 0, comm, &request));
    int saw = waited(&request, 0);
    OK(MPI_Comm_free(&comm));
    goes_on(saw, 1);
}

/* A rank that comes late is waited for: one that computes meanwhile, and one that answers questions while it does
   something else. */
static void late(void)
{
    int told = 0, value = rank == 0 ? 5 : 0;
    MPI_Request request;
    doing = "a late rank";
    if (rank == 0) {
        MPI_Request other;
        OK(MPI_Irecv(&told, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &other));
        for (int round = 0; round < 4; round++) {
            for (volatile int i = 0; i < 1 << 25; i++) continue;
            for (int flag = 0, i = 0; i < 300; i++) OK(MPI_Test(&other, &flag, MPI_STATUS_IGNORE));
        }
        OK(MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
        OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
    }
    OK(MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(value == 5, "%d was broadcast", value);
    OK(MPI_Gather(&value, 1, MPI_INT, result, 1, MPI_INT, 0, MPI_COMM_WORLD));
    goes_on(0, 0);
}

int main(int argc, char **argv)
{
    static const int pairs[][2] = {{0, 48}, {1 << 15, MOST}, {30000, 300000}};
    begin(&argc, &argv);
    data = calloc(MOST, 1), result = calloc(MOST, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    late();
    freed();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int who = (int)i % size;
        lists(pairs[i][0], pairs[i][1] / 2);
        lists(pairs[i][1] / 2, pairs[i][0]);
        nonblocking(who, pairs[i][0], pairs[i][1]);
        nonblocking(who, pairs[i][1], pairs[i][0]);
        blocking(who, pairs[i][0], pairs[i][1]);
        blocking(who, pairs[i][1], pairs[i][0]);
    }
    MPI_Finalize();
    return 0;
}
