//! The bytes of a whole datagram, as `docs/wire/link.md` shows them.

use weft_protocol::reliable::{Config, JobSeal, Keyed, Link, Seal};
use weft_wire::cell::{Head, Kind};
use weft_wire::link::header::Process;
use weft_wire::link::keys;

const JOB: &[u8; 16] = b"the key of tests";

#[test]
fn bytes_of_the_first_datagram() {
    for (by_aegis, flags, seal) in [
        (true, 9, [0x12, 0xd8, 0xe4, 0x29, 0xab, 0x7e, 0x3c, 0xc1]),
        (false, 1, [0xbf, 0xdb, 0x48, 0x37, 0xa3, 0xfa, 0x72, 0x13]),
    ] {
        #[rustfmt::skip]
        let golden = [
            0x57, 0x4c, 2, flags,  3, 0, 0, 0,  10, 0, 0, 0,  2, 0, 0, 0,  9, 0, 0, 0,
            0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0x10, 0,
            0, 0, 0, 0,  0, 0,  0, 0,  0, 0,  24, 0,  0, 0, 0, 0,
            0, 1, 8, 0, 5, 0, 0, 0,  6, 0, 0, 0, 2, 0, 0, 0,  1, 2, 3, 4, 5, 6, 7, 8,
        ];
        assert_eq!(keyed(by_aegis), [&golden[..], &seal].concat(), "{by_aegis}");
    }
}

#[test]
fn bytes_of_the_same_encrypted() {
    let first = first_datagram(|config| JobSeal::new(JOB, true, config.local, config.remote));
    let plain = keyed(false);
    assert_eq!(first[..52], plain[..52], "the header is clear");
    let text: String = first[52..].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, ENCRYPTED);
}

/// Payload and tag.
const ENCRYPTED: &str = "9a49a4a7c1e8121f9a2e8d31f5d344eca7c45a635a1524c49a5c4ff0a776dc2df2c359f1f18b9260";

fn keyed(by_aegis: bool) -> Vec<u8> {
    first_datagram(|config| Keyed::on(by_aegis, &keys::of_link(JOB, config.local, config.remote)))
}

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
