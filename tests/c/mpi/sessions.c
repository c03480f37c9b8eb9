/* Sessions: without MPI_Init, beside it, several at once, one after another; what they say and what comes from them. */
#include "check.h"

#include <pthread.h>

static int handled;

/* Says who we are, without a world. */
static void place(MPI_Session session)
{
    MPI_Group group;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Group_rank(group, &check_rank));
    OK(MPI_Group_size(group, &check_size));
    OK(MPI_Group_free(&group));
}

static MPI_Comm comm_of(MPI_Session session, const char *set, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, set, &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

/* The communicator works. */
static void try_comm(MPI_Comm comm)
{
    int rank, size, sum = -1, got = -1;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 5, &got, 1, MPI_INT, (rank + size - 1) % size, 5, comm,
                    MPI_STATUS_IGNORE));
    CHECK(got == (rank + size - 1) % size);
}

/* One session from beginning to end, with all that it says. */
static void whole(const char *tag)
{
    MPI_Session session;
    MPI_Info info;
    MPI_Comm comm, copy;
    MPI_Group group, other;
    int *bound, sets, length, flag, result, seen_world = 0, seen_self = 0;
    char name[MPI_MAX_PSET_NAME_LEN], value[MPI_MAX_INFO_VAL], size[20];
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    place(session);
    snprintf(size, sizeof size, "%d", check_size);
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets));
    for (int i = 0; i < sets; i++) {
        length = 0;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        int whole = length;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        CHECK(length == whole && (int)strlen(name) + 1 == whole);
        length = 4;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, value));
        CHECK(length == whole && strlen(value) == 3 && strncmp(value, name, 3) == 0);
        OK(MPI_Session_get_pset_info(session, name, &info));
        OK(MPI_Info_get(info, "mpi_size", MPI_MAX_INFO_VAL - 1, value, &flag));
        CHECK(flag);
        OK(MPI_Info_free(&info));
        OK(MPI_Group_from_session_pset(session, name, &group));
        OK(MPI_Group_size(group, &result));
        CHECK(atoi(value) == result);
        OK(MPI_Group_free(&group));
        if (strcmp(name, "mpi://WORLD") == 0)
            seen_world = strcmp(value, size) == 0;
        if (strcmp(name, "mpi://SELF") == 0)
            seen_self = strcmp(value, "1") == 0;
    }
    CHECK(seen_world && seen_self);
    OK(MPI_Session_get_info(session, &info));
    OK(MPI_Info_get(info, "thread_level", MPI_MAX_INFO_VAL - 1, value, &flag));
    CHECK(flag && strncmp(value, "MPI_THREAD_", 11) == 0);
    OK(MPI_Info_free(&info));

    comm = comm_of(session, "mpi://WORLD", tag);
    try_comm(comm);
    OK(MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &flag));
    CHECK(flag && *bound >= 32767);
    OK(MPI_Comm_get_attr(comm, MPI_WTIME_IS_GLOBAL, &bound, &flag));
    CHECK(!flag);
    OK(MPI_Comm_dup(comm, &copy));
    try_comm(copy);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_split(comm, check_rank % 2, 0, &copy));
    try_comm(copy);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Group_from_session_pset(session, "mpi://world", &other));
    OK(MPI_Group_compare(group, other, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_free(&group));
    /* The ranks the other way round. */
    int range[1][3] = {{check_size - 1, 0, -1}};
    OK(MPI_Group_range_incl(other, 1, range, &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &copy));
    OK(MPI_Comm_rank(copy, &result));
    CHECK(result == check_size - 1 - check_rank);
    try_comm(copy);
    OK(MPI_Comm_disconnect(&copy));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&other));
    OK(MPI_Comm_disconnect(&comm));
    comm = comm_of(session, "mpi://SELF", tag);
    try_comm(comm);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    CHECK(comm == MPI_COMM_NULL);
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL);
}

/* Several sessions, ended in another order, with communicators at the same time. */
static void several(void)
{
    enum { N = 4 };
    MPI_Session sessions[N];
    MPI_Comm comms[N];
    for (int i = 0; i < N; i++) {
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &sessions[i]));
        comms[i] = comm_of(sessions[i], "mpi://WORLD", "several");
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            CHECK(sessions[i] != sessions[j] && comms[i] != comms[j]);
    for (int i = 0; i < N; i++) {
        int last = i % 2 == 0 ? i / 2 : N - 1 - i / 2;
        try_comm(comms[last]);
        OK(MPI_Comm_free(&comms[last]));
        OK(MPI_Session_finalize(&sessions[last]));
    }
}

/* The world comes and goes; the session stays. */
static void beside_the_world(int *argc, char ***argv)
{
    MPI_Session session;
    MPI_Comm comm, later, inner;
    int flag;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    place(session);
    /* The ranks have made different numbers of communicators before the world comes. */
    for (int i = 0; i < check_rank; i++) {
        comm = comm_of(session, "mpi://SELF", "alone");
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Initialized(&flag));
    CHECK(!flag);
    comm = comm_of(session, "mpi://WORLD", "before");
    OK(MPI_Init(argc, argv));
    OK(MPI_Initialized(&flag));
    CHECK(flag);
    try_comm(MPI_COMM_WORLD);
    try_comm(comm);
    OK(MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &inner));
    later = comm_of(session, "mpi://WORLD", "later");
    try_comm(later);
    try_comm(inner);
    OK(MPI_Comm_free(&inner));
    OK(MPI_Finalize());
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    try_comm(comm);
    try_comm(later);
    OK(MPI_Comm_free(&later));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
}

/* Two groups and their leaders. */
static void between(void)
{
    MPI_Session session;
    MPI_Group world, low, high;
    MPI_Comm inter, merged;
    int half, size, remote, flag;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    place(session);
    half = check_size / 2;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    if (check_size >= 2) {
        int is_low = check_rank < half;
        int first[1][3] = {{0, half - 1, 1}}, second[1][3] = {{half, check_size - 1, 1}};
        OK(MPI_Group_range_incl(world, 1, first, &low));
        OK(MPI_Group_range_incl(world, 1, second, &high));
        for (int turn = 0; turn < 2; turn++) {
            OK(MPI_Intercomm_create_from_groups(is_low ? low : high, is_low ? half - 1 : 0, is_low ? high : low,
                                                is_low ? 0 : half - 1, "between", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                                &inter));
            OK(MPI_Comm_test_inter(inter, &flag));
            OK(MPI_Comm_size(inter, &size));
            OK(MPI_Comm_remote_size(inter, &remote));
            CHECK(flag && size == (is_low ? half : check_size - half) && size + remote == check_size);
            OK(MPI_Intercomm_merge(inter, !is_low, &merged));
            try_comm(merged);
            OK(MPI_Comm_free(&merged));
            OK(MPI_Comm_free(&inter));
        }
        OK(MPI_Group_free(&low));
        OK(MPI_Group_free(&high));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Session_finalize(&session));
}

static MPI_Session shared;

/* Each thread of every rank makes communicators under a tag of its own. */
static void *make(void *number)
{
    char tag[20];
    snprintf(tag, sizeof tag, "thread %d", *(int *)number);
    for (int turn = 0; turn < 5; turn++) {
        MPI_Comm comm = comm_of(shared, "mpi://WORLD", tag);
        try_comm(comm);
        OK(MPI_Comm_free(&comm));
    }
    return NULL;
}

static void threads(void)
{
    enum { N = 3 };
    pthread_t threads[N];
    int numbers[N], flag;
    MPI_Info info;
    char value[64];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "several"));
    int class;
    OK(MPI_Error_class(MPI_Session_init(info, MPI_ERRORS_RETURN, &shared), &class));
    CHECK(class == MPI_ERR_INFO_VALUE);
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &shared));
    OK(MPI_Info_free(&info));
    place(shared);
    OK(MPI_Session_get_info(shared, &info));
    OK(MPI_Info_get(info, "thread_level", 63, value, &flag));
    CHECK(flag && strcmp(value, "MPI_THREAD_MULTIPLE") == 0);
    OK(MPI_Info_free(&info));
    for (int i = 0; i < N; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, make, &numbers[i]) == 0);
    }
    for (int i = 0; i < N; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    OK(MPI_Session_finalize(&shared));
}

/* A session's buffer serves its communicators. */
static void buffered(void)
{
    enum { BYTES = 1 << 20 };
    static char out[BYTES], in[BYTES], room[BYTES + MPI_BSEND_OVERHEAD];
    MPI_Session session;
    void *at;
    int bytes, right, left;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Comm comm = comm_of(session, "mpi://WORLD", "buffered");
    OK(MPI_Session_attach_buffer(session, room, sizeof room));
    right = (check_rank + 1) % check_size;
    left = (check_rank + check_size - 1) % check_size;
    memset(out, check_rank + 1, BYTES);
    OK(MPI_Bsend(out, BYTES, MPI_CHAR, right, 0, comm));
    memset(out, 0x7f, BYTES);
    OK(MPI_Recv(in, BYTES, MPI_CHAR, left, 0, comm, MPI_STATUS_IGNORE));
    CHECK(in[0] == left + 1 && in[BYTES - 1] == left + 1);
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Session_detach_buffer(session, &at, &bytes));
    CHECK(at == room && bytes == sizeof room);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
}

static void on_session(MPI_Session *session, int *code, ...)
{
    (void)code;
    handled += *session != MPI_SESSION_NULL ? 1 : 100;
}

static void on_comm(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    handled += *comm == MPI_COMM_NULL ? 10 : 1000;
}

/* The call fails with this class, and the line has the words. */
static void refused(int line, int code, int class_, const char *words)
{
    char text[MPI_MAX_ERROR_STRING];
    int got = -1, length;
    MPI_Error_class(code, &got);
    MPI_Error_string(code, text, &length);
    if (code == MPI_SUCCESS || got != class_ || strstr(text, words) == NULL) {
        fprintf(stderr, "line %d: class %d instead of %d: `%s` without `%s`\n", line, got, class_, text, words);
        exit(99);
    }
}
#define REFUSED(class_, words, call) refused(__LINE__, (call), (class_), (words))

static void errors(void)
{
    MPI_Session session;
    MPI_Errhandler for_sessions, for_comms, got;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    int n, length = 0;
    char name[64], *longer = malloc(MPI_MAX_STRINGTAG_LEN + 1);
    OK(MPI_Session_create_errhandler(on_session, &for_sessions));
    OK(MPI_Comm_create_errhandler(on_comm, &for_comms));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    place(session);
    memset(longer, 'x', MPI_MAX_STRINGTAG_LEN);
    longer[MPI_MAX_STRINGTAG_LEN] = 0;
    REFUSED(MPI_ERR_ARG, "`mpi://NONE`", MPI_Group_from_session_pset(session, "mpi://NONE", &group));
    REFUSED(MPI_ERR_ARG, "pset_name is a null pointer", MPI_Group_from_session_pset(session, NULL, &group));
    REFUSED(MPI_ERR_ARG, "`nothing`", MPI_Session_get_pset_info(session, "nothing", &info));
    REFUSED(MPI_ERR_ARG, "n -1", MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, name));
    REFUSED(MPI_ERR_ARG, "n 99", MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 99, &length, name));
    length = -2;
    REFUSED(MPI_ERR_ARG, "pset_len -2", MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name));
    length = 5;
    REFUSED(MPI_ERR_ARG, "pset_name is a null", MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL));
    REFUSED(MPI_ERR_ARG, "pset_len is a null", MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, NULL, name));
    REFUSED(MPI_ERR_INFO, "info", MPI_Session_get_num_psets(session, (MPI_Info)0x7777, &n));
    REFUSED(MPI_ERR_ERRHANDLER, "made for a comm", MPI_Session_set_errhandler(session, for_comms));

    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    REFUSED(MPI_ERR_ARG, "stringtag has 1024 bytes",
            MPI_Comm_create_from_group(group, longer, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    REFUSED(MPI_ERR_ARG, "stringtag is a null pointer",
            MPI_Comm_create_from_group(group, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    REFUSED(MPI_ERR_GROUP, "group is the null handle",
            MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    REFUSED(MPI_ERR_RANK, "local_leader 1",
            MPI_Intercomm_create_from_groups(group, 1, group, 0, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    REFUSED(MPI_ERR_RANK, "remote_leader -1",
            MPI_Intercomm_create_from_groups(group, 0, group, -1, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    REFUSED(MPI_ERR_GROUP, "in common",
            MPI_Intercomm_create_from_groups(group, 0, group, 0, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    REFUSED(MPI_ERR_ARG, "newgroup is a null", MPI_Group_from_session_pset(session, "mpi://WORLD", NULL));
    /* Its value where its address belongs. */
    REFUSED(MPI_ERR_ARG, "newgroup (0x108) is no address",
            MPI_Group_from_session_pset(session, "mpi://WORLD", (MPI_Group *)MPI_GROUP_NULL));

    /* Whose handler is asked: the session's, and the one that a call is given. */
    OK(MPI_Session_set_errhandler(session, for_sessions));
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK(got == for_sessions);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&for_sessions));
    CHECK(MPI_Session_get_num_psets(session, (MPI_Info)0x7777, &n) != MPI_SUCCESS && handled == 1);
    OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
    CHECK(handled == 2);
    CHECK(MPI_Comm_create_from_group(group, NULL, MPI_INFO_NULL, for_comms, &comm) != MPI_SUCCESS && handled == 12);
    OK(MPI_Errhandler_free(&for_comms));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
    free(longer);
}

static int deleted;

static int count_deletion(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)keyval, (void)state;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

/* A session ends with all that was made from it still there, in another order than others know it. */
static void left(const char *path)
{
    static int memory[4], one = 1;
    static char room[MPI_BSEND_OVERHEAD + 64];
    MPI_Session session, other;
    MPI_Comm comm, halves, kept;
    MPI_Win win, second;
    MPI_File file;
    int keyval, *base, value = 0, sent = 7;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    place(session);
    comm = comm_of(session, "mpi://WORLD", "left");
    kept = comm_of(other, "mpi://WORLD", "kept");
    /* Handles differ from rank to rank. */
    if (check_rank % 2 == 0)
        halves = comm_of(session, "mpi://SELF", "alone");
    OK(MPI_Comm_split(comm, check_rank % 2, 0, &halves));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deletion, &keyval, NULL));
    OK(MPI_Comm_set_attr(comm, keyval, &one));
    OK(MPI_Comm_set_attr(halves, keyval, &one));
    OK(MPI_Comm_set_attr(kept, keyval, &one));
    OK(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, comm, &win));
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, halves, &base, &second));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&one, 1, MPI_INT, (check_rank + 1) % check_size, 1, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memory[1] == 1);
    OK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Session_attach_buffer(session, room, sizeof room));
    OK(MPI_Bsend(&sent, 1, MPI_INT, (check_rank + 1) % check_size, 3, comm));
    OK(MPI_Recv(&value, 1, MPI_INT, (check_rank + check_size - 1) % check_size, 3, comm, MPI_STATUS_IGNORE));
    CHECK(value == 7);
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL && deleted == 2);
    /* All have closed the file, and the first one has deleted it. */
    CHECK(fopen(path, "r") == NULL);
    MPI_Comm_free_keyval(&keyval);
    try_comm(kept);
    OK(MPI_Session_finalize(&other));
    CHECK(deleted == 3);
}

/* MPI_COMM_WORLD is there without MPI_Init, and the same one after it. */
static void bare(int *argc, char ***argv)
{
    MPI_Session session;
    int flag;
    for (int turn = 0; turn < 2; turn++) {
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        place(session);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        try_comm(MPI_COMM_WORLD);
        try_comm(MPI_COMM_SELF);
        OK(MPI_Initialized(&flag));
        CHECK(!flag);
        OK(MPI_Session_finalize(&session));
    }
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    try_comm(MPI_COMM_WORLD);
    OK(MPI_Init(argc, argv));
    try_comm(MPI_COMM_WORLD);
    OK(MPI_Finalize());
    OK(MPI_Session_finalize(&session));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int flag;
    if (strcmp(what, "whole") == 0) {
        for (int turn = 0; turn < 3; turn++)
            whole("whole");
        OK(MPI_Initialized(&flag));
        CHECK(!flag);
    } else if (strcmp(what, "several") == 0) {
        several();
        several();
        whole("after several");
    } else if (strcmp(what, "beside") == 0) {
        beside_the_world(&argc, &argv);
        whole("after the world");
    } else if (strcmp(what, "after") == 0) {
        OK(MPI_Init(&argc, &argv));
        try_comm(MPI_COMM_WORLD);
        OK(MPI_Finalize());
        whole("after");
        several();
    } else if (strcmp(what, "between") == 0) {
        between();
        between();
    } else if (strcmp(what, "threads") == 0) {
        threads();
    } else if (strcmp(what, "buffered") == 0) {
        whole("where we are");
        buffered();
    } else if (strcmp(what, "errors") == 0) {
        errors();
    } else if (strcmp(what, "left") == 0) {
        left(argv[2]);
        whole("after what was left");
    } else if (strcmp(what, "bare") == 0) {
        bare(&argc, &argv);
    } else {
        return 98;
    }
    if (check_rank == 0)
        puts("ok");
    return 0;
}
