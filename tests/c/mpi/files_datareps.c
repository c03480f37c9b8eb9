/* What numbers are in files: external32, and representations of the program's own. FOLDER */
#include "files.h"

static const char *folder;

static MPI_File opened(const char *name, int mode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, name), mode, MPI_INFO_NULL, &file));
    return file;
}

static void external(void)
{
    MPI_File file = opened("external", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Aint extent;
    MPI_Status status;
    long out[4], in[4] = {0};
    OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK(extent == 4);
    MPI_Datatype vector;
    OK(MPI_Type_vector(2, 1, 3, MPI_LONG, &vector));
    OK(MPI_File_get_type_extent(file, vector, &extent));
    CHECK(extent == 16);
    OK(MPI_Type_commit(&vector));
    for (int i = 0; i < 4; i++)
        out[i] = -1 - i - 10 * check_rank;
    OK(MPI_File_write_at_all(file, 4 * check_rank, out, 4, MPI_LONG, &status));
    CHECK(count_of(&status, MPI_LONG) == 4);
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_read_at(file, 4 * check_rank, in, 4, MPI_LONG, &status));
    CHECK(count_of(&status, MPI_LONG) == 4 && memcmp(in, out, sizeof in) == 0);
    /* The end of the file, in the middle of an element of a derived type. */
    MPI_Datatype three;
    OK(MPI_Type_contiguous(3, MPI_LONG, &three));
    OK(MPI_Type_commit(&three));
    long last[3] = {7, 7, 7};
    OK(MPI_File_read_at(file, 4 * check_size - 2, last, 1, three, &status));
    CHECK(count_of(&status, MPI_LONG) == 2 && last[0] == -3 - 10 * (check_size - 1) && last[2] == 7);
    /* The filetype is scaled, too. */
    OK(MPI_File_set_view(file, 0, MPI_LONG, vector, "external32", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, in, 2, MPI_LONG, &status));
    CHECK(in[0] == -1 && in[1] == -4);
    /* Plain bytes: big-endian, four each. */
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    unsigned char bytes[4];
    OK(MPI_File_read_at(file, 4, bytes, 4, MPI_BYTE, &status));
    CHECK(bytes[0] == 0xff && bytes[3] == 0xfe);
    MPI_Offset size;
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 16 * check_size);
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_free(&three));
    OK(MPI_File_close(&file));
}

/* Numbers are written as two bytes each, the value plus `*extra_state`. */
static int extent_of_two(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    int size;
    (void)extra;
    MPI_Type_size(type, &size);
    *extent = type == MPI_INT ? 2 : size;
    return MPI_SUCCESS;
}

static int read_two(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    if (type != MPI_INT)
        return MPI_ERR_CONVERSION;
    for (int i = 0; i < count; i++) {
        short value;
        memcpy(&value, (char *)file + 2 * i, 2);
        ((int *)user)[position + i] = value - *(int *)extra;
    }
    return MPI_SUCCESS;
}

static int write_two(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    if (type != MPI_INT)
        return MPI_ERR_CONVERSION;
    for (int i = 0; i < count; i++) {
        short value = (short)(((int *)user)[position + i] + *(int *)extra);
        memcpy((char *)file + 2 * i, &value, 2);
    }
    return MPI_SUCCESS;
}

static void own(void)
{
    static int added = 5;
    MPI_Aint extent;
    MPI_Status status;
    int out[3] = {check_rank, 100, -7}, in[3] = {0};
    OK(MPI_Register_datarep("two bytes", read_two, write_two, extent_of_two, &added));
    FAILS(MPI_Register_datarep("two bytes", read_two, write_two, extent_of_two, &added), MPI_ERR_DUP_DATAREP);
    FAILS(MPI_Register_datarep("native", read_two, write_two, extent_of_two, &added), MPI_ERR_DUP_DATAREP);
    MPI_File file = opened("own", MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "two bytes", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
    CHECK(extent == 2);
    OK(MPI_File_seek(file, 3 * check_rank, MPI_SEEK_SET));
    OK(MPI_File_write_all(file, out, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 3);
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_read_at(file, 3 * check_rank, in, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 3 && memcmp(in, out, sizeof in) == 0);
    OK(MPI_File_read_at(file, 3 * check_size - 1, in, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 1 && in[0] == -7 && in[1] == 100);
    float number = 1;
    FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_FLOAT, &status), MPI_ERR_CONVERSION);
    OK(MPI_File_set_view(file, 0, MPI_SHORT, MPI_SHORT, "native", MPI_INFO_NULL));
    short raw;
    OK(MPI_File_read_at(file, 1, &raw, 1, MPI_SHORT, &status));
    CHECK(raw == 105);
    OK(MPI_File_close(&file));
    /* Without functions the bytes are those of memory. */
    OK(MPI_Register_datarep_c("plain", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, extent_of_two, NULL));
    file = opened("plain", MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "plain", MPI_INFO_NULL));
    double value = check_rank + .5, back = 0;
    OK(MPI_File_write_at(file, check_rank, &value, 1, MPI_DOUBLE, &status));
    OK(MPI_File_read_at(file, check_rank, &back, 1, MPI_DOUBLE, &status));
    CHECK(back == value);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    folder = argv[1];
    external();
    own();
    return check_end();
}
