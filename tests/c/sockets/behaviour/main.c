/* What a program may see of TCP sockets, one case each; run with and without the library, it must see the same.
 *
 *   behaviour CASE... | all | list
 *
 * Both ends are in this process, or in a child of it. Prints one line per case. */
#include "behaviour.h"

static const struct a_case cases[] = {
    { "end_follows_data", end_follows_data },
    { "closed_peer_gives_epipe", closed_peer_gives_epipe },
    { "broken_pipe_signal", broken_pipe_signal },
    { "timeouts", timeouts },
    { "interrupted", interrupted },
    { "flags", flags },
    { "urgent", urgent },
    { "duplicates", duplicates },
    { "forked", forked },
    { "executed", executed },
    { "spawned", spawned },
    { "standard_io", standard_io },
    { "passed", passed },
    { "peer_killed", peer_killed },
    { "shut_by_a_thread", shut_by_a_thread },
    { "cancelled", cancelled },
    { "readiness", readiness },
    { "sets", sets },
    { "edges", edges },
    { "nested_sets", nested_sets },
    { "behind_the_kernel", behind_the_kernel },
    { "short_answers", short_answers },
    { "long_answers", long_answers },
    { "two_sleepers", two_sleepers },
    { "registered_beside", registered_beside },
    { "filled_beside", filled_beside },
    { "forked_beside", forked_beside },
    { "killed_behind_a_full_ring", killed_behind_a_full_ring },
    { "killed_while_the_ring_is_full", killed_while_the_ring_is_full },
    { "covered_with_bytes_unread", covered_with_bytes_unread },
    { "answers_of_two_threads", answers_of_two_threads },
    { "used_beside_poll", used_beside_poll },
    { "all_else_closed", all_else_closed },
    { "numbers_of_nobody", numbers_of_nobody },
    { "numbers_taken_unseen", numbers_taken_unseen },
    { "refused_copies", refused_copies },
    { "put_into_a_set_beside", put_into_a_set_beside },
    { "told_on_two_levels", told_on_two_levels },
    { "looked_at_beside", looked_at_beside },
    { "jumped_out", jumped_out },
    { "two_signals", two_signals },
    { "cancelled_while_busy", cancelled_while_busy },
    { "longest_list", longest_list },
    { "select_beside_an_end", select_beside_an_end },
    { "sent_before_it_is_read", sent_before_it_is_read },
    { "both_send_before_they_read", both_send_before_they_read },
    { "room_for_what_nobody_reads", room_for_what_nobody_reads },
    { "files", files },
    { "headers", headers },
    { "told_what_is_left", told_what_is_left },
    { "handed_to_a_worker", handed_to_a_worker },
    { "handed_over_and_kept", handed_over_and_kept },
    { "handed_to_oneself", handed_to_oneself },
    { "registered_by_requests", registered_by_requests },
    { "moved_by_requests", moved_by_requests },
    { "first_sends", first_sends },
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
