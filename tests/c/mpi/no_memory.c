/* Shared memory cannot grow any more: by the kernel's refusal (an errno), or since the program has closed all descriptors
 * that it does not know. Arguments: ENOSPC, ENOMEM or close; an operation; "returns" where its error is to be returned, and
 * each rank then says its class. */
#define _GNU_SOURCE
#include "point.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LENGTH 20000
#define LAST 255

static char sent[LENGTH], received[LENGTH];

static void refuse(int code)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_POPULATE_WRITE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "%s", strerror(errno));
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "%s", strerror(errno));
}

/* Files of the program's own have the numbers afterwards; the first of them. */
static int close_all(void)
{
    int first = -1;
    for (int fd = 3; fd <= LAST; fd++)
        close(fd);
    for (int fd = 3; fd <= LAST; fd++) {
        int own = open("/tmp", O_TMPFILE | O_RDWR, 0600);
        CHECK(own >= 0, "%s", strerror(errno));
        first = first < 0 ? own : first;
    }
    return first;
}

static int wait_both(MPI_Request *requests)
{
    MPI_Status statuses[2];
    int code = MPI_Waitall(2, requests, statuses);
    if (class_of(code) != MPI_ERR_IN_STATUS)
        return code;
    /* The other one may have gone well, or still be under way. */
    int first = statuses[0].MPI_ERROR;
    return first != MPI_SUCCESS && first != MPI_ERR_PENDING ? first : statuses[1].MPI_ERROR;
}

static int operate(const char *what)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Comm world = MPI_COMM_WORLD, other;
    MPI_Request requests[2];
    if (strcmp(what, "sendrecv") == 0)
        return MPI_Sendrecv(sent, 8, MPI_BYTE, next, 1, received, 8, MPI_BYTE, before, 1, world, MPI_STATUS_IGNORE);
    if (strcmp(what, "long") == 0)
        return MPI_Sendrecv(sent, LENGTH, MPI_BYTE, next, 1, received, LENGTH, MPI_BYTE, before, 1, world,
                            MPI_STATUS_IGNORE);
    if (strcmp(what, "barrier") == 0)
        return MPI_Barrier(world);
    if (strcmp(what, "dup") == 0)
        return MPI_Comm_dup(world, &other);
    MPI_Irecv(received, 8, MPI_BYTE, before, 1, world, &requests[0]);
    MPI_Isend(sent, 8, MPI_BYTE, next, 1, world, &requests[1]);
    if (strcmp(what, "waitall") == 0)
        return wait_both(requests);
    CHECK(strcmp(what, "isend") == 0, "%s is no operation", what);
    int code = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    return code != MPI_SUCCESS ? code : MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int closes = strcmp(argv[1], "close") == 0, first = -1;
    if (!closes)
        refuse(strcmp(argv[1], "ENOSPC") == 0 ? ENOSPC : ENOMEM);
    begin(&argc, &argv);
    if (closes)
        first = close_all();
    if (argc > 3)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = operate(argv[2]);
    if (code != MPI_SUCCESS) {
        printf("%d\n", class_of(code));
        fflush(stdout);
        _exit(0);
    }
    if (closes)
        CHECK(operate("long") == MPI_SUCCESS, "a long message");
    MPI_Finalize();
    for (int fd = first; closes && fd <= LAST; fd++) {
        struct stat file;
        CHECK(fstat(fd, &file) == 0, "the library has closed descriptor %d", fd);
        CHECK(file.st_size == 0, "the library has written to descriptor %d", fd);
    }
    return 0;
}
