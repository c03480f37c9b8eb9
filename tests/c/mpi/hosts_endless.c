/* Works until somebody is killed. */
#include "check.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (long mine = 1, sum = 0;; mine++) {
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
}
