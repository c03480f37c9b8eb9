/* Both interfaces are loaded by hand, so that what they export is seen by nobody else. */
#include <mpi.h>
#include "native.h"

enum { TURNS = 100 };

int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int rank, size, got;
    (void)argc;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 9;
    }
    int (*init)(int *, char ***), (*rank_of)(MPI_Comm, int *), (*size_of)(MPI_Comm, int *), (*end)(void);
    int (*exchange)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
    *(void **)&init = found(library, "MPI_Init");
    *(void **)&rank_of = found(library, "MPI_Comm_rank");
    *(void **)&size_of = found(library, "MPI_Comm_size");
    *(void **)&exchange = found(library, "MPI_Sendrecv");
    *(void **)&end = found(library, "MPI_Finalize");
    native_load();
    if (init(NULL, NULL) != 0 || native.open(NATIVE, 0) != 0)
        return 8;
    rank_of(MPI_COMM_WORLD, &rank);
    size_of(MPI_COMM_WORLD, &size);
    if (native.rank() != rank || native.size() != size || size < 2)
        return 7;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int turn = 0; turn < TURNS; turn++) {
        exchange(&rank, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (got != from || native.send(to, turn, &rank, sizeof rank) != 0)
            return 6;
        if (native.receive(from, turn, &got, sizeof got) != sizeof got || got != from)
            return 5;
    }
    native.close();
    end();
    if (rank == 0)
        printf("ok\n");
    return 0;
}
