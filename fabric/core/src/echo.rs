//! A protocol for tests: what is sent comes back. It shows what a protocol takes, and is built into tests alone.

use crate::api::{Fault, Peer};
use crate::devices::Devices;
use crate::protocol::{Breach, Numbered, Protocol};
use crate::requests::Requests;
use weft_device::{Packet, Posted};
use weft_wire::cell::Head;

/// The tag of what is sent, and of what comes back.
const THERE: i32 = 0;
const BACK: i32 = 1;

#[derive(Default)]
pub(crate) struct Echo {
    /// Words that wait to go back to their sender.
    waiting: Vec<(u32, Vec<u64>)>,
    heard: Vec<(u32, Vec<u64>)>,
    peers: u32,
    lost: Vec<Peer>,
}

impl Numbered for Echo {
    const NUMBER: u32 = u32::MAX;

    fn new(_: u32, peers: u32) -> Self {
        Self { peers, ..Self::default() }
    }
}

impl Protocol for Echo {
    fn handle_packet(&mut self, packet: Packet<'_>, _: &mut Requests) -> Result<(), Breach> {
        let words = (0..packet.inline_bytes / 8).map(|at| packet.word(at)).collect();
        match packet.head.tag {
            THERE => self.waiting.push((packet.from, words)),
            BACK => self.heard.push((packet.from, words)),
            _ => return Err("an echo of nothing"),
        }
        Ok(())
    }

    fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn pump(&mut self, devices: &mut Devices, _: &mut Requests) -> bool {
        let all = self.waiting.len();
        let head = Head::of_protocol(Self::NUMBER, BACK, 0);
        self.waiting.retain(|(to, words)| devices.post_control(*to, head, words) == Posted::Full);
        self.waiting.len() < all
    }

    fn add_peer(&mut self) {
        self.peers += 1;
    }

    fn lose_peer(&mut self, peer: Peer, _: Fault, _: &mut Requests) {
        self.lost.push(peer);
    }
}

mod tests {
    use super::*;
    use crate::Endpoint;
    use weft_device::shm::Segment;
    use weft_wire::cell::INLINE_WORDS;

    fn send(at: &mut Endpoint, to: u32, words: &[u64]) {
        let head = Head::of_protocol(Echo::NUMBER, THERE, 0);
        assert_eq!(at.devices().post_control(to, head, words), Posted::Sent(0));
    }

    /// Turns until nothing moves.
    fn settle(net: &mut [Endpoint]) {
        while net.iter_mut().fold(false, |moved, at| at.progress() | moved) {}
    }

    fn echo(at: &mut Endpoint) -> &mut Echo {
        &mut at.switch.others.echo
    }

    #[test]
    fn a_protocol_of_one_file_and_one_line_gets_its_packets_and_sends_its_own() {
        let segment = Segment::create(3).expect("memory");
        let mut net: Vec<Endpoint> =
            (0..3).map(|me| Endpoint::join_segment(segment.clone(), me).expect("a member")).collect();
        send(&mut net[0], 1, &[5, 6]);
        send(&mut net[0], 2, &[]);
        send(&mut net[2], 1, &[7; INLINE_WORDS]);
        settle(&mut net);
        let mut heard = echo(&mut net[0]).heard.clone();
        heard.sort();
        assert_eq!(heard, [(1, vec![5, 6]), (2, Vec::new())]);
        assert_eq!(echo(&mut net[2]).heard, [(1, vec![7; INLINE_WORDS])]);
        assert!(echo(&mut net[1]).heard.is_empty() && echo(&mut net[1]).peers == 3);
        net.iter_mut().for_each(|at| at.add_peer());
        assert_eq!((echo(&mut net[1]).peers, &echo(&mut net[1]).lost[..]), (4, &[][..]));
    }

    #[test]
    fn who_breaks_a_protocol_is_lost_to_all() {
        for head in [Head::of_protocol(Echo::NUMBER, 9, 0), Head::of_protocol(Echo::NUMBER - 1, 0, 0)] {
            let segment = Segment::create(2).expect("memory");
            let mut net: Vec<Endpoint> =
                (0..2).map(|me| Endpoint::join_segment(segment.clone(), me).expect("a member")).collect();
            assert_eq!(net[0].devices().post_control(1, head, &[]), Posted::Sent(0));
            settle(&mut net);
            assert!(net[1].is_lost(Peer(0)) && !net[0].is_lost(Peer(1)));
            assert_eq!(echo(&mut net[1]).lost, [Peer(0)]);
        }
    }
}
