/* One job serves many that come and go: `serve FILE COUNT HOW`, and `connect FILE HOW`. They leave, or with the
   word `killed` end in the middle of what they say, which they then say whole as far as they have said it. Nothing
   is left of them. */
#include "check.h"
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

enum { SHORT = 500, LONG = 1 << 18 };

/* Descriptors, and mappings of what is shared with one other process. */
static void held(int *descriptors, int *mappings)
{
    char line[4096];
    DIR *folder = opendir("/proc/self/fd");
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(folder && maps);
    for (*descriptors = 0; readdir(folder);)
        ++*descriptors;
    for (*mappings = 0; fgets(line, sizeof line, maps);)
        *mappings += strstr(line, "/memfd:weft-two") != 0;
    fclose(maps);
    closedir(folder);
}

static int class_of(int error)
{
    int found;
    OK(MPI_Error_class(error, &found));
    return found;
}

/* Whoever was said to be killed has said all this before. */
static void hear(MPI_Comm inter, int is_killed, int *buffer)
{
    int got, answer = 1;
    for (int i = 0; i < SHORT; i++) {
        OK(MPI_Recv(&got, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
        CHECK(got == i);
        OK(MPI_Send(&answer, 1, MPI_INT, 0, 1, inter));
    }
    OK(MPI_Recv(buffer, LONG, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONG; i++)
        CHECK(buffer[i] == i * 7);
    if (!is_killed)
        return;
    /* Nobody waits for this one: it may have come, or not. */
    int last = MPI_Recv(&got, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE);
    CHECK(last == MPI_SUCCESS ? got == 3 : class_of(last) == MPI_ERR_PROC_ABORTED);
    CHECK(class_of(MPI_Recv(buffer, LONG, MPI_INT, 0, 4, inter, MPI_STATUS_IGNORE)) == MPI_ERR_PROC_ABORTED);
    CHECK(class_of(MPI_Send(buffer, LONG, MPI_INT, 0, 4, inter)) == MPI_ERR_PROC_ABORTED);
}

static void serve(const char *file, int count, int is_killed, int *buffer)
{
    char port[MPI_MAX_PORT_NAME], draft[4096];
    int descriptors = 0, now, mappings, flag;
    MPI_Comm inter;
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    snprintf(draft, sizeof draft, "%s.draft", file);
    FILE *stream = fopen(draft, "w");
    CHECK(stream && fputs(port, stream) >= 0 && fclose(stream) == 0 && rename(draft, file) == 0);
    for (int round = 0; round < count; round++) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
        hear(inter, is_killed, buffer);
        held(&now, &mappings);
        if (!is_killed) {
            CHECK(mappings == 1);
            OK(MPI_Comm_disconnect(&inter));
        } else
            OK(MPI_Comm_free(&inter));
        /* Its end is noticed with the progress of whatever call. Who first rings somebody that sleeps keeps a socket for
           that, for good. */
        do {
            OK(MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
            held(&now, &mappings);
        } while (mappings > 0 || (descriptors > 0 && now > descriptors + 1));
        descriptors = descriptors > 0 ? descriptors : now;
    }
    OK(MPI_Close_port(port));
}

static void connect_to(const char *file, int is_killed, int *buffer)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int answer;
    MPI_Comm inter;
    FILE *stream = 0;
    for (int tries = 0; !(stream = fopen(file, "r")) && tries < 30000; tries++)
        usleep(1000);
    CHECK(stream && fgets(port, sizeof port, stream));
    fclose(stream);
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    for (int i = 0; i < SHORT; i++) {
        OK(MPI_Send(&i, 1, MPI_INT, 0, 1, inter));
        OK(MPI_Recv(&answer, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < LONG; i++)
        buffer[i] = i * 7;
    OK(MPI_Ssend(buffer, LONG, MPI_INT, 0, 2, inter));
    if (is_killed) {
        int last = 3;
        OK(MPI_Send(&last, 1, MPI_INT, 0, 3, inter));
        kill(getpid(), SIGKILL);
    }
    OK(MPI_Comm_disconnect(&inter));
}

int main(int argc, char **argv)
{
    int *buffer = malloc(LONG * sizeof *buffer);
    int is_killed = strcmp(argv[argc - 1], "killed") == 0;
    CHECK(buffer && argc > 3);
    check_begin(&argc, &argv);
    if (strcmp(argv[1], "serve") == 0)
        serve(argv[2], atoi(argv[3]), is_killed, buffer);
    else
        connect_to(argv[2], is_killed, buffer);
    free(buffer);
    return check_end();
}
