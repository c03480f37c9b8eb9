/* Generalized requests: when their functions are called, and with what. */
#include "point.h"

struct calls {
    int queries, frees, cancels, cancelled_complete;
};

static int query(void *extra, MPI_Status *status)
{
    struct calls *calls = extra;
    calls->queries++;
    MPI_Status_set_elements(status, MPI_INT, 7);
    MPI_Status_set_cancelled(status, calls->cancels > 0);
    status->MPI_SOURCE = 3;
    status->MPI_TAG = 4;
    /* The library may be called from here. */
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    ((struct calls *)extra)->frees++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    struct calls *calls = extra;
    calls->cancels++;
    calls->cancelled_complete = complete;
    return MPI_SUCCESS;
}

static void check(const MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    CHECK(status->MPI_SOURCE == 3 && status->MPI_TAG == 4 && count == 7, "source %d tag %d count %d", status->MPI_SOURCE,
          status->MPI_TAG, count);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    struct calls calls = {0};
    MPI_Request request, copy, both[2];
    MPI_Status status, statuses[2];
    int flag, index;

    MPI_Grequest_start(query, release, cancel, &calls, &request);
    MPI_Test(&request, &flag, &status);
    CHECK(!flag && calls.queries == 0, "complete at once");
    MPI_Grequest_complete(request);
    MPI_Request_get_status(request, &flag, &status);
    CHECK(flag && calls.queries == 1 && calls.frees == 0, "get_status: %d queries, %d frees", calls.queries, calls.frees);
    check(&status);
    MPI_Wait(&request, &status);
    CHECK(request == MPI_REQUEST_NULL && calls.queries == 2 && calls.frees == 1, "wait: %d queries, %d frees",
          calls.queries, calls.frees);
    check(&status);

    /* Freed first, completed later. */
    memset(&calls, 0, sizeof calls);
    MPI_Grequest_start(query, release, cancel, &calls, &request);
    copy = request;
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && calls.frees == 0, "free: %d frees", calls.frees);
    MPI_Grequest_complete(copy);
    CHECK(calls.frees == 1 && calls.queries == 0, "complete after free: %d frees", calls.frees);

    /* Cancelled while under way. */
    memset(&calls, 0, sizeof calls);
    MPI_Grequest_start(query, release, cancel, &calls, &request);
    MPI_Cancel(&request);
    CHECK(calls.cancels == 1 && !calls.cancelled_complete, "cancel: %d", calls.cancels);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag, "not cancelled");

    /* Among others. */
    memset(&calls, 0, sizeof calls);
    int value = 0;
    MPI_Grequest_start(query, release, cancel, &calls, &both[0]);
    MPI_Irecv(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &both[1]);
    MPI_Testany(2, both, &index, &flag, &status);
    CHECK(!flag, "testany %d", index);
    MPI_Grequest_complete(both[0]);
    MPI_Waitany(2, both, &index, &status);
    CHECK(index == 0 && both[0] == MPI_REQUEST_NULL && calls.frees == 1, "waitany %d", index);
    check(&status);
    MPI_Grequest_start(query, release, cancel, &calls, &both[0]);
    MPI_Grequest_complete(both[0]);
    int out = 5;
    MPI_Send(&out, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
    MPI_Waitall(2, both, statuses);
    check(&statuses[0]);
    CHECK(value == 5 && statuses[1].MPI_SOURCE == rank && calls.frees == 2, "value %d, %d frees", value, calls.frees);
    MPI_Finalize();
    return 0;
}
