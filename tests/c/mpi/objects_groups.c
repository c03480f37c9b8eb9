/* Groups and communicators on any number of ranks. */
#include "check.h"

static void groups(void)
{
    MPI_Group world, odd, even, both, none;
    int rank, size, result, range[1][3] = {{1, check_size - 1, 2}};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_size(world, &size));
    OK(MPI_Group_rank(world, &rank));
    CHECK(size == check_size && rank == check_rank);
    OK(MPI_Group_range_incl(world, check_size > 1, range, &odd));
    OK(MPI_Group_difference(world, odd, &even));
    OK(MPI_Group_union(odd, even, &both));
    OK(MPI_Group_compare(both, world, &result));
    CHECK(result == (check_size > 1 ? MPI_SIMILAR : MPI_IDENT));
    OK(MPI_Group_intersection(odd, even, &none));
    CHECK(none == MPI_GROUP_EMPTY);
    OK(MPI_Group_rank(even, &rank));
    CHECK(rank == (check_rank % 2 ? MPI_UNDEFINED : check_rank / 2));
    int ranks[2] = {0, MPI_PROC_NULL}, translated[2];
    OK(MPI_Group_translate_ranks(even, 2, ranks, world, translated));
    CHECK(translated[0] == 0 && translated[1] == MPI_PROC_NULL);
    if (odd != MPI_GROUP_EMPTY)
        OK(MPI_Group_free(&odd));
    OK(MPI_Group_free(&even));
    OK(MPI_Group_free(&both));
    OK(MPI_Group_free(&world));
    CHECK(world == MPI_GROUP_NULL);
}

static void split(void)
{
    MPI_Comm parity, none, reversed;
    int rank, size, value = check_rank, sum = 0, wanted = 0, result;
    OK(MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &parity));
    OK(MPI_Comm_size(parity, &size));
    OK(MPI_Comm_rank(parity, &rank));
    CHECK(size == (check_size + 1 - check_rank % 2) / 2);
    CHECK(rank == size - 1 - check_rank / 2);
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, parity));
    for (int other = check_rank % 2; other < check_size; other += 2)
        wanted += other;
    CHECK(sum == wanted);
    OK(MPI_Comm_split(MPI_COMM_WORLD, check_rank == 0 ? MPI_UNDEFINED : 7, 0, &none));
    CHECK((none == MPI_COMM_NULL) == (check_rank == 0));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 3, check_size - check_rank, &reversed));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, reversed, &result));
    CHECK(result == (check_size > 1 ? MPI_SIMILAR : MPI_CONGRUENT));
    OK(MPI_Comm_free(&parity));
    OK(MPI_Comm_free(&reversed));
    if (none != MPI_COMM_NULL)
        OK(MPI_Comm_free(&none));
    CHECK(parity == MPI_COMM_NULL);
}

static void create(void)
{
    MPI_Group world, first, last;
    MPI_Comm comm;
    int zero = 0, end = check_size - 1, size;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_excl(world, 1, &zero, &last));
    OK(MPI_Comm_create(MPI_COMM_WORLD, last, &comm));
    CHECK((comm == MPI_COMM_NULL) == (check_rank == 0));
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Comm_size(comm, &size));
        CHECK(size == check_size - 1);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_incl(world, 1, &end, &first));
    if (check_rank == end) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, first, 5, &comm));
        OK(MPI_Comm_size(comm, &size));
        CHECK(size == 1);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&last));
    OK(MPI_Group_free(&world));
}

/* Traffic of a duplicate never meets that of its parent. */
static void duplicate(void)
{
    MPI_Comm copy, later;
    MPI_Request request, receive;
    int result, here = 1, there = 2, next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, copy, &result));
    CHECK(result == MPI_CONGRUENT && copy != MPI_COMM_WORLD);
    int from_copy = 0, from_world = 0;
    OK(MPI_Irecv(&from_copy, 1, MPI_INT, before, 0, copy, &receive));
    OK(MPI_Sendrecv(&here, 1, MPI_INT, next, 0, &from_world, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(from_world == 1);
    OK(MPI_Send(&there, 1, MPI_INT, next, 0, copy));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    CHECK(from_copy == 2);

    /* A nonblocking duplicate waits for nobody: here the first rank waits for the others before they begin theirs. */
    int token = 0;
    if (check_rank == 0) {
        OK(MPI_Comm_idup(copy, &later, &request));
        for (int other = 1; other < check_size; other++)
            OK(MPI_Send(&token, 1, MPI_INT, other, 9, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Comm_idup(copy, &later, &request));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Barrier(later));
    OK(MPI_Comm_compare(copy, later, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_free(&later));
    OK(MPI_Comm_free(&copy));
}

static void shared_and_many(void)
{
    MPI_Comm shared, comm;
    int size;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
    OK(MPI_Comm_size(shared, &size));
    CHECK(size == check_size);
    OK(MPI_Comm_free(&shared));
    for (int turn = 0; turn < 300; turn++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_free(&comm));
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    groups();
    split();
    create();
    duplicate();
    shared_and_many();
    return check_end();
}
