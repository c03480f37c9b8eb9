/* Two ranks on each host, in their order: who shares memory with whom, and messages between all of them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(holds, ...)                                                                                              \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, rank);                                             \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static int rank, size;

/* Everybody sends everybody else so many bytes at once. */
static void all_to_all(int bytes)
{
    unsigned char *out = malloc((size_t)bytes * size), *in = malloc((size_t)bytes * size);
    MPI_Request *requests = malloc(2 * size * sizeof *requests);
    CHECK(out && in && requests, "no memory");
    for (int peer = 0; peer < size; peer++) {
        for (int i = 0; i < bytes; i++) out[(size_t)peer * bytes + i] = (unsigned char)(i * 7 + rank * 31 + peer * 57);
        MPI_Irecv(in + (size_t)peer * bytes, bytes, MPI_BYTE, peer, bytes % 1000, MPI_COMM_WORLD, &requests[peer]);
    }
    for (int peer = 0; peer < size; peer++)
        MPI_Isend(out + (size_t)peer * bytes, bytes, MPI_BYTE, peer, bytes % 1000, MPI_COMM_WORLD,
                  &requests[size + peer]);
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < size; peer++)
        for (int i = 0; i < bytes; i++)
            CHECK(in[(size_t)peer * bytes + i] == (unsigned char)(i * 7 + peer * 31 + rank * 57),
                  "byte %d of %d from %d", i, bytes, peer);
    free(out), free(in), free(requests);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 1, 8, 48, 49, 5000, 65536, 70000, 1000000};
    MPI_Comm near;
    int near_rank, near_size, *global, flag, sum, lowest;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    MPI_Comm_rank(near, &near_rank);
    MPI_Comm_size(near, &near_size);
    CHECK(near_size == 2 && near_rank == rank % 2, "is %d of %d on its host", near_rank, near_size);
    lowest = rank;
    MPI_Bcast(&lowest, 1, MPI_INT, 0, near);
    CHECK(lowest == rank / 2 * 2, "the first rank of the host is %d", lowest);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &global, &flag);
    CHECK(flag && !*global, "hosts have clocks of their own");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        all_to_all(lengths[i]);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size * (size - 1) / 2, "the sum is %d", sum);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, near);
        CHECK(sum == lowest * 2 + 1, "the sum of the host is %d", sum);
    }
    MPI_Comm_free(&near);
    MPI_Finalize();
    return 0;
}
