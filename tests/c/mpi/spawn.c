/* Spawned processes: from the world and from one process, with arguments and info, several programs, errors, three
   generations. The program spawns itself. */
#include "check.h"
#include <unistd.h>

static char me[4096];

/* Longer than what goes by datagrams anywhere, and shorter than what goes over a connection always. */
enum { MIDDLING = 3000 };

static void meet(MPI_Comm inter, int high)
{
    MPI_Comm all;
    int rank, size, sum;
    OK(MPI_Intercomm_merge(inter, high, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == size * (size - 1) / 2);
    for (int root = 0; root < size; root++) {
        char bytes[MIDDLING];
        memset(bytes, rank == root ? 'a' + root : 0, sizeof bytes);
        OK(MPI_Bcast(bytes, MIDDLING, MPI_CHAR, root, all));
        for (int i = 0; i < MIDDLING; i++)
            CHECK(bytes[i] == 'a' + root);
    }
    OK(MPI_Comm_free(&all));
}

/* As the parents of `count` children. */
static void look_after(MPI_Comm inter, MPI_Comm local, int count)
{
    int others, rank, number = 4711;
    OK(MPI_Comm_rank(local, &rank));
    OK(MPI_Comm_remote_size(inter, &others));
    CHECK(others == count);
    OK(MPI_Bcast(&number, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
    meet(inter, 0);
    OK(MPI_Comm_disconnect(&inter));
}

static void child(int argc, char **argv, MPI_Comm parent)
{
    char folder[4096];
    int others, number = -1, *found, flag;
    OK(MPI_Comm_remote_size(parent, &others));
    if (strcmp(argv[1], "words") == 0) {
        CHECK(argc == 5 && strcmp(argv[2], "two words") == 0 && strcmp(argv[3], "") == 0);
        CHECK(getcwd(folder, sizeof folder) && strcmp(folder, "/") == 0);
        CHECK(strcmp(getenv("SPAWN_TEST"), "seen") == 0 && !getenv("WEFT_PARENT"));
    }
    if (strcmp(argv[1], "several") == 0) {
        OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &found, &flag));
        CHECK(flag && argc == 3 && *found == atoi(argv[2]) && check_size == 3);
        CHECK((check_rank == 0) == (*found == 0));
    }
    if (strcmp(argv[1], "deep") == 0 && atoi(argv[2]) > 0) {
        char depth[16];
        char *words[] = {"deep", depth, 0};
        MPI_Comm inter;
        snprintf(depth, sizeof depth, "%d", atoi(argv[2]) - 1);
        OK(MPI_Comm_spawn(me, words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
        look_after(inter, MPI_COMM_WORLD, 1);
    }
    OK(MPI_Bcast(&number, 1, MPI_INT, 0, parent));
    CHECK(number == 4711);
    meet(parent, 1);
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
}

static int class_of(int error)
{
    int found;
    OK(MPI_Error_class(error, &found));
    return found;
}

static void fails(char *command, int count, const char *says)
{
    char line[MPI_MAX_ERROR_STRING];
    int codes[4] = {-1, -1, -1, -1}, length;
    MPI_Comm inter;
    int error = MPI_Comm_spawn(command, MPI_ARGV_NULL, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    CHECK(class_of(error) == MPI_ERR_SPAWN && inter == MPI_COMM_NULL);
    for (int i = 0; i < 4; i++)
        CHECK(i < count ? class_of(codes[i]) == MPI_ERR_SPAWN : codes[i] == -1);
    OK(MPI_Error_string(error, line, &length));
    if (check_rank == 0 && !strstr(line, says)) {
        fprintf(stderr, "'%s' does not say '%s'\n", line, says);
        exit(97);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    MPI_Info info, infos[2];
    int codes[4] = {-1, -1, -1, -1};
    CHECK(readlink("/proc/self/exe", me, sizeof me - 1) > 0);
    setenv("SPAWN_TEST", "seen", 0);
    check_begin(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        child(argc, argv, parent);
        OK(MPI_Finalize());
        return 0;
    }
    /* What is wrong is told, and the job lives on. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    fails("./no-such-program", 2, "no-such-program");
    fails("no-such-program-anywhere", 1, "PATH");
    fails("", 1, "command");
    fails("/bin/true", 1, "ended before");
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "wdir", "/no/such/folder"));
    CHECK(class_of(MPI_Comm_spawn(me, MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &inter, codes)) == MPI_ERR_SPAWN);
    OK(MPI_Info_set(info, "wdir", "/"));
    char *words[] = {"words", "two words", "", "last", 0};
    OK(MPI_Comm_spawn(me, words, 2, info, check_size - 1, MPI_COMM_WORLD, &inter, codes));
    CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == -1);
    look_after(inter, MPI_COMM_WORLD, 2);
    if (argc > 1)
        return check_end();
    /* Each process for itself, all at the same time, of a name that `path` finds. */
    char folder[4096], *name = strrchr(strcpy(folder, me), '/');
    *name++ = 0;
    char *plain[] = {"plain", 0};
    OK(MPI_Info_delete(info, "wdir"));
    OK(MPI_Info_set(info, "path", folder));
    OK(MPI_Info_set(info, "soft", "1:2"));
    OK(MPI_Comm_spawn(name, plain, 2, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    look_after(inter, MPI_COMM_SELF, 2);
    /* Several programs make one world; what only the root knows is only looked at there. */
    char *first[] = {"several", "0", 0}, *second[] = {"several", "1", 0};
    char *commands[] = {me, me}, **arguments[] = {first, second};
    int counts[] = {1, 2};
    infos[0] = infos[1] = MPI_INFO_NULL;
    if (check_rank == 0)
        OK(MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &inter, codes));
    else
        OK(MPI_Comm_spawn_multiple(-3, 0, 0, 0, 0, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    look_after(inter, MPI_COMM_WORLD, 3);
    /* Children that have children. */
    char *deep[] = {"deep", "2", 0};
    OK(MPI_Comm_spawn(me, deep, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    look_after(inter, MPI_COMM_WORLD, 1);
    OK(MPI_Info_free(&info));
    return check_end();
}
