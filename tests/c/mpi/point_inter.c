/* Messages between the two groups of an intercommunicator, where ranks are the other group's. */
#include "point.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (size < 2) {
        MPI_Finalize();
        return 0;
    }
    /* Unequal groups: rank 0 and the odd ranks; and the others, if any. */
    int side = rank % 2, mine, others, place;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
    MPI_Comm_rank(inter, &place);
    MPI_Comm_size(inter, &mine);
    MPI_Comm_remote_size(inter, &others);
    CHECK(mine + others == size && place == rank / 2, "%d + %d of %d", mine, others, size);
    for (int i = 0; i < others; i++) {
        int value[2] = {side, place};
        MPI_Request request;
        MPI_Isend(value, 2, MPI_INT, i, 8, inter, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < others; i++) {
        int value[2];
        MPI_Status status;
        if (i % 2) {
            MPI_Probe(MPI_ANY_SOURCE, 8, inter, &status);
            MPI_Recv(value, 2, MPI_INT, status.MPI_SOURCE, 8, inter, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, 8, inter, &status);
        }
        CHECK(value[0] == 1 - side && value[1] == status.MPI_SOURCE && status.MPI_SOURCE < others, "%d %d from %d", value[0],
              value[1], status.MPI_SOURCE);
    }
    if (place < others) {
        int value = rank, seen = -1;
        if (place < mine) {
            MPI_Sendrecv(&value, 1, MPI_INT, place, 9, &seen, 1, MPI_INT, place, 9, inter, MPI_STATUS_IGNORE);
            CHECK(seen == 2 * place + 1 - side, "%d", seen);
        }
    }
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    int code = MPI_Send(&rank, 1, MPI_INT, others, 0, inter);
    CHECK(class_of(code) == MPI_ERR_RANK, "class %d", class_of(code));
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
