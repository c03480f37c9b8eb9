/*
 * weft.h: ports, transfers, active messages and groups over user-level communication (libweft.so.1).
 *
 * A process joins its job by weft_init; what was started alone, without weft run, is a job of one. A message goes to a
 * process and a port there, with a tag, and its receiver chooses by all three.
 *
 * Every function answers 0 or more, or one of the errors WEFT_ERR_*, which are negative; weft_error says it in words.
 * Wrong arguments are errors, never the end of the program. The comment that begins with two stars is the manual page of
 * the functions below it: `man weft_send`.
 */
#ifndef WEFT_H
#define WEFT_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEFT_ERR_STATE = -1,     /* not in a job, or inside a handler */
    WEFT_ERR_ARGUMENT = -2,  /* an argument that is not allowed */
    WEFT_ERR_PROCESS = -3,   /* no such process */
    WEFT_ERR_PORT = -4,      /* the port is not open, or was opened before */
    WEFT_ERR_TRUNCATED = -5, /* the message is longer than the room, which holds its beginning */
    WEFT_ERR_LOST = -6,      /* the other process has ended or is lost */
    WEFT_ERR_NAME = -7,      /* a name is taken, or nobody has it */
    WEFT_ERR_TIMEOUT = -8,   /* the time is over */
    WEFT_ERR_MEMORY = -9,    /* no such registered memory, or it ends before that */
    WEFT_ERR_SYSTEM = -10,   /* the system refuses */
    WEFT_ERR_JOIN = -11,     /* the process cannot join its job */
    WEFT_ERR_START = -12     /* the processes cannot be started */
};

/* Any process, any tag; for weft_port_open any number. */
#define WEFT_ANY (-1)

/* For weft_init: several threads call at the same time. */
#define WEFT_THREADS 1

/** weft_init, weft_finish - join the job that started this process, and leave it
 *
 * weft_init joins the job of weft run, or makes a job of this process alone. With WEFT_THREADS in flags several threads
 * may call functions of the library at the same time; without it, one at a time and no lock is taken. A process joins
 * once.
 *
 * weft_finish waits until everything has left that was sent, and leaves. After it no other function may be called.
 */
int weft_init(int flags);
int weft_finish(void);

/** weft_me, weft_size, weft_hosts, weft_host_of, weft_host_name - who is in the job
 *
 * weft_me answers the number of this process in its job, from 0 on; weft_size how many processes the job has;
 * weft_hosts on how many hosts they are; weft_host_of the number of the host of one of them. weft_host_name stores
 * the name of a host, as the user wrote it, in room of size bytes; 256 are enough. A job on one host has the name
 * that this gives itself.
 *
 * Processes of other jobs that this one has met have the numbers from weft_size() on; these are its own, and another
 * process knows them by others.
 */
int weft_me(void);
int weft_size(void);
int weft_hosts(void);
int weft_host_of(int process);
int weft_host_name(int host, char *name, size_t size);

/** weft_has_left - whether a process is gone, and how
 *
 * Answers 0 while the process is there, WEFT_LEFT once it has taken its leave by weft_finish, and WEFT_LOST when it has
 * ended without it or cannot be reached. In a job that was started without weft run --keep-going the job ends with the
 * first process that is lost.
 */
#define WEFT_LEFT 1
#define WEFT_LOST 2
int weft_has_left(int process);

/** weft_start, weft_parent, weft_signal, weft_notify - start processes, signal them, and hear how they end
 *
 * weft_start starts count processes of a program, with arguments up to a null pointer (or none, where arguments is
 * one), on the host of this name or, where host is a null pointer, on any of this job's. It waits until all of them
 * have called weft_init, and stores their numbers here, count of them. They are a job of their own, in which they are
 * 0 to count - 1, and go on where one of them is lost. The launcher of a job waits for what that has started, and ends
 * it with the job. A program that is not found, or ends before it calls weft_init, is WEFT_ERR_START, and weft_error
 * says why.
 *
 * weft_parent answers the number of the process that has started this one, or WEFT_ERR_PROCESS where none has.
 *
 * weft_signal sends a signal, 1 to 64, to a process that this one has started, or one of its own job, if weft run has
 * started that; WEFT_ERR_PROCESS for others, and WEFT_ERR_LOST when it has ended. It goes to the group of the
 * process.
 *
 * weft_notify has a message with a tag come to a port of this process, from this process, once another one is gone: a
 * struct weft_end, which is received, selected and waited for as any message. It comes once, and at once where the
 * other one is gone already. Of processes that this one has started it comes when they have ended, and tells how; of
 * others as weft_has_left tells it.
 */
/* How a process has ended. */
struct weft_end {
    int process;
    int how;    /* WEFT_LEFT: with leave or, where its code is known, with code 0; else WEFT_LOST */
    int code;   /* its exit code, or -1 where that is not known */
    int signal; /* that has killed it, or 0 */
};
int weft_start(const char *program, const char *const *arguments, int count, const char *host, int *processes);
int weft_parent(void);
int weft_signal(int process, int signal);
int weft_notify(int process, int port, int tag);

/** weft_port_open, weft_port_close - open and close a port of this process
 *
 * A port is a number under which messages for this process arrive. The program chooses numbers from 0 to 16777215; with
 * WEFT_ANY it is given one that nobody else in the process uses. The answer is the number. Ports of different processes
 * have nothing to do with each other.
 *
 * A message may come before its port is open: it waits there. Closing throws away what has come and what comes, and who
 * waits there is told (WEFT_ERR_PORT). A number is opened once.
 */
int weft_port_open(int number);
int weft_port_close(int port);

/** weft_port_open_named, weft_port_find, weft_port_address - ports with names
 *
 * weft_port_open_named opens a port that any process of the same user on this host finds by its name, whichever job it is
 * of, and any process of this job on any host. The answer is the port's number. A name has 1 to 80 bytes and no '#'; it
 * ends with its port or its process, and leaves nothing behind.
 *
 * weft_port_find finds a named port, waits for it to be opened, at most for so many milliseconds (a negative number:
 * without end; WEFT_ERR_TIMEOUT), and stores the number by which this process knows the owner from now on, and that of the
 * port. The owner must take part meanwhile: it answers where it waits or polls, and knows this process from then on.
 *
 * weft_port_address stores, as text, an address by which weft_port_find finds the port on other hosts, too; 512 bytes are
 * enough for it. Who knows it may send messages to this process. A job on one host is reached on this host alone.
 */
int weft_port_open_named(const char *name);
int weft_port_find(const char *name, int milliseconds, int *process, int *port);
int weft_port_address(int port, char *text, size_t size);

/** weft_send, weft_send_copy - send a message to a port of a process
 *
 * Sends length bytes with a tag, which is 0 or more. weft_send returns when the bytes may be used again. A long message
 * leaves when its receiver asks for it, so two processes that send long messages to each other before either receives
 * wait for each other; weft_send_copy copies the bytes first, and waits for nobody.
 *
 * Messages between two processes that the same call of the receiver could take are taken in the order of sending.
 */
int weft_send(int process, int port, int tag, const void *data, size_t length);
int weft_send_copy(int process, int port, int tag, const void *data, size_t length);

/** weft_receive, weft_receive_first, weft_probe - receive a message by choice
 *
 * weft_receive waits for a message at a port of this process, from one process or WEFT_ANY, with one tag or WEFT_ANY, and
 * receives it into a buffer of length bytes. What it was stands in message, unless that is a null pointer. Of a message
 * that is longer than the buffer the beginning is received, and WEFT_ERR_TRUNCATED is the answer. Where the one process
 * that could send the message has ended, the answer is WEFT_ERR_LOST.
 *
 * weft_receive_first takes a message that one of several choices accepts: of the first of them that has one.
 *
 * weft_probe waits for nothing. It answers 0 when there is no message that one of the choices accepts; or the number of
 * the first choice that has one, counted from 1, and what is known of that message, which stays where it is.
 */
/* What is known of a message. */
struct weft_message {
    int process;   /* who has sent it */
    int port;      /* where it arrived */
    int tag;
    int reserved;
    size_t length; /* bytes of the message, also where fewer fitted into the room */
};
/* Which messages a call accepts: those at a port, of one process or WEFT_ANY, with one tag or WEFT_ANY. */
struct weft_pick {
    int port;
    int process;
    int tag;
};
int weft_receive(int port, int process, int tag, void *buffer, size_t length, struct weft_message *message);
int weft_receive_first(const struct weft_pick *choices, int count, void *buffer, size_t length,
                       struct weft_message *message);
int weft_probe(const struct weft_pick *choices, int count, struct weft_message *message);

/** weft_send_begin, weft_receive_begin, weft_test, weft_wait, weft_wait_any, weft_cancel - messages for later
 *
 * weft_send_begin and weft_receive_begin start what weft_send and weft_receive do, and wait for nothing. The answer
 * is the number of a request, from 1 on. Until that is over the bytes stay as they are, and the buffer is the
 * library's. It moves where this process waits or polls. So two processes that begin to send to each other and then
 * receive do not hang.
 *
 * weft_wait waits until a request is over and answers as weft_send or weft_receive would: what the message was stands
 * in message, where it was sent with the process and port that it went to. weft_test waits for nothing: it answers 0
 * while the request is under way, and 1 when it was over and went well. A request that was over is forgotten by both,
 * also where the answer is an error such as WEFT_ERR_LOST.
 *
 * weft_wait_any waits until one of several requests is over, at most for so many milliseconds, or without end where
 * that is negative. It answers 0 when the time is over, or the number of the first that is, counted from 1; weft_test
 * or weft_wait tells then what became of it.
 *
 * weft_cancel takes a receive back that no message has met yet, and answers 1: its buffer is free, and it is
 * forgotten. It answers 0 where the request is to be waited for, which it is always of what is sent. weft_finish
 * waits for what is sent, and takes back what is not received.
 */
int weft_send_begin(int process, int port, int tag, const void *data, size_t length);
int weft_receive_begin(int port, int process, int tag, void *buffer, size_t length);
int weft_test(int request, struct weft_message *message);
int weft_wait(int request, struct weft_message *message);
int weft_wait_any(const int *requests, int count, int milliseconds);
int weft_cancel(int request);

/** weft_select - wait for the first of several ports and descriptors
 *
 * Waits until there is a message that one of the choices accepts, or one of the descriptors is ready as poll says it; at
 * most for so many milliseconds, or without end where that is negative. Answers 0 when the time is over; the number of the
 * first choice that has a message, counted from 1, and what is known of the message, which stays where it is; or count and
 * the number of the first descriptor that is ready, counted from 1. The fields revents of all descriptors are set then.
 * Without choices and descriptors it waits, and lets handlers be called meanwhile.
 */
int weft_select(const struct weft_pick *choices, int count, struct pollfd *descriptors, int descriptor_count,
                int milliseconds, struct weft_message *message);

/** weft_descriptor, weft_arm - wait in an event loop of the program's own
 *
 * weft_descriptor answers a descriptor that can be read when something comes. It is always the same one; nobody reads
 * from it or closes it. It is deaf until weft_arm was called, and that is the last call before each sleep:
 *
 *     for (;;) {
 *         int wait;
 *         while (weft_probe(choices, count, &message) > 0)
 *             receive and handle it;
 *         if (weft_arm(&wait) > 0)
 *             poll descriptors, weft_descriptor() among them, with wait as its timeout;
 *     }
 *
 * weft_arm answers 0 when something has come meanwhile: look for messages again. It answers 1 when the loop may sleep, and
 * stores how many milliseconds at most, or -1 for without end.
 */
int weft_descriptor(void);
int weft_arm(int *milliseconds);

/** weft_raw_send, weft_raw_receive - bytes between two processes, without messages
 *
 * What one process sends another by weft_raw_send that one receives by weft_raw_receive, in order and in pieces of whatever
 * lengths: weft_raw_receive returns when its buffer is full. The bytes go straight into the buffer where the receiver waits.
 * They have no order with messages. One thread at a time sends to, and one receives from, each other process.
 */
int weft_raw_send(int process, const void *data, size_t length);
int weft_raw_receive(int process, void *buffer, size_t length);

/** weft_register, weft_unregister, weft_put, weft_get - memory that other processes write and read
 *
 * weft_register makes new memory of size bytes, all zero, and stores its address and what other processes are to be told of
 * it; a message can carry that. The memory is there until weft_unregister. It belongs to the library: a pointer into it is
 * not to be used after that.
 *
 * weft_put writes length bytes into memory of a process, from an offset on, and returns when they are there; a message that
 * is sent after it comes after it. weft_get reads. Neither needs the owner to do anything on the same host; on another host
 * it must take part meanwhile. A place outside of the memory is WEFT_ERR_MEMORY. An owner that has ended is WEFT_ERR_LOST,
 * which may take 20 ms to be noticed.
 */
/* Registered memory of a process, as others are told of it: it may travel in a message, or lie in a file. */
struct weft_memory {
    uint64_t words[4];
};
int weft_register(size_t size, void **address, struct weft_memory *memory);
int weft_unregister(const struct weft_memory *memory);
int weft_put(int process, const struct weft_memory *memory, uint64_t offset, const void *data, size_t length);
int weft_get(int process, const struct weft_memory *memory, uint64_t offset, void *buffer, size_t length);

/** weft_handler, weft_call, weft_reply, weft_unhandled - messages that call a function of their receiver
 *
 * weft_handler says which function of this process a message calls that names a number, 0 to 4095; a null pointer says that
 * none does any more. The function gets the message, and the context that was given here. It runs inside whatever call of
 * the library takes the message, so it is short, and calls nothing of the
 * library but weft_reply, weft_me, weft_size and weft_error (WEFT_ERR_STATE).
 *
 * weft_call calls a handler of a process, with up to 3 arguments and 32768 bytes. It returns when the message has left.
 * weft_reply replies, once, with a call of that handler of the sender; a reply is not replied to. Calls of one process to
 * another are handled once and in their order.
 *
 * A call that names a number without a handler does nothing; weft_unhandled counts those of this process.
 */
/* A message, as its handler gets it. It is there until the handler returns. */
struct weft_call {
    int process; /* who has sent it */
    int count;   /* of the arguments */
    const uint64_t *arguments;
    const void *bytes;
    size_t length;
};
int weft_handler(int number, void (*function)(struct weft_call *call, void *context), void *context);
int weft_call(int process, int handler, const uint64_t *arguments, int count, const void *data, size_t length);
int weft_reply(struct weft_call *call, int handler, const uint64_t *arguments, int count, const void *data,
               size_t length);
int weft_unhandled(uint64_t *count);

/** weft_group_join, weft_group_leave, weft_group_members - groups whose members all get the same in the same order
 *
 * weft_group_join joins the group of this name, which its first member makes, and waits until this process is a
 * member; those who are must take part meanwhile. The answer is the group's number in this process. All members join
 * with the same flags. With WEFT_GROUP_SAFE a message is delivered when all members have it, so that what a member
 * received before it died the others receive, too; else as soon as its place is known. A member has died when it has
 * ended; with WEFT_GROUP_SILENCE also when it says nothing for some seconds and most of the members agree, so all of
 * them must wait or poll more often than that. Who is dead, the sequencer included, is taken out, and the others go
 * on in one order.
 *
 * weft_group_leave leaves it, once what this process has sent has its place; what was not received is thrown away. A
 * process that calls weft_finish before has ended for the group.
 *
 * weft_group_members stores the numbers of the members, in the order of joining, room of them at most, and answers
 * how many there are.
 */
#define WEFT_GROUP_SAFE 1
#define WEFT_GROUP_SILENCE 2
int weft_group_join(const char *name, int flags);
int weft_group_leave(int group);
int weft_group_members(int group, int *processes, int room);

/** weft_group_send, weft_group_receive - send to all members, and receive what happens in a group
 *
 * weft_group_send sends length bytes to all members, this one among them, and returns when they are on their way to
 * get their place in the order.
 *
 * weft_group_receive waits for what happens next in the group, at most for so many milliseconds (a negative number:
 * without end), and stores it in event, unless that is a null pointer. It answers 0 when the time is over;
 * WEFT_GROUP_MESSAGE for a message, whose bytes are in the buffer then; WEFT_GROUP_MEMBERS when the members have
 * changed, at this place of the order, and first of all when this process is one; and WEFT_GROUP_EXCLUDED when the
 * others have taken this process for dead. A message that is longer than the buffer is WEFT_ERR_TRUNCATED, and stays:
 * its length is in event.
 */
/* What has happened in a group. */
struct weft_group_event {
    int process;    /* who has sent the message */
    int members;    /* how many there are now, where they have changed */
    uint64_t place; /* of the message in the order, the same for all members */
    size_t length;  /* bytes of the message */
};
#define WEFT_GROUP_MESSAGE 1
#define WEFT_GROUP_MEMBERS 2
#define WEFT_GROUP_EXCLUDED 3
int weft_group_send(int group, const void *data, size_t length);
int weft_group_receive(int group, void *buffer, size_t length, int milliseconds, struct weft_group_event *event);

/** weft_poll - take what has come, and wait for nothing
 *
 * Messages that have arrived are taken into the process. All functions that wait do this too.
 */
int weft_poll(void);

/** weft_error, weft_error_text - say in words what has gone wrong
 *
 * weft_error answers the text of the last error that this thread got from this library; it stays until the next one.
 * weft_error_text answers what the number of an error means.
 */
const char *weft_error(void);
const char *weft_error_text(int error);

#ifdef __cplusplus
}
#endif

#endif
