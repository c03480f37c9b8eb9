/* A tool that comes when the rank has joined its job: no setting can be written any more, and each says so. */
#include "check.h"

int main(int argc, char **argv)
{
    int number, provided, count, bind, scope;
    char value[256];
    MPI_T_cvar_handle handle;
    check_begin(&argc, &argv);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_cvar_get_num(&number));
    for (int i = 0; i < number; i++) {
        OK(MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &bind, &scope));
        CHECK(scope == MPI_T_SCOPE_READONLY);
        OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
        OK(MPI_T_cvar_read(handle, value));
        CHECK(MPI_T_cvar_write(handle, value) == MPI_T_ERR_CVAR_SET_NEVER);
        OK(MPI_T_cvar_handle_free(&handle));
    }
    OK(MPI_T_finalize());
    /* What these functions answer has a class, which is itself, and words. */
    for (int code = MPI_T_ERR_CANNOT_INIT; code <= MPI_T_ERR_PVAR_NO_ATOMIC; code++) {
        int class, length;
        char text[MPI_MAX_ERROR_STRING];
        OK(MPI_Error_class(code, &class));
        CHECK(class == code);
        OK(MPI_Error_string(code, text, &length));
        CHECK(strncmp(text, "MPI_T_ERR_", 10) == 0 && strstr(text, ": ") != NULL && length == (int)strlen(text));
    }
    return check_end();
}
