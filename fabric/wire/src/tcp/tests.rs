use super::*;
use crate::cell::Kind;

const KEY: Key = [9; KEY_BYTES];
const CALL: Dialling = Dialling { from: 3, to: 1, nonce: [0x5a; NONCE_BYTES], encrypts: false };
const THEIRS: Nonce = [0xa5; NONCE_BYTES];

#[test]
fn a_greeting_is_believed_with_the_key_only() {
    let hello = CALL.hello(&KEY);
    assert_eq!(Dialling::from_hello(&hello, &KEY), Ok(CALL));
    assert_eq!(Dialling::from_hello(&hello, &[8; KEY_BYTES]), Err(GreetingError::Key));
    for at in 12..HELLO_BYTES {
        let mut bent = hello;
        bent[at] ^= 4;
        assert!(Dialling::from_hello(&bent, &KEY).is_err(), "byte {at}");
    }
    let mut other = hello;
    other[20] = 1;
    assert_eq!(Dialling::from_hello(&other, &KEY), Err(GreetingError::Key));
    other = hello;
    other[8] = 1;
    assert_eq!(Dialling::from_hello(&other, &KEY), Err(GreetingError::Version(1)));
    other[0] = b'G';
    assert_eq!(Dialling::from_hello(&other, &KEY), Err(GreetingError::Foreign));
}

#[test]
fn no_step_serves_as_another_and_no_call_as_another() {
    let answer = CALL.answer(&KEY, &THEIRS);
    assert_eq!(CALL.from_answer(&answer, &KEY), Some(THEIRS));
    assert_eq!(CALL.from_answer(&answer, &[8; KEY_BYTES]), None);
    let back = Dialling { from: 1, to: 3, ..CALL };
    assert_eq!(back.from_answer(&answer, &KEY), None, "sent back to who sent it");
    assert_eq!(CALL.with(true).from_answer(&answer, &KEY), None, "who answers does not encrypt");
    let hello = CALL.with(true).hello(&KEY);
    assert_eq!((hello[20], Dialling::from_hello(&hello, &KEY)), (1, Ok(CALL.with(true))));
    let proof = CALL.proof(&KEY, &THEIRS);
    assert!(CALL.is_proven_by(&proof, &KEY, &THEIRS));
    assert!(!CALL.is_proven_by(&proof, &KEY, &[0xa4; NONCE_BYTES]), "of another time");
    assert!(!CALL.is_proven_by(&tail(&answer), &KEY, &THEIRS));
    assert_ne!(tail(&CALL.hello(&KEY)), CALL.proof(&KEY, &[0; NONCE_BYTES]));
}

/// The bytes that docs/wire/tcp.md shows.
#[test]
fn golden_bytes() {
    let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let hello = text(&CALL.hello(&KEY));
    let mut said = String::from("776566742d746370" /* weft-tcp */);
    said += "04000000 03000000 01000000 00000000".replace(' ', "").as_str();
    said += &"5a".repeat(16);
    assert_eq!(hello[..80], said);
    let tags = [&hello[80..], &text(&CALL.answer(&KEY, &THEIRS))[32..], &text(&CALL.proof(&KEY, &THEIRS))];
    assert_eq!(tags, GOLDEN_TAGS);

    let head = Head { kind: Kind::Short, context: 0x1122_3344, tag: 5, source: 6 };
    assert_eq!(
        text(PacketFront::new(head, b"abc", None).bytes()),
        "5001030044332211".to_owned() + "0500000006000000" + "616263"
    );
    let head = Head::control(Kind::More);
    assert_eq!(
        text(PacketFront::new(head, &[], Some(0x1234)).bytes()),
        "5007000100000000".to_owned() + "0000000000000000" + "3412000000000000"
    );
    assert_eq!(
        text(PacketFront::new(head, &[], Some(0x1234)).with_gap().bytes()),
        "5007000100000000".to_owned() + "0000000000000000" + "3412000020000000" + &"00".repeat(32)
    );
    assert_eq!(text(&FAREWELL_BYTES), "46".to_owned() + &"00".repeat(15));
}

const GOLDEN_TAGS: [&str; 3] =
    ["323161d2b35fea200dad82167a23b7da", "c33b064320df418bd8040ff45e413e63", "ea9b6925ce498ea66bda53c811981bb1"];

#[test]
fn a_frame_is_known_from_any_beginning_and_whole_only_at_its_end() {
    let head = Head { kind: Kind::Ask, context: 7, tag: -1, source: u32::MAX };
    let without = [(0, None), (1, None), (48, None), (0, Some(1)), (40, Some(3000)), (5, Some(LARGEST_PACKET))];
    let with = [(0, Some(1)), (48, Some(LARGEST_PACKET))];
    for ((inline, bulk), has_gap) in without.map(|one| (one, false)).into_iter().chain(with.map(|one| (one, true))) {
        let inline_bytes = vec![7u8; inline];
        let front = PacketFront::new(head, &inline_bytes, bulk);
        let inline_at = front.bytes().len() - inline;
        let mut bytes = if has_gap { front.with_gap() } else { front }.bytes().to_vec();
        let at = bytes.len();
        bytes.extend(vec![9; bulk.unwrap_or(0)]);
        let whole = bytes.len();
        bytes.extend(b"more");
        let claim = Claim { head, inline_bytes: inline as u8, bulk: bulk.is_some() };
        let bulk = bulk.map(|bytes| Bulk { at, bytes });
        assert_eq!(TcpFrame::decode(&bytes), Ok(TcpFrame::Packet { claim, inline_at, bulk }));
        let mut have = 0;
        while have < whole {
            let needed = match TcpFrame::decode(&bytes[..have]) {
                Ok(TcpFrame::Partial { needed }) => needed,
                Ok(TcpFrame::Begun { claim: begun, inline_at: place, bulk: part }) => {
                    assert_eq!((begun, place, Some(part)), (claim, inline_at, bulk));
                    part.end()
                }
                other => panic!("{have} of {whole} bytes: {other:?}"),
            };
            assert!(needed > have && needed <= whole, "{needed} after {have} of {whole}");
            have = if have % 3 == 0 { needed } else { have + 1 };
        }
        assert_eq!(have, whole);
    }
    assert_eq!(TcpFrame::decode(&FAREWELL_BYTES), Ok(TcpFrame::Farewell));
}

#[test]
fn nonsense_is_refused() {
    let bent_of = |kind: Kind, at: usize, value: u8| {
        let most = if kind.is_streamed() { LARGEST_STREAMED } else { LARGEST_PACKET };
        let mut bytes = PacketFront::new(Head::control(kind), &[], Some(most)).bytes().to_vec();
        bytes[at] = value;
        TcpFrame::decode(&bytes)
    };
    let bent = |at, value| bent_of(Kind::Raw, at, value);
    assert_eq!(bent(0, 0x80), Err("bytes between two packets"));
    assert_eq!(bent(0, FAREWELL), Err("bytes between two packets"));
    for (at, value) in [(1, 0), (1, 200), (2, 49), (3, 2)] {
        assert!(bent(at, value).is_err(), "{value} at {at}");
    }
    for kind in [Kind::Raw, Kind::Short, Kind::Eager, Kind::Open, Kind::More] {
        assert!(bent_of(kind, 1, kind as u8).is_ok());
        assert!(bent_of(kind, 16, 1).is_err(), "one more than the largest");
        assert!(bent_of(kind, 18, 0).is_err(), "none");
    }
    assert!(bent(19, 1).is_err(), "far too many");
    assert!(bent(20, 33).is_err() && bent(23, 1).is_err(), "too large a gap");
}
