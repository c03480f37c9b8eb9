/* Events of the tool interface: what their kinds say of themselves, callbacks at their levels, what they are told, and what
 * wrong arguments are answered. */
#include "check.h"

#define REFUSED(code, call) CHECK((call) == (code))

/* What the callbacks have seen. */
struct seen {
    int called, freed, levels_wrong;
    /* Messages of this tag only; the library has some of its own. */
    int tag;
    MPI_Count dropped, last_time;
    MPI_T_event_registration registration;
    int integers[4];
    unsigned long long bytes;
};

static void look(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    struct seen *seen = data;
    struct {
        int integers[4];
        unsigned long long bytes;
    } whole;
    int source = -1, value = -1;
    unsigned long long bytes = 0;
    MPI_Count time = -1, later = -1;
    CHECK(registration == seen->registration);
    OK(MPI_T_event_read(event, 1, &value));
    if (seen->tag && value != seen->tag)
        return;
    seen->levels_wrong += safety != MPI_T_CB_REQUIRE_MPI_RESTRICTED;
    OK(MPI_T_event_get_source(event, &source));
    CHECK(source == 0);
    OK(MPI_T_event_get_timestamp(event, &time));
    OK(MPI_T_source_get_timestamp(source, &later));
    CHECK(time >= seen->last_time && later >= time);
    seen->last_time = time;
    OK(MPI_T_event_copy(event, &whole));
    for (int i = 0; i < 4; i++) {
        OK(MPI_T_event_read(event, i, &value));
        CHECK(value == whole.integers[i]);
        seen->integers[i] = value;
    }
    OK(MPI_T_event_read(event, 4, &bytes));
    CHECK(bytes == whole.bytes);
    seen->bytes = bytes;
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_event_read(event, 5, &value));
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_event_read(event, -1, &value));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_read(event, 0, NULL));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_copy(event, NULL));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_get_timestamp(event, NULL));
    seen->called++;
}

static void never(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)event, (void)registration, (void)safety, (void)data;
    CHECK(!"called at a level that others fit better, or after it was taken away");
}

static void drop(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void *data)
{
    struct seen *seen = data;
    (void)safety;
    CHECK(registration == seen->registration && source == 0 && count > 0);
    seen->dropped += count;
}

static void end(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    struct seen *seen = data;
    (void)safety;
    CHECK(registration == seen->registration);
    seen->freed++;
}

/* Frees its own registration. */
static void leave(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    struct seen *seen = data;
    (void)event, (void)safety;
    seen->called++;
    OK(MPI_T_event_handle_free(registration, data, end));
    CHECK(seen->freed == 0);
}

static int index_of(const char *name)
{
    int index = -1;
    OK(MPI_T_event_get_index(name, &index));
    return index;
}

static void want(struct seen *seen, const char *name, MPI_T_event_cb_function *callback)
{
    memset(seen, 0, sizeof *seen);
    OK(MPI_T_event_handle_alloc(index_of(name), NULL, MPI_INFO_NULL, &seen->registration));
    OK(MPI_T_event_register_callback(seen->registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, seen, callback));
}

static void forget(struct seen *seen)
{
    OK(MPI_T_event_handle_free(seen->registration, seen, end));
    CHECK(seen->freed == 1);
}

static void kinds(void)
{
    int number, index, length, whole, verbosity, room, bind, items, item;
    char name[100], meaning[2000], word[100];
    MPI_Datatype datatypes[10];
    MPI_Aint places[10];
    MPI_T_enum names;
    MPI_Info info;
    OK(MPI_T_event_get_num(&number));
    CHECK(number >= 6);
    for (int i = 0; i < number; i++) {
        length = sizeof name;
        whole = sizeof meaning;
        room = 10;
        for (int j = 0; j < 10; j++)
            datatypes[j] = MPI_DATATYPE_NULL;
        OK(MPI_T_event_get_info(i, name, &length, &verbosity, datatypes, places, &room, &names, &info, meaning, &whole,
                                &bind));
        CHECK(length == (int)strlen(name) + 1 && whole == (int)strlen(meaning) + 1 && whole > 10);
        CHECK(bind == MPI_T_BIND_NO_OBJECT && info == MPI_INFO_NULL && room > 0 && room < 10);
        CHECK(index_of(name) == i);
        length = sizeof word;
        OK(MPI_T_enum_get_info(names, &items, word, &length));
        CHECK(items == room && strcmp(word, name) == 0);
        for (int j = 0; j < room; j++) {
            length = sizeof word;
            OK(MPI_T_enum_get_item(names, j, &item, word, &length));
            CHECK(datatypes[j] == (strcmp(word, "bytes") == 0 ? MPI_UNSIGNED_LONG_LONG : MPI_INT));
            CHECK(j == 0 || places[j] > places[j - 1]);
        }
        CHECK(datatypes[room] == MPI_DATATYPE_NULL);
        /* Only as many as there is room for. */
        datatypes[0] = MPI_DATATYPE_NULL;
        item = 0;
        OK(MPI_T_event_get_info(i, NULL, NULL, NULL, datatypes, places, &item, NULL, NULL, NULL, NULL, NULL));
        CHECK(item == room && datatypes[0] == MPI_DATATYPE_NULL);
    }
    REFUSED(MPI_T_ERR_INVALID_INDEX,
            MPI_T_event_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("any", &index));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_get_index(NULL, &index));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_get_index("collective", NULL));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_get_num(NULL));
}

static void sources(void)
{
    int number, length, whole;
    char name[100], meaning[200];
    MPI_T_source_order order = MPI_T_SOURCE_UNORDERED;
    MPI_Count ticks, most, time, later;
    MPI_Info info;
    OK(MPI_T_source_get_num(&number));
    CHECK(number == 1);
    length = sizeof name;
    whole = sizeof meaning;
    OK(MPI_T_source_get_info(0, name, &length, meaning, &whole, &order, &ticks, &most, &info));
    CHECK(strcmp(name, "weft") == 0 && whole > 10 && order == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && most > ticks);
    OK(MPI_T_source_get_timestamp(0, &time));
    OK(MPI_T_source_get_timestamp(0, &later));
    CHECK(time > 0 && later >= time);
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(1, &time));
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_source_get_timestamp(0, NULL));
}

static void handles(void)
{
    struct seen seen;
    MPI_Info info, used;
    int keys = -1;
    const MPI_T_cb_safety wrong = (MPI_T_cb_safety)99;
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_event_handle_alloc(-1, NULL, MPI_INFO_NULL, &seen.registration));
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_event_handle_alloc(100, NULL, MPI_INFO_NULL, &seen.registration));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, NULL));
    want(&seen, "unexpected_message", never);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "unknown", "hint"));
    OK(MPI_T_event_handle_set_info(seen.registration, info));
    OK(MPI_T_event_handle_get_info(seen.registration, &used));
    OK(MPI_Info_get_nkeys(used, &keys));
    CHECK(keys == 0);
    OK(MPI_Info_free(&used));
    OK(MPI_T_event_callback_set_info(seen.registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, info));
    OK(MPI_T_event_callback_get_info(seen.registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, &used));
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_callback_get_info(seen.registration, MPI_T_CB_REQUIRE_THREAD_SAFE, &used));
    REFUSED(MPI_T_ERR_INVALID,
            MPI_T_event_callback_set_info(seen.registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_register_callback(seen.registration, wrong, MPI_INFO_NULL, NULL, never));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_callback_get_info(seen.registration, wrong, &used));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_event_handle_get_info(seen.registration, NULL));
    forget(&seen);
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_free(seen.registration, NULL, NULL));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_set_dropped_handler(seen.registration, drop));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_get_info(seen.registration, &used));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_set_info(seen.registration, MPI_INFO_NULL));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_NONE,
                                                                    MPI_INFO_NULL, NULL, never));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_read((MPI_T_event_instance)seen.registration, 0, &keys));
}

/* A message to oneself that comes before its receive. */
static void surprise(int tag)
{
    MPI_Request request;
    int out = 1, in = 0;
    OK(MPI_Isend(&out, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &request));
    OK(MPI_Recv(&in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(in == 1);
}

static void levels(void)
{
    struct seen seen, other, taken;
    want(&seen, "unexpected_message", look);
    want(&other, "unexpected_message", look);
    want(&taken, "unexpected_taken", look);
    surprise(11);
    CHECK(seen.called == 1 && other.called == 1 && taken.called == 1 && taken.last_time >= seen.last_time);
    CHECK(seen.integers[0] == 0 && seen.integers[1] == 11 && seen.integers[3] == check_rank && seen.bytes == 4);
    CHECK(memcmp(seen.integers, taken.integers, sizeof seen.integers) == 0);
    forget(&taken);
    /* The least level that serves is called, and none without restrictions, because there are some. */
    OK(MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, &seen, never));
    OK(MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &seen, never));
    surprise(12);
    CHECK(seen.called == 2 && other.called == 2 && seen.integers[1] == 12);
    OK(MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, &seen, look));
    OK(MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, NULL));
    surprise(13);
    CHECK(seen.called == 3 && seen.integers[1] == 13);
    /* Without one that serves events are dropped, and the next callback comes with their number. */
    OK(MPI_T_event_set_dropped_handler(seen.registration, drop));
    OK(MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, NULL, NULL));
    surprise(14);
    surprise(15);
    CHECK(seen.called == 3 && seen.dropped == 0);
    OK(MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &seen, look));
    surprise(16);
    CHECK(seen.called == 4 && seen.dropped == 2 && seen.integers[1] == 16);
    /* What is still to be told is told at the end. */
    OK(MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, NULL, NULL));
    OK(MPI_T_event_register_callback(seen.registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &seen, never));
    surprise(17);
    CHECK(other.called == 7 && seen.dropped == 2);
    forget(&seen);
    CHECK(seen.dropped == 3 && seen.levels_wrong == 0);
    forget(&other);
    surprise(18);
    CHECK(other.called == 7);
    want(&seen, "unexpected_message", leave);
    surprise(19);
    CHECK(seen.called == 1 && seen.freed == 1);
    surprise(20);
    CHECK(seen.called == 1);
}

static void messages(void)
{
    static char data[300000];
    struct seen unexpected, taken, rendezvous;
    MPI_Request request;
    int flag = 0;
    if (check_size < 2)
        return;
    want(&unexpected, "unexpected_message", look);
    want(&taken, "unexpected_taken", look);
    want(&rendezvous, "rendezvous", look);
    unexpected.tag = taken.tag = rendezvous.tag = 31;
    if (check_rank == 0) {
        OK(MPI_Issend(data, sizeof data, MPI_CHAR, 1, 31, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(rendezvous.called == 1 && rendezvous.integers[0] == 1 && rendezvous.integers[1] == 31);
        CHECK(rendezvous.bytes == sizeof data);
    } else if (check_rank == 1) {
        while (!flag)
            OK(MPI_Iprobe(0, 31, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(unexpected.called == 1 && taken.called == 0);
        OK(MPI_Recv(data, sizeof data, MPI_CHAR, 0, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(taken.called == 1 && unexpected.integers[0] == 0 && unexpected.integers[1] == 31);
        CHECK(unexpected.integers[3] == 0 && unexpected.bytes == sizeof data);
        CHECK(memcmp(unexpected.integers, taken.integers, sizeof taken.integers) == 0);
    }
    CHECK(unexpected.levels_wrong + taken.levels_wrong + rendezvous.levels_wrong == 0);
    forget(&unexpected);
    forget(&taken);
    forget(&rendezvous);
}

static void collectives(void)
{
    static char data[100000], all[800000];
    struct seen seen;
    MPI_Request request;
    int sum = 0;
    if (check_size < 2)
        return;
    want(&seen, "collective", look);
    /* On shared memory: algorithm 0 of allreduce, which is operation 3. */
    OK(MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(seen.called == 1 && seen.integers[0] == 3 && seen.integers[1] == 0 && seen.integers[3] == check_size);
    CHECK(seen.bytes == 4);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(seen.called == 2 && seen.integers[0] == 0 && seen.integers[1] == 0);
    /* By messages: a broadcast of 100000 bytes along a binomial tree between two, and by pieces among more. */
    OK(MPI_Ibcast(data, sizeof data, MPI_CHAR, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(seen.called == 3 && seen.integers[0] == 1 && seen.integers[1] == (check_size == 2 ? 1 : 2));
    CHECK(seen.bytes == sizeof data && seen.integers[3] == check_size);
    OK(MPI_Iallgather(data, 100000, MPI_CHAR, all, 100000, MPI_CHAR, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(seen.called == 4 && seen.integers[0] == 5 && seen.integers[1] == 3);
    CHECK(seen.bytes == 100000ull * check_size && seen.levels_wrong == 0);
    forget(&seen);
}

static void categories(void)
{
    int index, number, all, indices[20];
    OK(MPI_T_category_get_index("weft_events", &index));
    OK(MPI_T_category_get_num_events(index, &number));
    OK(MPI_T_event_get_num(&all));
    CHECK(number == all && all < 20);
    OK(MPI_T_category_get_events(index, 20, indices));
    for (int i = 0; i < number; i++)
        CHECK(indices[i] == i);
}

int main(int argc, char **argv)
{
    struct seen last;
    int provided, number;
    REFUSED(MPI_T_ERR_NOT_INITIALIZED, MPI_T_event_get_num(&number));
    REFUSED(MPI_T_ERR_NOT_INITIALIZED, MPI_T_source_get_num(&number));
    REFUSED(MPI_T_ERR_NOT_INITIALIZED, MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &last.registration));
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    kinds();
    sources();
    handles();
    categories();
    check_begin(&argc, &argv);
    kinds();
    sources();
    handles();
    levels();
    messages();
    collectives();
    /* The end of the tool's use ends its interest. */
    want(&last, "unexpected_message", never);
    OK(MPI_T_finalize());
    surprise(21);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_free(last.registration, NULL, NULL));
    OK(MPI_T_finalize());
    return check_end();
}
