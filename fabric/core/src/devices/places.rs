//! The places of messages to a rank to which two devices lead, for the order that its port keeps among them
//! ([`crate::port`]'s `order`).

use super::By;
use weft_device::Posted;
use weft_wire::cell::Kind;

#[derive(Clone, Copy, Default)]
struct SentPlace {
    by_datagrams: u64,
    over_connection: u64,
    /// So many of those over the connection were named by datagrams.
    named: u64,
    /// Packets of protocols beside port went over the connection, while nothing else led there. They have no other
    /// order than that of their device, and stay with it.
    others_over_connection: bool,
}

/// What was sent, by rank.
pub(super) struct MessagePlaces(Vec<SentPlace>);

impl MessagePlaces {
    pub fn new(ranks: usize) -> Self {
        Self(vec![SentPlace::default(); ranks])
    }

    pub fn add_peer(&mut self) {
        self.0.push(SentPlace::default());
    }

    pub fn keeps_others_over_connection(&self, to: u32) -> bool {
        self.0[to as usize].others_over_connection
    }

    /// So many messages went by datagrams before the next one over the connection.
    pub fn of_next_over_connection(&self, to: u32) -> u64 {
        self.0[to as usize].by_datagrams
    }

    /// So many went over the connection before the next one by datagrams, if that is still to be said there.
    pub fn to_be_named(&self, to: u32) -> Option<u64> {
        let SentPlace { over_connection, named, .. } = self.0[to as usize];
        (named != over_connection).then_some(over_connection)
    }

    pub fn note_named(&mut self, to: u32) {
        self.0[to as usize].named = self.0[to as usize].over_connection;
    }

    /// Notes a packet that was posted.
    #[inline]
    pub fn note(&mut self, to: u32, by: By, kind: Kind, posted: Posted) -> Posted {
        let (sent, counts) = (&mut self.0[to as usize], u64::from(kind.has_place()));
        match by {
            _ if posted == Posted::Full => {}
            By::Datagrams => sent.by_datagrams += counts,
            By::Connection => {
                sent.over_connection += counts;
                sent.others_over_connection |= !kind.is_of_port();
            }
        }
        posted
    }
}
