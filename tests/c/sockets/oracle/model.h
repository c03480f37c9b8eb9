/* What the conductor knows. */
#ifndef MODEL_H
#define MODEL_H

#include "oracle.h"

/* The stream that one side sends. */
typedef struct {
  uint64_t key, sent, received;
  uint32_t sends;  /* calls since it was last empty */
  bool ended;      /* by shutdown or the last close */
} Stream;

typedef struct {
  bool open;
  Stream streams[2];    /* by sending side */
  bool nonblocking[2];
  bool limited[2];      /* has a time limit for receives */
} Connection;

typedef struct {
  bool lives;
  int parent;               /* slot, -1: the conductor */
  pid_t pid;
  int held[HANDLES];        /* connection, -1: none */
  bool cloexec[HANDLES];
  uint32_t watched[HANDLES];
  bool armed[HANDLES];      /* not fallen silent after one event */
  bool news[HANDLES];       /* something has come since the last event */
} Holder;

/* One descriptor. */
typedef struct {
  int side, slot, handle, connection;
} At;

typedef struct {
  Random random;
  FILE *trace;
  uint64_t operations, left;
  uint64_t late;
  bool calm;                /* no call that takes a connection back to the kernel */
  bool brief;               /* nothing, besides, that takes one between two hosts back: forks, and much at a time */
  Connection connections[CONNECTIONS];
  Holder holders[2][SLOTS];
  Command told[2][SLOTS];   /* the last word to each */
  int port;
} Session;

/* conductor.c */
void tell(Session *session, int side, int slot, const Command *command);
Reply hear(Session *session, int side, int slot);
Reply ask(Session *session, int side, int slot, const Command *command);
/* Writes the answer into the trace and fails unless it is the one that kernel TCP must give. */
void expect(Session *session, At at, const Command *command, const Reply *reply, int result, int error);
void ask_expecting(Session *session, At at, const Command *command, int result, int error);
uint64_t in_flight(const Session *session, int connection, int receiving_side);
/* Some descriptor of this side of a connection; there is one. */
At some_holder(Session *session, int connection, int side);
At first_holder(const Session *session, int connection, int side);
int handles_of(const Session *session, int connection, int side);
int free_handle(const Holder *holder);
void send_some(Session *session, At at, uint32_t count, uint32_t pause_us);
void receive_some(Session *session, At at, uint32_t way, uint32_t count);

/* steps.c: one step of the random walk. */
void step(Session *session);
void flood(Session *session, At at);
void minimum(Session *session, At at);

/* endings.c */
void end_connection(Session *session, int connection);
void end_by_kill(Session *session);
void close_side(Session *session, int connection, int side);

#endif
