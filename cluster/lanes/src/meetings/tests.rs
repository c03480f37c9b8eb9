//! Two hosts whose calls are lost, doubled, repeated and made up.

use super::*;
use weft_wire::link::mac::Key;
use weft_wire::stream::meeting;

const KEY: Key = Key([9; 16]);
const HERE: [u8; 4] = [10, 0, 0, 1];
const THERE: [u8; 4] = [10, 0, 0, 2];

/// One rendezvous: what is kept with an end is its name.
struct Side {
    meetings: Meetings<u64>,
    met: Vec<Met<u64>>,
    next_slot: u32,
    lanes: bool,
}

impl Side {
    fn new() -> Self {
        Self { meetings: Meetings::new(4096), met: Vec::new(), next_slot: 0, lanes: true }
    }

    fn calls(&mut self, now_ns: u64) -> Vec<ShownCall> {
        let mut calls = Vec::new();
        self.meetings.poll_calls(now_ns, |call| {
            calls.push(*call);
            true
        });
        calls
    }

    /// As it comes by the network, and back.
    fn handle(&mut self, call: &ShownCall, now_ns: u64) -> Option<ShownCall> {
        let call = ShownCall::parse(&KEY, &call.pack(&KEY)).expect("it is tagged");
        let (slot, lanes) = (&mut self.next_slot, self.lanes);
        let heard = self.meetings.handle_call(&call, now_ns, |_| {
            *slot += 1;
            lanes.then_some(Landing { port: 7320, slot: *slot, generation: 1 })
        });
        self.met.extend(heard.met);
        heard.answer
    }
}

fn shown(client: u64, from: [u8; 4], to: [u8; 4], port: u16) -> EndOwner {
    let (near, far) = if from == HERE { (port, 80) } else { (80, port) };
    EndOwner { client, cookie: u64::from(port), ends: [DatagramPeer::of_v4(from, near), DatagramPeer::of_v4(to, far)] }
}

fn here(port: u16) -> EndOwner {
    shown(1, HERE, THERE, port)
}

fn there(port: u16) -> EndOwner {
    shown(2, THERE, HERE, port)
}

/// Every call and answer goes through `network`, which says how often it arrives. Answers how many calls there were.
fn talk(sides: &mut [Side; 2], from_ns: u64, mut network: impl FnMut(usize, &ShownCall) -> usize) -> usize {
    let mut count = 0;
    for tick in 0..300 {
        let now_ns = from_ns + tick * 5 * MS;
        let mut waiting: Vec<(usize, ShownCall)> = Vec::new();
        for (number, side) in sides.iter_mut().enumerate() {
            waiting.extend(side.calls(now_ns).into_iter().map(|call| (number, call)));
        }
        while let Some((from, call)) = waiting.pop() {
            count += 1;
            assert!(count < 5000, "they do not come to an end");
            for _ in 0..network(from, &call) {
                waiting.extend(sides[1 - from].handle(&call, now_ns).map(|answer| (1 - from, answer)));
            }
        }
        if sides.iter().all(|side| side.met.len() == 1 && !side.meetings.is_calling()) {
            break;
        }
    }
    count
}

fn both() -> [Side; 2] {
    let mut sides = [Side::new(), Side::new()];
    assert!(sides[0].meetings.show(here(1000), [1; 16], 11, 0));
    assert!(sides[1].meetings.show(there(1000), [2; 16], 22, 0));
    sides
}

fn assert_met(sides: &[Side; 2]) {
    let [one, other] = sides.each_ref().map(|side| side.met.first().expect("it has met"));
    assert_eq!((one.kept, other.kept), (11, 22));
    assert_eq!((one.here, one.there), (other.there, other.here));
    assert_eq!((one.nonces, other.nonces), ([[1; 16], [2; 16]], [[2; 16], [1; 16]]));
    let keys = |met: &Met<u64>| meeting::keys(&KEY, &met.nonces[0], &met.nonces[1]);
    assert!(keys(one)[0] == keys(other)[1] && keys(one)[1] == keys(other)[0]);
}

#[test]
fn both_ends_meet_by_a_few_calls() {
    let mut sides = both();
    let calls = talk(&mut sides, 0, |_, _| 1);
    assert_met(&sides);
    assert!(calls <= 6, "{calls} calls");
}

#[test]
fn an_end_that_is_shown_later_is_met_by_its_own_first_call() {
    let mut sides = [Side::new(), Side::new()];
    assert!(sides[0].meetings.show(here(1000), [1; 16], 11, 0));
    for tick in 0..100 {
        for call in sides[0].calls(tick * 5 * MS) {
            assert_eq!(sides[1].handle(&call, tick * 5 * MS), None, "nobody here has shown it");
        }
    }
    assert!(sides[1].meetings.show(there(1000), [2; 16], 22, 500 * MS));
    talk(&mut sides, 500 * MS, |_, _| 1);
    assert_met(&sides);
}

#[test]
fn lost_and_doubled_calls_are_made_good() {
    // Each of the first ten may be lost, or come twice.
    for pattern in 0..3_usize.pow(7) {
        let mut sides = both();
        let mut rest = pattern;
        talk(&mut sides, 0, |_, _| {
            let times = if rest > 0 { (rest + 1) % 3 } else { 1 };
            rest /= 3;
            times
        });
        assert_met(&sides);
    }
}

#[test]
fn calls_of_an_earlier_connection_meet_nobody() {
    // What was said between the same two ends before, all of it.
    let mut heard = Vec::new();
    talk(&mut both(), 0, |from, call| {
        heard.push((from, *call));
        1
    });
    assert!(heard.iter().any(|(_, call)| call.named.is_some() && call.landing.is_some()));
    let mut sides = [Side::new(), Side::new()];
    assert!(sides[0].meetings.show(here(1000), [3; 16], 11, 0));
    let mut answers = 0;
    for _ in 0..1000 {
        for (from, call) in heard.iter().filter(|(from, _)| *from == 1) {
            answers += usize::from(sides[1 - from].handle(call, 0).is_some());
        }
    }
    assert!(sides[0].met.is_empty(), "a nonce of an earlier time was believed");
    assert!(answers <= ANSWERS as usize, "{answers} answers");
    // The true one is still met, whatever was repeated last.
    assert!(sides[1].meetings.show(there(1000), [2; 16], 22, 0));
    talk(&mut sides, 0, |_, _| 1);
    assert_eq!((sides[0].met[0].nonces, sides[1].met[0].nonces), ([[3; 16], [2; 16]], [[2; 16], [3; 16]]));
}

#[test]
fn calls_that_are_repeated_after_a_meeting_change_nothing() {
    let mut sides = both();
    let mut heard = Vec::new();
    talk(&mut sides, 0, |from, call| {
        heard.push((from, *call));
        1
    });
    for (from, call) in heard {
        sides[1 - from].handle(&call, MS);
        let other = ShownCall { nonce: [7; 16], ..call };
        assert_eq!(sides[1 - from].handle(&other, MS), None, "one of another showing");
    }
    assert_eq!(sides.each_ref().map(|side| side.met.len()), [1, 1]);
    assert_eq!(sides.each_ref().map(|side| side.next_slot), [1, 1], "places were given away");
}

#[test]
fn who_has_not_met_is_answered_by_who_has() {
    let mut sides = both();
    // The last answer is lost: one has met, and the other one calls again.
    talk(&mut sides, 0, |_, call| usize::from(!call.has_met));
    let met = sides.each_ref().map(|side| side.met.len());
    assert_eq!(met.iter().sum::<usize>(), 1);
    talk(&mut sides, 1500 * MS, |_, _| 1);
    assert_met(&sides);
}

#[test]
fn calls_name_ends_and_others_are_not_answered() {
    let mut sides = both();
    let call = sides[0].calls(0)[0];
    for ends in [
        [call.ends[1], call.ends[0]],
        [call.ends[0], DatagramPeer::of_v4(THERE, 81)],
        [DatagramPeer::of_v4(HERE, 9), call.ends[1]],
    ] {
        assert_eq!(sides[1].handle(&ShownCall { ends, ..call }, 0), None);
    }
    assert!(sides[1].handle(&call, 0).is_some());
}

#[test]
fn without_a_lane_nothing_is_met_and_nothing_answered() {
    let mut sides = both();
    sides[1].lanes = false;
    talk(&mut sides, 0, |_, _| 1);
    assert!(sides.iter().all(|side| side.met.is_empty()));
    assert_eq!(sides[1].meetings.poll_expired(PATIENCE_NS).len(), 1);
}

#[test]
fn patience_ends_and_calls_become_rare() {
    let mut side = Side::new();
    assert!(side.meetings.show(here(1000), [1; 16], 11, 0));
    let calls: usize = (0..400).map(|tick| side.calls(tick * 5 * MS).len()).sum();
    assert!((10..25).contains(&calls), "{calls} calls");
    assert!(side.meetings.poll_expired(PATIENCE_NS - 1).is_empty());
    let given = side.meetings.poll_expired(PATIENCE_NS);
    assert_eq!((given.len(), given[0].kept), (1, Some(11)));
    assert!(!side.meetings.is_calling());
}

#[test]
fn a_silent_host_is_left_alone_until_it_calls() {
    let mut side = Side::new();
    assert!(side.meetings.show(here(1000), [1; 16], 11, 0));
    assert_eq!(side.calls(0).len(), 1);
    side.meetings.poll_expired(PATIENCE_NS);
    let later = PATIENCE_NS + MS;
    assert!(side.meetings.show(here(1001), [3; 16], 12, later));
    assert_eq!(side.calls(later), [], "it was called within the minute");
    let other = shown(1, HERE, [10, 0, 0, 3], 1002);
    assert!(side.meetings.show(other, [4; 16], 13, later));
    assert_eq!(side.calls(later).len(), 1, "another host is not silent");
    // It calls about something else, and is called again.
    let mut there_now = Side::new();
    assert!(there_now.meetings.show(there(5000), [5; 16], 14, later));
    let call = there_now.calls(later)[0];
    assert_eq!(side.handle(&call, later), None);
    assert_eq!(side.calls(later + MS).len(), 1);
    // And after the minute in any case.
    side.meetings.poll_expired(later + PATIENCE_NS);
    assert!(side.meetings.show(here(1003), [6; 16], 15, later + PATIENCE_NS + SILENCE_NS));
    assert_eq!(side.calls(later + PATIENCE_NS + SILENCE_NS).len(), 1);
}

/// An end of ours that is shown at this time, is called, and expires without an answer.
fn called_in_vain(side: &mut Side, port: u16, now_ns: u64) {
    assert!(side.meetings.show(here(port), [6; 16], 0, now_ns));
    assert_eq!(side.calls(now_ns).len(), 1);
    assert_eq!(side.meetings.poll_expired(now_ns + PATIENCE_NS).len(), 1);
}

#[test]
fn a_host_that_was_there_before_is_called_again_soon() {
    let mut sides = both();
    talk(&mut sides, 0, |_, _| 1);
    assert_met(&sides);
    let mut now_ns = 10 * SILENCE_NS;
    for port in 2000..2010 {
        called_in_vain(&mut sides[0], port, now_ns);
        now_ns += PATIENCE_NS + AWAY_NS;
    }
    // An end that is shown while it is away still has time to meet when it is back.
    let shown_ns = now_ns - AWAY_NS;
    assert!(sides[0].meetings.show(here(3000), [7; 16], 0, shown_ns));
    assert_eq!((sides[0].calls(shown_ns).len(), sides[0].calls(now_ns).len()), (0, 1));
    assert!(sides[0].meetings.poll_expired(now_ns + AWAY_NS / 2).is_empty());
}

#[test]
fn a_host_is_not_silent_because_our_calls_could_not_leave() {
    let mut side = Side::new();
    assert!(side.meetings.show(here(1000), [1; 16], 11, 0));
    assert_eq!(side.calls(0).len(), 1);
    side.meetings.poll_calls(FIRST_AGAIN_NS, |_| false);
    side.meetings.poll_expired(PATIENCE_NS);
    called_in_vain(&mut side, 1001, PATIENCE_NS);
    assert!(side.meetings.show(here(1002), [3; 16], 12, 2 * PATIENCE_NS));
    assert_eq!(side.calls(2 * PATIENCE_NS), [], "calls that have left found nobody");
}

#[test]
fn a_host_that_answers_is_not_silent_because_one_end_is_unknown_there() {
    let mut side = Side::new();
    assert!(side.meetings.show(here(1000), [1; 16], 11, 0));
    side.calls(0);
    let mut there_now = Side::new();
    assert!(there_now.meetings.show(there(5000), [5; 16], 14, 0));
    let call = there_now.calls(0)[0];
    side.handle(&call, MS);
    side.meetings.poll_expired(PATIENCE_NS);
    assert!(side.meetings.show(here(1001), [3; 16], 12, PATIENCE_NS));
    assert_eq!(side.calls(PATIENCE_NS).len(), 1);
}

#[test]
fn ends_without_end_are_refused_and_room_comes_back() {
    let mut side = Side::new();
    let mut taken = 0;
    for port in 1..u16::MAX {
        taken += usize::from(side.meetings.show(here(port), [1; 16], 0, 0));
    }
    assert_eq!(taken, ENDS_OF_ONE);
    // Others are not kept out by one, all together they are.
    let all = (3..100).flat_map(|client| (1..2000).map(move |port| (client, port)));
    taken += all
        .filter(|(client, port)| {
            let (near, far) = (DatagramPeer::of_v4([10, 0, *client as u8, 1], *port), DatagramPeer::of_v4(THERE, 80));
            side.meetings.show(EndOwner { client: *client, cookie: 1, ends: [near, far] }, [1; 16], 0, 0)
        })
        .count();
    assert_eq!(taken, 4096);
    assert_eq!(side.meetings.leave(1).len(), ENDS_OF_ONE);
    assert!(side.meetings.show(here(7), [1; 16], 0, 0));
    assert!(!side.meetings.show(here(7), [1; 16], 0, 0), "it is there already");
    assert_eq!(side.meetings.poll_expired(PATIENCE_NS).len(), 4096 - ENDS_OF_ONE + 1);
    assert!(side.meetings.of_client.is_empty());
}

#[test]
fn hosts_are_bounded() {
    let mut side = Side::new();
    for number in 0..5000_u16 {
        let [high, low] = number.to_be_bytes();
        let call = ShownCall {
            ends: [DatagramPeer::of_v4([10, 1, high, low], 1), DatagramPeer::of_v4(HERE, 80)],
            nonce: [1; 16],
            named: None,
            landing: None,
            has_met: false,
        };
        assert_eq!(side.handle(&call, 0), None);
    }
    assert_eq!(side.meetings.hosts.len(), HOSTS);
    let call =
        ShownCall { ends: [DatagramPeer::of_v4(THERE, 1), DatagramPeer::of_v4(HERE, 80)], ..both()[0].calls(0)[0] };
    side.handle(&call, SILENCE_NS);
    assert_eq!(side.meetings.hosts.len(), 1);
}

#[test]
fn what_is_withdrawn_meets_no_more() {
    let mut sides = both();
    assert!(sides[0].meetings.withdraw(2, 1000).is_none(), "another process's");
    assert!(matches!(sides[0].meetings.withdraw(1, 1000), Some(Withdrawn::Forgotten(GivenUp { kept: Some(11), .. }))));
    talk(&mut sides, 0, |_, _| 1);
    assert!(sides.iter().all(|side| side.met.is_empty()));
    let mut sides = both();
    talk(&mut sides, 0, |_, _| 1);
    assert!(matches!(sides[0].meetings.withdraw(1, 1000), Some(Withdrawn::HasMet(ends)) if ends == here(1000).ends));
    assert!(sides[0].meetings.forget(&here(1000).ends).is_some_and(|given| given.kept.is_none()));
}
