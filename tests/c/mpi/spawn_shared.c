/* Two of this program, spawned by it, talk to their parents through shared memory and by nothing else. With the
   word `tcp` they are to talk over connections, because nothing else can be. With `copies` long messages are copied
   straight out of the memory of the other process. */
#include "check.h"
#include <unistd.h>

enum { LONGEST = 4 << 20, CHILDREN = 2 };

enum { BY_TCP, BY_SHM, COPIED, COUNTERS };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNTERS];

static void begin_to_count(void)
{
    const char *names[COUNTERS] = {"tcp_packets", "shm_packets", "single_copy_bytes"};
    int index, count, provided;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < COUNTERS; i++) {
        OK(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_handle_alloc(session, index, 0, handles + i, &count));
        OK(MPI_T_pvar_start(session, handles[i]));
    }
}

static unsigned long long counted(int counter)
{
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session, handles[counter], &value));
    return value;
}

static void fill(unsigned char *bytes, int length, int seed)
{
    for (int i = 0; i < length; i++)
        bytes[i] = (unsigned char) (i * 31 + (i >> 8) + seed);
}

static void check(const unsigned char *bytes, int length, int seed)
{
    for (int i = 0; i < length; i++)
        CHECK(bytes[i] == (unsigned char) (i * 31 + (i >> 8) + seed));
}

/* Both ways at once and one after the other, every length. */
static void exchange(MPI_Comm inter, int other, int is_first, unsigned char *out, unsigned char *in)
{
    for (int length = 8; length <= LONGEST; length *= 2) {
        MPI_Status status;
        int count;
        fill(out, length, length / 8 + is_first);
        OK(MPI_Sendrecv(out, length, MPI_BYTE, other, 1, in, length, MPI_BYTE, other, 1, inter, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == length);
        check(in, length, length / 8 + !is_first);
        for (int turn = 0; turn < 2; turn++) {
            if (turn == is_first)
                OK(MPI_Send(out, length, MPI_BYTE, other, 2, inter));
            else {
                memset(in, 0, (size_t) length);
                OK(MPI_Recv(in, length, MPI_BYTE, other, 2, inter, MPI_STATUS_IGNORE));
                check(in, length, length / 8 + !is_first);
            }
        }
    }
    /* Many that wait for nobody, of which the first ones come unexpectedly. */
    enum { MANY = 2000 };
    MPI_Request requests[2 * MANY];
    static int sent[MANY], got[MANY];
    for (int i = 0; i < MANY; i++) {
        sent[i] = i * 3 + is_first;
        OK(MPI_Isend(sent + i, 1, MPI_INT, other, i % 7, inter, requests + i));
    }
    for (int i = 0; i < MANY; i++)
        OK(MPI_Irecv(got + i, 1, MPI_INT, other, i % 7, inter, requests + MANY + i));
    OK(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++)
        CHECK(got[i] == i * 3 + !is_first);
}

int main(int argc, char **argv)
{
    char me[4096] = "";
    const char *word = argc > 1 ? argv[1] : "shm";
    char *words[] = {(char *) word, 0};
    MPI_Comm parent, inter, all;
    CHECK(readlink("/proc/self/exe", me, sizeof me - 1) > 0);
    check_begin(&argc, &argv);
    begin_to_count();
    OK(MPI_Comm_get_parent(&parent));
    int is_first = parent == MPI_COMM_NULL, others;
    if (is_first)
        OK(MPI_Comm_spawn(me, words, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    else
        inter = parent;
    OK(MPI_Comm_remote_size(inter, &others));
    unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
    CHECK(out && in);
    if (check_rank < others)
        exchange(inter, check_rank, is_first, out, in);
    int sum, one = 1;
    OK(MPI_Intercomm_merge(inter, !is_first, &all));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == check_size + others);
    OK(MPI_Barrier(all));
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_disconnect(&inter));
    free(out), free(in);
    int talked = check_rank < others;
    OK(MPI_Finalize());
    /* All of this process's life: the counters are exact from its end on. */
    if (strcmp(word, "tcp") == 0)
        CHECK(counted(BY_TCP) > 0);
    else
        CHECK(counted(BY_TCP) == 0 && counted(BY_SHM) > 0);
    if (strcmp(word, "copies") == 0 && talked)
        CHECK(counted(COPIED) > 0);
    if (is_first && check_rank == 0)
        puts("ok");
    return 0;
}
