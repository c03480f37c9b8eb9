/* Attributes, names, info, error codes and handlers. */
#include "check.h"

static int copies, deletions, order[4];

static int copy_twice(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    int rank;
    OK(MPI_Comm_rank(comm, &rank)); /* calls are allowed in here */
    CHECK(keyval != MPI_KEYVAL_INVALID && extra == &copies);
    *(void **)out = (char *)in + 1;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int count_deletion(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    order[deletions++ % 4] = (int)(MPI_Aint)value;
    return MPI_SUCCESS;
}

static int refuse(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    return MPI_ERR_OTHER;
}

static void attributes(void)
{
    static char cell[2];
    int key, plain, flag;
    void *value;
    MPI_Comm copy;
    OK(MPI_Comm_create_keyval(copy_twice, count_deletion, &key, &copies));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &plain, NULL));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, cell));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, plain, cell));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    CHECK(copies == 1);
    OK(MPI_Comm_get_attr(copy, key, &value, &flag));
    CHECK(flag && value == cell + 1);
    OK(MPI_Comm_get_attr(copy, plain, &value, &flag));
    CHECK(!flag);
    OK(MPI_Comm_free(&copy));
    CHECK(deletions == 1);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    CHECK(deletions == 2);
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, plain));

    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &key, NULL));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
    OK(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_attr(copy, key, cell));
    CHECK(MPI_Comm_free(&copy) == MPI_ERR_OTHER && copy != MPI_COMM_NULL);
}

static void predefined(void)
{
    int flag, *value;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(flag && *value >= check_size);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK(flag && (*value == 0 || *value == 1));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
    CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value) != MPI_SUCCESS);
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Datatype pair;
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14);
    /* Of two names for one type the one that the standard does not call a synonym. */
    OK(MPI_Type_get_name(MPI_LONG_LONG, name, &length));
    CHECK(!strcmp(name, "MPI_LONG_LONG_INT"));
    OK(MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length));
    CHECK(!strcmp(name, "MPI_C_COMPLEX"));
    OK(MPI_Type_get_name(MPI_DOUBLE, name, &length));
    CHECK(strcmp(name, "MPI_DOUBLE") == 0);
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_get_name(pair, name, &length));
    CHECK(length == 0 && name[0] == 0);
    OK(MPI_Type_set_name(pair, "pair"));
    OK(MPI_Type_get_name(pair, name, &length));
    CHECK(strcmp(name, "pair") == 0);
    OK(MPI_Type_free(&pair));
}

static void infos(void)
{
    MPI_Info info, copy;
    char value[16];
    int flag, n, length = sizeof value;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "one", "1"));
    OK(MPI_Info_set(info, "two", "22"));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_delete(info, "one"));
    CHECK(MPI_Info_delete(info, "one") == MPI_ERR_INFO_NOKEY);
    OK(MPI_Info_get_nkeys(copy, &n));
    CHECK(n == 2);
    OK(MPI_Info_get_string(copy, "two", &length, value, &flag));
    CHECK(flag && length == 3 && strcmp(value, "22") == 0);
    OK(MPI_Info_get_string(copy, "three", &length, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_get_nthkey(copy, 0, value));
    CHECK(strcmp(value, "one") == 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&copy));
    OK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
    CHECK(n > 0 && MPI_Info_set(MPI_INFO_ENV, "a", "b") == MPI_ERR_INFO);
}

static int handled, handled_code;
static MPI_Comm handled_comm;

static void handler(MPI_Comm *comm, int *code, ...)
{
    handled++;
    handled_comm = *comm;
    handled_code = *code;
}

static void errors(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, code, length, value, count = handled;
    MPI_Errhandler mine, got;
    MPI_Comm copy;
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "the tank is empty"));
    OK(MPI_Error_class(code, &value));
    CHECK(value == class && class > MPI_ERR_LASTCODE);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "the tank is empty") == 0 && length == (int)strlen(text));

    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(copy, mine));
    OK(MPI_Errhandler_free(&mine));
    CHECK(mine == MPI_ERRHANDLER_NULL);
    CHECK(MPI_Send(&value, 1, MPI_INT, check_size, 0, copy) == MPI_ERR_RANK);
    CHECK(handled == count + 1 && handled_comm == copy && handled_code == MPI_ERR_RANK);
    OK(MPI_Error_string(MPI_ERR_RANK, text, &length));
    CHECK(strstr(text, "MPI_Send") && strstr(text, "rank") && strstr(text, " has rank"));
    OK(MPI_Comm_call_errhandler(copy, code));
    CHECK(handled == count + 2 && handled_code == code);
    OK(MPI_Comm_get_errhandler(copy, &got));
    OK(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&got));
    CHECK(MPI_Comm_size(MPI_COMM_NULL, &value) == MPI_ERR_COMM);
    MPI_Comm stale = copy;
    OK(MPI_Comm_free(&copy));
    CHECK(MPI_Comm_size(stale, &value) == MPI_ERR_COMM);
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_SELF, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
}

static void surroundings(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int a, b, flag;
    void *memory;
    OK(MPI_Get_library_version(text, &a));
    CHECK(strncmp(text, "Weft ", 5) == 0 && a == (int)strlen(text));
    OK(MPI_Get_version(&a, &b));
    CHECK(a == 5 && b == 0);
    OK(MPI_Abi_get_version(&a, &b));
    CHECK(a == 1 && b == 0);
    OK(MPI_Is_thread_main(&flag));
    CHECK(flag);
    OK(MPI_Alloc_mem(100, MPI_INFO_NULL, &memory));
    memset(memory, 1, 100);
    OK(MPI_Free_mem(memory));
    double before = MPI_Wtime();
    CHECK(MPI_Wtime() >= before && MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
}

int main(int argc, char **argv)
{
    int first, second, flag;
    OK(MPI_Initialized(&flag));
    CHECK(!flag);
    check_begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    attributes();
    predefined();
    names();
    infos();
    errors();
    surroundings();

    /* The end deletes what was attached to MPI_COMM_SELF, the last one first. */
    deletions = 0;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deletion, &first, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deletion, &second, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, first, (void *)1));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, second, (void *)2));
    int result = check_end();
    CHECK(deletions == 2 && order[0] == 2 && order[1] == 1);
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    return result;
}
