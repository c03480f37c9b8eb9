//! The calls of one rank: when it is called again, and what is known from the answers and from silence.
//!
//! A rank that computes does not answer, so silence alone decides nothing: a rank is deaf only where another device has
//! reached it, and it has heard calls since and still not answered.

use std::io;
use std::net::SocketAddr;
use weft_device::kernel;
use weft_device::tcp::PeerPlace;
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
/// A rank whose ports nobody has on this host, for so long and as often at each, has ended.
const REFUSED_NS: u64 = 300 * MS;
const REFUSALS: usize = 2;
/// Who is deaf is called again after this; then after twice as long each time, up to the most.
const AGAIN_NS: u64 = 1000 * MS;
const MOST_AGAIN_NS: u64 = 30_000 * MS;
/// A rank that nobody reaches is told of after this.
pub const NOTICE_NS: u64 = 10_000 * MS;

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
    /// Since when nobody has any of the ports, as our own kernel says.
    refused_ns: Option<u64>,
    /// How often it has said so.
    refusals: usize,
    /// Since when another device reaches it, and how often it was called since.
    linked: Option<(u64, u32)>,
}

impl Calls {
    pub fn new(place: &PeerPlace, now_ns: u64) -> Self {
        Self {
            nonce: kernel::random(),
            began_ns: now_ns,
            next_ns: now_ns,
            pause_ns: FIRST_PAUSE_NS,
            most_ns: MOST_PAUSE_NS,
            addresses: place.addresses.iter().map(|address| (*address, None)).collect(),
            doubted: false,
            told: false,
            refused_ns: None,
            refusals: 0,
            linked: None,
        }
    }

    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// What a call of now is named by.
    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    pub fn addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        self.addresses.iter().map(|(address, _)| address)
    }

    /// All addresses are called now.
    pub fn note_called(&mut self, now_ns: u64) {
        self.next_ns = now_ns + self.pause_ns;
        self.pause_ns = (2 * self.pause_ns).min(self.most_ns);
        if let Some((_, count)) = &mut self.linked {
            *count += 1;
        }
    }

    /// From now on calls are rare.
    pub fn make_rare(&mut self, now_ns: u64) {
        (self.next_ns, self.pause_ns, self.most_ns) = (now_ns + AGAIN_NS, 2 * AGAIN_NS, MOST_AGAIN_NS);
    }

    /// Another device reaches the rank.
    pub fn note_linked(&mut self, now_ns: u64) {
        self.linked.get_or_insert((now_ns, 0));
    }

    /// Whether another device is to be asked to reach the rank: once.
    pub fn has_doubt(&mut self, now_ns: u64) -> bool {
        now_ns - self.began_ns >= DOUBT_NS && !std::mem::replace(&mut self.doubted, true)
    }

    /// Whether the user is to be told: once.
    pub fn has_notice(&mut self, now_ns: u64) -> bool {
        now_ns - self.began_ns >= NOTICE_NS && !std::mem::replace(&mut self.told, true)
    }

    /// Something is said of an address. What our own kernel has said before weighs more than what comes from elsewhere.
    pub fn handle_report(&mut self, address: &SocketAddr, error: io::Error, is_own: bool) {
        if let Some((_, said)) = self.addresses.iter_mut().find(|(other, _)| other == address)
            && (is_own || !matches!(said, Some((_, true))))
        {
            let is_refusal = is_own && error.kind() == io::ErrorKind::ConnectionRefused;
            if is_own {
                self.refusals = if is_refusal { self.refusals + 1 } else { 0 };
            }
            *said = Some((error, is_own));
        }
    }

    /// Whether an answer is to one of these calls.
    pub fn is_answered_by(&self, answer: &Hello) -> bool {
        self.nonce == answer.nonce
    }

    /// Whether the rank hears what another device brings, and no datagrams.
    pub fn is_deaf(&self, now_ns: u64) -> bool {
        self.linked.is_some_and(|(since_ns, calls)| calls >= DEAF_CALLS && now_ns - since_ns >= DEAF_NS)
    }

    /// Whether our own kernel has no way to any of the addresses. What others say may be forged.
    pub fn is_hopeless(&self) -> bool {
        self.addresses.iter().all(|(_, said)| matches!(said, Some((_, true))))
    }

    /// Whether the rank has ended, since nobody has its ports. Our own kernel says so of ports of this host alone.
    pub fn is_refused(&mut self, now_ns: u64) -> bool {
        let is_refusal = |said: &(io::Error, bool)| said.1 && said.0.kind() == io::ErrorKind::ConnectionRefused;
        let all =
            !self.addresses.is_empty() && self.addresses.iter().all(|(_, said)| said.as_ref().is_some_and(is_refusal));
        if !all {
            self.refused_ns = None;
            return false;
        }
        let lasts = now_ns - *self.refused_ns.get_or_insert(now_ns) >= REFUSED_NS;
        lasts && self.refusals >= REFUSALS * self.addresses.len()
    }

    /// What happened at each address.
    pub fn story(&self) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(addresses: &[&str]) -> Calls {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        Calls::new(&PeerPlace { host: "there".to_owned(), addresses }, 0)
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
    fn a_rank_whose_ports_nobody_has_on_this_host_has_ended() {
        let error = || io::Error::from_raw_os_error(libc::ECONNREFUSED);
        let mut calls = calls(&["127.0.0.1:5", "10.0.1.1:5"]);
        let [first, second] = [0, 1].map(|at: usize| calls.addresses[at].0);
        calls.handle_report(&first, error(), true);
        calls.handle_report(&second, error(), false);
        assert!(!calls.is_refused(0) && !calls.is_refused(REFUSED_NS), "anybody can say that");
        calls.handle_report(&second, error(), true);
        assert!(!calls.is_refused(7) && !calls.is_refused(REFUSED_NS), "it may be by chance");
        assert!(!calls.is_refused(REFUSED_NS + 7), "each has said so once");
        for at in [first, second] {
            calls.handle_report(&at, error(), true);
        }
        assert!(calls.is_refused(REFUSED_NS + 7));
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
