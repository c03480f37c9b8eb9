//! One order for the messages of a peer that come by two devices.
//!
//! Between hosts short messages go by datagrams and longer ones over a connection, neither of which waits for the
//! other. Matching wants the order in which they were sent. So the sender says where a message has its place among
//! those of the other way: how many went there before it. Over the connection each message that comes without being
//! asked for says so itself; on the other way the first message after such ones has a [`Kind::Order`] before it. While
//! messages go one way only, nothing is said. Messages to a rank that datagrams do not reach are counted as well,
//! because they may reach it later.
//!
//! A message that comes before its turn is kept like one that nobody receives yet, and its bytes go on arriving. It is
//! matched when its turn comes. Each way keeps the order of what it carries, so among the first messages of both there
//! is always one whose turn it is, once it has arrived: nothing waits for ever but for what is lost with its peer.

use super::inbound::{Arrived, Body, OpenStream, StreamTarget};
use super::receive::{label, outcome, word};
use super::{Port, RequestId};
use crate::api::Peer;
use crate::devices::By;
use crate::protocol::{Breach, Protocol};
use std::collections::VecDeque;
use weft_device::Packet;
use weft_protocol::matching::MatchLabel;
use weft_wire::cell::{INLINE_WORDS, Kind};

/// Of one way from one peer. Counts wrap in nobody's lifetime.
#[derive(Default)]
struct OneWay {
    /// Messages that were matched or left to be received.
    passed: u64,
    /// The next one's turn comes when so many of the other way have passed.
    after: u64,
    /// Those whose turn has not come, and after how many of the other way it does.
    held: VecDeque<HeldMessage>,
}

struct HeldMessage {
    what: WhatHeld,
    after: u64,
}

enum WhatHeld {
    Message(u32, MatchLabel),
    /// The sender wants an ask back, named by its request.
    Retract(u64),
    /// A message that its sender has taken back: only its turn is left.
    Gone,
}

/// Both ways from one peer.
#[derive(Default)]
pub(super) struct PeerOrder([OneWay; 2]);

impl PeerOrder {
    #[inline]
    fn is_turn(&self, by: By) -> bool {
        let way = &self.0[by as usize];
        way.held.is_empty() && self.0[by.other() as usize].passed >= way.after
    }

    fn has_held(&self) -> bool {
        self.0.iter().any(|way| !way.held.is_empty())
    }

    /// Forgets a message that is held; false if it is not (any longer).
    pub fn forget_held(&mut self, message: u32) -> bool {
        let mut held = self.0.iter_mut().flat_map(|way| &mut way.held);
        let found = held.find(|held| matches!(held.what, WhatHeld::Message(other, _) if other == message));
        found.is_some_and(|held| {
            held.what = WhatHeld::Gone;
            true
        })
    }

    /// The next message whose turn has come, which then has passed.
    fn poll_turn(&mut self) -> Option<HeldMessage> {
        [By::Connection, By::Datagrams].into_iter().find_map(|by| {
            let passed = self.0[by.other() as usize].passed;
            let way = &mut self.0[by as usize];
            way.held.front().filter(|held| held.after <= passed)?;
            let held = way.held.pop_front()?;
            way.passed += 1;
            Some(held)
        })
    }
}

/// What is under way from each peer.
pub(crate) struct Arriving {
    pub(super) orders: Vec<PeerOrder>,
    /// Two of each peer: long messages may come by a device of their own.
    pub(super) streams: Vec<Option<OpenStream>>,
    /// What is handled now comes by that device.
    pub by_long_way: bool,
}

impl Arriving {
    pub fn new(peers: u32) -> Self {
        let orders = (0..peers).map(|_| PeerOrder::default()).collect();
        Self { orders, streams: vec![None; 2 * peers as usize], by_long_way: false }
    }

    pub fn add_peer(&mut self) {
        self.orders.push(PeerOrder::default());
        self.streams.extend([None, None]);
    }

    pub fn close_streams(&mut self, peer: u32) {
        self.streams[2 * peer as usize..][..2].fill(None);
    }
}

impl Port {
    /// A packet of a peer that two devices may lead to.
    #[inline]
    pub fn handle_packet_by(&mut self, packet: Packet<'_>, by: By) -> Result<(), Breach> {
        match packet.head.kind {
            // What takes an ask back must not come before it.
            kind if kind.has_place() => self.on_message(packet, by),
            Kind::Order => {
                self.incoming.orders[packet.from as usize].0[by as usize].after = packet.word(0);
                Ok(())
            }
            _ => self.handle_packet(packet, &mut ()),
        }
    }

    #[inline]
    fn on_message(&mut self, packet: Packet<'_>, by: By) -> Result<(), Breach> {
        let (from, order) = (packet.from as usize, &mut self.incoming.orders[packet.from as usize]);
        if packet.head.kind == Kind::Eager && packet.inline_bytes >= 16 {
            order.0[by as usize].after = packet.word(1);
        }
        if !order.is_turn(by) {
            return self.hold(packet, by);
        }
        order.0[by as usize].passed += 1;
        let holds = order.has_held();
        self.handle_packet(packet, &mut ())?;
        if holds {
            self.let_pass(from);
        }
        Ok(())
    }

    /// Keeps a message whose turn has not come, and does not let it be matched.
    #[cold]
    fn hold(&mut self, packet: Packet<'_>, by: By) -> Result<(), Breach> {
        let (from, label) = (packet.from as usize, label(&packet));
        let keep = |port: &mut Self, length: u64, body| {
            port.arrived.insert(Arrived {
                outcome: outcome(&packet, length),
                body,
                taken_by: None,
                word: word(&packet),
            })
        };
        let message = match packet.head.kind {
            Kind::Retract => None,
            Kind::Short => {
                let words = std::array::from_fn::<u64, INLINE_WORDS, _>(|i| packet.word(i));
                Some(keep(self, packet.inline_bytes as u64, Body::Inline(words)))
            }
            Kind::Eager => {
                let (total, bulk) = self.eager(&packet)?;
                let message = keep(self, total, Body::Kept { data: vec![0; total as usize], received: 0 });
                self.open_eager(from as u32, StreamTarget::Arrived(message), total, bulk)?;
                Some(message)
            }
            _ => {
                let (length, asked) = Self::asked(&packet)?;
                Some(keep(self, length, Body::Asked(asked)))
            }
        };
        let what =
            message.map_or_else(|| WhatHeld::Retract(packet.word(0)), |message| WhatHeld::Message(message, label));
        let way = &mut self.incoming.orders[from].0[by as usize];
        way.held.push_back(HeldMessage { what, after: way.after });
        Ok(())
    }

    /// Matches what was held and has its turn now.
    #[cold]
    fn let_pass(&mut self, from: usize) {
        while let Some(HeldMessage { what, .. }) = self.incoming.orders[from].poll_turn() {
            match what {
                WhatHeld::Message(message, label) => match self.matcher.handle_message(&label) {
                    Some(receive) => {
                        let arrived = self.arrived.at(message);
                        let (length, word) = (arrived.outcome.length, arrived.word.take());
                        self.say_waited(from as u32, length, word);
                        self.receive_arrived(RequestId(receive), message);
                    }
                    None => self.leave(&label, message),
                },
                WhatHeld::Retract(request) => self.retract(Peer(from as u32), request),
                WhatHeld::Gone => {}
            }
        }
    }

    /// Nothing more comes from a peer: what was held behind it never has its turn.
    pub(super) fn forget_held(&mut self, peer: u32) {
        for way in std::mem::take(&mut self.incoming.orders[peer as usize]).0 {
            for held in way.held {
                if let WhatHeld::Message(message, _) = held.what {
                    self.arrived.remove(message);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Selector;
    use crate::devices::Devices;
    use crate::limits::Limits;
    use crate::status::{PageCounters, StatusMemory};
    use weft_device::shm::{Segment, ShmDevice};
    use weft_device::{PeerFault, Sink, hand_on};
    use weft_wire::cell::Head;
    use weft_wire::settings::Settings;

    struct Ordered<'a> {
        port: &'a mut Port,
        by: By,
    }

    impl Sink for Ordered<'_> {
        fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
            self.port.handle_packet_by(packet, self.by)
        }

        fn handle_fault(&mut self, fault: PeerFault) {
            panic!("{fault}");
        }
    }

    const LABEL: MatchLabel = MatchLabel { context: 1, peer: 0, tag: 2 };

    /// A message arrives: true if it is matched at once.
    fn arrive(order: &mut PeerOrder, message: u32, by: By, after: u64) -> bool {
        let is_turn = {
            order.0[by as usize].after = after;
            order.is_turn(by)
        };
        let way = &mut order.0[by as usize];
        match is_turn {
            true => way.passed += 1,
            false => way.held.push_back(HeldMessage { what: WhatHeld::Message(message, LABEL), after }),
        }
        is_turn
    }

    fn passing(order: &mut PeerOrder) -> Vec<u32> {
        let message = |held: HeldMessage| match held.what {
            WhatHeld::Message(message, _) => Some(message),
            _ => None,
        };
        std::iter::from_fn(|| order.poll_turn()).filter_map(message).collect()
    }

    #[test]
    fn one_way_alone_never_waits() {
        let mut order = PeerOrder::default();
        assert!((0..100).all(|message| arrive(&mut order, message, By::Connection, 0)));
        assert!(!order.has_held());
    }

    /// A port of rank 0 of two.
    fn port() -> Port {
        let segment = Segment::create(2).expect("memory");
        let device = ShmDevice::join(segment.clone(), 0).expect("a member");
        let order = Settings::default().device;
        let slots = Devices::local(device, 0, 2, order).expect("devices").slots();
        Port::new(0, 2, Limits::default(), slots, PageCounters::new(StatusMemory::new(&segment, 0, true)))
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The ask has gone over the connection, and then datagrams have found a way.
    #[test]
    fn what_takes_an_ask_back_comes_after_it_whichever_way_each_goes() {
        let mut port = port();
        let mut by = |by, head, words: &[u64]| {
            hand_on(&mut Ordered { port: &mut port, by }, 1, head, &bytes(words), None).expect("it is allowed");
        };
        let (ask, request) = (Head { context: 5, ..Head::control(Kind::Ask) }, 3);
        by(By::Datagrams, Head::control(Kind::Order), &[1]);
        by(By::Datagrams, Head::control(Kind::Retract), &[request]);
        by(By::Connection, ask, &[1 << 20, 0, request, 0]);
        let says: Vec<_> = port.outbound[1].control.iter().map(|said| (said.head.kind, said.values()[0])).collect();
        assert_eq!(says, [(Kind::Retracted, request)]);
        assert!(port.probe(Selector { context: 5, peer: None, tag: None }).is_none(), "it is forgotten");
    }

    /// A long message has come before a short one that was sent before it, and both were waited for.
    #[test]
    fn who_waits_behind_others_waits_all_the_same() {
        let (mut port, mut buffers) = (port(), [[0u8; 8]; 2]);
        let from = Selector { context: 5, peer: Some(Peer(1)), tag: None };
        for buffer in &mut buffers {
            // SAFETY: they outlive the port's use.
            unsafe { port.post_receive(from, buffer.as_mut_ptr(), buffer.len()) };
        }
        let mut by = |by, kind, words: &[u64], bulk: Option<&[u8]>| {
            let head = Head { context: 5, ..Head::control(kind) };
            hand_on(&mut Ordered { port: &mut port, by }, 1, head, &bytes(words), bulk).expect("it is allowed");
        };
        by(By::Connection, Kind::Eager, &[8, 1, 1], Some(&[7; 8]));
        by(By::Datagrams, Kind::Short, &[3], None);
        let says: Vec<_> = port.outbound[1].control.iter().map(|said| (said.head.kind, said.values()[0])).collect();
        assert_eq!((says, buffers[1]), (vec![(Kind::Waited, 1)], [7; 8]));
    }

    /// Sent: 0 and 1 by datagrams, 2 over the connection, 3 by datagrams, 4 and 5 over the connection.
    #[test]
    fn whatever_comes_first_they_pass_in_the_order_of_sending() {
        use By::{Connection, Datagrams};
        let sent = [(Datagrams, 0), (Datagrams, 0), (Connection, 2), (Datagrams, 1), (Connection, 3), (Connection, 3)];
        // Each bit says which way the next arrival comes.
        for arrivals in 0u32..64 {
            let mut order = PeerOrder::default();
            let mut ways = [vec![], vec![]];
            (0..6).rev().for_each(|message| ways[sent[message].0 as usize].push(message));
            let mut passed = Vec::new();
            for step in 0..6 {
                let wanted = (arrivals >> step & 1) as usize;
                let way = if ways[wanted].is_empty() { 1 - wanted } else { wanted };
                let message = ways[way].pop().expect("six arrivals");
                let (by, after) = sent[message];
                if arrive(&mut order, message as u32, by, after) {
                    passed.push(message as u32);
                }
                passed.extend(passing(&mut order));
            }
            assert_eq!(passed, [0, 1, 2, 3, 4, 5], "arrivals {arrivals:b}");
        }
    }
}
