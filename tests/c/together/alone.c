/* What is none of the job's interfaces: what a rank executes or forks, and a process in which another version is open. */
#define _GNU_SOURCE
#include "check.h"
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Alone in a job of one, in both interfaces. */
static int is_alone(void)
{
    int size = 0;
    if (native.open(NATIVE, 0) != 0 || native.size() != 1)
        return 0;
    native.close();
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Finalize();
    return size == 1;
}

static void expect_end(pid_t child, const char *what)
{
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, what);
}

/* As a library of another version would leave it. */
static void publish_other(void)
{
    struct {
        char magic[8];
        uint32_t version, bytes, segment, process;
        char weft[40];
    } head = {"weft-pro", 99, 8192, 7, 0, "9.8.7"};
    head.process = (uint32_t)getpid();
    memcpy(head.magic, "weft-pro", 8);
    int file = memfd_create("weft-process", 0);
    if (file < 0 || write(file, &head, sizeof head) != sizeof head || ftruncate(file, 8192) != 0)
        exit(7);
    if (mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) == MAP_FAILED)
        exit(7);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int rank;

    native_load();
    if (strcmp(how, "child") == 0)
        return is_alone() ? 0 : 5;
    if (strcmp(how, "other") == 0) {
        publish_other();
        if (native.open(NATIVE, 0) == 0)
            return 6;
        fprintf(stderr, "%s\n", native.error());
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pid_t child = fork();
    if (child == 0)
        _exit(native.open(NATIVE, 0) == 0 && native.size() == 1 ? 0 : 4);
    expect_end(child, "a forked copy");
    check(native.open(NATIVE, 0) == 0, native.error());
    child = fork();
    if (child == 0) {
        execl(argv[0], argv[0], "child", NULL);
        _exit(3);
    }
    expect_end(child, "what a rank executes");
    check(native.open(NATIVE, 0) != 0, "one of each");
    if (rank == 0)
        fprintf(stderr, "%s\n", native.error());
    native.close();
    MPI_Finalize();
    return 0;
}
