//! The bytes of a whole datagram, as `docs/wire/link.md` shows them.

use weft_protocol::reliable::{Checksum, Config, Link};
use weft_wire::cell::{Head, Kind};
use weft_wire::link::header::Process;

#[test]
fn bytes_of_the_first_datagram() {
    let process = |rank, incarnation| Process { rank, incarnation };
    let mut link = Link::new(Config::new(process(2, 9), process(3, 10), 1_472), Checksum::default(), 0);
    let head = Head { kind: Kind::Short, context: 5, tag: 6, source: 2 };
    link.try_send(&head, &[1, 2, 3, 4, 5, 6, 7, 8], None);
    let mut buffer = [0; 1_472];
    let length = link.poll_transmit(0, &mut buffer).expect("a datagram");
    #[rustfmt::skip]
    let golden = [
        0x57, 0x4c, 1, 1,  3, 0, 0, 0,  10, 0, 0, 0,  2, 0, 0, 0,  9, 0, 0, 0,
        0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0x10, 0,
        0, 0, 0, 0,  0, 0,  0, 0,  0, 0,  24, 0,  0, 0, 0, 0,
        0, 1, 8, 0, 5, 0, 0, 0,  6, 0, 0, 0, 2, 0, 0, 0,  1, 2, 3, 4, 5, 6, 7, 8,
        0x2c, 0x8b, 0xaf, 0x68, 0x01, 0x00, 0x00, 0x00,
    ];
    assert_eq!(buffer[..length], golden);
}
