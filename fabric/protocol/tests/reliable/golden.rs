//! The bytes of a whole datagram, as `docs/wire/link.md` shows them.

use weft_protocol::reliable::{Checksum, Config, JobSeal, Link, Seal};
use weft_wire::cell::{Head, Kind};
use weft_wire::link::header::Process;

#[test]
fn bytes_of_the_first_datagram() {
    let first = first_datagram(|_| Checksum::default());
    #[rustfmt::skip]
    let golden = [
        0x57, 0x4c, 2, 1,  3, 0, 0, 0,  10, 0, 0, 0,  2, 0, 0, 0,  9, 0, 0, 0,
        0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0x10, 0,
        0, 0, 0, 0,  0, 0,  0, 0,  0, 0,  24, 0,  0, 0, 0, 0,
        0, 1, 8, 0, 5, 0, 0, 0,  6, 0, 0, 0, 2, 0, 0, 0,  1, 2, 3, 4, 5, 6, 7, 8,
        0x34, 0x5f, 0x6a, 0x6e, 0x01, 0x00, 0x00, 0x00,
    ];
    assert_eq!(first, golden);
}

#[test]
fn the_seal_of_the_same_with_a_key() {
    let first = first_datagram(|config| JobSeal::new(b"the key of tests", false, config.local, config.remote));
    let plain = first_datagram(|_| Checksum::default());
    let at = plain.len() - 8;
    assert_eq!(first[..at], plain[..at]);
    assert_eq!(first[at..], [0x91, 0x99, 0x97, 0x2d, 0xba, 0xd6, 0x3f, 0x3c]);
}

#[test]
fn bytes_of_the_same_encrypted() {
    let first = first_datagram(|config| JobSeal::new(b"the key of tests", true, config.local, config.remote));
    let plain = first_datagram(|_| Checksum::default());
    assert_eq!(first[..52], plain[..52], "the header is clear");
    let text: String = first[52..].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, ENCRYPTED);
}

/// Payload and tag.
const ENCRYPTED: &str = "9a49a4a7c1e8121f9a2e8d31f5d344eca7c45a635a1524c49a5c4ff0a776dc2df2c359f1f18b9260";

fn first_datagram<S: Seal>(seal: impl Fn(&Config) -> S) -> Vec<u8> {
    let process = |rank, incarnation| Process { rank, incarnation };
    let config = Config::new(process(2, 9), process(3, 10), 1_472);
    let mut link = Link::new(config, seal(&config), 0);
    let head = Head { kind: Kind::Short, context: 5, tag: 6, source: 2 };
    link.try_send(&head, &[1, 2, 3, 4, 5, 6, 7, 8], None);
    let mut buffer = [0; 1_472];
    let length = link.poll_transmit(0, &mut buffer).expect("a datagram");
    buffer[..length].to_vec()
}
