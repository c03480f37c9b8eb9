/* Ranks end with a session open after MPI_Finalize: they have taken their leave, and the others go on. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <sched.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Group world, rest;
    MPI_Comm comm;
    int first = 0, pid = getpid(), rank, sum;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &check_size));
    OK(MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_excl(world, 1, &first, &rest));
    OK(MPI_Finalize());
    if (check_rank == 0) {
        puts("ok");
        return 0;
    }
    /* The first one is gone when its process is. */
    while (kill(pid, 0) == 0)
        sched_yield();
    CHECK(errno == ESRCH);
    OK(MPI_Comm_create_from_group(rest, "rest", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == (check_size - 1) * (check_size - 2) / 2);
    return 0;
}
