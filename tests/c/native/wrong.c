/* Wrong arguments are errors, and say what is wrong. */
#include "check.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    struct weft_pick pick = {3, WEFT_ANY, WEFT_ANY};
    struct weft_message message;
    char bytes[8] = "1234567";
    int process, port;
    FAILS(weft_send(0, 1, 1, bytes, 1), WEFT_ERR_STATE, "weft_init");
    FAILS(weft_receive(1, 0, 1, bytes, 1, NULL), WEFT_ERR_STATE, "weft_init");
    FAILS(weft_finish(), WEFT_ERR_STATE, "weft_init");
    FAILS(weft_me(), WEFT_ERR_STATE, "weft_init");
    FAILS(weft_port_open(1), WEFT_ERR_STATE, "weft_init");
    FAILS(weft_init(8), WEFT_ERR_ARGUMENT, "flags 8");
    CHECK(weft_init(WEFT_THREADS) == 0);
    FAILS(weft_init(0), WEFT_ERR_STATE, "already");
    int me = weft_me();
    FAILS(weft_send(me, 3, -1, bytes, 1), WEFT_ERR_ARGUMENT, "tag -1");
    FAILS(weft_send(me, -3, 1, bytes, 1), WEFT_ERR_ARGUMENT, "port -3");
    FAILS(weft_send(weft_size(), 3, 1, bytes, 1), WEFT_ERR_PROCESS, "there is no process");
    FAILS(weft_send(-1, 3, 1, bytes, 1), WEFT_ERR_PROCESS, "there is no process -1");
    FAILS(weft_send(me, 3, 1, NULL, 1), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_send(me, 3, 1, bytes, SIZE_MAX), WEFT_ERR_ARGUMENT, "more than there can be");
    FAILS(weft_receive(3, WEFT_ANY, 1, bytes, 1, NULL), WEFT_ERR_PORT, "port 3 is not open");
    FAILS(weft_port_open(1 << 24), WEFT_ERR_PORT, "16777215");
    FAILS(weft_port_open(-2), WEFT_ERR_PORT, "-2");
    FAILS(weft_port_close(3), WEFT_ERR_PORT, "port 3");
    CHECK(weft_send(me, 3, 1, bytes, 8) == 0);
    CHECK(weft_port_open(3) == 3);
    FAILS(weft_port_open(3), WEFT_ERR_PORT, "opened before");
    FAILS(weft_receive(3, WEFT_ANY, -7, bytes, 1, NULL), WEFT_ERR_ARGUMENT, "tag -7");
    FAILS(weft_receive(3, 99, 1, bytes, 1, NULL), WEFT_ERR_PROCESS, "99");
    FAILS(weft_receive(3, WEFT_ANY, 1, NULL, 1, NULL), WEFT_ERR_ARGUMENT, "null pointer");
    /* What came before the port was open is there; of what is too long the beginning. */
    memset(bytes, 0, sizeof bytes);
    FAILS(weft_receive(3, WEFT_ANY, WEFT_ANY, bytes, 3, &message), WEFT_ERR_TRUNCATED, "8 bytes");
    CHECK(message.length == 8 && message.process == me && strcmp(bytes, "123") == 0);
    FAILS(weft_receive_first(NULL, 1, bytes, 1, NULL), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_receive_first(&pick, 0, bytes, 1, NULL), WEFT_ERR_ARGUMENT, "nothing is chosen");
    FAILS(weft_probe(&pick, -1, NULL), WEFT_ERR_ARGUMENT, "-1");
    CHECK(weft_probe(&pick, 1, NULL) == 0);
    /* Somebody holds the name, and takes no more connections. */
    struct sockaddr_un held = {AF_UNIX, ""};
    int length = snprintf(held.sun_path + 1, 100, "weft-port/%d/held-%d", (int)getuid(), (int)getpid());
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    int holder = socket(AF_UNIX, SOCK_STREAM, 0), guest = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(holder, (struct sockaddr *)&held, size) == 0 && listen(holder, 0) == 0);
    CHECK(connect(guest, (struct sockaddr *)&held, size) == 0);
    FAILS(weft_port_find(strrchr(held.sun_path + 1, '/') + 1, 30, &process, &port), WEFT_ERR_TIMEOUT, "held");
    CHECK(close(holder) == 0 && close(guest) == 0);
    FAILS(weft_select(NULL, 1, NULL, 0, 0, NULL), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_select(NULL, 0, NULL, 1, 0, NULL), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_port_open_named(NULL), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_port_open_named(""), WEFT_ERR_NAME, "80 bytes");
    FAILS(weft_port_open_named("a#b"), WEFT_ERR_NAME, "'#'");
    FAILS(weft_port_find("nobody has this name", 0, &process, &port), WEFT_ERR_TIMEOUT, "nobody has this name");
    FAILS(weft_port_find("weft/x#y", 0, &process, &port), WEFT_ERR_NAME, "weft/x");
    FAILS(weft_port_address(3, bytes, 8), WEFT_ERR_PORT, "no name");
    FAILS(weft_raw_send(77, bytes, 8), WEFT_ERR_PROCESS, "77");
    FAILS(weft_register(0, (void **)&pick, NULL), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_put(me, NULL, 0, bytes, 8), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_call(me, 70000, NULL, 0, NULL, 0), WEFT_ERR_ARGUMENT, "70000");
    FAILS(weft_call(me, 1, NULL, 1, NULL, 0), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_reply(NULL, 1, NULL, 0, NULL, 0), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_host_of(1000), WEFT_ERR_PROCESS, "1000");
    FAILS(weft_notify(me, 4, 1), WEFT_ERR_PORT, "port 4 is not open");
    FAILS(weft_notify(me, 3, -1), WEFT_ERR_ARGUMENT, "tag -1");
    char name[300];
    CHECK(weft_host_name(0, name, sizeof name) == 0 && name[0]);
    FAILS(weft_host_name(1, name, sizeof name), WEFT_ERR_ARGUMENT, "no host 1");
    FAILS(weft_host_name(-1, name, sizeof name), WEFT_ERR_ARGUMENT, "no host -1");
    FAILS(weft_host_name(0, name, 0), WEFT_ERR_ARGUMENT, "the name needs");
    FAILS(weft_host_name(0, NULL, 10), WEFT_ERR_ARGUMENT, "null pointer");
    int request = weft_receive_begin(3, WEFT_ANY, 40, bytes, 8), never = request + 1;
    CHECK(request > 0);
    FAILS(weft_send_begin(99, 3, 1, bytes, 8), WEFT_ERR_PROCESS, "99");
    FAILS(weft_send_begin(me, 3, -1, bytes, 8), WEFT_ERR_ARGUMENT, "tag -1");
    FAILS(weft_send_begin(me, 3, 1, NULL, 8), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_receive_begin(4, WEFT_ANY, 1, bytes, 8), WEFT_ERR_PORT, "port 4 is not open");
    FAILS(weft_receive_begin(3, WEFT_ANY, 1, NULL, 8), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_test(never, NULL), WEFT_ERR_ARGUMENT, "no request");
    FAILS(weft_wait(-7, NULL), WEFT_ERR_ARGUMENT, "no request -7");
    FAILS(weft_cancel(0), WEFT_ERR_ARGUMENT, "no request 0");
    FAILS(weft_wait_any(NULL, 1, 0), WEFT_ERR_ARGUMENT, "null pointer");
    FAILS(weft_wait_any(&request, 0, 0), WEFT_ERR_ARGUMENT, "no request is named");
    FAILS(weft_wait_any(&request, -1, 0), WEFT_ERR_ARGUMENT, "-1 requests");
    FAILS(weft_wait_any(&never, 1, 0), WEFT_ERR_ARGUMENT, "no request");
    CHECK(weft_test(request, NULL) == 0 && weft_wait_any(&request, 1, 0) == 0);
    CHECK(weft_port_close(3) == 0);
    /* What waits there is told. */
    FAILS(weft_wait(request, NULL), WEFT_ERR_PORT, "closed");
    FAILS(weft_wait(request, NULL), WEFT_ERR_ARGUMENT, "no request");
    FAILS(weft_receive(3, WEFT_ANY, 1, bytes, 1, NULL), WEFT_ERR_PORT, "port 3");
    FAILS(weft_port_open(3), WEFT_ERR_PORT, "opened before");
    CHECK(weft_send(me, 3, 1, bytes, 8) == 0);
    for (int number = -12; number <= 0; number++)
        CHECK(strcmp(weft_error_text(number), weft_error_text(1000)) != 0 || number == 0);
    CHECK(strstr(weft_error_text(-1000), "not an error"));
    pid_t child = fork();
    int status;
    if (child == 0) {
        FAILS(weft_send(me, 4, 1, bytes, 8), WEFT_ERR_STATE, "not in a job");
        FAILS(weft_finish(), WEFT_ERR_STATE, "not in a job");
        _exit(7);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK(weft_finish() == 0);
    FAILS(weft_init(0), WEFT_ERR_STATE, "joins once");
    FAILS(weft_send(me, 3, 1, bytes, 8), WEFT_ERR_STATE, "weft_finish");
    puts("ok");
    return 0;
}
