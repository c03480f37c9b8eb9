/* files_whole write|read FILE BYTES: each rank writes or checks its block of the file at an explicit offset. */
#include "files.h"

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    int writes = strcmp(argv[1], "write") == 0;
    long long bytes = atoll(argv[3]), block = (bytes + check_size - 1) / check_size;
    long long first = block * check_rank, length = first >= bytes ? 0 : bytes - first < block ? bytes - first : block;
    unsigned char *buffer = malloc((size_t)length + 1);
    MPI_File file;
    MPI_Status status;
    if (writes) {
        for (long long i = 0; i < length; i++)
            buffer[i] = byte_at(first + i);
        OK(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
        OK(MPI_File_write_at(file, first, buffer, (int)length, MPI_BYTE, &status));
        CHECK(count_of(&status, MPI_BYTE) == length);
    } else {
        MPI_Offset size;
        OK(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        OK(MPI_File_get_size(file, &size));
        CHECK(size == bytes);
        OK(MPI_File_read_at_c(file, first, buffer, length, MPI_BYTE, &status));
        CHECK(count_of(&status, MPI_BYTE) == length);
        for (long long i = 0; i < length; i++)
            CHECK(buffer[i] == byte_at(first + i));
    }
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    free(buffer);
    return check_end();
}
