/* Many come to a port at the same time: `serve FILE COUNT`, and `connect FILE`. Each is served, one after the other. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <unistd.h>

static void serve(const char *file, int count)
{
    char port[MPI_MAX_PORT_NAME], draft[4096];
    MPI_Comm inter;
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    snprintf(draft, sizeof draft, "%s.draft", file);
    FILE *stream = fopen(draft, "w");
    CHECK(stream && fputs(port, stream) >= 0 && fclose(stream) == 0 && rename(draft, file) == 0);
    for (int round = 0; round < count; round++) {
        int got = -1;
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        OK(MPI_Send(&round, 1, MPI_INT, 0, 1, inter));
        OK(MPI_Recv(&got, 1, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE));
        CHECK(got == round);
        OK(MPI_Comm_disconnect(&inter));
    }
    OK(MPI_Close_port(port));
}

static void come(const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int number = -1;
    FILE *stream;
    while (!(stream = fopen(file, "r")))
        usleep(1000);
    CHECK(fgets(port, sizeof port, stream) && fclose(stream) == 0);
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    OK(MPI_Recv(&number, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    OK(MPI_Send(&number, 1, MPI_INT, 0, 2, inter));
    OK(MPI_Comm_disconnect(&inter));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    CHECK(argc > 2);
    if (strcmp(argv[1], "serve") == 0) {
        CHECK(argc > 3);
        serve(argv[2], atoi(argv[3]));
    } else
        come(argv[2]);
    return check_end();
}
