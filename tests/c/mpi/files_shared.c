/* The shared file pointer: every entry once, in the order of the ranks where that is asked for. FOLDER */
#include "files.h"
#include <unistd.h>

static const char *folder;

static MPI_File opened(const char *name, int mode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, name), mode, MPI_INFO_NULL, &file));
    return file;
}

static void everybody_s_entries_are_there_once(void)
{
    enum { EACH = 100 };
    MPI_File file = opened("log", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Offset position;
    OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < EACH; i++) {
        int value = check_rank * EACH + i;
        if (i % 3) {
            OK(MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        } else {
            MPI_Request request;
            OK(MPI_File_iwrite_shared(file, &value, 1, MPI_INT, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_position_shared(file, &position));
    CHECK(position == EACH * check_size);
    OK(MPI_File_seek_shared(file, -(EACH * check_size), MPI_SEEK_END));
    /* Read back by turns: together the ranks see each entry once. */
    int *seen = calloc((size_t)(EACH * check_size), sizeof(int));
    for (int i = 0; i < EACH; i++) {
        int value;
        MPI_Status status;
        OK(MPI_File_read_shared(file, &value, 1, MPI_INT, &status));
        CHECK(count_of(&status, MPI_INT) == 1 && value >= 0 && value < EACH * check_size);
        seen[value]++;
    }
    OK(MPI_Allreduce(MPI_IN_PLACE, seen, EACH * check_size, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < EACH * check_size; i++)
        CHECK(seen[i] == 1);
    free(seen);
    OK(MPI_File_close(&file));
}

static void ordered(void)
{
    MPI_File file = opened("ordered", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Status status;
    int values[64], next = 0;
    for (int round = 0; round < 5; round++) {
        int total = 0, before = 0;
        for (int rank = 0; rank < check_size; rank++) {
            before += rank < check_rank ? rank + round : 0;
            total += rank + round;
        }
        int count = check_rank + round;
        for (int i = 0; i < count; i++)
            values[i] = next + before + i;
        if (round % 2) {
            OK(MPI_File_write_ordered_begin(file, values, count, MPI_INT));
            OK(MPI_File_write_ordered_end(file, values, &status));
        } else {
            OK(MPI_File_write_ordered(file, values, count, MPI_INT, &status));
        }
        CHECK(count_of(&status, MPI_INT) == count);
        next += total;
    }
    MPI_Offset position;
    OK(MPI_File_get_position_shared(file, &position));
    CHECK(position == next * (MPI_Offset)sizeof(int));
    OK(MPI_File_sync(file));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    int block = next / check_size;
    OK(MPI_File_read_ordered(file, values, block, MPI_INT, &status));
    for (int i = 0; i < block; i++)
        CHECK(values[i] == check_rank * block + i);
    OK(MPI_File_seek_shared(file, (MPI_Offset)sizeof(int), MPI_SEEK_SET));
    OK(MPI_File_seek_shared(file, (MPI_Offset)sizeof(int), MPI_SEEK_CUR));
    OK(MPI_File_read_ordered_begin(file, values, 1, MPI_INT));
    OK(MPI_File_read_ordered_end(file, values, &status));
    CHECK(values[0] == 2 + check_rank);
    /* Then one by itself behind it. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank == check_size - 1) {
        OK(MPI_File_read_shared(file, values, 1, MPI_INT, &status));
        CHECK(values[0] == 2 + check_size);
    }
    OK(MPI_File_close(&file));
}

/* A file that is only read one after the other, such as a tape. */
static void sequential(void)
{
    if (check_rank == 0) {
        FILE *plain = fopen(path_in(folder, "tape"), "w");
        for (int i = 0; i < 100; i++)
            fwrite(&i, sizeof i, 1, plain);
        fclose(plain);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_File file = opened("tape", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    int value;
    OK(MPI_File_read_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(value == check_rank);
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(value == check_size + check_rank);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_read_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_File_close(&file));
}

/* Nothing but the files stands in the folder while a pointer is shared: no companion, no lock. */
static void nothing_beside(void)
{
    MPI_File file = opened("alone", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    int value = 1;
    OK(MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    CHECK(access(path_in(folder, "alone"), F_OK) != 0);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    folder = argv[1];
    everybody_s_entries_are_there_once();
    ordered();
    sequential();
    nothing_beside();
    return check_end();
}
