/* A client of the PMIx library alone: says what it is told of its job, and what came of what it was asked to do. */
#include <pmix.h>
#include <pmix_tool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me, all;
static uint32_t size;

static void need(const char *what, pmix_status_t status) {
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "rank %u: %s: %s\n", me.rank, what, PMIx_Error_string(status));
        exit(9);
    }
}

/* A value as a number; strings are printed where they are wanted. */
static long number(const pmix_proc_t *of, const char *key) {
    pmix_value_t *value;
    need(key, PMIx_Get(of, key, NULL, 0, &value));
    switch (value->type) {
    case PMIX_UINT16: return value->data.uint16;
    case PMIX_UINT32: return value->data.uint32;
    case PMIX_PROC_RANK: return value->data.rank;
    case PMIX_SIZE: return (long)value->data.size;
    default: fprintf(stderr, "%s has type %d\n", key, value->type); exit(9);
    }
}

static const char *text(const pmix_proc_t *of, const char *key) {
    pmix_value_t *value;
    need(key, PMIx_Get(of, key, NULL, 0, &value));
    if (value->type != PMIX_STRING) {
        fprintf(stderr, "%s has type %d\n", key, value->type);
        exit(9);
    }
    return value->data.string;
}

static void put(const char *key, const char *bytes, size_t length) {
    pmix_value_t value;
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)bytes;
    value.data.bo.size = length;
    need("put", PMIx_Put(PMIX_GLOBAL, key, &value));
    need("commit", PMIx_Commit());
}

static void fence(const pmix_proc_t *of, size_t count, int collect) {
    pmix_info_t info;
    bool flag = true;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &flag, PMIX_BOOL);
    need("fence", PMIx_Fence(of, count, collect ? &info : NULL, collect ? 1 : 0));
}

static pmix_proc_t process(uint32_t rank) {
    pmix_proc_t process = me;
    process.rank = rank;
    return process;
}

/* What this rank puts in this round: of different lengths, and no text. */
static size_t fill(char *bytes, uint32_t rank, int round) {
    size_t length = 1 + (rank * 37 + round * 1001) % 3000;
    for (size_t at = 0; at < length; at++) bytes[at] = (char)(rank + round + at);
    return length;
}

static void check(uint32_t rank, int round, const char *key) {
    static char expected[4000];
    size_t length = fill(expected, rank, round);
    pmix_proc_t of = process(rank);
    pmix_value_t *value;
    need(key, PMIx_Get(&of, key, NULL, 0, &value));
    if (value->type != PMIX_BYTE_OBJECT || value->data.bo.size != length
        || memcmp(value->data.bo.bytes, expected, length) != 0) {
        fprintf(stderr, "rank %u: %s of rank %u is wrong\n", me.rank, key, rank);
        exit(9);
    }
}

/* All values of all ranks come with the fence, or each when it is asked for. */
static void exchange(int rounds, int collect) {
    static char bytes[4000];
    for (int round = 0; round < rounds; round++) {
        char key[32];
        snprintf(key, sizeof key, "value-%d", round);
        put(key, bytes, fill(bytes, me.rank, round));
        fence(&all, 1, collect);
        for (uint32_t rank = 0; rank < size; rank++) check(rank, round, key);
    }
    printf("rank %u exchanged %d\n", me.rank, rounds);
}

/* Fences of some ranks, which the others know nothing of. */
static void parts(void) {
    static char bytes[4000];
    pmix_proc_t own[size];
    size_t count = 0;
    for (uint32_t rank = me.rank % 2; rank < size; rank += 2) own[count++] = process(rank);
    for (int round = 0; round < 5; round++) {
        char key[32];
        snprintf(key, sizeof key, "part-%d", round);
        put(key, bytes, fill(bytes, me.rank, round));
        fence(own, count, 1);
        for (size_t at = 0; at < count; at++) check(own[at].rank, round, key);
    }
    fence(&all, 1, 0);
    printf("rank %u fenced with %zu\n", me.rank, count);
}

static void publish(void) {
    if (me.rank == 0) {
        pmix_info_t info;
        PMIX_INFO_LOAD(&info, "door", "here it is", PMIX_STRING);
        need("publish", PMIx_Publish(&info, 1));
        pmix_status_t again = PMIx_Publish(&info, 1);
        if (again == PMIX_SUCCESS) exit(9);
    }
    fence(&all, 1, 0);
    pmix_pdata_t found;
    PMIX_PDATA_CONSTRUCT(&found);
    strcpy(found.key, "door");
    need("lookup", PMIx_Lookup(&found, 1, NULL, 0));
    printf("rank %u found '%s' of rank %u\n", me.rank, found.value.data.string, found.proc.rank);
    fence(&all, 1, 0);
    if (me.rank == 0) {
        char *keys[] = {"door", NULL};
        need("unpublish", PMIx_Unpublish(keys, NULL, 0));
        if (PMIx_Lookup(&found, 1, NULL, 0) == PMIX_SUCCESS) exit(9);
    }
}

static void spawn(void) {
    if (me.rank == 0) {
        pmix_app_t app;
        PMIX_APP_CONSTRUCT(&app);
        app.cmd = strdup("true");
        app.maxprocs = 1;
        char space[PMIX_MAX_NSLEN + 1];
        pmix_status_t status = PMIx_Spawn(NULL, 0, &app, 1, space);
        printf("spawn: %s\n", PMIx_Error_string(status));
    }
    fence(&all, 1, 0);
}

static void describe(void) {
    printf("rank %u of %u, universe %ld, host %ld of %ld, local %ld of %ld: %s, first %ld, program %ld of %ld\n", me.rank,
           size, number(&all, PMIX_UNIV_SIZE), number(&me, PMIX_NODEID), number(&all, PMIX_NUM_NODES),
           number(&me, PMIX_LOCAL_RANK), number(&all, PMIX_LOCAL_SIZE), text(&all, PMIX_LOCAL_PEERS),
           number(&all, PMIX_LOCALLDR), number(&me, PMIX_APPNUM), number(&all, PMIX_JOB_NUM_APPS));
    pmix_proc_t last = process(size - 1);
    printf("rank %u knows %s\n", me.rank, text(&last, PMIX_HOSTNAME));
}

/* Ranks of uneven number die at once. The others may learn it from what they are at, and go on without them. */
static void survive(void) {
    if (me.rank % 2 == 1) kill(getpid(), SIGKILL);
    pmix_status_t first = PMIx_Fence(&all, 1, NULL, 0);
    if (first != PMIX_ERR_LOST_CONNECTION) need("fence", first);
    static char bytes[4000];
    put("alive", bytes, fill(bytes, me.rank, 0));
    fence(&all, 1, 1);
    for (uint32_t rank = 0; rank < size; rank += 2) check(rank, 0, "alive");
    pmix_proc_t lost = process(1);
    pmix_value_t *value;
    printf("rank %u goes on without: %s\n", me.rank, PMIx_Error_string(PMIx_Get(&lost, "alive", NULL, 0, &value)));
}

/* Each rank puts so many values of 9 MiB. */
static void much(int count) {
    enum { BYTES = 9 << 20 };
    char *bytes = calloc(BYTES, 1);
    for (int at = 0; at < count; at++) {
        char key[32];
        snprintf(key, sizeof key, "much-%d", at);
        put(key, bytes, BYTES);
    }
    pmix_info_t info;
    bool flag = true;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &flag, PMIX_BOOL);
    printf("rank %u: %s\n", me.rank, PMIx_Error_string(PMIx_Fence(&all, 1, &info, 1)));
    fence(&all, 1, 0);
}

/* Comes to the server as a tool, which knows no more than its port, and wants the end of the job, and what it knows. */
static int come_as_stranger(void) {
    static const char *const told[] = {"PMIX_NAMESPACE", "PMIX_RANK"};
    for (size_t at = 0; at < sizeof told / sizeof *told; at++) unsetenv(told[at]);
    pmix_info_t infos[3];
    pmix_rank_t rank = 0;
    PMIX_INFO_LOAD(&infos[0], PMIX_SERVER_URI, getenv("PMIX_SERVER_URI4"), PMIX_STRING);
    PMIX_INFO_LOAD(&infos[1], PMIX_TOOL_NSPACE, "stranger", PMIX_STRING);
    PMIX_INFO_LOAD(&infos[2], PMIX_TOOL_RANK, &rank, PMIX_PROC_RANK);
    if (PMIx_tool_init(&me, infos, 3) != PMIX_SUCCESS) return 0;
    PMIx_Abort(7, "a stranger wants it", NULL, 0);
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, "door", "mine", PMIX_STRING);
    if (PMIx_Publish(&info, 1) == PMIX_SUCCESS) return 9;
    return 0;
}

/* The others never come, and the library may say so before the launcher has heard of it. */
static void await_end(void) {
    PMIx_Fence(&all, 1, NULL, 0);
    for (;;) pause();
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "describe";
    if (strcmp(what, "stranger") == 0) return come_as_stranger();
    need("init", PMIx_Init(&me, NULL, 0));
    all = process(PMIX_RANK_WILDCARD);
    size = (uint32_t)number(&all, PMIX_JOB_SIZE);
    if (strcmp(what, "describe") == 0) describe();
    if (strcmp(what, "collect") == 0) exchange(20, 1);
    if (strcmp(what, "ask") == 0) exchange(20, 0);
    if (strcmp(what, "parts") == 0) parts();
    if (strcmp(what, "publish") == 0) publish();
    if (strcmp(what, "spawn") == 0) spawn();
    if (strcmp(what, "survive") == 0) survive();
    if (strcmp(what, "much") == 0) much(atoi(words[2]));
    if (strcmp(what, "again") == 0) {
        need("finalize", PMIx_Finalize(NULL, 0));
        need("init", PMIx_Init(&me, NULL, 0));
    }
    if (strcmp(what, "connect") == 0) {
        need("connect", PMIx_Connect(&all, 1, NULL, 0));
        need("disconnect", PMIx_Disconnect(&all, 1, NULL, 0));
    }
    fflush(stdout);
    if (strcmp(what, "abort") == 0) {
        if (me.rank == size - 1) PMIx_Abort(7, "enough of it", NULL, 0);
        await_end();
    }
    if (strcmp(what, "killed") == 0) {
        if (me.rank == size - 1) kill(getpid(), SIGKILL);
        await_end();
    }
    if (strcmp(what, "gone") == 0 && me.rank == size - 1) _exit(0);
    need("finalize", PMIx_Finalize(NULL, 0));
    return 0;
}
