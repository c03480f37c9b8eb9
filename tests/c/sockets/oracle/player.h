/* What the parts of a player share. */
#ifndef PLAYER_H
#define PLAYER_H

#include "oracle.h"

typedef struct {
  int side, slot;
  int fds[HANDLES];       /* -1: free */
  uint32_t watched[HANDLES];
  int epoll, listener;
  int port;
  uint32_t late;
} Player;

/* Each answers the command in `reply`. */
void play_send(Player *player, const Command *command, Reply *reply);
void play_receive(Player *player, const Command *command, Reply *reply);
void play_peek(Player *player, const Command *command, Reply *reply);
void play_empty(Player *player, const Command *command, Reply *reply);
void play_end_of_stream(Player *player, const Command *command, Reply *reply);
void play_broken(Player *player, const Command *command, Reply *reply);
void play_flood(Player *player, const Command *command, Reply *reply);
void play_drain(Player *player, const Command *command, Reply *reply);
void play_pending(Player *player, const Command *command, Reply *reply);

void play_wait(Player *player, const Command *command, Reply *reply);
void play_ready(Player *player, const Command *command, Reply *reply);
void play_interrupted(Player *player, const Command *command, Reply *reply);
void play_epoll_set(Player *player, const Command *command, Reply *reply);
void play_epoll_wait(Player *player, const Command *command, Reply *reply);
/* A signal every 300 us from now on, or no more. */
void start_signals(bool restart);
void stop_signals(void);
extern volatile int broken_pipes;

#endif
