//! Ends that programs of this host have shown, and how the two rendezvous find out that each has one of them: pure.
//!
//! What holds:
//! - an end meets only by a call that names its nonce: one that was made after we had said it, by who has the key;
//! - calls go to the address of the connection's other end, and nowhere else;
//! - what is kept is bounded, for each process and in all, and each end that has not met ends with its patience.

use std::collections::HashMap;
use weft_wire::stream::datagram::DatagramPeer;
use weft_wire::stream::meeting::{Landing, Nonce, ShownCall};

const MS: u64 = 1_000_000;
/// An end that has not met so long after it was shown is given up.
pub const PATIENCE_NS: u64 = 2_000 * MS;
/// The first call is said again after this, then each after twice as long, up to the other one.
const FIRST_AGAIN_NS: u64 = 5 * MS;
const LAST_AGAIN_NS: u64 = 160 * MS;
/// A host from which no call has come is not called for so long: it has no rendezvous, most likely.
const SILENCE_NS: u64 = 60_000 * MS;
/// One from which calls had come before is away for a while, as its cable or ours may be.
const AWAY_NS: u64 = 1_000 * MS;
/// Ends of one process: what an arena has slots for.
pub const ENDS_OF_ONE: usize = weft_wire::stream::arena::SLOTS as usize;
/// Calls with which one end answers others.
const ANSWERS: u32 = 256;
/// Hosts of which something is known. Only who has the key, or is called by a program here, becomes one.
const HOSTS: usize = 1024;

/// An end of a connection as its process has shown it: its own address, and the other one.
pub type Ends = [DatagramPeer; 2];

/// Whose end it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOwner {
    pub client: u64,
    pub cookie: u64,
    pub ends: Ends,
}

/// A shown end, with what is kept for it.
struct MeetingEnd<A> {
    shown: EndOwner,
    nonce: Nonce,
    /// The other side's nonce, by the last call: a claim until we have met.
    heard: Option<Nonce>,
    landing: Option<Landing>,
    has_met: bool,
    shown_ns: u64,
    again_ns: u64,
    interval_ns: u64,
    has_called: bool,
    /// Calls of it could not leave: that nobody answers says nothing of the other host.
    was_kept_in: bool,
    answers: u32,
    kept: Option<A>,
}

impl<A> MeetingEnd<A> {
    fn call(&self) -> ShownCall {
        let Self { nonce, heard, landing, has_met, .. } = *self;
        ShownCall { ends: self.shown.ends, nonce, named: heard, landing, has_met }
    }
}

/// Both sides know of each other.
#[derive(Debug)]
pub struct Met<A> {
    pub shown: EndOwner,
    pub here: Landing,
    pub there: Landing,
    /// Ours and theirs.
    pub nonces: [Nonce; 2],
    pub kept: A,
}

/// What a call brought about.
#[derive(Debug)]
pub struct HeardCall<A> {
    pub answer: Option<ShownCall>,
    pub met: Option<Met<A>>,
}

/// An end that is given up.
#[derive(Debug)]
pub struct GivenUp<A> {
    pub landing: Option<Landing>,
    /// Nothing, of an end that has met.
    pub kept: Option<A>,
}

#[derive(Default)]
struct MeetingHost {
    heard_ns: Option<u64>,
    silent_until_ns: u64,
}

/// All shown ends. `A` is what is kept with one until it has met.
pub struct Meetings<A> {
    ends: HashMap<Ends, MeetingEnd<A>>,
    of_client: HashMap<u64, usize>,
    hosts: HashMap<[u8; 16], MeetingHost>,
    /// Of all processes together.
    most: usize,
}

impl<A> Meetings<A> {
    /// For at most so many ends.
    pub fn new(most: usize) -> Self {
        Self { ends: HashMap::new(), of_client: HashMap::new(), hosts: HashMap::new(), most }
    }

    /// An end was shown. False where it is known already, or there are too many.
    pub fn show(&mut self, shown: EndOwner, nonce: Nonce, kept: A, now_ns: u64) -> bool {
        let of_client = self.of_client.get(&shown.client).copied().unwrap_or(0);
        if self.ends.len() >= self.most || of_client >= ENDS_OF_ONE || self.ends.contains_key(&shown.ends) {
            return false;
        }
        self.of_client.insert(shown.client, of_client + 1);
        let end = MeetingEnd {
            shown,
            nonce,
            heard: None,
            landing: None,
            has_met: false,
            shown_ns: now_ns,
            again_ns: now_ns,
            interval_ns: FIRST_AGAIN_NS,
            has_called: false,
            was_kept_in: false,
            answers: ANSWERS,
            kept: Some(kept),
        };
        self.ends.insert(shown.ends, end);
        true
    }

    /// Takes a call that bears a valid tag. `land` finds a place for the end of this process, if there is room.
    pub fn handle_call(
        &mut self,
        call: &ShownCall,
        now_ns: u64,
        land: impl FnOnce(&EndOwner) -> Option<Landing>,
    ) -> HeardCall<A> {
        self.hear(call.ends[0].address, now_ns);
        let mut heard = HeardCall { answer: None, met: None };
        let Some(end) = self.ends.get_mut(&[call.ends[1], call.ends[0]]) else { return heard };
        if end.has_met && end.heard != Some(call.nonce) {
            return heard;
        }
        end.heard = Some(call.nonce);
        end.landing = end.landing.or_else(|| land(&end.shown));
        if !end.has_met
            && call.named == Some(end.nonce)
            && let (Some(here), Some(there)) = (end.landing, call.landing)
            && let Some(kept) = end.kept.take()
        {
            end.has_met = true;
            heard.met = Some(Met { shown: end.shown, here, there, nonces: [end.nonce, call.nonce], kept });
        }
        // One without a place has nothing to say that the other side could use: it calls when its time has come.
        if !call.has_met && end.landing.is_some() && end.answers > 0 {
            end.answers -= 1;
            heard.answer = Some(end.call());
        }
        heard
    }

    fn hear(&mut self, address: [u8; 16], now_ns: u64) {
        if self.make_room_for_host(&address, now_ns) {
            *self.hosts.entry(address).or_default() = MeetingHost { heard_ns: Some(now_ns), silent_until_ns: 0 };
        }
    }

    fn make_room_for_host(&mut self, address: &[u8; 16], now_ns: u64) -> bool {
        if self.hosts.len() >= HOSTS && !self.hosts.contains_key(address) {
            let is_recent = |ns: u64| now_ns < ns.saturating_add(SILENCE_NS);
            self.hosts.retain(|_, host| host.silent_until_ns > now_ns || host.heard_ns.is_some_and(is_recent));
        }
        self.hosts.len() < HOSTS || self.hosts.contains_key(address)
    }

    /// Calls whose time has come. `send` answers whether the call has left.
    pub fn poll_calls(&mut self, now_ns: u64, mut send: impl FnMut(&ShownCall) -> bool) {
        let hosts = &self.hosts;
        let is_silent =
            |address: &[u8; 16]| hosts.get(address).is_some_and(|host: &MeetingHost| now_ns < host.silent_until_ns);
        for end in self.ends.values_mut().filter(|end| !end.has_met && end.again_ns <= now_ns) {
            // Who has called us is not silent, though others there may be.
            if end.heard.is_none() && is_silent(&end.shown.ends[1].address) {
                continue;
            }
            if send(&end.call()) {
                end.has_called = true;
            } else {
                end.was_kept_in = true;
            }
            end.again_ns = now_ns + end.interval_ns;
            end.interval_ns = (end.interval_ns * 2).min(LAST_AGAIN_NS);
        }
    }

    /// Ends whose patience is over; they are forgotten.
    pub fn poll_expired(&mut self, now_ns: u64) -> Vec<GivenUp<A>> {
        let over = |end: &&MeetingEnd<A>| !end.has_met && now_ns >= end.shown_ns.saturating_add(PATIENCE_NS);
        let expired: Vec<Ends> = self.ends.values().filter(over).map(|end| end.shown.ends).collect();
        expired.iter().filter_map(|ends| self.expire(ends, now_ns)).collect()
    }

    fn expire(&mut self, ends: &Ends, now_ns: u64) -> Option<GivenUp<A>> {
        let end = self.ends.get(ends)?;
        let (address, shown_ns) = (ends[1].address, end.shown_ns);
        let was_heard = self.hosts.get(&address).is_some_and(|host| host.heard_ns.is_some_and(|ns| ns >= shown_ns));
        if end.has_called && !end.was_kept_in && !was_heard && self.make_room_for_host(&address, now_ns) {
            let host = self.hosts.entry(address).or_default();
            host.silent_until_ns = now_ns + if host.heard_ns.is_some() { AWAY_NS } else { SILENCE_NS };
        }
        self.forget(ends)
    }

    /// The end is over, whether it has met or not.
    pub fn forget(&mut self, ends: &Ends) -> Option<GivenUp<A>> {
        let end = self.ends.remove(ends)?;
        if let Some(count) = self.of_client.get_mut(&end.shown.client) {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(&end.shown.client);
            }
        }
        Some(GivenUp { landing: end.landing, kept: end.kept })
    }

    /// The process closes an end: it is forgotten if it has not met. Of one that has, answers which it is.
    pub fn withdraw(&mut self, client: u64, cookie: u64) -> Option<Withdrawn<A>> {
        let is_it = |end: &&MeetingEnd<A>| end.shown.client == client && end.shown.cookie == cookie;
        let (ends, has_met) = self.ends.values().find(is_it).map(|end| (end.shown.ends, end.has_met))?;
        if has_met { Some(Withdrawn::HasMet(ends)) } else { self.forget(&ends).map(Withdrawn::Forgotten) }
    }

    /// The process is gone: its ends that have not met are forgotten.
    pub fn leave(&mut self, client: u64) -> Vec<GivenUp<A>> {
        let is_over = |end: &&MeetingEnd<A>| end.shown.client == client && !end.has_met;
        let over: Vec<Ends> = self.ends.values().filter(is_over).map(|end| end.shown.ends).collect();
        over.iter().filter_map(|ends| self.forget(ends)).collect()
    }

    /// Whether an end waits for its other one.
    pub fn is_calling(&self) -> bool {
        self.ends.values().any(|end| !end.has_met)
    }
}

/// What became of an end that its process closes.
#[derive(Debug)]
pub enum Withdrawn<A> {
    Forgotten(GivenUp<A>),
    HasMet(Ends),
}

#[cfg(test)]
mod tests;
