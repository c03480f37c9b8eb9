/* Wrong calls on windows end in the standard's classes, through the window's error handler, and leave the window usable. */
#include "check.h"

static MPI_Win win;
static int handled, *memory;

static void handler(MPI_Win *which, int *code, ...)
{
    CHECK(*which == win);
    handled = *code;
}

/* The call fails with this class, and its text names what is given. */
static void refused(int code, int class, const char *said, int line)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, is;
    OK(MPI_Error_class(code, &is));
    OK(MPI_Error_string(code, text, &length));
    if (is != class || handled != code || (said && !strstr(text, said))) {
        fprintf(stderr, "line %d: class %d (wanted %d), handler saw %d, text: %s\n", line, is, class, handled, text);
        exit(99);
    }
    handled = 0;
}

#define REFUSED(call, class, said) refused(call, class, said, __LINE__)

static void operations(void)
{
    int value = 1, other = 2;
    MPI_Datatype raw, mixed;
    MPI_Datatype types[2] = { MPI_INT, MPI_DOUBLE };
    int lengths[2] = { 1, 1 };
    MPI_Aint places[2] = { 0, 8 };
    OK(MPI_Type_contiguous(2, MPI_INT, &raw));
    OK(MPI_Type_create_struct(2, lengths, places, types, &mixed));
    OK(MPI_Type_commit(&mixed));
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC, "rank 0");
    OK(MPI_Win_lock_all(0, win));
    REFUSED(MPI_Put(&value, 1, MPI_INT, check_size, 0, 1, MPI_INT, win), MPI_ERR_RANK, NULL);
    REFUSED(MPI_Get(&value, 1, MPI_INT, -9, 0, 1, MPI_INT, win), MPI_ERR_RANK, "-9");
    REFUSED(MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT, "-1");
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, 0, -4, MPI_INT, win), MPI_ERR_COUNT, "-4");
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, win), MPI_ERR_DISP, "-1");
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, 10, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, "bytes 40 to 43");
    REFUSED(MPI_Get(&value, 1, MPI_INT, 0, 1 << 20, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, NULL);
    REFUSED(MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win), MPI_ERR_TYPE, "origin_datatype");
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, raw, win), MPI_ERR_TYPE, NULL);
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, 0, 2, MPI_INT, win), MPI_ERR_TRUNCATE, "4 bytes");
    REFUSED(MPI_Put(NULL, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_BUFFER, NULL);
    REFUSED(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP, NULL);
    REFUSED(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win), MPI_ERR_OP, NULL);
    REFUSED(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_MAXLOC, win), MPI_ERR_OP, NULL);
    REFUSED(MPI_Accumulate(memory, 1, mixed, 0, 0, 1, mixed, MPI_SUM, win), MPI_ERR_TYPE, NULL);
    REFUSED(MPI_Compare_and_swap(&value, &other, &value, MPI_DOUBLE, 0, 0, win), MPI_ERR_TYPE, NULL);
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC, "locked");
    REFUSED(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC, NULL);
    REFUSED(MPI_Win_start(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC, NULL);
    REFUSED(MPI_Win_free(&win), MPI_ERR_RMA_SYNC, NULL);
    OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Type_free(&raw));
    OK(MPI_Type_free(&mixed));
}

static void user_op(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)length, (void)type;
}

static void synchronisation(void)
{
    int value = 1, flag;
    MPI_Op own;
    MPI_Group world;
    OK(MPI_Op_create(user_op, 1, &own));
    OK(MPI_Win_get_group(win, &world));
    REFUSED(MPI_Win_lock(999, 0, 0, win), MPI_ERR_LOCKTYPE, "999");
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, check_size + 5, 0, win), MPI_ERR_RANK, NULL);
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT, NULL);
    REFUSED(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT, NULL);
    REFUSED(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC, "rank 0");
    REFUSED(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC, NULL);
    REFUSED(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC, NULL);
    REFUSED(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC, NULL);
    REFUSED(MPI_Win_complete(win), MPI_ERR_RMA_SYNC, "MPI_Win_start");
    REFUSED(MPI_Win_wait(win), MPI_ERR_RMA_SYNC, "MPI_Win_post");
    REFUSED(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC, "MPI_Win_post");
    REFUSED(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP, NULL);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win), MPI_ERR_RMA_SYNC, "already");
    REFUSED(MPI_Accumulate(&value, 1, MPI_INT, check_rank, 0, 1, MPI_INT, own, win), MPI_ERR_OP, NULL);
    if (check_size > 1)
        REFUSED(MPI_Put(&value, 1, MPI_INT, (check_rank + 1) % check_size, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC,
                "not locked");
    OK(MPI_Win_unlock(check_rank, win));
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    REFUSED(MPI_Win_post(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC, NULL);
    /* The same memory is not locked and exposed; that of others may be locked meanwhile. */
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win), MPI_ERR_RMA_SYNC, NULL);
    REFUSED(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC, NULL);
    if (check_size > 1) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, (check_rank + 1) % check_size, 0, win));
        OK(MPI_Win_unlock((check_rank + 1) % check_size, win));
    }
    OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC, "MPI_Win_start");
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC, "fence");
    OK(MPI_Win_fence(0, win));
    /* A fence that nothing has used keeps nobody from locks. */
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Win_unlock(0, win));
    REFUSED(MPI_Win_attach(win, memory, 4), MPI_ERR_RMA_FLAVOR, NULL);
    REFUSED(MPI_Win_detach(win, memory), MPI_ERR_RMA_FLAVOR, NULL);
    OK(MPI_Group_free(&world));
    OK(MPI_Op_free(&own));
}

static void making(void)
{
    MPI_Win made;
    int block[4];
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    int code = MPI_Win_create(block, -1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &made);
    CHECK(code == MPI_ERR_SIZE);
    CHECK(MPI_Win_create(block, 4, 0, MPI_INFO_NULL, MPI_COMM_SELF, &made) == MPI_ERR_DISP);
    CHECK(MPI_Win_create(NULL, 4, 1, MPI_INFO_NULL, MPI_COMM_SELF, &made) == MPI_ERR_BASE);
    CHECK(MPI_Win_create(block, 4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &made) == MPI_ERR_COMM);
    CHECK(MPI_Win_fence(0, MPI_WIN_NULL) == MPI_ERR_WIN);
    made = MPI_WIN_NULL;
    CHECK(MPI_Win_free(&made) == MPI_ERR_WIN);
}

static void dynamic(void)
{
    int block[8] = { 0 }, value = 5;
    MPI_Aint at;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win));
    MPI_Errhandler own;
    OK(MPI_Win_create_errhandler(handler, &own));
    OK(MPI_Win_set_errhandler(win, own));
    OK(MPI_Errhandler_free(&own));
    OK(MPI_Get_address(block, &at));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, at, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, "attached");
    OK(MPI_Win_attach(win, block, 4 * sizeof(int)));
    REFUSED(MPI_Win_attach(win, block + 3, 4), MPI_ERR_RMA_ATTACH, NULL);
    REFUSED(MPI_Win_attach(win, block, -4), MPI_ERR_SIZE, NULL);
    OK(MPI_Win_attach(win, block + 4, 4 * sizeof(int)));
    OK(MPI_Put(&value, 1, MPI_INT, 0, at + 28, 1, MPI_INT, win));
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, at + 29, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, NULL);
    OK(MPI_Win_detach(win, block + 4));
    REFUSED(MPI_Win_detach(win, block + 4), MPI_ERR_RMA_ATTACH, NULL);
    REFUSED(MPI_Put(&value, 1, MPI_INT, 0, at + 28, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, NULL);
    OK(MPI_Win_unlock(0, win));
    CHECK(block[7] == 5);
    MPI_Aint size;
    int unit;
    void *base;
    REFUSED(MPI_Win_shared_query(win, 0, &size, &unit, &base), MPI_ERR_RMA_FLAVOR, NULL);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Errhandler own, now;
    check_begin(&argc, &argv);
    OK(MPI_Win_allocate(40, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_get_errhandler(win, &now));
    CHECK(now == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_create_errhandler(handler, &own));
    OK(MPI_Win_set_errhandler(win, own));
    operations();
    synchronisation();
    OK(MPI_Win_call_errhandler(win, MPI_ERR_RMA_CONFLICT));
    CHECK(handled == MPI_ERR_RMA_CONFLICT);
    handled = 0;
    OK(MPI_Win_get_errhandler(win, &now));
    CHECK(now == own);
    OK(MPI_Errhandler_free(&now));
    OK(MPI_Errhandler_free(&own));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    making();
    dynamic();
    OK(MPI_Finalize());
    return 0;
}
