/* The owner of a port with a name has no descriptors left while others ask for it: it sleeps all the same, and answers once
   there are some. "few NAME". */
#include "check.h"
#include <poll.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A visitor that has come, and was not let in. */
static int visitor(const char *name)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int there = socket(AF_UNIX, SOCK_STREAM, 0);
    int length = snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "weft-port/%d/%s", (int)getuid(), name);
    CHECK(there >= 0);
    CHECK(connect(there, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0);
    return there;
}

/* How long this process has been busy, in milliseconds, while it waited for half a second. */
static long busy(int port)
{
    struct timespec before, after;
    struct weft_pick choice = {.port = port, .process = WEFT_ANY, .tag = WEFT_ANY};
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before) == 0);
    CHECK(weft_select(&choice, 1, NULL, 0, 500, NULL) == 0);
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after) == 0);
    return (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
}

int main(int count, char **arguments)
{
    struct rlimit limit, all;
    char said[600] = "";
    CHECK(count == 2 && weft_init(0) == 0);
    int port = weft_port_open_named(arguments[1]);
    CHECK(port > 0);
    int there = visitor(arguments[1]);
    CHECK(getrlimit(RLIMIT_NOFILE, &all) == 0);
    limit = all;
    limit.rlim_cur = 3;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    long ms = busy(port);
    if (ms > 100)
        fprintf(stderr, "busy for %ld of 500 ms\n", ms);
    CHECK(ms <= 100);
    CHECK(recv(there, said, sizeof said - 1, MSG_DONTWAIT) < 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &all) == 0);
    while (recv(there, said, sizeof said - 1, MSG_DONTWAIT) <= 0)
        busy(port);
    CHECK(strstr(said, arguments[1]));
    finish();
    return 0;
}
