/* What a program may see of UDP sockets, one case each; run with and without the library, it must see the same.
 *
 *   udp CASE... | all | list */
#include "udp.h"

#define CASE(what) { #what, what }
static const struct a_case cases[] = {
    CASE(names_and_lengths), CASE(six), CASE(mapped), CASE(flags), CASE(vectors), CASE(many_at_once), CASE(sizes),
    CASE(burst_is_kept), CASE(order_of_a_stream), CASE(nonblocking), CASE(time_limits), CASE(interrupted), CASE(polled),
    CASE(polled_asleep), CASE(selected), CASE(sets), CASE(edges), CASE(sets_asleep), CASE(registered_later),
    CASE(two_threads), CASE(closed_peer_refuses), CASE(killed_peer_refuses), CASE(killed_while_asleep),
    CASE(connected_hears_one), CASE(disconnected), CASE(strangers_are_heard), CASE(forked), CASE(shut), CASE(options),
    CASE(duplicates), CASE(passed_on), CASE(shown_is_taken), CASE(corked), CASE(one_way), CASE(unheard),
    CASE(address_is_shared), CASE(asks_for_signals), CASE(asks_for_times), CASE(many_come_and_go), CASE(errors_are_told),
    CASE(all_in_time), CASE(spliced), CASE(to_itself), CASE(left_at_a_fork), CASE(connected_elsewhere), CASE(exits),
    CASE(order_over_a_fork), CASE(headers_stay), CASE(no_needless_calls), CASE(nobody_to_ask),
    CASE(bound_again),
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
