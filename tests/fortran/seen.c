/* What C finds of Fortran: handles, statuses, and attributes (MPI 5.0, sections 19.3.4, 19.3.5 and 19.3.7). */
#include <mpi.h>

int seen_from_c(MPI_Fint number, int key, MPI_Aint expected);
int status_seen_from_c(MPI_F08_status *theirs, int tag);
int ignored_in_c(const MPI_F08_status *one, const MPI_F08_status *many);

/* An attribute is a pointer to the integer. */
int seen_from_c(MPI_Fint number, int key, MPI_Aint expected) {
    MPI_Comm comm = MPI_Comm_f2c(number);
    MPI_Aint *value;
    int flag;
    MPI_Comm_get_attr(comm, key, &value, &flag);
    if (MPI_Comm_c2f(comm) != number || !flag || *value != expected) return 1;
    return MPI_Comm_set_attr(comm, key, (void *)4096);
}

/* A status goes through all its forms, and one more is added to the tag in each. */
int status_seen_from_c(MPI_F08_status *theirs, int tag) {
    MPI_Status ours;
    MPI_Fint integers[MPI_F_STATUS_SIZE];
    if (theirs->MPI_TAG != tag || MPI_Status_f082c(theirs, &ours) != MPI_SUCCESS || ours.MPI_TAG != tag) return 1;
    ours.MPI_TAG++;
    if (PMPI_Status_c2f(&ours, integers) != MPI_SUCCESS || integers[MPI_F_TAG] != tag + 1) return 2;
    integers[MPI_F_TAG]++;
    if (MPI_Status_f2f08(integers, theirs) != MPI_SUCCESS || theirs->MPI_TAG != tag + 2) return 3;
    theirs->MPI_TAG++;
    if (MPI_Status_f082f(theirs, integers) != MPI_SUCCESS || MPI_Status_f2c(integers, &ours) != MPI_SUCCESS) return 4;
    ours.MPI_TAG++;
    return MPI_Status_c2f08(&ours, theirs) != MPI_SUCCESS;
}

/* None is the same for both, and cannot be converted. */
int ignored_in_c(const MPI_F08_status *one, const MPI_F08_status *many) {
    MPI_Status ours;
    MPI_Fint integers[MPI_F_STATUS_SIZE];
    if (one != MPI_F08_STATUS_IGNORE || many != MPI_F08_STATUSES_IGNORE) return 1;
    if ((const void *)MPI_F_STATUS_IGNORE == one || MPI_F_STATUS_IGNORE == MPI_F_STATUSES_IGNORE) return 2;
    if (MPI_Status_f082c(one, &ours) != MPI_ERR_ARG) return 3;
    if (MPI_Status_f2c(MPI_F_STATUS_IGNORE, &ours) != MPI_ERR_ARG) return 4;
    return MPI_Status_c2f(MPI_STATUS_IGNORE, integers) != MPI_ERR_ARG;
}
