/* Descriptors with several names and connections with several processes, some of them without the library. */
#include "behaviour.h"

void duplicates(void)
{
    int b, a = pair(&b);
    char buffer[10];
    int copy = dup(a), high = fcntl(a, F_DUPFD, 100);
    must(high >= 100);
    send_all(b, "1234", 4);
    receive_all(copy, buffer, 2);
    receive_all(high, buffer + 2, 2);
    must(!memcmp(buffer, "1234", 4));
    close(a);
    send_all(copy, "from copy", 9);
    receive_all(b, buffer, 9);
    must(!fcntl(high, F_SETFL, O_NONBLOCK) && recv(copy, buffer, 1, 0) == -1 && errno == EAGAIN);
    must(dup2(b, copy) == copy);
    send_all(high, "over", 4);
    receive_all(copy, buffer, 4);
    close(copy);
    close_range(100, 200, 0);
    must(recv(b, buffer, 1, 0) == 0);
    close(b);
}

void forked(void)
{
    int fd;
    pid_t child = peer(&fd, echo);
    talk(fd, 100);
    pid_t second = fork();
    if (second == 0) {
        talk(fd, 100);
        _exit(0);
    }
    ended_well(second);
    talk(fd, 100);
    second = fork();
    if (second == 0) {
        close(fd);
        _exit(0);
    }
    ended_well(second);
    talk(fd, 100);
    must(!shutdown(fd, SHUT_WR));
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
    ended_well(child);
    close(fd);
}

static void run_cat(int fd)
{
    dup2(fd, 0);
    dup2(fd, 1);
    close(fd);
    execl("/bin/cat", "cat", NULL);
    _exit(9);
}

void executed(void)
{
    int fd;
    pid_t child = peer(&fd, run_cat);
    talk(fd, 100);
    must(!shutdown(fd, SHUT_WR));
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
    ended_well(child);
    close(fd);
}

static void spawn_cat(int fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 0);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    char *arguments[] = { "cat", NULL };
    pid_t cat;
    must(!posix_spawn(&cat, "/bin/cat", &actions, NULL, arguments, environ));
    close(fd);
    ended_well(cat);
}

void spawned(void)
{
    int fd;
    pid_t child = peer(&fd, spawn_cat);
    talk(fd, 100);
    must(!shutdown(fd, SHUT_WR));
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
    ended_well(child);
    close(fd);
}

static void stdio_echo(int fd)
{
    FILE *file = fdopen(fd, "r+");
    char line[200];
    setvbuf(file, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, file))
        must(dprintf(fd, "%s", line) == (int)strlen(line));
    fclose(file);
}

void standard_io(void)
{
    int fd;
    pid_t child = peer(&fd, stdio_echo);
    talk(fd, 50);
    must(!shutdown(fd, SHUT_WR));
    char byte;
    must(recv(fd, &byte, 1, 0) == 0);
    ended_well(child);
    close(fd);
}

static void pass_on(int fd)
{
    int both[2];
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, both));
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        char byte, room[CMSG_SPACE(sizeof(int))];
        struct iovec piece = { &byte, 1 };
        struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
        must(recvmsg(both[1], &header, 0) == 1);
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
        echo(fd);
        _exit(0);
    }
    char room[CMSG_SPACE(sizeof(int))] = "";
    struct iovec piece = { "x", 1 };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    struct cmsghdr *message = CMSG_FIRSTHDR(&header);
    *message = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd) };
    memcpy(CMSG_DATA(message), &fd, sizeof fd);
    must(sendmsg(both[0], &header, 0) == 1);
    close(fd);
    ended_well(child);
}

void passed(void)
{
    int fd;
    pid_t child = peer(&fd, pass_on);
    talk(fd, 100);
    must(!shutdown(fd, SHUT_WR));
    ended_well(child);
    close(fd);
}

static void killed(int fd)
{
    char *buffer = malloc(100000);
    memset(buffer, 'k', 100000);
    send_all(fd, buffer, 100000);
    kill(getpid(), SIGKILL);
}

void peer_killed(void)
{
    int fd;
    pid_t child = peer(&fd, killed);
    char buffer[100000];
    waitpid(child, NULL, 0);
    receive_all(fd, buffer, sizeof buffer);
    for (size_t i = 0; i < sizeof buffer; i++)
        must(buffer[i] == 'k');
    must(recv(fd, buffer, 1, 0) == 0);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 1000 && send(fd, buffer, 100, 0) == 100; i++)
        usleep(1000);
    must(errno == EPIPE || errno == ECONNRESET);
    close(fd);
}
