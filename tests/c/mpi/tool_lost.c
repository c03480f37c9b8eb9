/* The last rank kills itself, and the events of the others tell of it. */
#include "check.h"
#include <signal.h>

static int lost = -1, times;

static void look(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)registration, (void)safety, (void)data;
    OK(MPI_T_event_read(event, 0, &lost));
    times++;
}

int main(int argc, char **argv)
{
    int provided, index, word = 0;
    MPI_T_event_registration registration;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_event_get_index("process_lost", &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, look));
    check_begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank == check_size - 1)
        raise(SIGKILL);
    CHECK(MPI_Recv(&word, 1, MPI_INT, check_size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(lost == check_size - 1 && times == 1);
    return check_end();
}
