/* What the point-to-point programs share: a check that says where and what, and who we are. */
#ifndef POINT_H
#define POINT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* Ends the job with a line if the condition does not hold. */
#define CHECK(condition, ...)                                                        \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: rank %d: %s: ", __FILE__, __LINE__, rank, #condition); \
            fprintf(stderr, __VA_ARGS__);                                            \
            fputc('\n', stderr);                                                     \
            MPI_Abort(MPI_COMM_WORLD, 1);                                            \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

/* The class of an error code. */
static inline int class_of(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

#define CHECK_CLASS(call, wanted)                                                    \
    do {                                                                             \
        int class_seen = class_of(call);                                             \
        CHECK(class_seen == (wanted), "class %d, wanted %d", class_seen, (wanted));  \
    } while (0)

/* Whether the library is another one, of which less is asked where the standard leaves room or it is known to be wrong. */
static inline int foreign(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return strstr(version, "Weft") == NULL;
}

/* A value that tells apart sender, receiver and place. */
static inline int mark(int from, int to, int place)
{
    return (from * 64 + to) * 65536 + place;
}

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* An empty status, as calls give it that waited for nothing. */
static inline int is_empty(const MPI_Status *status)
{
    int count = -1, cancelled = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Test_cancelled(status, &cancelled);
    return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled;
}

#endif
