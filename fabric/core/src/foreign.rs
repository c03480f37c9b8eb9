//! Processes of other jobs become peers while the endpoint runs.
//!
//! Who is to be reached tells its [`Card`], by whatever way, and is then a [`Peer`] like those of the job: the next
//! number after all that there are. Numbers of such peers are this process's own; what is equal everywhere is the
//! [`PeerIdentity`].

use crate::api::Peer;
use crate::devices::ForeignOpening;
use crate::endpoint::Endpoint;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
pub use weft_device::tcp::PeerIdentity;
use weft_device::tcp::PeerPlace;
use weft_wire::tcp::Key;

/// Words of a card as it travels.
pub const CARD_WORDS: usize = 24;
/// So many addresses have room there.
const ADDRESSES: usize = (CARD_WORDS - 4) / 2;

/// Who a process is, and how it is reached. Whoever knows it may talk to the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    pub identity: PeerIdentity,
    key: Key,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl Card {
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    pub fn encode(&self) -> [u64; CARD_WORDS] {
        let mut words = [0; CARD_WORDS];
        let addresses = &self.addresses[..self.addresses.len().min(ADDRESSES)];
        words[0] = self.identity.world;
        words[1] = u64::from(self.identity.rank) | u64::from(self.port) << 32 | (addresses.len() as u64) << 48;
        let key = u128::from_le_bytes(self.key);
        (words[2], words[3]) = (key as u64, (key >> 64) as u64);
        for (pair, address) in words[4..].chunks_exact_mut(2).zip(addresses) {
            let bits = match address {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
                IpAddr::V6(ip) => ip.to_bits(),
            };
            (pair[0], pair[1]) = (bits as u64, (bits >> 64) as u64);
        }
        words
    }

    /// Reads what another process says; `None` where it is no card. One without an address, such as all zeros, is none.
    pub fn decode(words: &[u64; CARD_WORDS]) -> Option<Self> {
        let count = (words[1] >> 48) as usize;
        if !(1..=ADDRESSES).contains(&count) {
            return None;
        }
        let wide = |pair: &[u64]| u128::from(pair[0]) | u128::from(pair[1]) << 64;
        let address = |pair: &[u64]| IpAddr::V6(Ipv6Addr::from_bits(wide(pair))).to_canonical();
        Some(Self {
            identity: PeerIdentity { world: words[0], rank: words[1] as u32 },
            key: wide(&words[2..4]).to_le_bytes(),
            port: (words[1] >> 32) as u16,
            addresses: words[4..].chunks_exact(2).take(count).map(address).collect(),
        })
    }

    fn set_addresses(&mut self, addresses: &[SocketAddr]) {
        self.port = addresses.first().map_or(0, SocketAddr::port);
        self.addresses = addresses.iter().map(SocketAddr::ip).collect();
    }

    fn place(&self) -> PeerPlace {
        let addresses = self.addresses.iter().map(|ip| SocketAddr::new(*ip, self.port)).collect();
        let host = self.addresses.last().map(IpAddr::to_string).unwrap_or_default();
        PeerPlace { host, addresses }
    }
}

/// What the endpoint knows of other jobs.
pub(crate) struct Foreigners {
    /// What other jobs know this one by.
    world: u64,
    mine: Option<Card>,
    /// In the order of their numbers.
    cards: Vec<Card>,
    numbers: HashMap<PeerIdentity, u32>,
}

impl Foreigners {
    /// `job` names the job, equal in all its processes and no other job's; without a name it is this process alone.
    pub fn new(job: &str) -> Self {
        let world = match job {
            "" => weft_device::kernel::random(),
            // FNV-1a, and never that of another name but by chance.
            name => name
                .bytes()
                .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)),
        };
        Self { world, mine: None, cards: Vec::new(), numbers: HashMap::new() }
    }
}

impl Endpoint {
    /// How other jobs reach this process; it is open to them from now on.
    ///
    /// # Errors
    /// Those of making a socket.
    pub fn card(&mut self) -> io::Result<Card> {
        if let Some(mine) = &self.foreigners.mine {
            return Ok(mine.clone());
        }
        let identity = self.identity(self.me());
        let half = weft_device::kernel::true_random;
        let (Some(low), Some(high)) = (half(), half()) else {
            return Err(io::Error::other("other jobs need a key, and the system gives no random numbers"));
        };
        let key = (u128::from(low) | u128::from(high) << 64).to_le_bytes();
        let settings = *self.settings();
        let opening = ForeignOpening { me: identity, key, order: settings.device, encrypts: settings.encrypt };
        let size = self.world_size();
        let addresses = self.devices().open_to_others(size, opening)?;
        let mut card = Card { identity, key, port: 0, addresses: Vec::new() };
        card.set_addresses(&addresses);
        self.foreigners.mine = Some(card.clone());
        Ok(card)
    }

    /// As [`Self::card`], for processes of other hosts, too, where a card so far leads to this host alone.
    ///
    /// # Errors
    /// Those of making a socket; this host has no address.
    pub fn open_widely(&mut self) -> io::Result<Card> {
        let mut card = self.card()?;
        if card.addresses.iter().all(IpAddr::is_loopback) {
            card.set_addresses(&self.devices().open_widely()?);
            self.foreigners.mine = Some(card.clone());
        }
        Ok(card)
    }

    /// From now on nothing is printed of processes of other jobs that are lost, since the interface tells of them.
    pub fn keep_quiet_of_others(&mut self) {
        self.switch.is_quiet_of_others = true;
    }

    /// The peer with this card, which becomes one now where it is none yet.
    ///
    /// # Errors
    /// It cannot be one of this job, or this process cannot be opened to other jobs.
    pub fn adopt(&mut self, card: &Card) -> io::Result<Peer> {
        let known = self.foreigners.numbers.get(&card.identity).copied();
        match known {
            Some(number) => return Ok(Peer(number)),
            None if card.identity.world != self.foreigners.world => {}
            None if card.identity.rank < self.world_size() => return Ok(Peer(card.identity.rank)),
            None => return Err(io::Error::other(format!("rank {} is not of this job", card.identity.rank))),
        }
        self.card()?;
        let number = self.world_size() + self.foreigners.cards.len() as u32;
        self.foreigners.cards.push(card.clone());
        self.foreigners.numbers.insert(card.identity, number);
        self.add_peer();
        self.devices().adopt(card.identity, &card.key, card.place());
        Ok(Peer(number))
    }

    /// All peers that are of other jobs.
    pub(crate) fn foreign_peers(&self) -> impl Iterator<Item = Peer> + use<> {
        let first = self.world_size();
        (first..first + self.foreigners.cards.len() as u32).map(Peer)
    }

    /// Whether the peer is of another job.
    #[inline]
    pub fn is_foreign(&self, peer: Peer) -> bool {
        peer.0 >= self.world_size()
    }

    /// Who the peer is, the same in all processes of all jobs.
    pub fn identity(&self, peer: Peer) -> PeerIdentity {
        match self.foreigners.cards.get((peer.0 as usize).wrapping_sub(self.world_size() as usize)) {
            Some(card) if self.is_foreign(peer) => card.identity,
            _ => PeerIdentity { world: self.foreigners.world, rank: peer.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let card = Card {
            identity: PeerIdentity { world: 0x0123_4567_89ab_cdef, rank: 7 },
            key: *b"0123456789abcdef",
            port: 40_123,
            addresses: vec!["127.0.0.1".parse().expect("v4"), "fd00::1:2".parse().expect("v6")],
        };
        assert_eq!(Card::decode(&card.encode()), Some(card));
        assert_eq!(Card::decode(&[0; CARD_WORDS]), None);
        assert_eq!(Card::decode(&[u64::MAX; CARD_WORDS]), None, "more addresses than have room");
    }
}
