//! One order for the messages of a peer that come by two devices.
//!
//! Between hosts short messages go by datagrams and longer ones over a connection, neither of which waits for the other.
//! Matching wants the order in which they were sent. So the sender says where a message has its place among those of the
//! other way: how many went there before it. Over the connection each message that comes without being asked for says so
//! itself; on the other way the first message after such ones has a [`Kind::Order`] before it. While messages go one way
//! only, nothing is said. Messages to a rank that datagrams do not reach are counted as well, because they may reach it
//! later.
//!
//! A message that comes before its turn is kept like one that nobody receives yet, and its bytes go on arriving. It is
//! matched when its turn comes. Each way keeps the order of what it carries, so among the first messages of both there is
//! always one whose turn it is, once it has arrived: nothing waits for ever but for what is lost with its peer.

use super::inbound::{Arrived, Body, Target};
use super::receive::{label, outcome};
use super::{Breach, Port, RequestId};
use std::collections::VecDeque;
use weft_device::{Packet, PeerFault, Sink};
use weft_protocol::matching::Label;
use weft_wire::cell::{INLINE_WORDS, Kind};

/// How a packet has come from another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Datagrams,
    Connection,
}

impl By {
    const fn other(self) -> Self {
        match self {
            Self::Datagrams => Self::Connection,
            Self::Connection => Self::Datagrams,
        }
    }
}

/// Of one way from one peer. Counts wrap in nobody's lifetime.
#[derive(Default)]
struct OneWay {
    /// Messages that were matched or left to be received.
    passed: u64,
    /// The next one's turn comes when so many of the other way have passed.
    after: u64,
    /// Those whose turn has not come, and after how many of the other way it does.
    held: VecDeque<Held>,
}

struct Held {
    /// `None` once its sender has taken it back: only its turn is left.
    message: Option<u32>,
    label: Label,
    after: u64,
}

/// Both ways from one peer.
#[derive(Default)]
pub(super) struct Order([OneWay; 2]);

impl Order {
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
        held.find(|held| held.message == Some(message)).is_some_and(|held| held.message.take().is_some())
    }

    /// The next message whose turn has come, which then has passed.
    fn poll_turn(&mut self) -> Option<Held> {
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

/// Hands on what comes by one of the two ways.
pub(crate) struct Ordered<'a> {
    pub port: &'a mut Port,
    pub by: By,
}

impl Sink for Ordered<'_> {
    #[inline]
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        // What the other device still brings of it has no place any more.
        if self.port.lost[packet.from as usize] {
            return Ok(());
        }
        match packet.head.kind {
            Kind::Short | Kind::Eager | Kind::Ask => self.port.on_message(packet, self.by),
            Kind::Order => {
                self.port.orders[packet.from as usize].0[self.by as usize].after = packet.word(0);
                Ok(())
            }
            _ => self.port.route(packet),
        }
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.port.handle_fault(fault);
    }
}

impl Port {
    #[inline]
    fn on_message(&mut self, packet: Packet<'_>, by: By) -> Result<(), Breach> {
        let (from, order) = (packet.from as usize, &mut self.orders[packet.from as usize]);
        if packet.head.kind == Kind::Eager && packet.inline_bytes == 16 {
            order.0[by as usize].after = packet.word(1);
        }
        if !order.is_turn(by) {
            return self.hold(packet, by);
        }
        order.0[by as usize].passed += 1;
        let holds = order.has_held();
        self.handle_packet(packet)?;
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
            port.arrived.insert(Arrived { outcome: outcome(&packet, length), body, taken_by: None })
        };
        let message = match packet.head.kind {
            Kind::Short => {
                let words = std::array::from_fn::<u64, INLINE_WORDS, _>(|i| packet.word(i));
                keep(self, packet.inline_bytes as u64, Body::Inline(words))
            }
            Kind::Eager => {
                let (total, bulk) = self.eager(&packet)?;
                let message = keep(self, total, Body::Kept { data: vec![0; total as usize], received: 0 });
                self.open_eager(from as u32, Target::Arrived(message), total, bulk)?;
                message
            }
            _ => {
                let (length, body) = Self::asked(&packet)?;
                keep(self, length, body)
            }
        };
        let way = &mut self.orders[from].0[by as usize];
        way.held.push_back(Held { message: Some(message), label, after: way.after });
        Ok(())
    }

    /// Matches what was held and has its turn now.
    #[cold]
    fn let_pass(&mut self, from: usize) {
        while let Some(Held { message, label, .. }) = self.orders[from].poll_turn() {
            let Some(message) = message else { continue };
            match self.matcher.handle_message(&label) {
                Some(receive) => self.receive_arrived(RequestId(receive), message),
                None => self.leave(&label, message),
            }
        }
    }

    /// Nothing more comes from a peer: what was held behind it never has its turn.
    pub(super) fn forget_held(&mut self, peer: u32) {
        for way in std::mem::take(&mut self.orders[peer as usize]).0 {
            way.held.into_iter().filter_map(|held| held.message).for_each(|message| drop(self.arrived.remove(message)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label { context: 1, peer: 0, tag: 2 };

    /// A message arrives: true if it is matched at once.
    fn arrive(order: &mut Order, message: u32, by: By, after: u64) -> bool {
        let is_turn = {
            order.0[by as usize].after = after;
            order.is_turn(by)
        };
        let way = &mut order.0[by as usize];
        match is_turn {
            true => way.passed += 1,
            false => way.held.push_back(Held { message: Some(message), label: LABEL, after }),
        }
        is_turn
    }

    fn passing(order: &mut Order) -> Vec<u32> {
        std::iter::from_fn(|| order.poll_turn()).filter_map(|held| held.message).collect()
    }

    #[test]
    fn one_way_alone_never_waits() {
        let mut order = Order::default();
        assert!((0..100).all(|message| arrive(&mut order, message, By::Connection, 0)));
        assert!(!order.has_held());
    }

    /// Sent: 0 and 1 by datagrams, 2 over the connection, 3 by datagrams, 4 and 5 over the connection.
    #[test]
    fn whatever_comes_first_they_pass_in_the_order_of_sending() {
        use By::{Connection, Datagrams};
        let sent = [(Datagrams, 0), (Datagrams, 0), (Connection, 2), (Datagrams, 1), (Connection, 3), (Connection, 3)];
        // Each bit says which way the next arrival comes.
        for arrivals in 0u32..64 {
            let mut order = Order::default();
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
