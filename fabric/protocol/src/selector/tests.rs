//! What is decided, with what was decided before there was one place for it as the oracle.

use super::*;

const KIB: usize = 1024;

fn rules() -> Rules {
    Rules { eager: 64 * KIB, single_copy: None, machine: machine::Best::default() }
}

fn message(length: usize) -> Departure {
    Departure { length, synchronous: false, kind: BufferKind::Ordinary, copies: true }
}

/// A road, and whether datagrams go by a lane there.
const ROADS: [Road; 5] = [Road::Ring, Road::Datagrams { packet: 1400 }, Road::Both, Road::Connection, Road::Unmet];

fn lengths() -> impl Iterator<Item = usize> {
    let around = |log2: u32| [(1usize << log2) - 1, 1 << log2, (1 << log2) + 1];
    [0, 8, 47, 48, 49].into_iter().chain((6..=23).flat_map(around))
}

/// The thresholds as they stood in the code of the port and of the devices.
fn before(message: &Departure, eager: usize, single_copy: Option<usize>, road: Road, learned: Method) -> Way {
    let Departure { length, synchronous, kind, copies } = *message;
    let has_place = kind == BufferKind::Shown;
    let over_connection = match road {
        Road::Both => true,
        Road::Connection => length > 1024,
        _ => false,
    };
    let unasked = !synchronous && length <= eager;
    if !unasked {
        return Way::Ask;
    }
    if length <= 48 {
        return Way::Short;
    }
    let chooses = copies && single_copy.is_none();
    let asks_to_offer = !over_connection && road != Road::Connection && (has_place || (length > 8 * KIB && chooses));
    if asks_to_offer && learned == Method::Copy {
        return Way::Offer;
    }
    if over_connection {
        return Way::EagerByConnection;
    }
    let packet = match road {
        Road::Datagrams { packet } => packet,
        Road::Connection => length,
        _ if length <= 16 * KIB => 8 * KIB,
        _ if length <= 128 * KIB => 16 * KIB,
        _ => 32 * KIB,
    };
    Way::Eager { packet }
}

#[test]
fn a_sender_decides_as_before() {
    for eager in [1000, 64 * KIB, 1 << 20] {
        for single_copy in [None, Some(0), Some(20_000)] {
            let rules = Rules { eager, single_copy, ..rules() };
            for (length, road) in lengths().flat_map(|length| ROADS.map(|road| (length, road))) {
                for bits in 0..16 {
                    let [synchronous, shown, copies, copy] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
                    let kind = if shown { BufferKind::Shown } else { BufferKind::Ordinary };
                    let message = Departure { length, synchronous, kind, copies };
                    let learned = if copy { Method::Copy } else { Method::Stream };
                    let choice = rules.send(&message, road, || learned);
                    let expected = before(&message, eager, single_copy, road, learned);
                    assert_eq!(choice.way, expected, "{message:?} {road:?} {learned:?} {eager} {single_copy:?}");
                }
            }
        }
    }
}

#[test]
fn what_goes_at_once_is_short_or_one_packet() {
    assert_eq!(rules().whole(), 8 * KIB);
    assert_eq!(Rules { eager: 1000, ..rules() }.whole(), 1000);
    assert!(!rules().may_show(2047) && rules().may_show(2048));
    let fixed = Rules { single_copy: Some(20_000), ..rules() };
    assert!(!fixed.may_show(19_999) && fixed.may_show(20_000));
    for length in lengths().filter(|length| *length <= rules().whole()) {
        let choice = rules().send(&message(length), Road::Ring, || panic!("nothing is asked for {length} bytes"));
        assert!(matches!(choice.because, Because::FitsCell | Because::FitsPacket), "{length}: {choice:?}");
    }
}

#[test]
fn datagrams_carry_what_fits_into_one() {
    let prefers = |length, by_lane| prefers_connection(length, || by_lane);
    assert!(!prefers(1024, false) && prefers(1025, false));
    assert!(!prefers(4096, true) && prefers(4097, true));
    assert!(!prefers_connection(1024, || panic!("the lane does not matter")));
    assert!(prefers_connection(4097, || panic!("the lane does not matter")));
}

/// The receiver's half, as it stood in the rendezvous.
fn answered_before(asked: &Reception, single_copy: Option<usize>, is_slow: bool, learned: Method) -> Way {
    let Reception { bytes, offered, shown, copies } = *asked;
    if bytes == 0 {
        return Way::Nothing;
    }
    if shown && bytes <= 256 << 10 {
        return Way::CopyShown;
    }
    if !copies {
        return Way::Stream;
    }
    if offered {
        return if is_slow { Way::Stream } else { Way::CopyByReceiver };
    }
    match single_copy {
        Some(least) if bytes < least as u64 => Way::Stream,
        Some(_) => Way::CopyByBoth,
        None if shown => Way::CopyByBoth,
        None if is_slow => Way::Stream,
        None if learned == Method::Stream => Way::Stream,
        None => Way::CopyByBoth,
    }
}

#[test]
fn a_receiver_decides_as_before() {
    for single_copy in [None, Some(0), Some(20_000)] {
        let rules = Rules { single_copy, ..rules() };
        for (bytes, bits) in lengths().flat_map(|length| (0..32).map(move |bits| (length as u64, bits))) {
            let [offered, shown, copies, is_slow, copy] = [1, 2, 4, 8, 16].map(|bit| bits & bit != 0);
            let asked = Reception { bytes, offered, shown, copies };
            let learned = if copy { Method::Copy } else { Method::Stream };
            let choice = rules.answer(&asked, || is_slow, || learned);
            assert_eq!(choice.way, answered_before(&asked, single_copy, is_slow, learned), "{asked:?} {single_copy:?}");
        }
    }
}

#[test]
fn only_what_is_not_decided_is_learned() {
    let asked = Reception { bytes: 1 << 20, offered: false, shown: true, copies: true };
    let nothing = || panic!("it is decided");
    assert_eq!(rules().answer(&asked, || false, nothing).because, Because::LongEnoughForBoth);
    let fixed = Rules { single_copy: Some(0), ..rules() };
    let asked = Reception { shown: false, ..asked };
    assert_eq!(fixed.answer(&asked, || panic!("not asked for"), nothing).because, Because::Setting);
    assert_eq!(rules().answer(&Reception { copies: false, ..asked }, || false, nothing).because, Because::NoCopies);
    assert_eq!(rules().answer(&asked, || true, nothing).because, Because::SlowForTheKernel);
    assert_eq!(rules().answer(&asked, || false, || Method::Copy).because, Because::Learned);
}

#[test]
fn the_machine_moves_the_thresholds() {
    let mut rules = rules();
    rules.machine.offers_above = usize::MAX;
    let never = || panic!("copies are far slower");
    assert_eq!(rules.send(&message(64 * KIB), Road::Ring, never).way, Way::Eager { packet: 16 * KIB });
    rules.machine = rules.machine.with_packets(32 * KIB);
    assert_eq!(rules.send(&message(32 * KIB), Road::Ring, never).because, Because::FitsPacket);
    rules.machine.alone_to = 64 * KIB;
    let asked = Reception { bytes: 65 << 10, offered: false, shown: true, copies: true };
    assert_eq!(rules.answer(&asked, || false, || Method::Copy).way, Way::CopyByBoth);
}
