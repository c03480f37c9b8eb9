/* What comes back when something is wrong: whose handler is asked, null places, words of added codes, keys freed twice. */
#include "check.h"

static int returns(int code, int class_)
{
    int got = -1;
    MPI_Error_class(code, &got);
    return code != MPI_SUCCESS && got == class_;
}
#define REFUSED(class_, call) CHECK(returns((call), (class_)))

static int free_key_again(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)value, (void)extra;
    return MPI_Comm_free_keyval(&key);
}

static int own_code;
static int cannot_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    *flag = 1;
    return own_code;
}

/* Handlers of MPI_COMM_WORLD serve errors of no object until MPI_COMM_SELF has one of its own. */
static int asked;
static void count_asked(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    asked += *comm == MPI_COMM_SELF;
}

static void null_places(void)
{
    int ranges[1][3] = {{0, 0, 1}};
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    REFUSED(MPI_ERR_ARG, MPI_Comm_size(MPI_COMM_WORLD, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Comm_group(MPI_COMM_WORLD, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Group_rank(group, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Group_range_incl(group, 1, ranges, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Type_vector(1, 1, 1, MPI_INT, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Type_size_c(MPI_INT, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Type_get_extent(MPI_INT, NULL, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, NULL));
    REFUSED(MPI_ERR_ARG, MPI_Group_translate_ranks(group, 1, &ranges[0][0], group, NULL));
    MPI_Group_free(&group);
}

static void names_of_nothing(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    CHECK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length) == MPI_SUCCESS && !strcmp(name, "MPI_COMM_NULL"));
    CHECK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length) == MPI_SUCCESS && !strcmp(name, "MPI_DATATYPE_NULL"));
}

static void keys_freed_twice(void)
{
    MPI_Comm copy;
    int key, same;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_key_again, &key, NULL);
    same = key;
    MPI_Comm_set_attr(copy, key, NULL);
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS);
    REFUSED(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&same));
}

static void added_codes(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int class_, code, key, length, last[2];
    MPI_Comm copy, never;
    for (int i = 0; i < 20000; i++) {
        MPI_Add_error_class(&class_);
        MPI_Add_error_code(class_, &code);
        if (!i) last[0] = code;
        MPI_Remove_error_code(code);
        MPI_Remove_error_class(class_);
    }
    CHECK(code == last[0]);
    MPI_Add_error_class(&class_);
    MPI_Add_error_code(class_, &own_code);
    MPI_Add_error_string(own_code, "the tank is empty");
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_create_keyval(cannot_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(copy, key, NULL);
    code = MPI_Comm_dup(copy, &never);
    MPI_Error_string(code, text, &length);
    CHECK(code == own_code && !strcmp(text, "the tank is empty") && never == MPI_COMM_NULL);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free(&copy);
}

/* Errors of what is being made go to the handler that it would have had. */
static int told;
static void count_told(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    told += *comm == MPI_COMM_NULL;
}

static void things_never_made(void)
{
    MPI_Errhandler mine;
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_errhandler(count_told, &mine);
    REFUSED(MPI_ERR_ARG, MPI_Comm_create_from_group(group, "never", MPI_INFO_NULL, mine, NULL));
    CHECK(told == 1);
    MPI_Errhandler_free(&mine);
    MPI_Group_free(&group);
}

/* Three bytes where there are to be integers. */
static void cut_elements(void)
{
    MPI_Datatype sparse;
    int into[4] = {0}, to = (check_rank + 1) % check_size, from = (check_rank + check_size - 1) % check_size;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &sparse));
    OK(MPI_Type_commit(&sparse));
    REFUSED(MPI_ERR_TYPE,
            MPI_Sendrecv("abc", 3, MPI_CHAR, to, 1, into, 1, sparse, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Sendrecv(&to, 1, MPI_INT, to, 1, into, 1, sparse, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(into[0] == check_rank && into[2] == 0);
    OK(MPI_Type_free(&sparse));
}

int main(int argc, char **argv)
{
    int in[2] = {1, 2}, out[2] = {3, 4}, size;
    MPI_Errhandler mine;
    MPI_Datatype type;
    check_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    REFUSED(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &size));
    REFUSED(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &size));
    REFUSED(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &size));
    null_places();
    names_of_nothing();
    keys_freed_twice();
    added_codes();
    things_never_made();
    cut_elements();
    REFUSED(MPI_ERR_BUFFER, MPI_Reduce_local(MPI_IN_PLACE, out, 2, MPI_INT, MPI_SUM));
    REFUSED(MPI_ERR_BUFFER, MPI_Reduce_local(in, MPI_IN_PLACE, 2, MPI_INT, MPI_SUM));
    REFUSED(MPI_ERR_BUFFER, MPI_Reduce_local(in, in, 2, MPI_INT, MPI_SUM));
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, sizeof(long double), &type) == MPI_SUCCESS);
    MPI_Type_size(type, &size);
    CHECK(size == sizeof(long double));

    MPI_Comm_create_errhandler(count_asked, &mine);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, mine);
    REFUSED(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &size));
    CHECK(asked == 1);
    MPI_Errhandler_free(&mine);
    return check_end();
}
