/* Scattered buffers: vectors, structures at absolute addresses, partial messages, requests freed while under way. */
#include "point.h"

enum { ROWS = 40, COLUMNS = 30 };

/* A column of a matrix to a row, of several widths, blocking and not. */
static void columns(int width)
{
    static int matrix[ROWS][COLUMNS], row[ROWS * COLUMNS];
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Datatype column;
    MPI_Type_vector(ROWS, width, COLUMNS, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            matrix[i][j] = mark(rank, 0, i * COLUMNS + j);
        }
    }
    memset(row, -1, sizeof row);
    MPI_Request requests[2];
    MPI_Irecv(row, ROWS * width, MPI_INT, from, width, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&matrix[0][3], 1, column, to, width, MPI_COMM_WORLD, &requests[1]);
    /* The type may go while it is in use. */
    MPI_Type_free(&column);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < width; j++) {
            int wanted = mark(from, 0, i * COLUMNS + 3 + j), seen = row[i * width + j];
            CHECK(seen == wanted, "width %d row %d column %d: %x, wanted %x", width, i, j, seen, wanted);
        }
    }
}

/* A row into a column: nothing between is touched, and a short message fills only the beginning. */
static void into_column(int sent)
{
    int matrix[ROWS][4], row[ROWS];
    MPI_Datatype column;
    MPI_Type_vector(ROWS, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < ROWS; i++) {
        row[i] = mark(rank, to, i);
        for (int j = 0; j < 4; j++) {
            matrix[i][j] = -7;
        }
    }
    MPI_Status status;
    MPI_Request request;
    MPI_Isend(row, sent, MPI_INT, to, 1, MPI_COMM_WORLD, &request);
    MPI_Recv(&matrix[0][2], 1, column, from, 1, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < 4; j++) {
            int wanted = j == 2 && i < sent ? mark(from, rank, i) : -7;
            CHECK(matrix[i][j] == wanted, "%d sent, row %d column %d: %d", sent, i, j, matrix[i][j]);
        }
    }
    int whole, basic;
    MPI_Get_count(&status, column, &whole);
    MPI_Get_elements(&status, column, &basic);
    CHECK(whole == (sent == ROWS ? 1 : sent == 0 ? 0 : MPI_UNDEFINED), "count %d after %d", whole, sent);
    CHECK(basic == sent, "%d elements after %d", basic, sent);
    MPI_Type_free(&column);
}

/* Two variables at absolute addresses. */
static void absolute(void)
{
    int a = rank * 10, b = 0;
    double c = rank + 0.5, d = 0;
    MPI_Datatype out, in;
    int lengths[2] = {1, 1};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Aint places[2];
    MPI_Get_address(&a, &places[0]);
    MPI_Get_address(&c, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &out);
    MPI_Get_address(&b, &places[0]);
    MPI_Get_address(&d, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &in);
    MPI_Type_commit(&out);
    MPI_Type_commit(&in);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Sendrecv(MPI_BOTTOM, 1, out, to, 0, MPI_BOTTOM, 1, in, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(b == from * 10 && d == from + 0.5, "%d %f from %d", b, d, from);
    /* One run at an absolute address. */
    MPI_Datatype single;
    MPI_Aint place;
    int length = 1;
    MPI_Get_address(&b, &place);
    MPI_Type_create_hindexed(1, &length, &place, MPI_INT, &single);
    MPI_Type_commit(&single);
    MPI_Request request;
    MPI_Irecv(MPI_BOTTOM, 1, single, from, 1, MPI_COMM_WORLD, &request);
    a = 77 + rank;
    MPI_Send(&a, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(b == 77 + from, "%d", b);
    MPI_Type_free(&single);
    MPI_Type_free(&out);
    MPI_Type_free(&in);
}

/* Requests freed while under way complete on their own, and scattered receives reach their places. */
static void freed(int rows)
{
    int *matrix = malloc(rows * 2 * sizeof *matrix), *row = malloc(rows * sizeof *row);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Datatype column;
    MPI_Type_vector(rows, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < rows; i++) {
        matrix[2 * i] = matrix[2 * i + 1] = -1;
        row[i] = mark(rank, 1, i & 0xffff);
    }
    MPI_Request request;
    MPI_Irecv(matrix, 1, column, from, 4, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL, "the handle stays");
    MPI_Type_free(&column);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Ssend(row, size > 1 ? rows : 0, MPI_INT, size > 1 ? to : MPI_PROC_NULL, 4, MPI_COMM_WORLD);
    if (size == 1) {
        MPI_Isend(row, rows, MPI_INT, 0, 4, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    /* A later message of the same sender comes after the first one; then that is complete, too, sooner or later. */
    volatile int *last = &matrix[2 * (rows - 1)];
    while (*last == -1) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < rows; i++) {
        CHECK(matrix[2 * i] == mark(from, 1, i & 0xffff) && matrix[2 * i + 1] == -1, "row %d of %d", i, rows);
    }
    free(matrix);
    free(row);
}

/* Elements without data, and none of them. */
static void empty(void)
{
    MPI_Datatype nothing;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Status status;
    MPI_Sendrecv(NULL, 5, nothing, to, 0, NULL, 7, nothing, from, 0, MPI_COMM_WORLD, &status);
    int count;
    MPI_Get_count(&status, nothing, &count);
    CHECK(count == 0, "count %d", count);
    MPI_Sendrecv(NULL, 0, MPI_INT, to, 0, NULL, 0, MPI_INT, from, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 0 && status.MPI_SOURCE == from, "count %d", count);
    MPI_Type_free(&nothing);
}

/* Counts of what arrived in other units. */
static void counts(void)
{
    MPI_Status status;
    int count;
    MPI_Count many;
    memset(&status, 0, sizeof status);
    MPI_Status_set_elements(&status, MPI_INT, 5);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 5, "count %d", count);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(count == MPI_UNDEFINED, "2.5 doubles are %d", count);
    MPI_Status_set_elements_c(&status, MPI_BYTE, 5000000000);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == MPI_UNDEFINED, "a count above an int is %d", count);
    MPI_Get_count_c(&status, MPI_BYTE, &many);
    CHECK(many == 5000000000, "count %lld", (long long)many);
    MPI_Get_elements_x(&status, MPI_BYTE, &many);
    CHECK(many == 5000000000, "elements %lld", (long long)many);
    int flag = -1;
    MPI_Status_set_cancelled(&status, 1);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag == 1, "cancelled %d", flag);
    MPI_Get_count_c(&status, MPI_BYTE, &many);
    CHECK(many == 5000000000, "the flag changes the count: %lld", (long long)many);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int width = 1; width < 20; width += 6) {
        columns(width);
    }
    for (int sent = 0; sent <= ROWS; sent += 13) {
        into_column(sent);
    }
    into_column(ROWS);
    absolute();
    freed(10);
    freed(100000);
    empty();
    counts();
    MPI_Finalize();
    return 0;
}
