//! Calls: whether a rank is reached by datagrams, and at which of its addresses.
//!
//! All addresses are called, again and again, and whose answer comes first is used. Nothing is posted before, so nothing
//! has to be taken back where no answer comes. A rank that computes does not answer either, so silence alone decides
//! nothing: only where another device has reached the rank, and it has heard calls since and still not answered, is that
//! one used. Such a rank is called on, ever more rarely: a way that was closed for a while is used once it is open.

use super::Links;
use super::peer::{Standing, Way};
use std::io;
use std::net::SocketAddr;
use weft_device::tcp::Place;
use weft_device::{PeerFault, kernel};
use weft_wire::link::hello::Hello;

const MS: u64 = 1_000_000;
/// Between the first call and the second; then twice as long each time, up to the most.
const FIRST_PAUSE_NS: u64 = 4 * MS;
const MOST_PAUSE_NS: u64 = 250 * MS;
/// Another device is asked to reach a rank that has not answered for so long.
const DOUBT_NS: u64 = 100 * MS;
/// A rank that another device has reached answers within this, and so many calls, or datagrams do not get through.
const DEAF_NS: u64 = 1000 * MS;
const DEAF_CALLS: u32 = 4;
/// Who is deaf is called again after this; then after twice as long each time, up to the most.
const AGAIN_NS: u64 = 1000 * MS;
const MOST_AGAIN_NS: u64 = 30_000 * MS;
/// A rank that nobody reaches is told of after this.
const NOTICE_NS: u64 = 10_000 * MS;

/// The calls of one rank.
pub struct Calls {
    nonce: u64,
    began_ns: u64,
    next_ns: u64,
    pause_ns: u64,
    most_ns: u64,
    /// Each address, with what was said of it last, and whether our own kernel has said it.
    addresses: Vec<(SocketAddr, Option<(io::Error, bool)>)>,
    doubted: bool,
    told: bool,
    /// Since when another device reaches it, and how often it was called since.
    linked: Option<(u64, u32)>,
}

impl Calls {
    pub fn new(place: &Place, now_ns: u64) -> Self {
        Self {
            nonce: kernel::random(),
            began_ns: now_ns,
            next_ns: now_ns,
            pause_ns: FIRST_PAUSE_NS,
            most_ns: MOST_PAUSE_NS,
            addresses: place.addresses.iter().map(|address| (*address, None)).collect(),
            doubted: false,
            told: false,
            linked: None,
        }
    }

    /// Something is said of an address. What our own kernel has said before weighs more than what comes from elsewhere.
    pub fn handle_report(&mut self, address: &SocketAddr, error: io::Error, is_own: bool) {
        if let Some((_, said)) = self.addresses.iter_mut().find(|(other, _)| other == address)
            && (is_own || !matches!(said, Some((_, true))))
        {
            *said = Some((error, is_own));
        }
    }

    /// Whether an answer is to one of these calls.
    pub fn is_answered_by(&self, answer: &Hello) -> bool {
        self.nonce == answer.nonce
    }

    /// Whether the rank hears what another device brings, and no datagrams.
    fn is_deaf(&self, now_ns: u64) -> bool {
        self.linked.is_some_and(|(since_ns, calls)| calls >= DEAF_CALLS && now_ns - since_ns >= DEAF_NS)
    }

    /// Whether our own kernel has no way to any of the addresses. What others say may be forged.
    fn is_hopeless(&self) -> bool {
        self.addresses.iter().all(|(_, said)| matches!(said, Some((_, true))))
    }

    /// What happened at each address.
    fn story(&self) -> String {
        if self.addresses.is_empty() {
            return "its host has no address".to_owned();
        }
        let said = |(address, said): &(SocketAddr, Option<(io::Error, bool)>)| match said {
            Some((error, true)) => format!("{address}: {error}"),
            Some((error, false)) => format!("{address}: somebody on the way says: {error}"),
            None => format!("{address}: no answer"),
        };
        self.addresses.iter().map(said).collect::<Vec<_>>().join("; ")
    }
}

impl Links {
    /// Does for a rank that is being called what is to be done now.
    pub(super) fn move_calls(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        let (Way::Calling(calls) | Way::Other(calls)) = &peer.way else { return };
        let (due, deaf) = (calls.next_ns <= now_ns, calls.is_deaf(now_ns));
        let is_other = matches!(peer.way, Way::Other(_));
        if peer.standing != Standing::Open || self.leaving && is_other {
            peer.way = Way::Unknown;
            return;
        }
        if due && deaf && !is_other {
            self.turn_to_other(rank, now_ns);
        } else if due {
            self.repeat_calls(rank, now_ns);
        }
        match &self.peers[rank as usize].way {
            Way::Calling(calls) => {
                self.due_ns = self.due_ns.min(calls.next_ns);
                self.doubt(rank, now_ns);
            }
            Way::Other(calls) => self.due_ns = self.due_ns.min(calls.next_ns),
            Way::Unknown | Way::Open => {}
        }
    }

    /// The rank is deaf. From now on it is called rarely.
    fn turn_to_other(&mut self, rank: u32, now_ns: u64) {
        let way = &mut self.peers[rank as usize].way;
        if let Way::Calling(mut calls) = std::mem::replace(way, Way::Unknown) {
            (calls.next_ns, calls.pause_ns, calls.most_ns) = (now_ns + AGAIN_NS, 2 * AGAIN_NS, MOST_AGAIN_NS);
            *way = Way::Other(calls);
            self.others.push(rank);
        }
    }

    /// Calls all addresses of a rank.
    fn repeat_calls(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        let (Way::Calling(calls) | Way::Other(calls)) = &mut peer.way else { return };
        calls.next_ns = now_ns + calls.pause_ns;
        calls.pause_ns = (2 * calls.pause_ns).min(calls.most_ns);
        if let Some((_, count)) = &mut calls.linked {
            *count += 1;
        }
        for (address, _) in &calls.addresses {
            peer.calls += 1;
            let (nonce, count) = (calls.nonce, peer.calls);
            let encrypts = self.encrypts;
            let hello = Hello { is_answer: false, to: peer.process, from: self.me, nonce, count, encrypts };
            send(&mut self.port, address, now_ns, &hello.pack(&self.hello_key));
        }
    }

    /// What is to be done about a rank that has not answered for long.
    fn doubt(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        let Way::Calling(calls) = &mut peer.way else { return };
        let waited_ns = now_ns - calls.began_ns;
        if self.has_other && waited_ns >= DOUBT_NS && !std::mem::replace(&mut calls.doubted, true) {
            self.doubts.push(rank);
        }
        if waited_ns < NOTICE_NS || std::mem::replace(&mut calls.told, true) || self.has_other {
            return;
        }
        let (story, host) = (calls.story(), &peer.place.host);
        if calls.is_hopeless() {
            let story = format!("rank {rank} on host {host} cannot be reached by udp: {story}");
            peer.standing = Standing::Lost;
            self.faults.push(PeerFault::Lost { peer: rank, story });
            self.live.retain(|other| *other != rank);
        } else {
            self.notices.push(format!(
                "rank {rank} on host {host} has not answered by udp for {} s: it computes, or datagrams to it are dropped on \
                 the way ({story})",
                NOTICE_NS / (1000 * MS)
            ));
        }
    }

    /// A rank that another device should try to reach.
    pub fn take_doubt(&mut self) -> Option<u32> {
        let rank = self.doubts.pop();
        self.asked.extend(rank);
        rank
    }

    /// Whether an answer is awaited of a rank that the other device was asked for.
    #[inline]
    pub fn has_doubts(&self) -> bool {
        !self.asked.is_empty()
    }

    /// `is_linked` says whether the other device has reached a rank that it was asked for.
    pub fn settle_doubts(&mut self, is_linked: impl Fn(u32) -> bool) {
        let peers = &mut self.peers;
        self.asked.retain(|rank| match &mut peers[*rank as usize].way {
            Way::Calling(calls) => {
                if calls.linked.is_none() && is_linked(*rank) {
                    calls.linked = Some((self.clock.now_ns(), 0));
                }
                true
            }
            _ => false,
        });
    }

    /// The other device cannot reach a rank either, as its story says: then nothing does.
    pub fn give_up_other(&mut self, rank: u32, story: &str) {
        let peer = &mut self.peers[rank as usize];
        let Way::Calling(calls) = &peer.way else { return };
        let said = calls.story();
        let host = &peer.place.host;
        let story = format!("rank {rank} on host {host} cannot be reached: by udp: {said}; by tcp: {story}");
        peer.standing = Standing::Lost;
        self.faults.push(PeerFault::Lost { peer: rank, story });
        self.asked.retain(|other| *other != rank);
        self.live.retain(|other| *other != rank);
    }

    /// A rank that datagrams do not reach and the other device does.
    pub fn take_other(&mut self) -> Option<u32> {
        self.others.pop()
    }

    /// Such a rank that has answered since: datagrams reach it now.
    #[inline]
    pub fn take_return(&mut self) -> Option<u32> {
        self.returns.pop()
    }

    /// Answers calls, and takes answers.
    pub(super) fn handle_hellos(&mut self, now_ns: u64) {
        let hellos = std::mem::take(&mut self.hellos);
        for (from, hello) in &hellos {
            if hello.is_answer {
                self.handle_answer(*from, hello, now_ns);
            } else {
                self.handle_call(*from, hello, now_ns);
            }
        }
        self.hellos = hellos;
        self.hellos.clear();
    }

    /// A call makes nobody known: it may be one of long ago. Each is answered once.
    fn handle_call(&mut self, from: SocketAddr, hello: &Hello, now_ns: u64) {
        let peer = &mut self.peers[hello.from.rank as usize];
        let (whose, last) = peer.answered;
        if whose == hello.from.incarnation && hello.count <= last {
            return;
        }
        // Whoever has not talked to us before will talk to who is started here next.
        if self.leaving && peer.link.is_none() {
            return;
        }
        peer.answered = (hello.from.incarnation, hello.count);
        let packed = hello.answer(self.me, self.encrypts).pack(&self.hello_key);
        send(&mut self.port, &from, now_ns, &packed);
    }

    fn handle_answer(&mut self, from: SocketAddr, hello: &Hello, now_ns: u64) {
        let peer = &mut self.peers[hello.from.rank as usize];
        match &peer.way {
            // An answer that another passes on leads to him.
            Way::Calling(calls) | Way::Other(calls)
                if calls.is_answered_by(hello) && peer.may_be(hello.from) && peer.is_at(&from) =>
            {
                if hello.encrypts != self.encrypts {
                    let rank = hello.from.rank;
                    return self.lose(rank, weft_wire::tcp::differs(self.encrypts));
                }
                if let Way::Other(_) = std::mem::replace(&mut peer.way, Way::Open) {
                    self.returns.push(hello.from.rank);
                }
                self.make_link(hello.from, from, now_ns);
            }
            // Late, or of another address.
            _ => {}
        }
    }
}

/// Sends what is no part of a link. What there is no room for is lost, as it may be on the way.
fn send(port: &mut weft_device::udp::Port, to: &SocketAddr, now_ns: u64, bytes: &[u8]) {
    port.send(to, now_ns, |place| {
        place[..bytes.len()].copy_from_slice(bytes);
        Some(bytes.len())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(addresses: &[&str]) -> Calls {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        Calls::new(&Place { host: "there".to_owned(), addresses }, 0)
    }

    #[test]
    fn silence_is_no_refusal_and_only_our_own_kernel_is_believed() {
        let error = io::Error::from_raw_os_error;
        let mut calls = calls(&["10.0.0.1:5", "10.0.1.1:5"]);
        let [first, second] = [0, 1].map(|at: usize| calls.addresses[at].0);
        assert!(!calls.is_deaf(u64::MAX), "nobody knows whether it computes");
        calls.handle_report(&first, error(libc::ENETUNREACH), true);
        assert!(!calls.is_hopeless(), "the other one is silent");
        calls.handle_report(&second, error(libc::ECONNREFUSED), false);
        assert!(!calls.is_hopeless(), "anybody can say that");
        calls.handle_report(&second, error(libc::EHOSTUNREACH), true);
        assert!(calls.is_hopeless());
        calls.handle_report(&second, error(libc::ECONNREFUSED), false);
        let story = calls.story();
        assert!(calls.is_hopeless() && story.contains("10.0.0.1:5: Network is unreachable"), "{story}");
        assert!(story.contains("10.0.1.1:5: No route"), "{story}");
    }

    #[test]
    fn who_hears_by_another_way_only_is_deaf() {
        let mut calls = calls(&["10.0.0.1:5"]);
        calls.linked = Some((7, DEAF_CALLS - 1));
        assert!(!calls.is_deaf(u64::MAX), "it was not called often enough");
        calls.linked = Some((7, DEAF_CALLS));
        assert!(!calls.is_deaf(DEAF_NS) && calls.is_deaf(DEAF_NS + 7));
    }
}
