/* How connections begin and end, and what may happen meanwhile, one case each; run with and without the library, they must
 * see the same.
 *
 *   life CASE... | all | list
 *
 * Both ends are in this process, or in a child of it. Prints one line per case. */
#include "life.h"

static const struct a_case cases[] = {
    { "failed_exec", failed_exec },
    { "listed_words", listed_words },
    { "cancelled_calls", cancelled_calls },
    { "no_room", no_room },
    { "high_low_water", high_low_water },
    { "standard_output", standard_output },
    { "closed_under_a_call", closed_under_a_call },
    { "shut_under_a_send", shut_under_a_send },
    { "spawned_with_actions", spawned_with_actions },
    { "closed_unread", closed_unread },
    { "two_forkers", two_forkers },
    { "signals_that_interrupt", signals_that_interrupt },
    { "signals_that_restart", signals_that_restart },
    { "signals_of_both_kinds", signals_of_both_kinds },
    { "signals_under_waits", signals_under_waits },
    { "forks_in_masses", forks_in_masses },
    { "handlers_that_use_sets", handlers_that_use_sets },
    { "many_sets", many_sets },
    { "many_receivers", many_receivers },
    { "many_processes", many_processes },
    { "cancelled_often", cancelled_often },
    { "cancelled_among_handlers", cancelled_among_handlers },
    { "set_of_two_processes", set_of_two_processes },
    { "looked_at_by_a_child", looked_at_by_a_child },
    { "closed_and_held", closed_and_held },
    { "called_elsewhere", called_elsewhere },
    { "spawned_beside", spawned_beside },
    { "spawned_before_readers", spawned_before_readers },
    { "no_descriptors", no_descriptors },
    { "no_files", no_files },
    { "no_memory", no_memory },
    { "killed_while_sending", killed_while_sending },
    { "killed_while_receiving", killed_while_receiving },
    { "rendezvous_killed", rendezvous_killed },
    { "left_unread", left_unread },
    { "left_in_order", left_in_order },
    { "left_after_its_end", left_after_its_end },
    { "left_behind_our_end", left_behind_our_end },
    { "inherited_from_the_dead", inherited_from_the_dead },
    { "shut_for_reading", shut_for_reading },
    { "sent_to_nobody", sent_to_nobody },
    { "sent_in_messages", sent_in_messages },
    { "sent_to_itself", sent_to_itself },
    { "port_used_again", port_used_again },
    { "looked_at_by_a_handler", looked_at_by_a_handler },
    { "read_beside_a_spawn", read_beside_a_spawn },
    { "cut_off_for_good", cut_off_for_good },
    { "one_is_stopped", one_is_stopped },
    { "one_only_looks", one_only_looks },
    { "one_is_stopped_at_a_fork", one_is_stopped_at_a_fork },
    { "other_numbers", other_numbers },
    { "forked_into_other_numbers", forked_into_other_numbers },
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
