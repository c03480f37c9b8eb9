/* Intercommunicators: two halves meet, talk, and merge. Needs at least two ranks. */
#include "check.h"

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    int side = check_rank >= check_size / 2, half = check_size / 2, flag, remote, local, result;
    MPI_Comm mine, inter, copy, merged, odd;
    MPI_Group far;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &mine));
    OK(MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, side ? 0 : half, 12, &inter));
    OK(MPI_Comm_test_inter(inter, &flag));
    CHECK(flag);
    OK(MPI_Comm_test_inter(mine, &flag));
    CHECK(!flag);
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Comm_size(inter, &local));
    CHECK(remote + local == check_size && local == (side ? check_size - half : half));
    OK(MPI_Comm_remote_group(inter, &far));
    OK(MPI_Group_size(far, &result));
    CHECK(result == remote);
    OK(MPI_Group_free(&far));

    /* Ranks of destinations and sources are those of the other group. */
    int rank, value = check_rank, got = -1;
    MPI_Status status;
    OK(MPI_Comm_rank(inter, &rank));
    if (rank < remote && rank < local) {
        OK(MPI_Sendrecv(&value, 1, MPI_INT, rank, 1, &got, 1, MPI_INT, MPI_ANY_SOURCE, 1, inter, &status));
        CHECK(got == (side ? rank : half + rank) && status.MPI_SOURCE == rank);
    }

    OK(MPI_Comm_dup(inter, &copy));
    OK(MPI_Comm_compare(inter, copy, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_compare(inter, mine, &result));
    CHECK(result == MPI_UNEQUAL);

    OK(MPI_Intercomm_merge(inter, !side, &merged));
    OK(MPI_Comm_rank(merged, &rank));
    CHECK(rank == (side ? check_rank - half : check_rank + check_size - half));
    int sum = 0;
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(sum == check_size * (check_size - 1) / 2);

    /* Splitting keeps the two sides apart; a color on one side only gives nothing. */
    OK(MPI_Comm_split(copy, side, 0, &odd));
    CHECK(odd == MPI_COMM_NULL);
    OK(MPI_Comm_split(copy, 4, check_size - check_rank, &odd));
    OK(MPI_Comm_remote_size(odd, &result));
    CHECK(result == remote);
    OK(MPI_Comm_rank(odd, &result));
    CHECK(result == local - 1 - (side ? check_rank - half : check_rank));

    OK(MPI_Comm_free(&odd));
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&mine));
    return check_end();
}
