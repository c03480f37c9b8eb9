/* Wrong arguments and messages that are too long: the right class, nothing lost. */
#include "point.h"

static int data[100], in[100];

static void arguments(void)
{
    MPI_Request request;
    MPI_Status status;
    CHECK_CLASS(MPI_Send(data, 1, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Send(data, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Recv(data, 1, MPI_INT, -9, 0, MPI_COMM_WORLD, &status), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Send(data, 1, MPI_INT, rank, -5, MPI_COMM_WORLD), MPI_ERR_TAG);
    CHECK_CLASS(MPI_Send(data, 1, MPI_INT, rank, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG);
    CHECK_CLASS(MPI_Recv(data, 1, MPI_INT, rank, -7, MPI_COMM_WORLD, &status), MPI_ERR_TAG);
    CHECK_CLASS(MPI_Send(data, -1, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Irecv(data, -1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Send(data, 1, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Send(data, 1, MPI_INT, rank, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Send(NULL, 1, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    MPI_Datatype loose;
    MPI_Type_contiguous(2, MPI_INT, &loose);
    CHECK_CLASS(MPI_Send(data, 1, loose, rank, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    MPI_Type_free(&loose);
    CHECK_CLASS(MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
    request = MPI_REQUEST_NULL;
    CHECK_CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
    MPI_Message message = MPI_MESSAGE_NULL;
    CHECK_CLASS(MPI_Mrecv(data, 1, MPI_INT, &message, &status), MPI_ERR_REQUEST);
}

/* What arrived is kept up to the end of the buffer. */
static void too_long(int sent, int room)
{
    int *out = malloc(sent * sizeof *out), *small = malloc((room + 1) * sizeof *small);
    MPI_Request request, receive;
    MPI_Status status;
    for (int early = 0; early < 2; early++) {
        for (int blocking = 0; blocking < 2; blocking++) {
            for (int i = 0; i < sent; i++) {
                out[i] = i + 1;
            }
            memset(small, -1, (room + 1) * sizeof *small);
            if (early) {
                MPI_Isend(out, sent, MPI_INT, rank, 3, MPI_COMM_WORLD, &request);
            }
            int code;
            if (blocking && early) {
                code = MPI_Recv(small, room, MPI_INT, rank, 3, MPI_COMM_WORLD, &status);
            } else {
                MPI_Irecv(small, room, MPI_INT, rank, 3, MPI_COMM_WORLD, &receive);
                if (!early) {
                    MPI_Isend(out, sent, MPI_INT, rank, 3, MPI_COMM_WORLD, &request);
                }
                code = MPI_Wait(&receive, &status);
                CHECK(receive == MPI_REQUEST_NULL, "the handle stays");
            }
            CHECK(class_of(code) == MPI_ERR_TRUNCATE, "class %d with %d into %d", class_of(code), sent, room);
            CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 3, "source %d tag %d", status.MPI_SOURCE, status.MPI_TAG);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(small[room] == -1, "a byte behind the buffer was written");
            if (foreign()) {
                continue;
            }
            int seen;
            MPI_Get_count(&status, MPI_INT, &seen);
            CHECK(seen == room, "count %d, room %d", seen, room);
            for (int i = 0; i < room; i++) {
                CHECK(small[i] == i + 1, "place %d of %d: %d", i, room, small[i]);
            }
        }
    }
    free(out);
    free(small);
}

/* Some of several fail. */
static void in_status(void)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(&in[i], 1, MPI_INT, rank, 10 + i, MPI_COMM_WORLD, &requests[i]);
    }
    requests[3] = MPI_REQUEST_NULL;
    for (int i = 0; i < 3; i++) {
        data[0] = data[1] = 50 + i;
        MPI_Send(data, i == 1 ? 2 : 1, MPI_INT, rank, 10 + i, MPI_COMM_WORLD);
    }
    int code = MPI_Waitall(4, requests, statuses);
    CHECK(class_of(code) == MPI_ERR_IN_STATUS, "class %d", class_of(code));
    for (int i = 0; i < 4; i += i ? 1 : 2) {
        CHECK(statuses[i].MPI_ERROR == MPI_SUCCESS || (foreign() && class_of(statuses[i].MPI_ERROR) == MPI_ERR_PENDING),
              "error of good request %d: %d", i, statuses[i].MPI_ERROR);
    }
    CHECK(class_of(statuses[1].MPI_ERROR) == MPI_ERR_TRUNCATE, "error of the bad one: %d", statuses[1].MPI_ERROR);
    CHECK(requests[1] == MPI_REQUEST_NULL && (foreign() || requests[2] == MPI_REQUEST_NULL), "handles stay");
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(in[0] == 50 && in[2] == 52, "good ones: %d %d", in[0], in[2]);
}

static void some_fail(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2], status;
    int index, flag, count, indices[2];
    for (int i = 0; i < 2; i++) {
        MPI_Irecv(&in[i], 1, MPI_INT, rank, 20 + i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Send(data, 2, MPI_INT, rank, 21, MPI_COMM_WORLD);
    int code = MPI_Waitany(2, requests, &index, &status);
    CHECK(class_of(code) == MPI_ERR_TRUNCATE && index == 1, "class %d index %d", class_of(code), index);
    CHECK(requests[1] == MPI_REQUEST_NULL && requests[0] != MPI_REQUEST_NULL, "handles");
    MPI_Irecv(&in[1], 1, MPI_INT, rank, 21, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(data, 2, MPI_INT, rank, 21, MPI_COMM_WORLD);
    code = MPI_Waitsome(2, requests, &count, indices, statuses);
    CHECK(class_of(code) == MPI_ERR_IN_STATUS && count == 1 && indices[0] == 1, "class %d count %d", class_of(code), count);
    CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE, "error %d", statuses[0].MPI_ERROR);
    MPI_Send(data, 1, MPI_INT, rank, 20, MPI_COMM_WORLD);
    flag = 0;
    while (!flag) {
        MPI_Test(&requests[0], &flag, &status);
    }
    CHECK(status.MPI_TAG == 20, "tag %d", status.MPI_TAG);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    arguments();
    too_long(2, 1);
    too_long(20, 7);
    too_long(3000, 100);
    too_long(300000, 1000);
    in_status();
    some_fail();
    MPI_Finalize();
    return 0;
}
