/* The tool interface: settings, counters, categories; before, between and after start and end. */
#include "check.h"

#define REFUSED(code, call) CHECK((call) == (code))

static int setting(const char *name)
{
    int index = -1;
    OK(MPI_T_cvar_get_index(name, &index));
    return index;
}

static void read_text(const char *name, char *value)
{
    MPI_T_cvar_handle handle;
    int count;
    OK(MPI_T_cvar_handle_alloc(setting(name), NULL, &handle, &count));
    CHECK(count <= 256);
    OK(MPI_T_cvar_read(handle, value));
    OK(MPI_T_cvar_handle_free(&handle));
    CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
}

static int write_to(const char *name, const void *value)
{
    MPI_T_cvar_handle handle;
    int count, code;
    OK(MPI_T_cvar_handle_alloc(setting(name), NULL, &handle, &count));
    code = MPI_T_cvar_write(handle, value);
    OK(MPI_T_cvar_handle_free(&handle));
    return code;
}

/* Before the rank joins its job settings can be changed, and the change counts. */
static void settings_before(void)
{
    char value[256];
    int wrong = 99, off = 0;
    OK(write_to("eager_bytes", "1000"));
    read_text("eager_bytes", value);
    CHECK(strcmp(value, "1000") == 0);
    OK(write_to("eager_bytes", "2K"));
    read_text("eager_bytes", value);
    CHECK(strcmp(value, "2K") == 0);
    REFUSED(MPI_T_ERR_INVALID, write_to("eager_bytes", "much"));
    REFUSED(MPI_T_ERR_INVALID, write_to("status", &wrong));
    REFUSED(MPI_T_ERR_CVAR_SET_NEVER, write_to("tag_output", &off));
    read_text("eager_bytes", value);
    CHECK(strcmp(value, "2K") == 0);
}

static void settings(void)
{
    int number, index, length, whole, verbosity, bind, scope, words, item, joined;
    char name[200], meaning[400], value[256];
    MPI_Datatype datatype;
    MPI_T_enum enumeration;
    MPI_T_cvar_handle handle;
    OK(MPI_Initialized(&joined));
    OK(MPI_T_cvar_get_num(&number));
    CHECK(number > 10);
    for (int i = 0; i < number; i++) {
        length = sizeof name;
        whole = sizeof meaning;
        OK(MPI_T_cvar_get_info(i, name, &length, &verbosity, &datatype, &enumeration, meaning, &whole, &bind, &scope));
        CHECK(length == (int)strlen(name) + 1 && whole == (int)strlen(meaning) + 1 && whole > 10);
        CHECK(bind == MPI_T_BIND_NO_OBJECT && scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ);
        CHECK(setting(name) == i);
        OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &words));
        if (datatype == MPI_INT) {
            CHECK(words == 1 && enumeration != MPI_T_ENUM_NULL);
            OK(MPI_T_cvar_read(handle, &item));
            length = sizeof value;
            OK(MPI_T_enum_get_info(enumeration, &words, value, &length));
            CHECK(item >= 0 && item < words && strcmp(value, name) == 0);
            length = sizeof value;
            OK(MPI_T_enum_get_item(enumeration, item, &index, value, &length));
            CHECK(index == item && length == (int)strlen(value) + 1);
            REFUSED(MPI_T_ERR_INVALID_ITEM, MPI_T_enum_get_item(enumeration, words, &index, value, &length));
        } else {
            CHECK(datatype == MPI_CHAR && enumeration == MPI_T_ENUM_NULL && words <= (int)sizeof value);
            OK(MPI_T_cvar_read(handle, value));
            CHECK(strlen(value) > 0);
        }
        OK(MPI_T_cvar_handle_free(&handle));
        /* Only the length, a part, and nothing. */
        length = 0;
        OK(MPI_T_cvar_get_info(i, NULL, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CHECK(length == (int)strlen(name) + 1);
        length = 3;
        OK(MPI_T_cvar_get_info(i, value, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CHECK(length == (int)strlen(name) + 1 && strlen(value) == 2 && strncmp(value, name, 2) == 0);
        value[0] = '!';
        OK(MPI_T_cvar_get_info(i, value, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CHECK(value[0] == '!');
    }
    read_text("eager_bytes", value);
    CHECK(strcmp(value, "2K") == 0);
    REFUSED(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("no such name", &index));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_cvar_get_index(NULL, &index));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_cvar_get_index("device", NULL));
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(-1, NULL, &handle, &words));
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_get_info(number, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_cvar_handle_alloc(0, NULL, &handle, &words));
    MPI_T_cvar_handle stale = handle;
    OK(MPI_T_cvar_handle_free(&handle));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(stale, value));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_handle_free(&stale));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, value));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_info(MPI_T_ENUM_NULL, &words, value, &length));
    if (joined)
        REFUSED(MPI_T_ERR_CVAR_SET_NOT_NOW, write_to("eager_bytes", "4K"));
}

static unsigned long long count_of(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    unsigned long long value = 77;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* Messages to oneself, which no other traffic disturbs. */
static void messages(int number)
{
    for (int i = 0; i < number; i++) {
        int out = i, in = -1;
        OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
        CHECK(in == i);
    }
}

static void counters(void)
{
    MPI_T_pvar_session session, other;
    MPI_T_pvar_handle mine, second, foreign, stale;
    MPI_Datatype datatype;
    unsigned long long value = 1000;
    int number, index, class_, readonly, continuous, atomic, count, length;
    char name[200];
    OK(MPI_T_pvar_get_num(&number));
    CHECK(number > 10);
    for (int i = 0; i < number; i++) {
        length = sizeof name;
        OK(MPI_T_pvar_get_info(i, name, &length, NULL, &class_, &datatype, NULL, NULL, NULL, NULL, &readonly,
                               &continuous, &atomic));
        CHECK(class_ == MPI_T_PVAR_CLASS_COUNTER && datatype == MPI_UNSIGNED_LONG_LONG && !readonly && !continuous);
        OK(MPI_T_pvar_get_index(name, class_, &index));
        CHECK(index == i && atomic);
    }
    REFUSED(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index("sends", MPI_T_PVAR_CLASS_TIMER, &index));
    REFUSED(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index("nothing", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_get_index("self_messages", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_session_create(&other));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &mine, &count));
    CHECK(count == 1);
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &second, &count));
    OK(MPI_T_pvar_handle_alloc(other, index, NULL, &foreign, &count));

    messages(2);
    CHECK(count_of(session, mine) == 0);
    OK(MPI_T_pvar_start(session, mine));
    messages(3);
    CHECK(count_of(session, mine) == 3 && count_of(session, second) == 0);
    OK(MPI_T_pvar_stop(session, mine));
    messages(5);
    CHECK(count_of(session, mine) == 3);
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    messages(1);
    CHECK(count_of(session, mine) == 4 && count_of(session, second) == 1 && count_of(other, foreign) == 0);
    OK(MPI_T_pvar_readreset(session, mine, &value));
    CHECK(value == 4 && count_of(session, mine) == 0);
    messages(2);
    CHECK(count_of(session, mine) == 2);
    value = 100;
    OK(MPI_T_pvar_write(session, mine, &value));
    messages(1);
    CHECK(count_of(session, mine) == 101);
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK(count_of(session, mine) == 0 && count_of(session, second) == 0);
    OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));

    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, foreign, &value));
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value));
    REFUSED(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_start(MPI_T_PVAR_SESSION_NULL, mine));
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_handle_alloc(session, number, NULL, &stale, &count));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_pvar_read(session, mine, NULL));
    stale = second;
    OK(MPI_T_pvar_handle_free(session, &second));
    CHECK(second == MPI_T_PVAR_HANDLE_NULL);
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(session, &stale));
    OK(MPI_T_pvar_session_free(&session));
    CHECK(session == MPI_T_PVAR_SESSION_NULL);
    REFUSED(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other, mine, &value));
    OK(MPI_T_pvar_session_free(&other));
}

static void categories(void)
{
    int number, index, length, controls, counters_, inside, all, stamp, indices[300], events;
    char name[200];
    OK(MPI_T_category_get_num(&number));
    for (int i = 0; i < number; i++) {
        length = sizeof name;
        OK(MPI_T_category_get_info(i, name, &length, NULL, NULL, &controls, &counters_, &inside));
        OK(MPI_T_category_get_index(name, &index));
        CHECK(index == i && controls < 300 && counters_ < 300 && inside < number);
        OK(MPI_T_category_get_cvars(i, 300, indices));
        for (int j = 0; j < controls; j++)
            OK(MPI_T_cvar_get_info(indices[j], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        OK(MPI_T_category_get_pvars(i, 300, indices));
        for (int j = 0; j < counters_; j++)
            OK(MPI_T_pvar_get_info(indices[j], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        OK(MPI_T_category_get_categories(i, 300, indices));
        for (int j = 0; j < inside; j++)
            CHECK(indices[j] > i && indices[j] < number);
        OK(MPI_T_category_get_num_events(i, &events));
        CHECK(events < 300);
        OK(MPI_T_category_get_events(i, 300, indices));
        for (int j = 0; j < events; j++)
            OK(MPI_T_event_get_info(indices[j], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    }
    OK(MPI_T_category_get_index("weft_settings", &index));
    OK(MPI_T_category_get_info(index, NULL, NULL, NULL, NULL, &controls, NULL, NULL));
    OK(MPI_T_cvar_get_num(&all));
    CHECK(controls == all);
    OK(MPI_T_category_changed(&stamp));
    REFUSED(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("none", &index));
    REFUSED(MPI_T_ERR_INVALID, MPI_T_category_get_cvars(0, -1, indices));
}

int main(int argc, char **argv)
{
    int provided, number;
    REFUSED(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_num(&number));
    REFUSED(MPI_T_ERR_NOT_INITIALIZED, MPI_T_event_get_num(&number));
    REFUSED(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_finalize());
    settings_before();
    settings();
    categories();
    check_begin(&argc, &argv);
    settings();
    counters();
    counters();
    categories();
    /* What the changed setting does: a message above it is announced first. */
    if (check_size >= 2) {
        MPI_T_pvar_session session;
        MPI_T_pvar_handle handle;
        int index, count;
        static char data[3000];
        OK(MPI_T_pvar_get_index("rendezvous", MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_session_create(&session));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
        OK(MPI_T_pvar_start(session, handle));
        if (check_rank == 0)
            OK(MPI_Send(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
        else if (check_rank == 1)
            OK(MPI_Recv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(check_rank != 0 || count_of(session, handle) == 1);
        OK(MPI_T_pvar_session_free(&session));
    }
    OK(MPI_Finalize());
    settings();
    categories();
    OK(MPI_T_finalize());
    REFUSED(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_num(&number));
    if (check_rank == 0)
        puts("ok");
    return 0;
}
