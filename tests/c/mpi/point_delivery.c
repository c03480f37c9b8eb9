/* With WEFT_PROGRESS=thread messages are delivered while a rank computes: rank 0 calls nothing of MPI until the others'
 * synchronous and long sends to it are complete, of which they tell by other ways. argv[1] is a folder. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 3000000, MOST = 8 };

static void name(char *path, size_t size, const char *folder, int rank, int round)
{
    snprintf(path, size, "%s/%d.%d", folder, rank, round);
}

static void expect(int good, const char *what)
{
    if (!good) {
        printf("%s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void round_of(const char *folder, int round)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char path[4096];
    static char data[MOST][LONG];
    if (rank != 0) {
        memset(data[0], rank + round, LONG);
        MPI_Barrier(MPI_COMM_WORLD);
        int small = rank;
        MPI_Ssend(&small, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Ssend(data[0], LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        name(path, sizeof path, folder, rank, round);
        FILE *file = fopen(path, "w");
        expect(file && fclose(file) == 0, "no file can be made");
    } else {
        MPI_Request requests[2 * MOST];
        int small[MOST], count = 0;
        for (int from = 1; from < size; from++) {
            MPI_Irecv(&small[from], 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[count++]);
            MPI_Irecv(data[from], LONG, MPI_BYTE, from, 2, MPI_COMM_WORLD, &requests[count++]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int from = 1; from < size; from++) {
            name(path, sizeof path, folder, from, round);
            while (access(path, F_OK) != 0)
                ;
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        for (int from = 1; from < size; from++) {
            expect(small[from] == from, "another message");
            for (int at = 0; at < LONG; at++)
                expect(data[from][at] == (char)(from + round), "other bytes");
        }
    }
}

int main(int argc, char **argv)
{
    expect(argc == 2, "a folder is needed");
    int provided;
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_finalize(&session);
    /* The process has left the job, and comes back. */
    MPI_Init_thread(0, 0, MPI_THREAD_FUNNELED, &provided);
    for (int round = 0; round < 3; round++)
        round_of(argv[1], round);
    MPI_Finalize();
    return 0;
}
