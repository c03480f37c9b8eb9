/* Objects of types of its own, and standard ones, with results that are known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_objects.h>

#define CHECK(condition)                                                                                            \
    do {                                                                                                            \
        if (!(condition)) {                                                                                         \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, weft_objects_error());      \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)
#define FAILS(error, call) CHECK((call) == WEFT_OBJECTS_ERR_##error && weft_objects_error()[0] != '\0')

enum { ADDITIONS = 300, JOBS = 200 };

/* A counter, which is plain bytes. */
struct counter {
    char odd; /* so that the size is no power of two */
    int64_t hits;
};
static int counter_object;

static int value(void *state, const void *arguments, size_t length, struct weft_bytes *answer, void *context)
{
    (void)arguments, (void)length, (void)context;
    return weft_bytes_add(answer, &((struct counter *)state)->hits, sizeof(int64_t));
}

static int add(void *state, const void *arguments, size_t length, struct weft_bytes *answer, void *context)
{
    struct counter *counter = state;
    int64_t by;
    if (length != sizeof by)
        return -5;
    memcpy(&by, arguments, sizeof by);
    counter->hits += by;
    return value(state, arguments, length, answer, context);
}

static int has_least(const void *state, const void *arguments, size_t length, void *context)
{
    (void)length, (void)context;
    return ((const struct counter *)state)->hits >= *(const int64_t *)arguments;
}

/* An operation that calls another one, which it may not. */
static int meddle(void *state, const void *arguments, size_t length, struct weft_bytes *answer, void *context)
{
    (void)state, (void)arguments, (void)length, (void)context;
    int error = weft_object_call(counter_object, 0, NULL, 0, NULL, 0, NULL);
    return weft_bytes_add(answer, &error, sizeof error);
}

enum { VALUE, ADD, AWAIT, MEDDLE };
static const struct weft_operation counter_operations[] = {
    [VALUE] = {"value", 0, NULL, value},
    [ADD] = {"add", 1, NULL, add},
    [AWAIT] = {"await", 0, has_least, value},
    [MEDDLE] = {"meddle", 0, NULL, meddle},
};
static const struct weft_object_type counter_type = {
    .name = "counter", .operations = counter_operations, .count = 4, .size = sizeof(struct counter)};

static int64_t call(int object, int operation, int64_t argument)
{
    int64_t answer;
    size_t length;
    CHECK(weft_object_call(object, operation, &argument, sizeof argument, &answer, sizeof answer, &length) == 0);
    CHECK(length == sizeof answer);
    return answer;
}

/* A text that grows, whose state is packed. */
static int states;
struct text {
    char *bytes;
    size_t length;
};

static int append(void *state, const void *arguments, size_t length, struct weft_bytes *answer, void *context)
{
    struct text *text = state;
    (void)context;
    text->bytes = realloc(text->bytes, text->length + length + 1);
    memcpy(text->bytes + text->length, arguments, length);
    text->length += length;
    return weft_bytes_add(answer, &text->length, sizeof text->length);
}

static int longer(void *state, const void *arguments, size_t length, struct weft_bytes *answer, void *context)
{
    struct text *text = state;
    (void)length, (void)context;
    if (text->length < *(const size_t *)arguments)
        return WEFT_OBJECTS_WAIT;
    return weft_bytes_add(answer, text->bytes, text->length);
}

static int pack(const void *state, struct weft_bytes *bytes, void *context)
{
    const struct text *text = state;
    (void)context;
    return weft_bytes_add(bytes, text->bytes, text->length);
}

static void *unpack(const void *bytes, size_t length, void *context)
{
    struct text *text = malloc(sizeof *text);
    text->bytes = memcpy(malloc(length + 1), length ? bytes : "", length);
    text->length = length;
    __atomic_add_fetch((int *)context, 1, __ATOMIC_SEQ_CST);
    return text;
}

static void drop(void *state, void *context)
{
    free(((struct text *)state)->bytes);
    free(state);
    __atomic_sub_fetch((int *)context, 1, __ATOMIC_SEQ_CST);
}

static const struct weft_operation text_operations[] = {{"append", 1, NULL, append}, {"longer", 0, NULL, longer}};
static const struct weft_object_type text_type = {"text", text_operations, 2, 0, pack, unpack, drop, &states};

/* Where it is, once this process has heard that it moved there. */
static int is_at(int object, int there)
{
    int where;
    do {
        call(object, VALUE, 0);
        CHECK(weft_object_placement(object, &where) == 0);
    } while (where != there);
    return 1;
}

static void counters(int me, int size, int barrier)
{
    struct counter initial = {0, 0};
    int64_t all = (int64_t)size * ADDITIONS, before = 0, number;
    int counter = counter_object = weft_object_share("counter", &counter_type, &initial);
    int again;
    CHECK(counter >= 0);
    for (int at = 0; at < ADDITIONS; at++) {
        int64_t now = call(counter, ADD, 1);
        CHECK(now > before);
        before = now;
    }
    CHECK(call(counter, AWAIT, all) == all && call(counter, VALUE, 0) == all);
    CHECK((again = weft_object_find("counter", &counter_type)) >= 0 && call(again, VALUE, 0) == all);
    CHECK(weft_object_release(again) == 0);
    FAILS(ARGUMENT, weft_object_release(again));
    /* It is as right on one process. */
    CHECK(weft_barrier_pass(barrier) == 0);
    if (me == 0)
        CHECK(weft_object_place(counter, size - 1) == 0);
    CHECK(weft_barrier_pass(barrier) == 0);
    CHECK(is_at(counter, size - 1));
    call(counter, ADD, 1);
    CHECK(call(counter, AWAIT, all + size) == all + size);
    CHECK(weft_barrier_pass(barrier) == 0);
    if (me == 0)
        CHECK(weft_object_place(counter, WEFT_OBJECTS_REPLICATED) == 0);
    CHECK(weft_barrier_pass(barrier) == 0);
    CHECK(is_at(counter, WEFT_OBJECTS_REPLICATED));
    CHECK(call(counter, VALUE, 0) == all + size);
    CHECK(weft_object_place(counter, WEFT_OBJECTS_AUTOMATIC) == 0);
    /* Who waits for some time only goes on waiting, or does something else. */
    all += 2 * size;
    FAILS(TIMEOUT, weft_object_start(counter, AWAIT, &all, sizeof all, 1, &number, sizeof number, NULL));
    FAILS(TIMEOUT, weft_object_wait(1, &number, sizeof number, NULL));
    CHECK(weft_barrier_pass(barrier) == 0);
    FAILS(TIMEOUT, weft_object_start(counter, AWAIT, &all, sizeof all, 1, &number, sizeof number, NULL));
    CHECK(weft_integer_add(weft_integer_share("arrived", 0), 1, NULL) == 0);
    CHECK(weft_integer_await(weft_integer_share("arrived", 0), size, NULL) == 0);
    if (me == 0)
        call(counter, ADD, 2 * size);
    else
        CHECK(weft_object_wait(-1, &number, sizeof number, NULL) == 0 && number >= all);
}

static void texts(int size, int barrier)
{
    size_t whole = (size_t)size * 5000, length = 0;
    char *room = calloc(1, whole + 1), some[5000];
    struct text initial = {"", 0};
    memset(some, 'x', sizeof some);
    int text = weft_object_share("text", &text_type, &initial);
    CHECK(text >= 0);
    CHECK(weft_object_call(text, 0, some, sizeof some, NULL, 0, NULL) == 0);
    CHECK(weft_object_call(text, 1, &whole, sizeof whole, room, 10, &length) == WEFT_OBJECTS_ERR_TRUNCATED);
    CHECK(length == whole && strlen(room) == 10);
    CHECK(weft_object_wait(0, room, whole, &length) == 0 && strlen(room) == whole);
    CHECK(weft_barrier_pass(barrier) == 0);
    free(room);
}

static void standard(int me, int size, int barrier)
{
    int64_t number, all = (int64_t)JOBS * (JOBS + 1) / 2;
    int jobs = weft_queue_share("jobs"), sum = weft_integer_share("sum", 0), job, taken;
    uint64_t left;
    size_t length;
    CHECK(jobs >= 0 && sum >= 0);
    if (me == 0) {
        for (job = 1; job <= JOBS; job++)
            CHECK(weft_queue_add(jobs, &job, sizeof job) == 1);
        CHECK(weft_queue_close(jobs) == 0 && weft_queue_add(jobs, &job, sizeof job) == 0);
    }
    while ((taken = weft_queue_take(jobs, &job, sizeof job, &length)) == 1)
        CHECK(length == sizeof job && weft_integer_add(sum, job, NULL) == 0);
    CHECK(taken == 0 && weft_integer_await(sum, all, NULL) == 0);
    CHECK(weft_integer_value(sum, &number) == 0 && number == all);
    CHECK(weft_queue_length(jobs, &left) == 0 && left == 0);
    /* A job that is longer than the room is stored again, and is not the end. */
    char text[8], name[16];
    snprintf(name, sizeof name, "long %d", me);
    int mine = weft_queue_share(name);
    CHECK(mine >= 0 && weft_queue_add(mine, "a job", 6) == 1);
    FAILS(TRUNCATED, weft_queue_take(mine, text, 2, &length));
    CHECK(length == 6 && weft_object_wait(0, text, sizeof text, &length) == 1 && strcmp(text, "a job") == 0);
    CHECK(weft_barrier_pass(barrier) == 0);
    CHECK(weft_integer_lower_to(sum, me, NULL) == 0 && weft_barrier_pass(barrier) == 0);
    CHECK(weft_integer_value(sum, &number) == 0 && number == 0 && weft_barrier_pass(barrier) == 0);
    CHECK(weft_integer_raise_to(sum, me, NULL) == 0 && weft_barrier_pass(barrier) == 0);
    CHECK(weft_integer_value(sum, &number) == 0 && number == size - 1 && weft_barrier_pass(barrier) == 0);
    FAILS(ARGUMENT, weft_barrier_pass(sum));
    CHECK(strcmp(weft_objects_error(), "object 'sum' is an integer, not a barrier") == 0);
    FAILS(ARGUMENT, weft_barrier_share("barrier", size + 96));
    CHECK(strstr(weft_objects_error(), "barrier 'barrier' is for ") == weft_objects_error());
    FAILS(ARGUMENT, weft_integer_share("", 0));
    FAILS(ARGUMENT, weft_object_call(sum, 0, NULL, 0, NULL, 0, NULL));
}

static void faults(int me, int barrier)
{
    struct counter initial = {0, 1};
    struct weft_object_type other = counter_type;
    struct weft_operation none = {"none", 0, NULL, NULL};
    int error;
    FAILS(NAME, weft_object_find("nobody's", &counter_type));
    FAILS(TYPE, weft_object_find("text", &counter_type));
    CHECK(strstr(weft_objects_error(), "not counter with value, add (writes), await, meddle") != NULL);
    FAILS(TYPE, weft_object_find("jobs", &counter_type));
    CHECK(strstr(weft_objects_error(), "is of type JobQueueObject<Vec<u8>>, not") != NULL);
    other.count = 3;
    FAILS(TYPE, weft_object_find("counter", &other));
    other.count = 0;
    FAILS(ARGUMENT, weft_object_find("counter", &other));
    other.count = 1, other.operations = &none;
    FAILS(ARGUMENT, weft_object_find("counter", &other));
    other = counter_type, other.pack = pack;
    FAILS(ARGUMENT, weft_object_find("counter", &other));
    FAILS(ARGUMENT, weft_object_share("counter", &counter_type, NULL));
    FAILS(ARGUMENT, weft_object_share(NULL, &counter_type, &initial));
    FAILS(ARGUMENT, weft_object_call(counter_object, 9, NULL, 0, NULL, 0, NULL));
    CHECK(strcmp(weft_objects_error(), "object 'counter' has no operation 9: its type has operations 0 to 3") == 0);
    FAILS(ARGUMENT, weft_object_call(counter_object, ADD, NULL, 8, NULL, 0, NULL));
    FAILS(ARGUMENT, weft_object_place(counter_object, 4000));
    FAILS(ARGUMENT, weft_object_call(77, 0, NULL, 0, NULL, 0, NULL));
    CHECK(weft_object_call(counter_object, MEDDLE, NULL, 0, &error, sizeof error, NULL) == 0);
    CHECK(error == WEFT_OBJECTS_ERR_STATE);
    /* A write that fails is an error to its caller, and the object is of no use to anybody; others go on. */
    int broken = weft_object_share("broken", &counter_type, &initial);
    CHECK(broken >= 0 && weft_barrier_pass(barrier) == 0);
    if (me == 0)
        FAILS(FAILED, weft_object_call(broken, ADD, "no", 2, NULL, 0, NULL));
    CHECK(weft_barrier_pass(barrier) == 0);
    FAILS(BROKEN, weft_object_call(broken, ADD, NULL, 0, NULL, 0, NULL));
    CHECK(call(counter_object, VALUE, 0) > 1);
}

int main(int count, char **words)
{
    FAILS(STATE, weft_objects_me());
    FAILS(STATE, weft_integer_share("early", 0));
    CHECK(weft_objects_init() == 0);
    if (count > 1 && strcmp(words[1], "deliver") == 0)
        CHECK(weft_objects_deliver(1) == 0);
    int me = weft_objects_me(), size = weft_objects_size(), barrier = weft_barrier_share("barrier", size);
    CHECK(barrier >= 0);
    counters(me, size, barrier);
    texts(size, barrier);
    standard(me, size, barrier);
    faults(me, barrier);
    CHECK(weft_objects_finish() == 0);
    CHECK(states == 0);
    FAILS(STATE, weft_objects_size());
    if (me == 0)
        puts("ok");
    return 0;
}
