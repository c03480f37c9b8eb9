/* Wrong arguments: each gives the class that the standard names, and the next call works. */
#include "coll.h"

#define REFUSES(class_, call)                                                                          \
    do {                                                                                               \
        int code_ = (call), got_;                                                                      \
        CHECK(code_ != MPI_SUCCESS, "%s succeeds", #call);                                             \
        MPI_Error_class(code_, &got_);                                                                 \
        CHECK(got_ == (class_), "%s has class %d, not %d", #call, got_, class_);                       \
    } while (0)

int main(int argc, char **argv)
{
    int in[64] = {0}, out[64] = {0}, negative[64], zero[64] = {0};
    MPI_Request request;
    MPI_Datatype open;
    begin(&argc, &argv);
    for (int i = 0; i < 64; i++) negative[i] = -1;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    doing = "errors";

    REFUSES(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, size, world));
    REFUSES(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, -1, world));
    REFUSES(MPI_ERR_COUNT, MPI_Bcast(in, -1, MPI_INT, 0, world));
    REFUSES(MPI_ERR_TYPE, MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, world));
    REFUSES(MPI_ERR_COMM, MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_NULL));
    REFUSES(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    REFUSES(MPI_ERR_BUFFER, MPI_Bcast(NULL, 4, MPI_INT, 0, world));
    REFUSES(MPI_ERR_ROOT, MPI_Ibcast(in, 1, MPI_INT, size, world, &request));
    REFUSES(MPI_ERR_ROOT, MPI_Bcast_init(in, 1, MPI_INT, size, world, MPI_INFO_NULL, &request));
    MPI_Type_contiguous(2, MPI_INT, &open);
    REFUSES(MPI_ERR_TYPE, MPI_Bcast(in, 1, open, 0, world));
    MPI_Type_free(&open);

    REFUSES(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, world));
    REFUSES(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, world));
    REFUSES(MPI_ERR_COUNT, MPI_Allreduce(in, out, -2, MPI_INT, MPI_SUM, world));
    REFUSES(MPI_ERR_BUFFER, MPI_Allreduce(in, in, 1, MPI_INT, MPI_SUM, world));
    REFUSES(MPI_ERR_BUFFER, MPI_Allreduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world));
    REFUSES(MPI_ERR_ROOT, MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, size + 3, world));
    REFUSES(MPI_ERR_COUNT, MPI_Reduce_scatter(in, out, negative, MPI_INT, MPI_SUM, world));
    REFUSES(MPI_ERR_OP, MPI_Scan(in, out, 1, MPI_FLOAT, MPI_BXOR, world));

    int ones[64], places[64];
    for (int i = 0; i < 64; i++) ones[i] = 1, places[i] = i;
    REFUSES(MPI_ERR_BUFFER, MPI_Allgather(&in[rank], 1, MPI_INT, in, 1, MPI_INT, world));
    REFUSES(MPI_ERR_BUFFER, MPI_Allgatherv(&in[rank], 1, MPI_INT, in, ones, places, MPI_INT, world));
    REFUSES(MPI_ERR_BUFFER, MPI_Alltoall(in, 1, MPI_INT, in, 1, MPI_INT, world));
    REFUSES(MPI_ERR_BUFFER, MPI_Alltoallv(in, ones, places, MPI_INT, in, ones, places, MPI_INT, world));
    REFUSES(MPI_ERR_COUNT, MPI_Alltoallv(in, zero, zero, MPI_INT, out, negative, zero, MPI_INT, world));
    REFUSES(MPI_ERR_COUNT, MPI_Allgatherv(in, 1, MPI_INT, out, negative, zero, MPI_INT, world));
    REFUSES(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, world));

    /* Nothing was left behind. */
    int sum = 0;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world));
    CHECK(sum == size * (size - 1) / 2, "the sum is %d", sum);
    MPI_Finalize();
    return 0;
}
