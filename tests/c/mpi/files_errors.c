/* What can be wrong, by class, handler and message. FOLDER */
#include "files.h"
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static int handled, handled_code;
static MPI_File handled_file;

static void handler(MPI_File *file, int *code, ...)
{
    handled++;
    handled_code = *code;
    handled_file = *file;
}

static void says(int code, const char *words)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Error_string(code, text, &length));
    if (!strstr(text, words)) {
        fprintf(stderr, "rank %d: `%s` does not say `%s`\n", check_rank, text, words);
        exit(99);
    }
}

/* What a handler leaves in the code is what the call returns. */
static void forgiving(MPI_File *file, int *code, ...)
{
    (void)file;
    handled++;
    *code = MPI_SUCCESS;
}

static void opening(void)
{
    MPI_File file;
    MPI_Comm world = MPI_COMM_WORLD;
    const char *none = path_in(folder, "none"), *there = path_in(folder, "there");
    int code = MPI_File_open(world, none, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK(class_of(code) == MPI_ERR_NO_SUCH_FILE);
    says(code, "MPI_File_open: file ");
    says(code, none);
    FAILS(MPI_File_open(world, path_in(folder, "no/such"), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
          MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(world, none, 0, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(world, none, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(world, none, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(world, folder, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    FAILS(MPI_File_open(world, "", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    FAILS(MPI_File_delete(none, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(MPI_COMM_NULL, none, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_COMM);
    OK(MPI_File_open(world, there, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    FAILS(MPI_File_open(world, there, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
          MPI_ERR_FILE_EXISTS);
    if (check_size > 1) {
        int mode = check_rank ? MPI_MODE_RDONLY : MPI_MODE_RDWR;
        FAILS(MPI_File_open(world, there, mode, MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_open(world, check_rank ? there : "", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
        /* A file that only some can open is opened by nobody. */
        const char *name = check_rank == check_size - 1 ? none : there;
        FAILS(MPI_File_open(world, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    }
    if (geteuid() != 0) {
        if (check_rank == 0)
            CHECK(chmod(there, 0) == 0);
        OK(MPI_Barrier(world));
        FAILS(MPI_File_open(world, there, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_ACCESS);
    }
}

static void using_it(void)
{
    MPI_File file;
    MPI_Offset offset;
    MPI_Status status;
    int value = 3;
    const char *name = path_in(folder, "used");
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    int code = MPI_File_read_at(file, 0, &value, 1, MPI_INT, &status);
    CHECK(class_of(code) == MPI_ERR_ACCESS);
    says(code, "MPI_File_read_at: file ");
    says(code, name);
    code = MPI_File_write_at(file, -77, &value, 1, MPI_INT, &status);
    CHECK(class_of(code) == MPI_ERR_ARG);
    says(code, "offset -77");
    FAILS(MPI_File_write_at(file, 0, &value, -1, MPI_INT, &status), MPI_ERR_COUNT);
    FAILS(MPI_File_write_at(file, 0, &value, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    FAILS(MPI_File_write_at(file, 0, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
    FAILS(MPI_File_write_at(file, 0x7ffffffffffffff0, &value, 4, MPI_DOUBLE, &status), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    FAILS(MPI_File_get_byte_offset(file, -1, &offset), MPI_ERR_ARG);
    FAILS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    FAILS(MPI_File_preallocate(file, -1), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "of nobody", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    FAILS(MPI_File_set_view(file, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    MPI_Datatype backwards;
    int lengths[2] = {1, 1}, places[2] = {3, 0};
    OK(MPI_Type_indexed(2, lengths, places, MPI_INT, &backwards));
    FAILS(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_Type_commit(&backwards));
    FAILS(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL), MPI_ERR_IO);
    OK(MPI_Type_free(&backwards));
    lengths[0] = 3, places[0] = 0, places[1] = 1;
    OK(MPI_Type_indexed(2, lengths, places, MPI_INT, &backwards));
    OK(MPI_Type_commit(&backwards));
    FAILS(MPI_File_set_view(file, 0, backwards, backwards, "native", MPI_INFO_NULL), MPI_ERR_IO);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL), MPI_ERR_IO);
    OK(MPI_Type_free(&backwards));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    FAILS(MPI_File_write_at(file, 0, &value, 3, MPI_BYTE, &status), MPI_ERR_IO);
    if (check_size > 1) {
        FAILS(MPI_File_set_size(file, check_rank), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_set_atomicity(file, check_rank == 0), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_seek_shared(file, check_rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
    }
    OK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status));
    MPI_File stale = file;
    OK(MPI_File_close(&file));
    FAILS(MPI_File_close(&file), MPI_ERR_FILE);
    FAILS(MPI_File_get_size(stale, &offset), MPI_ERR_FILE);
    FAILS(MPI_File_get_size((MPI_File)MPI_COMM_WORLD, &offset), MPI_ERR_FILE);

    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    FAILS(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_write_all(file, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_set_size(file, 0), MPI_ERR_READ_ONLY);
    OK(MPI_File_close(&file));
    /* A device that is always full. */
    if (access("/dev/full", W_OK) == 0) {
        OK(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
        FAILS(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "collective_buffering", "true"));
        OK(MPI_File_set_info(file, info));
        /* Whoever writes for all, all hear of it. */
        FAILS(MPI_File_write_at_all(file, 4 * check_rank, &value, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
        OK(MPI_Info_free(&info));
        OK(MPI_File_close(&file));
    }
}

static void handlers(void)
{
    MPI_File file;
    MPI_Errhandler own, found;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    CHECK(found == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(handler, &own));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, own));
    CHECK(MPI_File_open(MPI_COMM_SELF, path_in(folder, "none"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
    CHECK(handled == 1 && handled_file == MPI_FILE_NULL && class_of(handled_code) == MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "handlers"), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                     MPI_INFO_NULL, &file));
    /* New files get what the null file has. */
    CHECK(MPI_File_write_at(file, -1, NULL, 0, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(handled == 2 && handled_file == file);
    OK(MPI_File_get_errhandler(file, &found));
    CHECK(found == own);
    OK(MPI_Errhandler_free(&found));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_File_call_errhandler(file, MPI_ERR_IO));
    CHECK(handled == 3 && handled_code == MPI_ERR_IO);
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    OK(MPI_File_get_errhandler(file, &found));
    CHECK(found == MPI_ERRORS_RETURN);
    CHECK(MPI_File_write_at(file, -1, NULL, 0, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(handled == 3);
    OK(MPI_Errhandler_free(&own));
    OK(MPI_File_create_errhandler(forgiving, &own));
    OK(MPI_File_set_errhandler(file, own));
    OK(MPI_File_write_at(file, -1, NULL, 0, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(handled == 4);
    OK(MPI_Errhandler_free(&own));
    OK(MPI_File_close(&file));
}

static void hints(void)
{
    MPI_File file;
    MPI_Info info, used;
    char value[64];
    int flag, length = sizeof value;
    struct stat about;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "file_perm", "0640"));
    OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
    OK(MPI_Info_set(info, "access_style", "write_once"));
    OK(MPI_Info_set(info, "of_nobody", "1"));
    umask(0);
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "hints"), MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file));
    CHECK(stat(path_in(folder, "hints"), &about) == 0 && (about.st_mode & 0777) == 0640);
    OK(MPI_File_get_info(file, &used));
    OK(MPI_Info_get_string(used, "cb_buffer_size", &length, value, &flag));
    CHECK(flag && strcmp(value, "65536") == 0);
    length = sizeof value;
    OK(MPI_Info_get_string(used, "of_nobody", &length, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    folder = argv[1];
    opening();
    using_it();
    handlers();
    hints();
    return check_end();
}
