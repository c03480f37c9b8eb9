/* Views: holes, displacements, pointers, sizes, what calls answer about them. FOLDER */
#include "files.h"

static const char *folder;

/* Ranks write ints by turns through a view with holes; everybody reads all through another one. */
static void turns(void)
{
    enum { EACH = 50 };
    MPI_File file;
    MPI_Datatype type, resized;
    MPI_Status status;
    int mine[EACH];
    OK(MPI_Type_contiguous(1, MPI_INT, &type));
    OK(MPI_Type_create_resized(type, 0, (MPI_Aint)(check_size * sizeof(int)), &resized));
    OK(MPI_Type_commit(&resized));
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "turns"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 16 + check_rank * (MPI_Offset)sizeof(int), MPI_INT, resized, "native", MPI_INFO_NULL));
    for (int i = 0; i < EACH; i++)
        mine[i] = i * check_size + check_rank;
    OK(MPI_File_write(file, mine, 20, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 20);
    MPI_Offset position, bytes;
    OK(MPI_File_get_position(file, &position));
    CHECK(position == 20);
    OK(MPI_File_get_byte_offset(file, position, &bytes));
    CHECK(bytes == 16 + (20 * check_size + check_rank) * (MPI_Offset)sizeof(int));
    OK(MPI_File_write(file, mine + 20, EACH - 20, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));

    OK(MPI_File_seek(file, -5, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &position));
    CHECK(position == EACH - 5);
    OK(MPI_File_seek(file, -3, MPI_SEEK_CUR));
    int last[20];
    memset(last, -1, sizeof last);
    OK(MPI_File_read(file, last, 20, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 8);
    for (int i = 0; i < 8; i++)
        CHECK(last[i] == (EACH - 8 + i) * check_size + check_rank);
    CHECK(last[8] == -1);

    OK(MPI_File_set_view(file, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position(file, &position));
    CHECK(position == 0);
    int *all = malloc(EACH * (size_t)check_size * sizeof(int));
    OK(MPI_File_read(file, all, EACH * check_size, MPI_INT, &status));
    for (int i = 0; i < EACH * check_size; i++)
        CHECK(all[i] == i);
    free(all);
    MPI_Offset size;
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 16 + (MPI_Offset)(EACH * check_size * sizeof(int)));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&resized));
}

/* The view is kept although its types are freed, and told as it was set. */
static void told(void)
{
    MPI_File file;
    MPI_Datatype vector, etype, filetype;
    MPI_Offset displacement;
    MPI_Aint extent;
    char name[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "told"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_get_view(file, &displacement, &etype, &filetype, name));
    CHECK(displacement == 0 && etype == MPI_BYTE && filetype == MPI_BYTE && strcmp(name, "native") == 0);
    OK(MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &vector));
    OK(MPI_Type_commit(&vector));
    OK(MPI_File_set_view(file, 24, MPI_DOUBLE, vector, "internal", MPI_INFO_NULL));
    OK(MPI_Type_free(&vector));
    OK(MPI_File_get_view(file, &displacement, &etype, &filetype, name));
    CHECK(displacement == 24 && etype == MPI_DOUBLE && strcmp(name, "internal") == 0);
    int size;
    OK(MPI_Type_size(filetype, &size));
    CHECK(size == 24);
    OK(MPI_File_get_type_extent(file, filetype, &extent));
    CHECK(extent == 40);
    OK(MPI_Type_free(&filetype));
    double out[4] = {check_rank + 1., 2, 3, 4}, in[4] = {0};
    MPI_Status status;
    if (check_rank == 0)
        OK(MPI_File_write_at(file, 1, out, 4, MPI_DOUBLE, &status));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_read_at(file, 2, in, 4, MPI_DOUBLE, &status));
    CHECK(count_of(&status, MPI_DOUBLE) == 3 && in[0] == 2 && in[2] == 4);
    MPI_Group group;
    int members, mode;
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Group_size(group, &members));
    CHECK(members == check_size);
    OK(MPI_Group_free(&group));
    OK(MPI_File_get_amode(file, &mode));
    CHECK(mode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
    OK(MPI_File_close(&file));
}

/* Derived types in memory and in the file at once, and accesses of nothing. */
static void memory(void)
{
    MPI_File file;
    MPI_Datatype strided, column;
    MPI_Status status;
    int out[24], in[24];
    char name[32];
    snprintf(name, sizeof name, "memory of %d", check_rank);
    OK(MPI_Type_vector(6, 1, 4, MPI_INT, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_Type_vector(3, 2, 3, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_File_open(MPI_COMM_SELF, path_in(folder, name),
                     MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    for (int i = 0; i < 24; i++)
        out[i] = 100 + i, in[i] = -1;
    OK(MPI_File_set_view(file, 4, MPI_INT, column, "native", MPI_INFO_NULL));
    if (check_rank == 0) {
        OK(MPI_File_write_at(file, 0, out, 1, strided, &status));
        CHECK(count_of(&status, strided) == 1 && count_of(&status, MPI_INT) == 6);
        OK(MPI_File_read_at(file, 1, in + 1, 1, strided, &status));
        CHECK(count_of(&status, strided) == MPI_UNDEFINED && count_of(&status, MPI_INT) == 5);
        for (int i = 0; i < 5; i++)
            CHECK(in[1 + 4 * i] == 100 + 4 * (i + 1));
        CHECK(in[21] == -1 && in[0] == -1);
        OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        int raw[9];
        OK(MPI_File_read_at(file, 0, raw, 9, MPI_INT, &status));
        CHECK(raw[1] == 100 && raw[2] == 104 && raw[3] == 0 && raw[4] == 108 && raw[6] == 0 && raw[7] == 116);
        OK(MPI_File_write_at(file, 0, NULL, 0, MPI_INT, &status));
        CHECK(count_of(&status, MPI_INT) == 0);
        OK(MPI_File_read(file, NULL, 0, strided, &status));
    }
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&strided));
    OK(MPI_Type_free(&column));
}

/* Sizes that are set, and offsets above four gigabytes in a file that takes no room. */
static void sizes(void)
{
    MPI_File file;
    MPI_Offset size, far = 5000000000;
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "sizes"),
                     MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_preallocate(file, 1000));
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 1000);
    OK(MPI_File_preallocate(file, 10));
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 1000);
    OK(MPI_File_set_size(file, 17));
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 17);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int value = 1000 + check_rank, found;
    OK(MPI_File_write_at(file, far + check_rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int other = (check_rank + 1) % check_size;
    OK(MPI_File_read_at(file, far + other * 4, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(found == 1000 + other);
    OK(MPI_File_get_size(file, &size));
    CHECK(size == far + 4 * check_size);
    OK(MPI_File_close(&file));
    CHECK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "sizes"), MPI_MODE_RDONLY,
                        MPI_INFO_NULL, &file) != MPI_SUCCESS);
    if (check_rank == 0) {
        FILE *plain = fopen(path_in(folder, "appended"), "w");
        fputs("0123456789", plain);
        fclose(plain);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "appended"), MPI_MODE_RDWR | MPI_MODE_APPEND,
                     MPI_INFO_NULL, &file));
    OK(MPI_File_get_position(file, &size));
    CHECK(size == 10);
    OK(MPI_File_get_position_shared(file, &size));
    CHECK(size == 10);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    folder = argv[1];
    turns();
    told();
    memory();
    sizes();
    return check_end();
}
