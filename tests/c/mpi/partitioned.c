/* Partitioned communication: any division on either side, any order, matched once, round after round. */
#include "check.h"

enum { TOTAL = 840, TURNS = 5 };

static int left, right;

static int value(int from, int turn, int place)
{
    return (from * 100 + turn) * 10000 + place;
}

/* Hands the partitions over in an order that differs from turn to turn, by all three calls. */
static void hand_over(MPI_Request request, int partitions, int turn)
{
    int list[TOTAL];
    if (turn % 3 == 0) {
        for (int i = partitions - 1; i >= 0; i--)
            OK(MPI_Pready(i, request));
    } else if (turn % 3 == 1) {
        OK(MPI_Pready_range(partitions / 2, partitions - 1, request));
        if (partitions / 2 > 0)
            OK(MPI_Pready_range(0, partitions / 2 - 1, request));
    } else {
        for (int i = 0; i < partitions; i++)
            list[i] = i % 2 == 0 ? partitions - 1 - i / 2 : i / 2;
        OK(MPI_Pready_list(partitions, list, request));
    }
}

/* One division of TOTAL integers at the sender, another at the receiver. */
static void divided(int out_parts, int in_parts, int asks)
{
    static int out[TOTAL], in[TOTAL];
    MPI_Request send, receive;
    MPI_Status status;
    int count, flag;
    OK(MPI_Precv_init(in, in_parts, TOTAL / in_parts, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Psend_init(out, out_parts, TOTAL / out_parts, MPI_INT, right, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    for (int turn = 0; turn < TURNS; turn++) {
        memset(in, 0xff, sizeof in);
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        for (int i = 0; i < TOTAL; i++)
            out[i] = value(check_rank, turn, i);
        hand_over(send, out_parts, turn);
        if (asks) {
            for (int part = in_parts - 1; part >= 0; part--) {
                do
                    OK(MPI_Parrived(receive, part, &flag));
                while (!flag);
                for (int i = 0; i < TOTAL / in_parts; i++) {
                    int place = part * (TOTAL / in_parts) + i;
                    CHECK(in[place] == value(left, turn, place));
                }
            }
        }
        OK(MPI_Wait(&receive, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 3 && count == TOTAL);
        for (int i = 0; i < TOTAL; i++)
            CHECK(in[i] == value(left, turn, i));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        CHECK(send != MPI_REQUEST_NULL && receive != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    CHECK(send == MPI_REQUEST_NULL);
}

/* A partition arrives although others were not handed over, and those are not said to be there. */
static void one_by_one(void)
{
    static int out[6], in[6];
    MPI_Request send, receive;
    int flag, answer;
    OK(MPI_Psend_init(out, 6, 1, MPI_INT, right, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 3, 2, MPI_INT, left, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Parrived(receive, 2, &flag));
    CHECK(flag); /* it is not active */
    for (int turn = 0; turn < 3; turn++) {
        OK(MPI_Start(&send));
        OK(MPI_Start(&receive));
        for (int i = 0; i < 6; i++)
            out[i] = value(check_rank, turn, i);
        OK(MPI_Pready(2, send));
        OK(MPI_Pready(3, send));
        OK(MPI_Pready(5, send));
        do
            OK(MPI_Parrived(receive, 1, &flag));
        while (!flag);
        CHECK(in[2] == value(left, turn, 2) && in[3] == value(left, turn, 3));
        OK(MPI_Parrived(receive, 0, &flag));
        CHECK(!flag);
        OK(MPI_Parrived(receive, 2, &flag)); /* half of it is there */
        CHECK(!flag);
        OK(MPI_Test(&receive, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        OK(MPI_Request_get_status(send, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        /* All ranks have looked before any goes on. */
        OK(MPI_Allreduce(&turn, &answer, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
        OK(MPI_Pready_range(0, 1, send));
        OK(MPI_Pready(4, send));
        do
            OK(MPI_Test(&receive, &flag, MPI_STATUS_IGNORE));
        while (!flag);
        for (int i = 0; i < 6; i++)
            CHECK(in[i] == value(left, turn, i));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

/* Several operations of one tag match in the order in which they were made, whichever starts first. */
static void order(void)
{
    enum { N = 4 };
    static int out[N][8], in[N][8];
    MPI_Request sends[N], receives[N];
    MPI_Status statuses[N];
    for (int i = 0; i < N; i++) {
        OK(MPI_Psend_init(out[i], 8, 1, MPI_INT, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]));
        OK(MPI_Precv_init(in[i], 4, 2, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[i]));
    }
    OK(MPI_Startall(N, receives));
    for (int i = N - 1; i >= 0; i--) {
        for (int j = 0; j < 8; j++)
            out[i][j] = value(check_rank, i, j);
        OK(MPI_Start(&sends[i]));
        OK(MPI_Pready_range(0, 7, sends[i]));
    }
    OK(MPI_Waitall(N, sends, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(N, receives, statuses));
    for (int i = 0; i < N; i++) {
        CHECK(statuses[i].MPI_SOURCE == left);
        for (int j = 0; j < 8; j++)
            CHECK(in[i][j] == value(left, i, j));
        OK(MPI_Request_free(&sends[i]));
        OK(MPI_Request_free(&receives[i]));
    }
}

/* The sender may be rounds ahead of the receiver, and plain messages of the same tag are others. */
static void ahead(void)
{
    static int out[4], in[4];
    int plain = 77, got = 0;
    MPI_Request send, receive, request;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Psend_init(out, 4, 1, MPI_INT, right, 6, comm, MPI_INFO_NULL, &send));
    OK(MPI_Isend(&plain, 1, MPI_INT, right, 6, comm, &request));
    for (int turn = 0; turn < TURNS; turn++) {
        OK(MPI_Start(&send));
        for (int i = 0; i < 4; i++)
            out[i] = value(check_rank, turn, i);
        OK(MPI_Pready_range(0, 3, send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Barrier(comm));
    OK(MPI_Precv_init(in, 2, 2, MPI_INT, left, 6, comm, MPI_INFO_NULL, &receive));
    for (int turn = 0; turn < TURNS; turn++) {
        OK(MPI_Start(&receive));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        for (int i = 0; i < 4; i++)
            CHECK(in[i] == value(left, turn, i));
    }
    OK(MPI_Recv(&got, 1, MPI_INT, left, 6, comm, MPI_STATUS_IGNORE));
    CHECK(got == plain);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    OK(MPI_Comm_disconnect(&comm));
}

/* Every other integer here, a run of them there; divisions that cut elements of the other side. */
static void scattered(int out_parts, int in_parts)
{
    enum { N = 60 };
    static int out[2 * N], in[2 * N];
    MPI_Datatype spread;
    MPI_Request send, receive;
    int flag, out_spread = check_rank % 2;
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread));
    OK(MPI_Type_commit(&spread));
    OK(MPI_Psend_init(out, out_parts, N / out_parts, out_spread ? spread : MPI_INT, right, 7, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, in_parts, N / in_parts, spread, left, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Type_free(&spread));
    for (int turn = 0; turn < TURNS; turn++) {
        memset(in, 0xff, sizeof in);
        OK(MPI_Start(&send));
        OK(MPI_Start(&receive));
        for (int i = 0; i < N; i++)
            out[out_spread ? 2 * i : i] = value(check_rank, turn, i);
        hand_over(send, out_parts, turn);
        do
            OK(MPI_Parrived(receive, in_parts / 2, &flag));
        while (!flag);
        for (int i = in_parts / 2 * (N / in_parts); i < (in_parts / 2 + 1) * (N / in_parts); i++)
            CHECK(in[2 * i] == value(left, turn, i));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        for (int i = 0; i < N; i++)
            CHECK(in[2 * i] == value(left, turn, i) && in[2 * i + 1] == -1);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

/* Partitions that are asked for before they are sent. */
static void long_ones(void)
{
    enum { PARTS = 3, EACH = 200000 };
    int *out = malloc(PARTS * EACH * sizeof(int)), *in = malloc(PARTS * EACH * sizeof(int));
    MPI_Request both[2];
    CHECK(out && in);
    OK(MPI_Psend_init(out, PARTS, EACH, MPI_INT, right, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in, 1, PARTS * EACH, MPI_INT, left, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (int turn = 0; turn < 2; turn++) {
        OK(MPI_Startall(2, both));
        for (int i = 0; i < PARTS * EACH; i++)
            out[i] = i * (turn + 3) + check_rank;
        hand_over(both[0], PARTS, turn);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (int i = 0; i < PARTS * EACH; i++)
            CHECK(in[i] == i * (turn + 3) + left);
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free(out);
    free(in);
}

/* Nobody, nothing, and less than there is room for. */
static void little(void)
{
    static int out[4] = {1, 2, 3, 4}, in[8];
    MPI_Request send, receive;
    MPI_Status status;
    int flag, count;
    OK(MPI_Psend_init(out, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (int turn = 0; turn < 2; turn++) {
        OK(MPI_Start(&send));
        OK(MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        OK(MPI_Pready_range(0, 1, send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Start(&receive));
        OK(MPI_Parrived(receive, 1, &flag));
        CHECK(flag);
        OK(MPI_Wait(&receive, &status));
        CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));

    /* Without partitions, and with empty ones. */
    for (int parts = 0; parts < 3; parts += 2) {
        OK(MPI_Psend_init(out, parts, 0, MPI_INT, right, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
        OK(MPI_Precv_init(in, 3, 0, MPI_INT, left, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
        OK(MPI_Start(&send));
        OK(MPI_Start(&receive));
        if (parts > 0)
            OK(MPI_Pready_range(0, parts - 1, send));
        OK(MPI_Wait(&receive, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 0);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&send));
        OK(MPI_Request_free(&receive));
    }

    OK(MPI_Psend_init(out, 4, 1, MPI_INT, right, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 4, 2, MPI_INT, left, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    OK(MPI_Pready_range(0, 3, send));
    OK(MPI_Wait(&receive, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 4 && in[3] == 4 && in[4] == 0);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

/* Freed while it is under way: it ends by itself. */
static void freed(void)
{
    static int out[4], in[4];
    MPI_Request send, receive;
    OK(MPI_Psend_init(out, 4, 1, MPI_INT, right, 11, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 4, 1, MPI_INT, left, 11, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (int i = 0; i < 4; i++)
        out[i] = value(check_rank, 0, i);
    OK(MPI_Start(&send));
    OK(MPI_Pready_range(0, 3, send));
    OK(MPI_Request_free(&send));
    OK(MPI_Start(&receive));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; i++)
        CHECK(in[i] == value(left, 0, i));
    OK(MPI_Request_free(&receive));
}

int main(int argc, char **argv)
{
    static const int divisions[][2] = {{1, 1}, {1, 7}, {7, 1}, {8, 8}, {8, 12}, {12, 8}, {840, 5}, {6, 420}};
    check_begin(&argc, &argv);
    right = (check_rank + 1) % check_size;
    left = (check_rank + check_size - 1) % check_size;
    for (unsigned i = 0; i < sizeof divisions / sizeof divisions[0]; i++)
        for (int asks = 0; asks < 2; asks++)
            divided(divisions[i][0], divisions[i][1], asks);
    one_by_one();
    order();
    ahead();
    scattered(1, 1);
    scattered(4, 6);
    scattered(6, 4);
    scattered(60, 5);
    long_ones();
    little();
    freed();
    return check_end();
}
