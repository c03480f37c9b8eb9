//! Partitioned communication, in C on several ranks.

use weft_tests::ranks::passes;

#[test]
fn partitions_arrive_however_both_sides_divide_the_message() {
    passes("partitioned", &[1, 2, 3]);
}

#[test]
fn misuse_is_refused_and_the_operation_goes_on() {
    passes("partitioned_errors", &[1, 2]);
}

#[test]
fn threads_hand_partitions_over_at_the_same_time() {
    passes("partitioned_threads", &[1, 2]);
}
