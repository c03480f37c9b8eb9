//! The machine in simulated groups, and what peers may claim.

mod simulated;

use super::*;
use proptest::prelude::*;
use simulated::{Course, run};

const A: GroupMember = GroupMember(1);
const B: GroupMember = GroupMember(2);

const RULES: GroupRules = GroupRules {
    window: 4,
    history: 8,
    history_bytes: 1 << 20,
    reserve_from: 1000,
    tree_from: 0,
    safe: false,
    silence_ms: 100,
};

fn bytes(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

/// Moves all words between two until none is left.
fn exchange(one: &mut OrderedGroup, other: &mut OrderedGroup) {
    loop {
        let mut moved = false;
        while let Some((_, word)) = one.poll_word() {
            other.handle_word(one.me, word).expect("no breach");
            moved = true;
        }
        while let Some((_, word)) = other.poll_word() {
            one.handle_word(other.me, word).expect("no breach");
            moved = true;
        }
        if !moved {
            return;
        }
    }
}

fn two(rules: GroupRules) -> (OrderedGroup, OrderedGroup) {
    let (mut one, mut other) = (OrderedGroup::create(A, rules), OrderedGroup::join(B, rules, A));
    exchange(&mut one, &mut other);
    for group in [&mut one, &mut other] {
        while let Some(event) = group.poll_event() {
            assert!(matches!(event, GroupEvent::View(_)));
        }
        assert_eq!(group.view(), &GroupView { number: 2, members: vec![A, B] });
    }
    (one, other)
}

fn texts(group: &mut OrderedGroup) -> Vec<String> {
    let text = |event| match event {
        GroupEvent::Message { message, .. } => String::from_utf8(message.bytes.to_vec()).expect("text"),
        other => format!("{other:?}"),
    };
    std::iter::from_fn(|| group.poll_event()).map(text).collect()
}

#[test]
fn both_deliver_in_the_order_of_the_sequencer() {
    let (mut one, mut other) = two(RULES);
    assert!(other.try_send(bytes("b1")) && one.try_send(bytes("a1")) && other.try_send(bytes("b2")));
    exchange(&mut one, &mut other);
    assert_eq!(texts(&mut one), ["a1", "b1", "b2"]);
    assert_eq!(texts(&mut other), ["a1", "b1", "b2"]);
}

#[test]
fn who_takes_nothing_stops_the_others_in_time() {
    let (mut one, mut other) = two(RULES);
    let mut sent = 0;
    while one.try_send(bytes("x")) {
        sent += 1;
        exchange(&mut one, &mut other);
        texts(&mut one);
    }
    assert_eq!(sent, RULES.history + RULES.window);
    assert_eq!(texts(&mut other).len(), RULES.history);
    exchange(&mut one, &mut other);
    assert_eq!(texts(&mut other).len(), RULES.window);
}

/// What a member has told with a message of its own is not all that it takes afterwards.
#[test]
fn who_sends_before_it_takes_tells_of_what_it_took() {
    let (mut one, mut other) = two(GroupRules { history: 1000, history_bytes: 1000, ..RULES });
    for _ in 0..4 {
        assert!(one.try_send(bytes(&"x".repeat(300))));
        exchange(&mut one, &mut other);
        texts(&mut one);
    }
    assert!(other.try_send(bytes("b")), "the sequencer is full now, and this waits");
    let mut taken = Vec::new();
    for _ in 0..3 {
        exchange(&mut one, &mut other);
        taken.extend(texts(&mut other));
        texts(&mut one);
    }
    assert_eq!(taken.len(), 5);
}

#[test]
fn safe_delivery_waits_for_all() {
    let (mut one, mut other) = two(GroupRules { safe: true, ..RULES });
    assert!(one.try_send(bytes("a")));
    one.handle_pause();
    assert_eq!(texts(&mut one), [""; 0]);
    exchange(&mut one, &mut other);
    assert_eq!(texts(&mut other), [""; 0], "the other one does not know that this one has it");
    other.handle_pause();
    exchange(&mut one, &mut other);
    assert_eq!(texts(&mut one), ["a"]);
    one.handle_pause();
    exchange(&mut one, &mut other);
    assert_eq!(texts(&mut other), ["a"]);
}

#[test]
fn half_of_a_view_waits_for_the_other_half_unless_that_is_dead() {
    let (mut one, mut other) = two(RULES);
    assert!(other.try_send(bytes("b")));
    for now_ms in (0..1000).step_by(10) {
        other.handle_time(now_ms);
    }
    assert_eq!((other.view().number, other.unplaced()), (2, 1));
    other.handle_death(A);
    assert_eq!(other.view().members, [B]);
    assert_eq!(texts(&mut other)[1..], ["b"]);
    one.handle_death(B);
    assert_eq!(one.view().members, [A]);
}

#[test]
fn who_leaves_has_all_before() {
    let (mut one, mut other) = two(RULES);
    assert!(one.try_send(bytes("a")) && other.try_send(bytes("b")));
    exchange(&mut one, &mut other);
    one.leave();
    exchange(&mut one, &mut other);
    assert_eq!(texts(&mut one), ["a", "b", "Left"]);
    assert_eq!(texts(&mut other)[..2], ["a", "b"]);
    assert_eq!((other.view().members.as_slice(), one.is_over()), (&[B][..], true));
}

#[test]
fn what_cannot_be_is_a_breach() {
    let breach = |saying| {
        let (_, mut other) = two(RULES);
        other.handle_word(A, GroupWord { view: 2, saying })
    };
    let message = Placed { origin: A, number: 0, bytes: bytes("x") };
    let far = Saying::Ordered { sequence: 1 << 40, stable: 0, message: message.clone() };
    assert_eq!(breach(far), Err(GroupBreach));
    assert_eq!(breach(Saying::Ordered { sequence: 0, stable: 5, message }), Err(GroupBreach));
    assert_eq!(breach(Saying::Yours { number: 0, sequence: 0, stable: 0 }), Err(GroupBreach));
    let gap = Successor { members: vec![B], next: 3, rest: vec![] };
    assert_eq!(breach(Saying::Install { successor: Box::new(gap) }), Err(GroupBreach));
    let (mut one, _) = two(RULES);
    let received = GroupWord { view: 2, saying: Saying::Received { received: 7 } };
    assert_eq!(one.handle_word(B, received), Err(GroupBreach));
}

/// Moves all words until none is left; answers from whom to whom ordered messages went.
fn exchange_all(groups: &mut [OrderedGroup]) -> Vec<(u32, u32)> {
    let mut ways = Vec::new();
    while let Some((from, to, word)) = groups.iter_mut().find_map(|group| {
        let (to, word) = group.poll_word()?;
        let to: Vec<_> = match to {
            WordTo::One(one) => vec![one],
            WordTo::Others { but } => group.receivers(but).collect(),
            WordTo::Hosts { origin, passes_on } => group.receivers_by_hosts(origin, passes_on).collect(),
        };
        Some((group.me, to, word))
    }) {
        for to in to {
            if let Saying::Ordered { .. } = word.saying {
                ways.push((from.0, to.0));
            }
            let receiver = groups.iter_mut().find(|group| group.me == to).expect("a member");
            receiver.handle_word(from, word.clone()).expect("no breach");
        }
    }
    ways.sort_unstable();
    ways
}

#[test]
fn a_long_message_goes_to_each_host_once() {
    let rules = GroupRules { reserve_from: 20, tree_from: 10, ..RULES };
    let group = |number| {
        let me = GroupMember(number);
        let mut group =
            if number == 1 { OrderedGroup::create(me, rules) } else { OrderedGroup::join(me, rules, GroupMember(1)) };
        // Odd ones on one host, even ones on the other.
        group.know_hosts(Arc::new(|member| member.0 % 2));
        group
    };
    let mut groups: Vec<_> = (1..=4).map(group).collect();
    exchange_all(&mut groups);
    groups.iter_mut().for_each(|group| _ = texts(group));
    let mut ways = |from: usize, length| {
        assert!(groups[from - 1].try_send(vec![b'x'; length].into()));
        let ways = exchange_all(&mut groups);
        assert!(groups.iter_mut().all(|group| texts(group).concat().len() == length), "{from}, {length}");
        ways
    };
    assert_eq!(ways(3, 20), [(2, 4), (3, 1), (3, 2)], "its origin sends it");
    assert_eq!(ways(2, 20), [(1, 3), (2, 1), (2, 4)]);
    assert_eq!(ways(3, 10), [(1, 2), (2, 4)], "the sequencer does");
    assert_eq!(ways(2, 10), [(1, 3), (1, 4)], "not to its origin");
    assert_eq!(ways(3, 9), [(1, 2), (1, 4)], "it is short");
}

/// How many courses `WEFT_SEEDS` asks for.
fn seeds() -> u64 {
    std::env::var("WEFT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1500)
}

fn all_seeds(of: impl Fn(u64) -> Course) {
    let first = std::env::var("WEFT_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    (first..seeds()).for_each(|seed| run(seed, &of(seed)));
}

#[test]
fn any_deaths_leave_survivors_of_one_order() {
    all_seeds(|seed| Course { deaths: 1 + seed % 4, hosts: (seed / 4 % 4) as u32, ..Course::default() });
}

#[test]
fn a_cut_network_has_one_order_too() {
    all_seeds(|seed| Course {
        deaths: seed % 3,
        cuts: 1 + seed % 3,
        hosts: (seed / 3 % 4) as u32,
        ..Course::default()
    });
}

#[test]
fn safe_deliveries_are_those_of_all_even_of_the_dead() {
    all_seeds(|seed| Course { deaths: seed % 3, cuts: seed % 3, safe: true, hosts: (seed / 3 % 4) as u32 });
}

proptest! {
    #[test]
    fn any_bytes_are_a_word_or_none(all in prop::collection::vec(any::<u8>(), 0..80), kind in 0..23_u8) {
        let mut all = all;
        if let Some(first) = all.first_chunk_mut::<4>() {
            *first = u32::from(kind).to_le_bytes();
        }
        if let Some(word) = GroupWord::read(&all, None) {
            let mut written = Vec::new();
            let tail = word.write(&mut written).to_vec();
            prop_assert_eq!(written.len() + tail.len() <= all.len(), true);
            prop_assert_eq!(GroupWord::read(&[written, tail].concat(), None), Some(word));
        }
    }
}
