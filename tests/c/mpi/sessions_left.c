/* A first session is ended, and a second one is not: the rank has not taken its leave. */
#include "check.h"

int main(void)
{
    MPI_Session session;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    return 0;
}
