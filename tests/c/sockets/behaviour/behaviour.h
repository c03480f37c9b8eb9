/* The cases. */
#include "../cases/cases.h"

/* A thread that sleeps on a set for so long, or until it is told of something. */
struct sleeper {
    int set, milliseconds;
    pthread_t thread;
    volatile pid_t id;
    volatile int done;
    int count;
    struct epoll_event event;
};

void lie_down(struct sleeper *sleeper, int set);
void lie_down_for(struct sleeper *sleeper, int set, int milliseconds);
void woken(struct sleeper *sleeper);

void end_follows_data(void);
void closed_peer_gives_epipe(void);
void broken_pipe_signal(void);
void flags(void);
void urgent(void);
void files(void);
void timeouts(void);
void interrupted(void);
void shut_by_a_thread(void);
void cancelled(void);
void duplicates(void);
void forked(void);
void executed(void);
void spawned(void);
void standard_io(void);
void passed(void);
void peer_killed(void);
void readiness(void);
void sets(void);
void edges(void);
void nested_sets(void);
void behind_the_kernel(void);
void short_answers(void);
void long_answers(void);
void two_sleepers(void);
void registered_beside(void);
void filled_beside(void);
void forked_beside(void);
void killed_behind_a_full_ring(void);
void killed_while_the_ring_is_full(void);
void covered_with_bytes_unread(void);
void answers_of_two_threads(void);
void used_beside_poll(void);
void all_else_closed(void);
void numbers_of_nobody(void);
void numbers_taken_unseen(void);
void refused_copies(void);
void headers(void);
void told_what_is_left(void);
void handed_to_a_worker(void);
void handed_over_and_kept(void);
void handed_to_oneself(void);
void registered_by_requests(void);
void moved_by_requests(void);
void first_sends(void);
void put_into_a_set_beside(void);
void told_on_two_levels(void);
void looked_at_beside(void);
void jumped_out(void);
void two_signals(void);
void cancelled_while_busy(void);
void longest_list(void);
void select_beside_an_end(void);
void sent_before_it_is_read(void);
void both_send_before_they_read(void);
void room_for_what_nobody_reads(void);
