/* MPI_Comm_disconnect returns when everything that was under way on the communicator is complete at all its members:
   what arrives is looked at right after it, before any other call could move it. */
#include "check.h"

enum { LONG = 20 << 20, WORDS = LONG / (int)sizeof(int) };

static int to, from;
static int *out, *in;

static int mark(int rank, int i)
{
    return rank * 1000003 + i;
}

static void fill(void)
{
    for (int i = 0; i < WORDS; i++) {
        out[i] = mark(check_rank, i);
        in[i] = -1;
    }
}

static int arrived(int words)
{
    for (int i = 0; i < words; i++) {
        if (in[i] != mark(from, i))
            return 0;
    }
    return 1;
}

static MPI_Comm another(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    return comm;
}

static void leave(MPI_Comm *comm)
{
    OK(MPI_Comm_disconnect(comm));
    CHECK(*comm == MPI_COMM_NULL);
}

static void requests_that_are_kept(void)
{
    MPI_Comm comm = another();
    MPI_Request requests[2];
    int flag = 0;
    fill();
    OK(MPI_Isend(out, WORDS, MPI_INT, to, 1, comm, &requests[0]));
    OK(MPI_Irecv(in, WORDS, MPI_INT, from, 1, comm, &requests[1]));
    leave(&comm);
    CHECK(arrived(WORDS));
    MPI_Status statuses[2];
    OK(MPI_Testall(2, requests, &flag, statuses));
    CHECK(flag && statuses[1].MPI_SOURCE == from);
}

static void requests_that_were_freed(void)
{
    MPI_Comm comm = another();
    MPI_Request requests[2];
    fill();
    OK(MPI_Irecv(in, WORDS, MPI_INT, from, 2, comm, &requests[1]));
    OK(MPI_Issend(out, WORDS, MPI_INT, to, 2, comm, &requests[0]));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    leave(&comm);
    CHECK(arrived(WORDS));
}

/* Every second word, which is unpacked at the end. */
static void persistent_and_scattered(void)
{
    MPI_Comm comm = another();
    MPI_Request requests[3];
    MPI_Datatype gaps;
    fill();
    OK(MPI_Type_vector(WORDS / 2, 1, 2, MPI_INT, &gaps));
    OK(MPI_Type_commit(&gaps));
    OK(MPI_Send_init(out, 1, gaps, to, 3, comm, &requests[0]));
    OK(MPI_Recv_init(in, 1, gaps, from, 3, comm, &requests[1]));
    OK(MPI_Recv_init(in, 1, gaps, from, 4, comm, &requests[2]));
    OK(MPI_Startall(2, requests));
    /* The third one is not active and keeps nobody. */
    leave(&comm);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < WORDS; i++)
        CHECK(in[i] == (i % 2 ? -1 : mark(from, i)));
    for (int i = 0; i < 3; i++)
        OK(MPI_Request_free(&requests[i]));
    OK(MPI_Type_free(&gaps));
}

/* The process's buffer is free again, since only this communicator has used it. */
static void buffered(int own)
{
    MPI_Comm comm = another();
    MPI_Request request;
    int bytes = LONG + MPI_BSEND_OVERHEAD;
    void *buffer = malloc(bytes), *back;
    CHECK(buffer);
    fill();
    if (own)
        OK(MPI_Comm_attach_buffer(comm, buffer, bytes));
    else
        OK(MPI_Buffer_attach(buffer, bytes));
    OK(MPI_Bsend(out, WORDS, MPI_INT, to, 5, comm));
    OK(MPI_Irecv(in, WORDS, MPI_INT, from, 5, comm, &request));
    OK(MPI_Request_free(&request));
    leave(&comm);
    CHECK(arrived(WORDS));
    if (!own)
        OK(MPI_Buffer_detach(&back, &bytes));
    free(buffer);
}

static void collectives(int freed)
{
    MPI_Comm comm = another();
    MPI_Request request;
    int *sums = in, flag = freed;
    fill();
    OK(MPI_Iallreduce(out, sums, WORDS, MPI_INT, MPI_MAX, comm, &request));
    if (freed)
        OK(MPI_Request_free(&request));
    leave(&comm);
    for (int i = 0; i < WORDS; i++)
        CHECK(sums[i] == mark(check_size - 1, i));
    if (!freed)
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(flag);
}

static void duplicates(void)
{
    MPI_Comm comm = another(), copy;
    MPI_Request request;
    int flag = 0, sum = 0;
    OK(MPI_Comm_idup(comm, &copy, &request));
    leave(&comm);
    OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(flag);
    OK(MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, copy));
    CHECK(sum == check_size * (check_size - 1) / 2);
    leave(&copy);
}

static void predefined(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int class_;
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Error_class(MPI_Comm_disconnect(&comm), &class_));
    CHECK(class_ == MPI_ERR_COMM && comm == MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    to = (check_rank + 1) % check_size;
    from = (check_rank + check_size - 1) % check_size;
    out = malloc(LONG);
    in = malloc(LONG);
    CHECK(out && in);
    requests_that_are_kept();
    requests_that_were_freed();
    persistent_and_scattered();
    buffered(0);
    buffered(1);
    collectives(0);
    collectives(1);
    duplicates();
    predefined();
    free(out);
    free(in);
    return check_end();
}
