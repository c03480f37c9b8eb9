/* What the collective tests share: checks that say what is wrong, and each operation in its forms. */
#ifndef COLL_H
#define COLL_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static const char *doing = "?";

/* How an operation is called. */
enum { BLOCKING, NONBLOCKING, PERSISTENT, LARGE, FORMS };
static int form;
/* Starts of a persistent operation; more than one only where the result may be computed twice. */
static int starts = 1;

#define FAIL(...)                                                                                      \
    do {                                                                                               \
        printf("rank %d of %d, %s, form %d: ", rank, size, doing, form);                               \
        printf(__VA_ARGS__);                                                                           \
        printf(" (%s:%d)\n", __FILE__, __LINE__);                                                      \
        fflush(stdout);                                                                                \
        MPI_Abort(MPI_COMM_WORLD, 1);                                                                  \
    } while (0)

#define CHECK(what, ...)                                                                               \
    do {                                                                                               \
        if (!(what)) FAIL(__VA_ARGS__);                                                                \
    } while (0)

#define OK(call)                                                                                       \
    do {                                                                                               \
        int code_ = (call);                                                                            \
        CHECK(code_ == MPI_SUCCESS, "%s answers %d", #call, code_);                                    \
    } while (0)

static inline void finish(MPI_Request *request)
{
    int flag = 0;
    MPI_Status status;
    /* Sometimes by polling, sometimes by waiting. */
    for (int i = 0; i < 3 && !flag; i++) OK(MPI_Test(request, &flag, &status));
    if (!flag) OK(MPI_Wait(request, &status));
}

static inline void start_and_free(MPI_Request *request)
{
    for (int i = 0; i < starts; i++) {
        OK(MPI_Start(request));
        finish(request);
        CHECK(*request != MPI_REQUEST_NULL, "a persistent request became null");
    }
    OK(MPI_Request_free(request));
}

/* MPI_Bcast(...), MPI_Ibcast(...), MPI_Bcast_init(...) by the current form. LARGE falls back to blocking. */
#define COLL(Name, name, comm, ...)                                                                    \
    do {                                                                                               \
        MPI_Request request_ = MPI_REQUEST_NULL;                                                       \
        doing = "MPI_" #Name;                                                                          \
        switch (form) {                                                                                \
        case NONBLOCKING:                                                                              \
            OK(MPI_I##name(__VA_ARGS__, comm, &request_));                                             \
            finish(&request_);                                                                         \
            CHECK(request_ == MPI_REQUEST_NULL, "the request is not null at the end");                 \
            break;                                                                                     \
        case PERSISTENT:                                                                               \
            OK(MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request_));                        \
            start_and_free(&request_);                                                                 \
            break;                                                                                     \
        default: OK(MPI_##Name(__VA_ARGS__, comm));                                                    \
        }                                                                                              \
    } while (0)

/* As COLL, where the twin for large counts takes the same arguments. */
#define COLL_C(Name, name, comm, ...)                                                                  \
    do {                                                                                               \
        if (form == LARGE) {                                                                           \
            doing = "MPI_" #Name "_c";                                                                 \
            OK(MPI_##Name##_c(__VA_ARGS__, comm));                                                     \
        } else {                                                                                       \
            COLL(Name, name, comm, __VA_ARGS__);                                                       \
        }                                                                                              \
    } while (0)

/* Element i of what a rank contributes. */
static inline int value(int r, int i) { return r * 100003 + i * 7 + 1; }

static inline int *ints(int count)
{
    int *array = malloc(((size_t)count + 1) * sizeof(int));
    for (int i = 0; i <= count; i++) array[i] = -77;
    return array;
}

static inline void fill(int *array, int r, int count)
{
    for (int i = 0; i < count; i++) array[i] = value(r, i);
}

static inline void expect(const int *array, int r, int first, int count)
{
    for (int i = 0; i < count; i++) {
        CHECK(array[i] == value(r, first + i), "element %d of rank %d's is %d, not %d", first + i, r, array[i],
              value(r, first + i));
    }
}

static inline void untouched(const int *array, int count)
{
    for (int i = 0; i < count; i++) CHECK(array[i] == -77, "element %d is %d, but nothing belongs there", i, array[i]);
}

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

#endif
