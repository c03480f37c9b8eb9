/* Nonblocking and split accesses, with every call that completes. FOLDER */
#include "files.h"

static const char *folder;

static MPI_File opened(const char *name)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, name), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    return file;
}

static void nonblocking(void)
{
    enum { N = 8 };
    MPI_File file = opened("nonblocking");
    int out[N], in[N], flag, index, done, indices[N];
    MPI_Request requests[N];
    MPI_Status status, statuses[N];
    for (int i = 0; i < N; i++) {
        out[i] = check_rank * N + i;
        OK(MPI_File_iwrite_at(file, out[i], &out[i], 1, MPI_INT, &requests[i]));
        CHECK(requests[i] != MPI_REQUEST_NULL);
    }
    OK(MPI_Wait(&requests[0], &status));
    CHECK(count_of(&status, MPI_INT) == 1 && requests[0] == MPI_REQUEST_NULL);
    OK(MPI_Test(&requests[1], &flag, &status));
    CHECK(flag && count_of(&status, MPI_INT) == 1);
    OK(MPI_Waitany(N, requests, &index, &status));
    CHECK(index == 2);
    OK(MPI_Testany(N, requests, &index, &flag, &status));
    CHECK(flag && index == 3);
    OK(MPI_Waitsome(2, requests + 4, &done, indices, statuses));
    CHECK(done == 2 && count_of(&statuses[0], MPI_INT) == 1);
    OK(MPI_Request_get_status(requests[6], &flag, &status));
    CHECK(flag && count_of(&status, MPI_INT) == 1);
    OK(MPI_Testall(N, requests, &flag, statuses));
    CHECK(flag);
    OK(MPI_Barrier(MPI_COMM_WORLD));

    int other = (check_rank + 1) % check_size;
    OK(MPI_File_seek(file, other * N, MPI_SEEK_SET));
    memset(in, -1, sizeof in);
    OK(MPI_File_iread(file, in, 3, MPI_INT, &requests[0]));
    OK(MPI_File_iread(file, in + 3, N - 3, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    CHECK(count_of(&statuses[1], MPI_INT) == N - 3);
    for (int i = 0; i < N; i++)
        CHECK(in[i] == other * N + i);
    OK(MPI_File_iread_at(file, check_size * N - 1, in, 2, MPI_INT, &requests[0]));
    OK(MPI_Wait(&requests[0], &status));
    CHECK(count_of(&status, MPI_INT) == 1);
    OK(MPI_File_iread_at(file, 0, in, 1, MPI_INT, &requests[0]));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_File_close(&file));
}

/* A nonblocking access of all waits for nobody: here each rank begins it before or after a message. */
static void nobody_waits(void)
{
    MPI_File file = opened("nobody");
    MPI_Request request;
    MPI_Status status;
    int value = 7 * check_rank, token = 0;
    if (check_rank % 2 == 0) {
        OK(MPI_File_iwrite_at_all(file, check_rank, &value, 1, MPI_INT, &request));
        if (check_rank + 1 < check_size)
            OK(MPI_Send(&token, 1, MPI_INT, check_rank + 1, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&token, 1, MPI_INT, check_rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_File_iwrite_at_all(file, check_rank, &value, 1, MPI_INT, &request));
    }
    OK(MPI_Wait(&request, &status));
    CHECK(count_of(&status, MPI_INT) == 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int all[64];
    OK(MPI_File_iread_all(file, all, check_size, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    for (int i = 0; i < check_size; i++)
        CHECK(all[i] == 7 * i);
    OK(MPI_File_close(&file));
}

static void split(void)
{
    MPI_File file = opened("split");
    MPI_Status status;
    int out[2] = {check_rank, -check_rank}, in[2];
    OK(MPI_File_write_at_all_begin(file, 2 * check_rank, out, 2, MPI_INT));
    /* What is begun is ended before anything else of all begins. */
    FAILS(MPI_File_write_all_begin(file, out, 2, MPI_INT), MPI_ERR_OTHER);
    FAILS(MPI_File_write_all_end(file, out, &status), MPI_ERR_OTHER);
    FAILS(MPI_File_write_at_all_end(file, in, &status), MPI_ERR_OTHER);
    OK(MPI_File_write_at_all_end(file, out, &status));
    CHECK(count_of(&status, MPI_INT) == 2);
    OK(MPI_File_sync(file));
    OK(MPI_File_seek(file, 2 * ((check_rank + 1) % check_size), MPI_SEEK_SET));
    OK(MPI_File_read_all_begin(file, in, 2, MPI_INT));
    OK(MPI_File_read_all_end(file, in, &status));
    CHECK(count_of(&status, MPI_INT) == 2 && in[0] == (check_rank + 1) % check_size && in[1] == -in[0]);
    OK(MPI_File_seek(file, 2 * check_rank, MPI_SEEK_SET));
    OK(MPI_File_write_all_begin_c(file, in, 2, MPI_INT));
    OK(MPI_File_write_all_end(file, in, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all_begin(file, 2 * check_rank, out, 2, MPI_INT));
    OK(MPI_File_read_at_all_end(file, out, MPI_STATUS_IGNORE));
    CHECK(out[0] == in[0]);
    FAILS(MPI_File_read_at_all_end(file, out, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    folder = argv[1];
    nonblocking();
    nobody_waits();
    split();
    return check_end();
}
