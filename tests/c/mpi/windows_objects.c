/* What is known of a window: attributes, names, hints, its group, and memory that is shared. */
#include "check.h"

static int deleted;

static int on_delete(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key;
    CHECK(value == (void *)&deleted && extra == NULL);
    deleted++;
    return MPI_SUCCESS;
}

static void attributes(MPI_Win win, void *base, MPI_Aint size, int unit, int flavor)
{
    void *value;
    int flag, key, length;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && value == base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag));
    CHECK(flag && *(MPI_Aint *)value == size);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
    CHECK(flag && *(int *)value == unit);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *(int *)value == flavor);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && *(int *)value == MPI_WIN_UNIFIED);
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, NULL));
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Win_set_attr(win, key, &deleted));
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag && value == &deleted);
    OK(MPI_Win_set_attr(win, key, &deleted));
    OK(MPI_Win_delete_attr(win, key));
    OK(MPI_Win_set_attr(win, key, &deleted));
    OK(MPI_Win_free_keyval(&key));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 0 && name[0] == 0);
    OK(MPI_Win_set_name(win, "pane"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 4 && strcmp(name, "pane") == 0);
    CHECK(MPI_Win_fromint(MPI_Win_toint(win)) == win);
}

static void group(MPI_Win win)
{
    MPI_Group of_win, of_world;
    int result;
    OK(MPI_Win_get_group(win, &of_win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &of_world));
    OK(MPI_Group_compare(of_win, of_world, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_free(&of_win));
    OK(MPI_Group_free(&of_world));
}

static void hints(void)
{
    MPI_Info given, used;
    MPI_Win win;
    void *base;
    int flag, length = 16;
    char value[16];
    OK(MPI_Info_create(&given));
    OK(MPI_Info_set(given, "no_locks", "true"));
    OK(MPI_Info_set(given, "nobody_knows_this", "1"));
    OK(MPI_Win_allocate(8, 1, given, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_get_info(win, &used));
    OK(MPI_Info_get_string(used, "no_locks", &length, value, &flag));
    CHECK(flag && strcmp(value, "true") == 0);
    OK(MPI_Info_get_string(used, "nobody_knows_this", &length, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_set(given, "no_locks", "false"));
    OK(MPI_Win_set_info(win, given));
    OK(MPI_Info_free(&used));
    OK(MPI_Win_get_info(win, &used));
    length = 16;
    OK(MPI_Info_get_string(used, "no_locks", &length, value, &flag));
    CHECK(flag && strcmp(value, "false") == 0);
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&given));
    OK(MPI_Win_free(&win));
}

/* Rank r brings r ints; the memory of all lies in a row unless told otherwise. */
static void shared(int apart)
{
    MPI_Win win;
    MPI_Info info;
    int *mine, *theirs, *first = NULL, unit;
    MPI_Aint size, before = 0;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false"));
    OK(MPI_Win_allocate_shared(check_rank * (MPI_Aint)sizeof(int), sizeof(int), info, MPI_COMM_WORLD, &mine, &win));
    OK(MPI_Info_free(&info));
    for (int i = 0; i < check_rank; i++)
        mine[i] = check_rank * 100 + i;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int r = 0; r < check_size; r++) {
        OK(MPI_Win_shared_query(win, r, &size, &unit, &theirs));
        CHECK(size == r * (MPI_Aint)sizeof(int) && unit == (int)sizeof(int));
        for (int i = 0; i < r; i++)
            CHECK(theirs[i] == r * 100 + i);
        if (r == 1)
            first = theirs;
        if (!apart && r > 0)
            CHECK(theirs == first + before);
        before += r;
    }
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, &theirs));
    if (check_size > 1)
        CHECK(theirs == first && size == (MPI_Aint)sizeof(int));
    else
        CHECK(size == 0);
    MPI_Count wide;
    OK(MPI_Win_shared_query_c(win, check_rank, &size, &wide, &theirs));
    CHECK(theirs == mine && wide == (MPI_Count)sizeof(int));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    int *base, length, together;
    MPI_Comm near;
    char name[MPI_MAX_OBJECT_NAME];
    check_begin(&argc, &argv);
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    attributes(win, base, 64, 8, MPI_WIN_FLAVOR_ALLOCATE);
    group(win);
    CHECK(deleted == 2);
    OK(MPI_Win_free(&win));
    CHECK(deleted == 3);
    OK(MPI_Win_create(&length, sizeof length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    attributes(win, &length, sizeof length, 1, MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    attributes(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK(strcmp(name, "MPI_WIN_NULL") == 0);
    hints();
    /* Many, one after the other: nothing is used up. */
    for (int i = 0; i < 700; i++) {
        OK(MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
    OK(MPI_Comm_size(near, &together));
    OK(MPI_Comm_free(&near));
    if (together == check_size) {
        shared(0);
        shared(1);
    } else {
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        CHECK(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_ERR_RMA_SHARED);
    }
    OK(MPI_Finalize());
    return 0;
}
