/* The small library of tests/native, loaded by hand so that nothing it exports is seen by anybody else. */
#ifndef NATIVE_H
#define NATIVE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { MPI = 0, NATIVE = 1, PVM = 2 };

static struct {
    int (*open)(int interface, int threads);
    const char *(*error)(void);
    int (*rank)(void), (*size)(void);
    long (*post)(int to, int tag, const void *data, unsigned long length);
    int (*is_sent)(long request), (*sent)(long request);
    int (*send)(int to, int tag, const void *data, unsigned long length);
    long (*receive)(int from, int tag, void *buffer, unsigned long room);
    void (*poll)(void), (*close)(void);
    unsigned long (*counter)(const char *name);
} native;

static void *found(void *library, const char *name)
{
    void *at = dlsym(library, name);
    if (!at) {
        fprintf(stderr, "%s\n", dlerror());
        exit(9);
    }
    return at;
}

/* From the file that the environment names. */
static inline void native_load(void)
{
    void *library = dlopen(getenv("NATIVE"), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(9);
    }
#define FIND(name) *(void **)&native.name = found(library, "native_" #name)
    FIND(open), FIND(error), FIND(rank), FIND(size), FIND(post), FIND(is_sent), FIND(sent), FIND(send);
    FIND(receive), FIND(poll), FIND(close), FIND(counter);
#undef FIND
}

#endif
