//! The matcher against an oracle: one list of receives and one of messages, searched from the front.

use proptest::prelude::*;
use weft_protocol::matching::{MatchLabel, Matcher, Pattern};

const PEERS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    Post(Pattern),
    Arrive(MatchLabel),
    Probe(Pattern),
    Match(Pattern),
    Cancel(usize),
    Lose(u32),
}

#[derive(Default)]
struct Oracle {
    posted: Vec<(Pattern, u32)>,
    unexpected: Vec<(MatchLabel, u32)>,
}

fn accepts(pattern: &Pattern, label: &MatchLabel) -> bool {
    pattern.context == label.context
        && pattern.peer.is_none_or(|peer| peer == label.peer)
        && pattern.tag.is_none_or(|tag| tag == label.tag)
}

impl Oracle {
    fn first(&self, pattern: &Pattern) -> Option<usize> {
        self.unexpected.iter().position(|(label, _)| accepts(pattern, label))
    }
}

fn pattern() -> impl Strategy<Value = Pattern> {
    (0..2u32, prop::option::weighted(0.7, 0..PEERS), prop::option::weighted(0.7, 0..3i32))
        .prop_map(|(context, peer, tag)| Pattern { context, peer, tag })
}

fn step() -> impl Strategy<Value = Step> {
    let label = (0..2u32, 0..PEERS, 0..3i32).prop_map(|(context, peer, tag)| MatchLabel { context, peer, tag });
    prop_oneof![
        8 => pattern().prop_map(Step::Post),
        8 => label.prop_map(Step::Arrive),
        2 => pattern().prop_map(Step::Probe),
        2 => pattern().prop_map(Step::Match),
        2 => any::<usize>().prop_map(Step::Cancel),
        1 => (0..PEERS).prop_map(Step::Lose),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn matching_is_that_of_two_plain_lists(steps in prop::collection::vec(step(), 1..120)) {
        let (mut matcher, mut oracle) = (Matcher::new(PEERS), Oracle::default());
        for (number, step) in steps.into_iter().enumerate() {
            let number = number as u32;
            match step {
                Step::Post(pattern) => {
                    let expected = oracle.first(&pattern).map(|at| oracle.unexpected.remove(at).1);
                    prop_assert_eq!(matcher.take_unexpected(&pattern), expected);
                    if expected.is_none() {
                        matcher.post(&pattern, number);
                        oracle.posted.push((pattern, number));
                    }
                }
                Step::Arrive(label) => {
                    let place = oracle.posted.iter().position(|(pattern, _)| accepts(pattern, &label));
                    let expected = place.map(|at| oracle.posted.remove(at).1);
                    prop_assert_eq!(matcher.handle_message(&label), expected);
                    if expected.is_none() {
                        matcher.handle_unexpected(&label, number);
                        oracle.unexpected.push((label, number));
                    }
                }
                Step::Probe(pattern) => {
                    let expected = oracle.first(&pattern).map(|at| oracle.unexpected[at].1);
                    prop_assert_eq!(matcher.poll_unexpected(&pattern), expected);
                }
                Step::Match(pattern) => {
                    let expected = oracle.first(&pattern).map(|at| oracle.unexpected.remove(at).1);
                    prop_assert_eq!(matcher.take_unexpected(&pattern), expected);
                }
                Step::Cancel(choice) => {
                    if oracle.posted.is_empty() {
                        prop_assert!(!matcher.cancel(None, number));
                        continue;
                    }
                    let (pattern, receive) = oracle.posted.remove(choice % oracle.posted.len());
                    prop_assert!(matcher.cancel(pattern.peer, receive));
                    prop_assert!(!matcher.cancel(pattern.peer, receive));
                }
                Step::Lose(peer) => {
                    let (gone, left) = oracle.posted.into_iter().partition(|(p, _)| p.peer == Some(peer));
                    oracle.posted = left;
                    let gone: Vec<(Pattern, u32)> = gone;
                    let expected: Vec<u32> = gone.into_iter().map(|(_, receive)| receive).collect();
                    prop_assert_eq!(matcher.handle_peer_lost(peer), expected);
                }
            }
            prop_assert_eq!(matcher.unexpected_count(), oracle.unexpected.len());
        }
    }
}
