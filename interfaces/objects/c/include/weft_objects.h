/*
 * weft_objects.h: shared objects over user-level communication (libweft_objects.so.1).
 *
 * Processes of a job use values together: an object is a state with operations, and each process calls them as if it
 * were alone. Nobody sees an operation half done, and all see them in one order. An object is on all processes that
 * have opened it, and a read asks nobody then; or on one of them.
 *
 * Every function answers 0 or more, or one of the errors WEFT_OBJECTS_ERR_*, which are negative; weft_objects_error
 * says it in words. Wrong arguments are errors, never the end of the program. Several threads may call at the same
 * time.
 */
#ifndef WEFT_OBJECTS_H
#define WEFT_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEFT_OBJECTS_ERR_STATE = -1,     /* not joined, or inside an operation, which calls nothing */
    WEFT_OBJECTS_ERR_ARGUMENT = -2,  /* an argument that is not allowed */
    WEFT_OBJECTS_ERR_NAME = -3,      /* no object has this name */
    WEFT_OBJECTS_ERR_TYPE = -4,      /* the object is of another type */
    WEFT_OBJECTS_ERR_TRUNCATED = -5, /* it was done; its answer is longer than the room, which holds the beginning */
    WEFT_OBJECTS_ERR_LOST = -6,      /* the object has ended with the process that alone had it: share it again */
    WEFT_OBJECTS_ERR_FAILED = -7,    /* this operation has failed */
    WEFT_OBJECTS_ERR_BROKEN = -8,    /* an operation that writes has failed before: the object is of no use any more */
    WEFT_OBJECTS_ERR_TIMEOUT = -9,   /* the time is over, and the operation is not done yet */
    WEFT_OBJECTS_ERR_GROUP = -10     /* the processes cannot work together */
};

/** weft_objects_init, weft_objects_finish - join the job with all its processes, and leave it with them
 *
 * weft_objects_init joins the job of weft run, or makes a job of this process alone, and waits until all processes of
 * the job have. A process joins once. weft_objects_finish waits until all processes have called it, since others may
 * need what is here, and leaves.
 */
int weft_objects_init(void);
int weft_objects_finish(void);

/** weft_objects_deliver - take what comes while the program computes
 *
 * What comes for objects is taken where the program calls an operation, so a process that computes for long keeps
 * others waiting who need an object that is on it only. After weft_objects_deliver(1) a thread of the library takes
 * it meanwhile, and operations may run there; after weft_objects_deliver(0) no more.
 */
int weft_objects_deliver(int on);

/** weft_objects_me, weft_objects_size - who is in the job
 *
 * weft_objects_me answers the number of this process in its job, from 0 on; weft_objects_size how many there are.
 */
int weft_objects_me(void);
int weft_objects_size(void);

/* Where bytes go: what an operation answers, or a state that is packed. */
struct weft_bytes;

/* What an operation answers with when its guard is false: it is tried again after each write of its object. */
#define WEFT_OBJECTS_WAIT 1

/* An operation. It does the same on equal states, in whichever process: it uses its state and its arguments, no clock
 * and no file, and calls nothing of this library but weft_bytes_add. It may run in any thread that is in a call. */
struct weft_operation {
    const char *name;
    /* Whether it may change the state. One that does not is a read. A read that changes it all the same is not noticed,
     * and each process sees another state from then on. */
    int writes;
    /* Null, or whether it can be done now, which it is not where the answer is 0: then its caller waits. */
    int (*guard)(const void *state, const void *arguments, size_t length, void *context);
    /* Answers 0 when it is done; WEFT_OBJECTS_WAIT if it cannot be done now and nothing has changed; anything else: it
     * has failed. After a write that has failed the object is of no use any more. answer is null where nobody waits. */
    int (*run)(void *state, const void *arguments, size_t length, struct weft_bytes *answer, void *context);
};

/* A type of objects: what it is called, its operations, and how a state goes to other processes. All processes say the
 * same. Without pack a state is size bytes that hold no pointer, and go as they are; without unpack and drop, too. */
struct weft_object_type {
    const char *name;
    const struct weft_operation *operations;
    int count;
    size_t size;
    /* Writes a state; 0, or it has no form. */
    int (*pack)(const void *state, struct weft_bytes *bytes, void *context);
    /* Makes a state, or null if the bytes are none. */
    void *(*unpack)(const void *bytes, size_t length, void *context);
    /* Frees what unpack has made. */
    void (*drop)(void *state, void *context);
    /* Handed to all functions. */
    void *context;
};

/** weft_object_share, weft_object_find, weft_object_release - open an object
 *
 * weft_object_share creates the object of this name, in the state that initial leads to, or opens it if it is there:
 * all processes may say the same. weft_object_find opens one that is there. The answer is the object's number in this
 * process. What type leads to may go when the call returns; its functions stay.
 *
 * A name that is used for two types is WEFT_OBJECTS_ERR_TYPE for the second one. weft_object_release gives the number
 * up; the object stays. An object that has ended with the process that alone had it (WEFT_OBJECTS_ERR_LOST) is created
 * anew by weft_object_share; its old number stays that of the lost one.
 */
int weft_object_share(const char *name, const struct weft_object_type *type, const void *initial);
int weft_object_find(const char *name, const struct weft_object_type *type);
int weft_object_release(int object);

/** weft_object_call, weft_bytes_add - do an operation
 *
 * weft_object_call does the operation of that number, as they stand in the type, and returns when it is done. What it
 * answers is stored where answer leads to, which has room for size bytes, and how long it is in *length, unless that is
 * null. With a null pointer and 0 for answer and size nobody wants it.
 * A read of an object that is replicated asks nobody.
 *
 * weft_bytes_add adds to the answer of an operation, or to a packed state. With a null pointer for bytes, as an
 * operation gets it whose answer nobody waits for, it does nothing.
 */
int weft_object_call(int object, int operation, const void *arguments, size_t arguments_length, void *answer,
                     size_t size, size_t *length);
int weft_bytes_add(struct weft_bytes *bytes, const void *data, size_t length);

/** weft_object_place, weft_object_placement - where an object is
 *
 * weft_object_place has an object on the process of this number only; replicated on all that have opened it, with
 * WEFT_OBJECTS_REPLICATED; or wherever its operations cost least, as they are counted, with WEFT_OBJECTS_AUTOMATIC:
 * so each one begins, replicated. In a job of weft run --keep-going an object stays replicated until a place is said,
 * so it outlives any process while another one has it open. weft_object_placement stores the number of the process
 * that has it, or WEFT_OBJECTS_REPLICATED.
 */
#define WEFT_OBJECTS_REPLICATED (-1)
#define WEFT_OBJECTS_AUTOMATIC (-2)
int weft_object_place(int object, int where);
int weft_object_placement(int object, int *where);

/** weft_object_start, weft_object_wait - wait for an operation for some time
 *
 * weft_object_start is weft_object_call that waits for so many milliseconds at most, and answers
 * WEFT_OBJECTS_ERR_TIMEOUT when they are over. The operation goes on then: weft_object_wait waits for it again, in
 * the same thread. A thread that begins another operation first will not hear of this one any more, which may be done
 * all the same.
 *
 * After WEFT_OBJECTS_ERR_TRUNCATED weft_object_wait stores the same answer again, where there is more room. It answers
 * what the call would have: 1 for a job of weft_queue_take.
 */
int weft_object_start(int object, int operation, const void *arguments, size_t arguments_length, int milliseconds,
                      void *answer, size_t size, size_t *length);
int weft_object_wait(int milliseconds, void *answer, size_t size, size_t *length);

/** weft_integer_share, weft_integer_value, weft_integer_assign, weft_integer_add - a number that all see
 *
 * weft_integer_share opens one, as weft_object_share does. The others store the value after their operation, unless
 * value is null; weft_integer_assign that before it. weft_integer_add wraps around.
 */
int weft_integer_share(const char *name, int64_t initial);
int weft_integer_value(int integer, int64_t *value);
int weft_integer_assign(int integer, int64_t to, int64_t *value);
int weft_integer_add(int integer, int64_t by, int64_t *value);

/** weft_integer_lower_to, weft_integer_raise_to, weft_integer_await - the least, the greatest, and waiting for a number
 *
 * weft_integer_lower_to takes a number that is less than the value, weft_integer_raise_to one that is more.
 * weft_integer_await waits until the value is at least that. All store the value then, unless value is null.
 */
int weft_integer_lower_to(int integer, int64_t to, int64_t *value);
int weft_integer_raise_to(int integer, int64_t to, int64_t *value);
int weft_integer_await(int integer, int64_t least, int64_t *value);

/** weft_queue_share, weft_queue_add, weft_queue_take, weft_queue_close, weft_queue_length - jobs in the order of coming
 *
 * weft_queue_add adds a job of length bytes, and answers 1, or 0 if no more are taken. weft_queue_take waits for a
 * job, and answers 1, with its bytes and its length stored as weft_object_call does (and again by weft_object_wait);
 * or 0 when there will be no more, since weft_queue_close was called and all are taken. weft_queue_length stores how
 * many there are.
 */
int weft_queue_share(const char *name);
int weft_queue_add(int queue, const void *job, size_t length);
int weft_queue_take(int queue, void *job, size_t size, size_t *length);
int weft_queue_close(int queue);
int weft_queue_length(int queue, uint64_t *jobs);

/** weft_barrier_share, weft_barrier_pass - nobody passes before all have come
 *
 * weft_barrier_share opens a barrier for that many callers; one that was created for another number is
 * WEFT_OBJECTS_ERR_ARGUMENT. weft_barrier_pass waits until so many have called it.
 */
int weft_barrier_share(const char *name, int callers);
int weft_barrier_pass(int barrier);

/** weft_objects_error, weft_objects_error_text - say in words what has gone wrong
 *
 * weft_objects_error answers the text of the last error that this thread got from this library; it stays until the next
 * one. weft_objects_error_text answers what the number of an error means.
 */
const char *weft_objects_error(void);
const char *weft_objects_error_text(int error);

#ifdef __cplusplus
}
#endif

#endif
