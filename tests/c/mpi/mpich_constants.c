/* Sizes, offsets and values of the MPICH ABI, written down by hand: nothing here comes from the tables that the header is
 * generated from. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int failures;

static void expect(const char *name, long long value, long long wanted)
{
    if (value != wanted) {
        printf("%s is %#llx, must be %#llx\n", name, value, wanted);
        failures++;
    }
}

#define IS(name, wanted) expect(#name, (long long)(intptr_t)(name), (wanted))
#define INT(name, wanted) expect(#name, (name), (int)(wanted))
#define SIZE(type, wanted) expect("sizeof(" #type ")", (long long)sizeof(type), (wanted))
#define AT(field, wanted) expect("offset of " #field, (long long)offsetof(MPI_Status, field), (wanted))

static void types(void)
{
    SIZE(MPI_Aint, sizeof(void *)); SIZE(MPI_Offset, 8); SIZE(MPI_Count, 8); SIZE(MPI_Fint, 4);
    SIZE(MPI_Status, 20); SIZE(MPI_F08_status, 20);
    AT(count_lo, 0); AT(count_hi_and_cancelled, 4); AT(MPI_SOURCE, 8); AT(MPI_TAG, 12); AT(MPI_ERROR, 16);
    SIZE(MPI_Op, 4); SIZE(MPI_Comm, 4); SIZE(MPI_Group, 4); SIZE(MPI_Win, 4); SIZE(MPI_Session, 4);
    SIZE(MPI_Message, 4); SIZE(MPI_Info, 4); SIZE(MPI_Errhandler, 4); SIZE(MPI_Request, 4); SIZE(MPI_Datatype, 4);
    SIZE(MPI_File, sizeof(void *));
}

static void handles(void)
{
    INT(MPI_COMM_NULL, 0x04000000); INT(MPI_COMM_WORLD, 0x44000000); INT(MPI_COMM_SELF, 0x44000001);
    INT(MPI_GROUP_NULL, 0x08000000); INT(MPI_GROUP_EMPTY, 0x48000000); INT(MPI_WIN_NULL, 0x20000000);
    INT(MPI_SESSION_NULL, 0x38000000); INT(MPI_REQUEST_NULL, 0x2c000000); INT(MPI_MESSAGE_NULL, 0x2c000000);
    INT(MPI_MESSAGE_NO_PROC, 0x6c000000); INT(MPI_INFO_NULL, 0x1c000000); INT(MPI_INFO_ENV, 0x5c000001);
    INT(MPI_ERRHANDLER_NULL, 0x14000000); INT(MPI_ERRORS_ARE_FATAL, 0x54000000);
    INT(MPI_ERRORS_RETURN, 0x54000001); INT(MPI_ERRORS_ABORT, 0x54000003); IS(MPI_FILE_NULL, 0);
    INT(MPI_OP_NULL, 0x18000000); INT(MPI_MAX, 0x58000001); INT(MPI_SUM, 0x58000003); INT(MPI_NO_OP, 0x5800000e);
    INT(MPI_DATATYPE_NULL, 0x0c000000); INT(MPI_CHAR, 0x4c000101); INT(MPI_INT, 0x4c000405);
    INT(MPI_LONG, 0x4c000807); INT(MPI_LONG_LONG, 0x4c000809); INT(MPI_DOUBLE, 0x4c00080b);
    INT(MPI_BYTE, 0x4c00010d); INT(MPI_PACKED, 0x4c00010f); INT(MPI_2INT, 0x4c000816);
    INT(MPI_DOUBLE_PRECISION, 0x4c00081f); INT(MPI_UINT64_T, 0x4c00083e); INT(MPI_COUNT, 0x4c000845);
    INT(MPI_FLOAT_INT, 0x8c000000); INT(MPI_LONG_DOUBLE_INT, 0x8c000004); INT(MPI_LOGICAL16, 0x4c00104b);
}

static void numbers(void)
{
    INT(MPI_ANY_SOURCE, -2); INT(MPI_ANY_TAG, -1); INT(MPI_PROC_NULL, -1); INT(MPI_ROOT, -3);
    INT(MPI_UNDEFINED, -32766); IS(MPI_IN_PLACE, -1); IS(MPI_BOTTOM, 0); IS(MPI_STATUS_IGNORE, 1);
    IS(MPI_STATUSES_IGNORE, 1); IS(MPI_ERRCODES_IGNORE, 0); IS(MPI_ARGV_NULL, 0);
    INT(MPI_THREAD_SINGLE, 0); INT(MPI_THREAD_MULTIPLE, 3); INT(MPI_MAX_PROCESSOR_NAME, 128);
    INT(MPI_MAX_ERROR_STRING, 512); INT(MPI_MAX_PORT_NAME, 256); INT(MPI_MAX_INFO_KEY, 255);
    INT(MPI_BSEND_OVERHEAD, 96); INT(MPI_ERR_ROOT, 7); INT(MPI_ERR_TRUNCATE, 14); INT(MPI_ERR_REQUEST, 19);
    INT(MPI_ERR_OTHER, 15); INT(MPI_ERR_RMA_FLAVOR, 58); INT(MPI_T_ERR_INVALID, 74); INT(MPI_ERR_ABI, 81);
    INT(MPI_ERR_LASTCODE, 0x3fffffff); INT(MPI_IDENT, 0); INT(MPI_UNEQUAL, 3); INT(MPI_GRAPH, 1); INT(MPI_CART, 2);
    INT(MPI_COMM_TYPE_SHARED, 1); INT(MPI_KEYVAL_INVALID, 0x24000000); INT(MPI_TAG_UB, 0x64400001);
    INT(MPI_UNIVERSE_SIZE, 0x64400009); INT(MPI_WIN_MODEL, 0x66000009); INT(MPI_COMBINER_NAMED, 1);
    INT(MPI_COMBINER_HVECTOR_INTEGER, 5); INT(MPI_COMBINER_HINDEXED_INTEGER, 8); INT(MPI_COMBINER_STRUCT_INTEGER, 11);
    INT(MPI_COMBINER_VALUE_INDEX, 20); INT(MPI_ORDER_C, 56); INT(MPI_DISTRIBUTE_DFLT_DARG, -49767);
    INT(MPI_LOCK_EXCLUSIVE, 234); INT(MPI_MODE_NOSUCCEED, 16384); INT(MPI_MODE_CREATE, 1); INT(MPI_MODE_RDWR, 8);
    INT(MPI_SEEK_SET, 600); IS(MPI_DISPLACEMENT_CURRENT, -54278278); INT(MPI_F_STATUS_SIZE, 5); INT(MPI_F_SOURCE, 2);
    INT(MPI_T_VERBOSITY_USER_BASIC, 221); INT(MPI_T_BIND_NO_OBJECT, 9700); INT(MPI_T_PVAR_CLASS_GENERIC, 249);
}

int main(void)
{
    types();
    handles();
    numbers();
    if (failures == 0)
        puts("ok");
    return failures != 0;
}
