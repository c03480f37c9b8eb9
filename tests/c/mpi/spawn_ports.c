/* Ports inside a job and between two: `serve FILE` and `connect FILE` are the two jobs, told the port by a file; without a
   word the halves of one job connect to each other, publish and join. */
#include "check.h"
#include <sys/socket.h>
#include <unistd.h>

/* Everything that must work on a communicator between two groups, and on both merged. */
static void talk(MPI_Comm inter, int high)
{
    int rank, size, others, sum, i;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &others));
    enum { LONG = 300000 };
    double *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (i = 0; i < LONG; i++)
        out[i] = 1000.0 * rank + i;
    if (rank < others && rank < size) {
        MPI_Status status;
        OK(MPI_Sendrecv(out, LONG, MPI_DOUBLE, rank, 7, in, LONG, MPI_DOUBLE, rank, 7, inter, &status));
        CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 7);
        for (i = 0; i < LONG; i++)
            CHECK(in[i] == 1000.0 * rank + i);
    }
    MPI_Comm all;
    OK(MPI_Intercomm_merge(inter, high, &all));
    int me, n;
    OK(MPI_Comm_rank(all, &me));
    OK(MPI_Comm_size(all, &n));
    CHECK(n == size + others && me == (high ? others + rank : rank));
    OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == n * (n - 1) / 2);
    /* Every second number, to everybody. */
    MPI_Datatype every_second;
    OK(MPI_Type_vector(1000, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int root = 0; root < n; root++) {
        int numbers[2000];
        for (i = 0; i < 2000; i++)
            numbers[i] = me == root ? root * 2000 + i : -1;
        OK(MPI_Bcast(numbers, 1, every_second, root, all));
        for (i = 0; i < 2000; i++)
            CHECK(numbers[i] == (me == root || i % 2 == 0 ? root * 2000 + i : -1));
    }
    OK(MPI_Type_free(&every_second));
    int *from = malloc((size_t) n * sizeof *from), *to = malloc((size_t) n * sizeof *to);
    for (i = 0; i < n; i++)
        to[i] = me * 100 + i;
    OK(MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, all));
    for (i = 0; i < n; i++)
        CHECK(from[i] == i * 100 + me);
    /* Communicators out of it, a window on it. */
    MPI_Comm half, copy;
    OK(MPI_Comm_split(all, me % 2, 0, &half));
    OK(MPI_Barrier(half));
    OK(MPI_Comm_dup(inter, &copy));
    OK(MPI_Barrier(copy));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&half));
    MPI_Win win;
    int cell = -1;
    OK(MPI_Win_create(&cell, sizeof cell, sizeof cell, MPI_INFO_NULL, all, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&me, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(cell == (me + n - 1) % n);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&all));
    free(from), free(to), free(in), free(out);
}

static void serve(const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (check_rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        char draft[4096];
        snprintf(draft, sizeof draft, "%s.draft", file);
        FILE *stream = fopen(draft, "w");
        CHECK(stream);
        fputs(port, stream);
        fclose(stream);
        CHECK(rename(draft, file) == 0);
    }
    for (int time = 0; time < 2; time++) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        talk(inter, 0);
        OK(MPI_Comm_disconnect(&inter));
        CHECK(inter == MPI_COMM_NULL);
    }
    if (check_rank == 0)
        OK(MPI_Close_port(port));
}

static void connect_to(const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    FILE *stream = 0;
    for (int tries = 0; check_rank == check_size - 1 && !(stream = fopen(file, "r")) && tries < 30000; tries++)
        usleep(1000);
    if (stream) {
        CHECK(fgets(port, sizeof port, stream));
        fclose(stream);
    }
    for (int time = 0; time < 2; time++) {
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, check_size - 1, MPI_COMM_WORLD, &inter));
        talk(inter, 1);
        OK(MPI_Comm_disconnect(&inter));
    }
}

static int class_of(int error)
{
    int found;
    OK(MPI_Error_class(error, &found));
    return found;
}

static void errors(void)
{
    MPI_Comm inter = MPI_COMM_NULL;
    char port[MPI_MAX_PORT_NAME], name[64];
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(class_of(MPI_Comm_connect("myhost:27", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)) == MPI_ERR_PORT);
    CHECK(class_of(MPI_Comm_accept("myhost:27", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)) == MPI_ERR_PORT);
    CHECK(class_of(MPI_Comm_accept("myhost:27", MPI_INFO_NULL, check_size, MPI_COMM_WORLD, &inter)) == MPI_ERR_ROOT);
    CHECK(class_of(MPI_Close_port("myhost:27")) == MPI_ERR_PORT);
    CHECK(class_of(MPI_Lookup_name("nobody has published this", MPI_INFO_NULL, port)) == MPI_ERR_NAME);
    CHECK(class_of(MPI_Unpublish_name("nor this", MPI_INFO_NULL, "x")) == MPI_ERR_SERVICE);
    /* A port where nobody accepts, and one that is closed. */
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "timeout", "0.2"));
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK(class_of(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    if (getenv("WEFT_CONNECT_TIMEOUT"))
        CHECK(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    OK(MPI_Close_port(port));
    CHECK(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    CHECK(class_of(MPI_Close_port(port)) == MPI_ERR_PORT);
    OK(MPI_Info_free(&info));
    CHECK(inter == MPI_COMM_NULL);
    snprintf(name, sizeof name, "weft test %d", (int) getpid());
    OK(MPI_Publish_name(name, MPI_INFO_NULL, "a port"));
    CHECK(class_of(MPI_Publish_name(name, MPI_INFO_NULL, "another")) == MPI_ERR_SERVICE);
    OK(MPI_Lookup_name(name, MPI_INFO_NULL, port));
    CHECK(strcmp(port, "a port") == 0);
    OK(MPI_Unpublish_name(name, MPI_INFO_NULL, "a port"));
    CHECK(class_of(MPI_Lookup_name(name, MPI_INFO_NULL, port)) == MPI_ERR_NAME);
}

/* The halves of a job. */
static void halves(void)
{
    char port[MPI_MAX_PORT_NAME] = "", name[64] = "";
    MPI_Comm half, inter;
    int upper = check_rank >= check_size / 2, pid = (int) getpid();
    OK(MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(name, sizeof name, "weft test %d", pid);
    OK(MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &half));
    if (check_rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(name, MPI_INFO_NULL, port));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (upper) {
        OK(MPI_Lookup_name(name, MPI_INFO_NULL, port));
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
    } else
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
    talk(inter, upper);
    /* They are the same processes as before. */
    MPI_Group world, others;
    int first = 0, place = -1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_remote_group(inter, &others));
    OK(MPI_Group_translate_ranks(others, 1, &first, world, &place));
    CHECK(place == (upper ? 0 : check_size / 2));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&others));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Comm_free(&half));
}

/* A socket of the program's own, which stays as it was. */
static void join(void)
{
    int ends[2], far = -1;
    char byte = 'x';
    MPI_Comm inter;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[0]);
        dup2(ends[1], 3);
        execl("/proc/self/exe", "spawn_ports", "joined", (char *) 0);
        _exit(98);
    }
    close(ends[1]);
    OK(MPI_Comm_join(ends[0], &inter));
    OK(MPI_Comm_remote_size(inter, &far));
    CHECK(far == 1 && read(ends[0], &byte, 1) == 1 && byte == 'j');
    OK(MPI_Recv(&far, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE));
    CHECK(far == 42);
    OK(MPI_Comm_disconnect(&inter));
    close(ends[0]);
}

static void joined(void)
{
    MPI_Comm inter;
    int number = 42;
    OK(MPI_Comm_join(3, &inter));
    CHECK(write(3, "j", 1) == 1);
    OK(MPI_Send(&number, 1, MPI_INT, 0, 3, inter));
    OK(MPI_Comm_disconnect(&inter));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    if (argc > 2 && strcmp(argv[1], "serve") == 0)
        serve(argv[2]);
    else if (argc > 2)
        connect_to(argv[2]);
    else if (argc > 1) {
        joined();
        OK(MPI_Finalize());
        return 0;
    } else {
        errors();
        if (check_size > 1)
            halves();
        if (check_rank == 0)
            join();
    }
    return check_end();
}
