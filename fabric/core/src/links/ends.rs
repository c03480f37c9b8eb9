//! Who has left, who is lost, and how we leave.

use super::Links;
use super::peer::{DatagramWay, LinkPeer, Standing};
use super::trouble::{LOST_NS, Trouble};
use std::io;
use weft_device::{PeerFault, Posted};
use weft_protocol::reliable::Phase;

/// Who has taken leave hears our part of it, if it is still there, within this.
const COURTESY_NS: u64 = 200_000_000;

impl LinkPeer {
    /// Whether what we have to say to it has been heard, or need not be.
    pub(super) fn has_all(&self, now_ns: u64) -> bool {
        let Some(link) = &self.link else { return true };
        match link.phase() {
            Phase::Ended | Phase::Gone(_) => true,
            _ if self.standing == Standing::Left => now_ns.saturating_sub(self.left_ns) >= COURTESY_NS,
            _ => link.is_through(),
        }
    }
}

impl Links {
    /// A post that is not accepted.
    #[cold]
    pub(super) fn refuse(&mut self, to: u32) -> Posted {
        let peer = &self.peers[to as usize];
        match (peer.standing, &peer.way) {
            // Its farewell is still answered: it waits for that.
            (Standing::Left, _) if peer.is_missed => {}
            (Standing::Left, _) => {
                let story = self.lost_story(to, "it has left the job, and takes no messages any more");
                self.peers[to as usize].is_missed = true;
                self.faults.push(PeerFault::Lost { peer: to, story });
            }
            (Standing::Open, DatagramWay::Unknown) => self.call(to),
            _ => {}
        }
        Posted::Full
    }

    /// Nothing more goes to or comes from the rank; the next look says so.
    pub(super) fn lose(&mut self, rank: u32, why: &str) {
        let story = self.lost_story(rank, why);
        self.forget(rank, Standing::Lost);
        self.faults.push(PeerFault::Lost { peer: rank, story });
    }

    fn lost_story(&self, rank: u32, why: &str) -> String {
        let peer = &self.peers[rank as usize];
        let at = peer.route.map_or(String::new(), |route| format!(" (udp {route})"));
        format!("rank {rank} on host {}{at} is lost: {why}", peer.place.host)
    }

    /// Whether the rank has said farewell, whatever has become of it then.
    pub fn took_leave(&self, rank: u32) -> bool {
        let peer = &self.peers[rank as usize];
        peer.standing == Standing::Left || peer.left_ns != 0
    }

    /// The rank is lost, and whoever needs it knows. Who has taken leave is answered all the same.
    pub fn handle_lost(&mut self, rank: u32) {
        if self.peers[rank as usize].standing == Standing::Open {
            self.forget(rank, Standing::Lost);
        }
    }

    pub(super) fn forget(&mut self, rank: u32, standing: Standing) {
        let peer = &mut self.peers[rank as usize];
        peer.standing = standing;
        (peer.is_dirty, peer.window_bytes) = (false, 0);
        if let Some(link) = peer.link.take() {
            let (past, counters) = (&mut self.past, link.counters());
            past.datagrams_sent += counters.datagrams_sent;
            past.lost += counters.lost;
            past.malformed += counters.malformed;
            past.strangers += counters.strangers;
            past.stale += counters.stale;
            past.forged += counters.forged;
            past.beyond_credit += counters.beyond_credit;
        }
        self.live.retain(|other| *other != rank);
        self.dirty.retain(|other| *other != rank);
    }

    /// Ends a link whose time has come.
    pub(super) fn look_for_end(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        if peer.standing == Standing::Left {
            match peer.has_all(now_ns) {
                false => self.due_ns = self.due_ns.min(peer.left_ns + COURTESY_NS),
                // Who leaves is not held up by it any more, and still answers.
                true if self.leaving => {}
                true => self.forget(rank, Standing::Left),
            }
            return;
        }
        let Some(trouble) = &mut peer.trouble else { return };
        if peer.standing != Standing::Open || !trouble.lasts() {
            return;
        }
        let (seconds, error) = (LOST_NS / 1_000_000_000, &trouble.error);
        if trouble.is_refusal() {
            self.lose(rank, "nobody has its port any more, so its process has ended");
        } else if trouble.is_own {
            let why = format!("there is no way to it for {seconds} s: {error}");
            self.lose(rank, &why);
        } else if !std::mem::replace(&mut trouble.told, true) {
            // Anybody can send such messages, and a rank that computes says nothing to the contrary.
            self.notices.push(format!(
                "rank {rank} on host {}: the network says for {seconds} s: {error}; that may be wrong, so the rank is \
                 waited for",
                peer.place.host
            ));
        }
    }

    /// Hears what is said of addresses.
    pub(super) fn take_reports(&mut self, now_ns: u64) {
        while let Some(report) = self.port.take_report() {
            for index in (0..self.live.len()).rev() {
                let rank = self.live[index];
                let peer = &mut self.peers[rank as usize];
                if let DatagramWay::Calling(calls) = &mut peer.way {
                    calls.handle_report(&report.address, copy(&report.error), report.is_own);
                } else if peer.route == Some(report.address) {
                    self.handle_trouble(rank, copy(&report.error), report.is_own, now_ns);
                }
            }
        }
    }

    pub(super) fn handle_trouble(&mut self, rank: u32, error: io::Error, is_own: bool, now_ns: u64) {
        // Too large for the way: the sizes that pass are tried, and this was one that does not.
        if error.raw_os_error() == Some(libc::EMSGSIZE) {
            return;
        }
        let peer = &mut self.peers[rank as usize];
        let refused = is_own && error.kind() == io::ErrorKind::ConnectionRefused;
        if refused && (self.leaving || peer.standing == Standing::Left) {
            // Nobody is there any more who could hear our part of the farewell.
            self.forget(rank, Standing::Left);
            return;
        }
        Trouble::add(&mut peer.trouble, is_own, error, now_ns);
        self.due_ns = self.due_ns.min(now_ns + 1);
    }
}

fn copy(error: &io::Error) -> io::Error {
    io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))
}
