/* What the cases about datagrams share. */
#include "../cases/cases.h"

/* A socket on 127.0.0.1 (or, for AF_INET6, ::1) and its address. */
int on_loopback(int family, struct sockaddr_storage *address);
/* Two sockets of this process that have talked enough for the library; a is connected to b if wanted. */
struct pair {
    int a, b;
    struct sockaddr_storage at_a, at_b;
};
struct pair pair_of(int family, int connected);
/* Whether the kernel has a datagram for a socket. */
int kernel_has(int fd);
/* Whether the library is there, and to take datagrams over. */
int rings(void);
/* Where it is: until a datagram of one socket of this process has come to another one by a ring; or until one that came
 * back from an echo. */
void until_by_ring(int from, int to, struct sockaddr_storage *at);
void until_answered_by_ring(int fd);
/* Datagrams to and fro, by blocking calls. */
void exchange(struct pair *p, int rounds);
void to_b(struct pair *p, const void *bytes, size_t length);
void to_a(struct pair *p, const void *bytes, size_t length);
/* A child that echoes on a socket of its own until it gets an empty datagram; its address. */
pid_t echo_datagrams(struct sockaddr_storage *address);

void names_and_lengths(void);
void six(void);
void mapped(void);
void flags(void);
void vectors(void);
void many_at_once(void);
void sizes(void);
void nonblocking(void);
void time_limits(void);
void interrupted(void);
void polled(void);
void polled_asleep(void);
void selected(void);
void sets(void);
void edges(void);
void sets_asleep(void);
void registered_later(void);
void two_threads(void);
void closed_peer_refuses(void);
void killed_peer_refuses(void);
void connected_hears_one(void);
void disconnected(void);
void strangers_are_heard(void);
void forked(void);
void shut(void);
void options(void);
void burst_is_kept(void);
void order_of_a_stream(void);
void duplicates(void);
void passed_on(void);
void killed_while_asleep(void);
void shown_is_taken(void);
void corked(void);
void one_way(void);
void unheard(void);
void address_is_shared(void);
void asks_for_signals(void);
void asks_for_times(void);
void many_come_and_go(void);
void errors_are_told(void);
void all_in_time(void);
void spliced(void);
void to_itself(void);
void left_at_a_fork(void);
void connected_elsewhere(void);
void exits(void);
void order_over_a_fork(void);
void headers_stay(void);
void no_needless_calls(void);
void nobody_to_ask(void);
void bound_again(void);
