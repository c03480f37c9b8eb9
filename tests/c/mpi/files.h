/* What the tests of files share. */
#ifndef FILES_H
#define FILES_H

#include "check.h"

/* The byte that stands at an offset of a file that was written whole. */
static inline unsigned char byte_at(long long offset)
{
    unsigned long long mixed = (unsigned long long)offset * 0x9e3779b97f4a7c15ull;
    return (unsigned char)(mixed >> 56);
}

/* A path in the folder of the test, the same in all ranks. */
static inline const char *path_in(const char *folder, const char *name)
{
    static char paths[16][512];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

/* The call must fail with this class. */
#define FAILS(call, class)                                                                                           \
    do {                                                                                                             \
        int code_ = (call);                                                                                          \
        if (code_ == MPI_SUCCESS || class_of(code_) != (class)) {                                                    \
            char text_[MPI_MAX_ERROR_STRING];                                                                        \
            int length_;                                                                                             \
            MPI_Error_string(code_, text_, &length_);                                                                \
            fprintf(stderr, "%s:%d: rank %d of %d: %s: not %s but %s\n", __FILE__, __LINE__, check_rank, check_size, \
                    #call, #class, text_);                                                                           \
            exit(99);                                                                                                \
        }                                                                                                            \
    } while (0)

static inline MPI_Count count_of(MPI_Status *status, MPI_Datatype type)
{
    MPI_Count count;
    OK(MPI_Get_count_c(status, type, &count));
    return count;
}

#endif
