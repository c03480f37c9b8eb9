//! Which members are alive: datagrams between daemons, by the machine of `weft-membership`.
//!
//! Each datagram is sealed with a key that is made of the cluster's, and a nonce drawn at random (XChaCha20-Poly1305):
//! 24 bytes of nonce, then sealed the number of the sender (8 bytes, lowest first) and what the machine says. What
//! cannot be opened is dropped.

use crate::seal::Secret;
use anyhow::{Context, Result};
use blake2::{Blake2s256, Digest};
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use weft_membership::{Condition, MemberId, MembershipView};
use weft_requests::MemberStanding;

const NONCE_BYTES: usize = 24;
const SENDER_BYTES: usize = 8;
/// So that the same key is never used for two things.
const PURPOSE: &[u8] = b"weftd: who is alive";

/// What this member knows of the others.
pub struct Alive {
    pub machine: RefCell<MembershipView>,
    cipher: XChaCha20Poly1305,
    me: MemberId,
    pub addresses: RefCell<HashMap<MemberId, SocketAddr>>,
    pub begun: Instant,
    pub changed: Notify,
    /// Why members are not there that are not, as far as that is known.
    pub unreached: RefCell<HashMap<MemberId, String>>,
}

impl Alive {
    pub fn new(me: &str, members: &[String], key: &Secret) -> Self {
        let incarnation = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64);
        let (me, ids) = (MemberId::of(me), ids(members));
        let key = Blake2s256::new().chain_update(PURPOSE).chain_update(key).finalize();
        Self {
            machine: RefCell::new(MembershipView::new(me, incarnation, &ids, incarnation, 0)),
            cipher: XChaCha20Poly1305::new(&key),
            me,
            addresses: RefCell::default(),
            begun: Instant::now(),
            changed: Notify::new(),
            unreached: RefCell::default(),
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// How a member is, and for how long it has been silent, if it is.
    pub fn standing(&self, member: &str) -> (MemberStanding, u64) {
        match self.machine.borrow().state_of(MemberId::of(member)) {
            _ if MemberId::of(member) == self.me => (MemberStanding::Alive, 0),
            None | Some(Condition::Unseen) => (MemberStanding::Unknown, 0),
            Some(Condition::Alive) => (MemberStanding::Alive, 0),
            Some(Condition::Suspect { since_ns }) => {
                (MemberStanding::Suspect, self.now_ns().saturating_sub(since_ns) / 1_000_000_000)
            }
            Some(Condition::Dead) => (MemberStanding::Dead, 0),
        }
    }

    /// These are the members now.
    pub fn set_members(&self, members: &[String]) {
        self.machine.borrow_mut().set_members(self.now_ns(), &ids(members));
        self.changed.notify_one();
    }

    fn sealed(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = crate::door::random().ok()?;
        let said = [&self.me.0.to_le_bytes()[..], bytes].concat();
        let sealed = self.cipher.encrypt(XNonce::from_slice(&nonce), &*said).ok()?;
        Some([&nonce[..], &sealed].concat())
    }

    pub fn opened(&self, bytes: &[u8]) -> Option<(MemberId, Vec<u8>)> {
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
        let said = self.cipher.decrypt(XNonce::from_slice(nonce), sealed).ok()?;
        let (sender, said) = said.split_first_chunk::<SENDER_BYTES>()?;
        Some((MemberId(u64::from_le_bytes(*sender)), said.to_vec()))
    }

    /// Sends what is to be sent. What is lost on the way is the machine's to bear, so what cannot be sent is, too.
    pub async fn send(&self, sockets: &[UdpSocket]) {
        loop {
            let next = self.machine.borrow_mut().poll_transmit();
            let Some((to, bytes)) = next else { return };
            let address = self.addresses.borrow().get(&to).copied();
            if let (Some(address), Some(bytes)) = (address, self.sealed(&bytes)) {
                let fits =
                    |socket: &&UdpSocket| socket.local_addr().is_ok_and(|ours| ours.is_ipv4() == address.is_ipv4());
                if let Some(socket) = sockets.iter().find(fits) {
                    let _ = socket.send_to(&bytes, address).await;
                }
            }
        }
    }

    /// Says goodbye.
    pub async fn leave(&self, sockets: &[UdpSocket]) {
        self.machine.borrow_mut().leave(self.now_ns());
        self.send(sockets).await;
    }
}

fn ids(members: &[String]) -> Vec<MemberId> {
    members.iter().map(|name| MemberId::of(name)).collect()
}

/// Sockets for datagrams at these addresses.
///
/// # Errors
/// One is taken.
pub async fn bind(places: &[SocketAddr]) -> Result<Vec<UdpSocket>> {
    let mut all = Vec::new();
    for place in places {
        all.push(UdpSocket::bind(place).await.with_context(|| format!("{place}, by UDP"))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(me: &str, key: Secret) -> Alive {
        Alive::new(me, &["a".to_owned(), "b".to_owned()], &key)
    }

    #[test]
    fn only_who_has_the_key_is_heard() {
        let (one, other, stranger) = (alive("a", [1; 32]), alive("b", [1; 32]), alive("b", [2; 32]));
        let sealed = one.sealed(b"hello").expect("sealed");
        assert_eq!(other.opened(&sealed), Some((MemberId::of("a"), b"hello".to_vec())));
        assert_eq!(stranger.opened(&sealed), None);
        for cut in 0..sealed.len() {
            assert_eq!(other.opened(&sealed[..cut]), None);
        }
        let mut changed = sealed.clone();
        changed[NONCE_BYTES] ^= 1;
        assert_eq!(other.opened(&changed), None);
    }

    #[test]
    fn a_member_that_nobody_has_heard_is_unknown_and_this_one_is_alive() {
        let one = alive("a", [1; 32]);
        assert_eq!(one.standing("a").0, MemberStanding::Alive);
        assert_eq!(one.standing("b").0, MemberStanding::Unknown);
        assert_eq!(one.standing("c").0, MemberStanding::Unknown);
    }
}
