/* What C finds of an attribute that Fortran has set: a pointer to the integer (MPI 5.0, section 19.3.7). */
#include <mpi.h>

int seen_from_c(int number, int key, MPI_Aint expected) {
    MPI_Comm comm = MPI_Comm_fromint(number);
    MPI_Aint *value;
    int flag;
    MPI_Comm_get_attr(comm, key, &value, &flag);
    if (!flag || *value != expected) return 1;
    return MPI_Comm_set_attr(comm, key, (void *)4096);
}
