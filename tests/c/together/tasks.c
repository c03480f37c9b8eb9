/* MPI, PVM and sockets by turns, with messages of many lengths: every byte is looked at. Each rank is a task. Rank 0 has a
   connection to each other rank; the two others go round in a ring. */
#include "wires.h"
#include <pvm3.h>

enum { LONGEST = 400000, TURNS = 60 };

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 48, 1000, 5000, 70000, LONGEST};
    static unsigned char a[LONGEST], b[LONGEST], c[LONGEST];
    MPI_Request requests[2];
    int tids[MOST], *siblings, me = pvm_mytid(), seen = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(me > 0 && pvm_parent() == PvmNoParent && pvm_siblings(&siblings) == size, "siblings");
    MPI_Allgather(&me, 1, MPI_INT, tids, 1, MPI_INT, MPI_COMM_WORLD);
    for (int at = 0; at < size * size; at++)
        seen += siblings[at / size] == tids[at % size];
    check(seen == size, "each rank is a sibling");
    connect_all(argv[1]);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int turn = 0; turn < TURNS; turn++) {
        int length = lengths[turn % 6], bytes, tag, tid;
        fill(a, length, rank, turn);
        MPI_Irecv(b, length, MPI_BYTE, from, turn, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(a, length, MPI_BYTE, to, turn, MPI_COMM_WORLD, &requests[1]);
        pvm_initsend(turn % 2 ? PvmDataRaw : PvmDataDefault);
        pvm_pkbyte((char *)a, length, 1);
        check(pvm_send(tids[to], turn) == 0, "a send of PVM");
        int buffer = pvm_recv(-1, turn);
        check(pvm_bufinfo(buffer, &bytes, &tag, &tid) == 0 && tid == tids[from] && tag == turn, "a message of PVM");
        check(pvm_upkbyte((char *)c, length, 1) == 0, "its bytes");
        check_bytes(c, length, from, turn, "a message of PVM");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_bytes(b, length, from, turn, "a message of MPI");
        by_sockets(c, length, turn);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    check(pvm_exit() == 0, "the end of PVM");
    MPI_Finalize();
    if (rank == 0)
        printf("ok\n");
    return 0;
}
