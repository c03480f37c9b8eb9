/* What the C tests share: a check that names itself, and the end of a test. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_rank, check_size;

#define CHECK(condition)                                                                                             \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            fprintf(stderr, "%s:%d: rank %d of %d: %s\n", __FILE__, __LINE__, check_rank, check_size, #condition);   \
            exit(99);                                                                                                \
        }                                                                                                            \
    } while (0)

#define OK(call) CHECK((call) == MPI_SUCCESS)

static inline void check_begin(int *argc, char ***argv)
{
    OK(MPI_Init(argc, argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &check_size));
}

/* The last line of rank 0 says that the test ran to its end. */
static inline int check_end(void)
{
    OK(MPI_Finalize());
    if (check_rank == 0)
        puts("ok");
    return 0;
}

#endif
