/* Sends and receives in one call. */
#include "point.h"

enum { MOST = 200000 };

static int out[MOST], in[2 * MOST];

static void fill(int count)
{
    for (int i = 0; i < count; i++) {
        out[i] = mark(rank, 0, i & 0xffff);
    }
    memset(in, -1, sizeof in);
}

static void check(const int *data, int stride, int count, int from, const char *what)
{
    for (int i = 0; i < count; i++) {
        CHECK(data[i * stride] == mark(from, 0, i & 0xffff), "%s: place %d of %d: %x", what, i, count, data[i * stride]);
    }
}

static void all_calls(int count)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size, seen;
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype column;
    MPI_Type_vector(count, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);

    fill(count);
    MPI_Sendrecv(out, count, MPI_INT, to, 1, in, MOST, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &seen);
    CHECK(seen == count && status.MPI_SOURCE == from && status.MPI_TAG == 1, "%d of %d", seen, count);
    check(in, 1, count, from, "sendrecv");

    fill(count);
    MPI_Sendrecv_replace(out, count, MPI_INT, to, 2, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == from, "source %d", status.MPI_SOURCE);
    check(out, 1, count, from, "sendrecv_replace");

    fill(count);
    MPI_Isendrecv(out, count, MPI_INT, to, 3, in, count, MPI_INT, from, 3, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    CHECK(request == MPI_REQUEST_NULL, "the handle stays");
    CHECK(foreign() || (status.MPI_SOURCE == from && status.MPI_TAG == 3), "isendrecv: source %d tag %d", status.MPI_SOURCE,
          status.MPI_TAG);
    check(in, 1, count, from, "isendrecv");

    fill(count);
    MPI_Isendrecv_replace(out, count, MPI_INT, to, 4, from, 4, MPI_COMM_WORLD, &request);
    int flag = 0;
    while (!flag) {
        MPI_Test(&request, &flag, &status);
    }
    check(out, 1, count, from, "isendrecv_replace");

    fill(count);
    MPI_Sendrecv(out, count, MPI_INT, to, 5, in, 1, column, from, 5, MPI_COMM_WORLD, &status);
    check(in, 2, count, from, "into a column");
    CHECK(count == 0 || in[1] == -1, "between the column's elements: %d", in[1]);
    for (int i = 0; i < count; i++) {
        in[2 * i] = mark(rank, 0, i & 0xffff);
    }
    MPI_Sendrecv_replace(in, 1, column, to, 6, from, 6, MPI_COMM_WORLD, &status);
    check(in, 2, count, from, "column replaced");
    CHECK(count == 0 || in[1] == -1, "between the column's elements: %d", in[1]);
    MPI_Type_free(&column);
}

static void halves(void)
{
    int value = 4, got = -1;
    MPI_Status status;
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    value = rank;
    MPI_Sendrecv(&value, 1, MPI_INT, right, 0, &got, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &status);
    CHECK(got == (rank > 0 ? rank - 1 : -1), "%d", got);
    CHECK(status.MPI_SOURCE == left, "source %d", status.MPI_SOURCE);
    MPI_Sendrecv_replace(&value, 1, MPI_INT, right, 0, left, 0, MPI_COMM_WORLD, &status);
    CHECK(value == (rank > 0 ? rank - 1 : 0), "%d", value);
    got = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 7, &got, 1, MPI_INT, rank, 7, MPI_COMM_WORLD,
                 &status);
    CHECK(got == rank, "with itself: %d", got);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    static const int counts[] = {0, 1, 15, 1000, 16384, MOST};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        all_calls(counts[i]);
    }
    halves();
    MPI_Finalize();
    return 0;
}
