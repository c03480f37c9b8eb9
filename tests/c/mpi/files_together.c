/* Collective accesses: by each rank itself and by few for all, holes, ends of files, errors of one rank. FOLDER */
#include "files.h"

static const char *folder;

/* Hints that lead every way through the library. */
static MPI_Info hints(const char *buffering, const char *nodes)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "collective_buffering", buffering));
    OK(MPI_Info_set(info, "cb_nodes", nodes));
    OK(MPI_Info_set(info, "cb_buffer_size", "4096"));
    return info;
}

static void fill(const char *path, int bytes)
{
    if (check_rank == 0) {
        FILE *file = fopen(path, "w");
        for (int i = 0; i < bytes; i++)
            fputc('#', file);
        fclose(file);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Of every group of `size + 1` blocks each rank has one and nobody the last: that one must stay as it is. */
static void mixed(const char *buffering, const char *nodes, int block, int scattered)
{
    enum { GROUPS = 300 };
    const char *path = path_in(folder, "mixed");
    int period = block * (check_size + 1), mine = GROUPS * block, total = GROUPS * period;
    fill(path, total);
    MPI_Info info = hints(buffering, nodes);
    MPI_Datatype piece, filetype, memtype;
    OK(MPI_Type_contiguous(block, MPI_BYTE, &piece));
    OK(MPI_Type_create_resized(piece, 0, period, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_Type_vector(mine, 1, 2, MPI_BYTE, &memtype));
    OK(MPI_Type_commit(&memtype));
    MPI_File file;
    MPI_Status status;
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file));
    OK(MPI_File_set_view(file, (MPI_Offset)check_rank * block, MPI_BYTE, filetype, "native", info));
    int step = scattered ? 2 : 1;
    unsigned char *buffer = malloc((size_t)mine * 2);
    for (int i = 0; i < mine; i++)
        buffer[i * step] = byte_at((long long)(i / block) * period + check_rank * block + i % block);
    if (scattered)
        OK(MPI_File_write_all(file, buffer, 1, memtype, &status));
    else
        OK(MPI_File_write_all(file, buffer, mine, MPI_BYTE, &status));
    CHECK(count_of(&status, MPI_BYTE) == mine);
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));

    /* The file as it is, byte by byte. */
    unsigned char *all = malloc((size_t)total);
    FILE *plain = fopen(path, "r");
    CHECK(fread(all, 1, (size_t)total, plain) == (size_t)total && fgetc(plain) == EOF);
    fclose(plain);
    for (int i = 0; i < total; i++)
        CHECK(all[i] == (i % period / block == check_size ? '#' : byte_at(i)));
    free(all);

    /* Back, from one rank further, beyond the end of the file. */
    int other = (check_rank + 1) % check_size;
    OK(MPI_File_set_view(file, (MPI_Offset)other * block, MPI_BYTE, filetype, "native", info));
    memset(buffer, 1, (size_t)mine * 2);
    int from = 100 * block + check_rank, rest = mine - from;
    if (scattered)
        OK(MPI_File_read_at_all(file, from, buffer, 1, memtype, &status));
    else
        OK(MPI_File_read_at_all(file, from, buffer, mine, MPI_BYTE, &status));
    CHECK(count_of(&status, MPI_BYTE) == rest);
    for (int i = 0; i < rest; i++) {
        int at = from + i;
        CHECK(buffer[i * step] == byte_at((long long)(at / block) * period + other * block + at % block));
    }
    CHECK(buffer[rest * step] == 1);
    OK(MPI_File_close(&file));
    OK(MPI_Info_free(&info));
    OK(MPI_Type_free(&piece));
    OK(MPI_Type_free(&filetype));
    OK(MPI_Type_free(&memtype));
    free(buffer);
}

/* Some ranks have nothing, one has a wrong argument: the others are served. */
static void unequal(const char *buffering)
{
    const char *path = path_in(folder, "unequal");
    MPI_Info info = hints(buffering, "1");
    MPI_File file;
    MPI_Status status;
    int values[3] = {check_rank, check_rank + 10, check_rank + 20};
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", info));
    int count = check_rank % 2 ? 0 : 3;
    OK(MPI_File_write_at_all(file, 3 * check_rank, count ? values : NULL, count, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == count);
    if (check_rank == check_size - 1)
        FAILS(MPI_File_write_at_all(file, -1, values, 3, MPI_INT, &status), MPI_ERR_ARG);
    else
        OK(MPI_File_write_at_all(file, 1000 + 3 * check_rank, values, 3, MPI_INT, &status));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int back[3] = {-1, -1, -1};
    OK(MPI_File_read_at_all(file, 0, back, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 3 && back[0] == 0 && back[2] == 20);
    OK(MPI_File_read_at_all(file, 1000000, back, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 0 && back[1] == 10);
    OK(MPI_File_close(&file));
    OK(MPI_Info_free(&info));
}

/* Ranks write neighbouring bytes again and again, each by itself; nobody's are lost. */
static void neighbours(int atomic)
{
    enum { ROUNDS = 40, EACH = 64 };
    MPI_File file;
    MPI_Datatype byte, filetype;
    unsigned char mine[EACH], back[EACH];
    OK(MPI_Type_contiguous(1, MPI_BYTE, &byte));
    OK(MPI_Type_create_resized(byte, 0, check_size, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "neighbours"), MPI_MODE_RDWR | MPI_MODE_CREATE,
                     MPI_INFO_NULL, &file));
    OK(MPI_File_set_atomicity(file, atomic));
    int flag;
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == atomic);
    OK(MPI_File_set_view(file, check_rank, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < EACH; i++)
            mine[i] = (unsigned char)(round + 7 * i + 31 * check_rank);
        if (round % 2)
            OK(MPI_File_write_at(file, 0, mine, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
        else
            OK(MPI_File_write_at_all(file, 0, mine, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, back, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(mine, back, EACH) == 0);
    }
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&byte));
    OK(MPI_Type_free(&filetype));
}

/* Atomic accesses of the same bytes: a read sees one write or another, never a mixture. */
static void whole_or_not(void)
{
    enum { EACH = 3000, ROUNDS = 30 };
    MPI_File file;
    MPI_Datatype filetype;
    static int values[EACH];
    OK(MPI_Type_vector(EACH, 1, 2, MPI_INT, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_open(MPI_COMM_WORLD, path_in(folder, "atomic"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_size(file, 8 * EACH));
    OK(MPI_File_set_view(file, 0, MPI_INT, filetype, "native", MPI_INFO_NULL));
    OK(MPI_File_set_atomicity(file, 1));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < EACH; i++)
            values[i] = round * check_size + check_rank;
        OK(MPI_File_write_at(file, 0, values, EACH, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, values, EACH, MPI_INT, MPI_STATUS_IGNORE));
        for (int i = 1; i < EACH; i++)
            CHECK(values[i] == values[0]);
    }
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&filetype));
}

/* A filetype that shows some bytes twice may be read, whatever the hints say. */
static void twice(void)
{
    int lengths[2] = {3, 1}, places[2] = {0, 1}, values[30], back[16];
    const char *path = path_in(folder, "twice");
    MPI_Info info = hints("true", "2");
    MPI_Datatype filetype;
    MPI_File file;
    MPI_Status status;
    if (check_rank == 0) {
        FILE *plain = fopen(path, "w");
        for (int i = 0; i < 30; i++)
            values[i] = i;
        fwrite(values, sizeof(int), 30, plain);
        fclose(plain);
    }
    OK(MPI_Type_indexed(2, lengths, places, MPI_INT, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, info, &file));
    for (int atomic = 0; atomic < 2; atomic++) {
        OK(MPI_File_set_atomicity(file, atomic));
        OK(MPI_File_set_view(file, 4 * check_rank, MPI_INT, filetype, "native", info));
        OK(MPI_File_read_all(file, back, 8, MPI_INT, &status));
        CHECK(count_of(&status, MPI_INT) == 8);
        for (int i = 0; i < 8; i++)
            CHECK(back[i] == check_rank + i / 4 * 3 + (i % 4 == 3 ? 1 : i % 4));
    }
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&filetype));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
    static const char *ways[] = {"true", "false", "automatic"};
    static const char *nodes[] = {"1", "2", "100"};
    check_begin(&argc, &argv);
    folder = argv[1];
    for (int way = 0; way < 3; way++) {
        for (int few = 0; few < 3; few++)
            for (int scattered = 0; scattered < 2; scattered++)
                mixed(ways[way], nodes[few], few == 2 ? 61 : 8, scattered);
        unequal(ways[way]);
    }
    /* Hints that are not alike. */
    mixed(ways[check_rank % 3], nodes[check_rank % 3], 8, 0);
    mixed(ways[(check_rank + 1) % 3], nodes[(check_rank + 2) % 3], 61, 1);
    twice();
    neighbours(0);
    neighbours(1);
    whole_or_not();
    return check_end();
}
