//! One end: a link, what drives it, and what it is to receive.

use crate::faults::US;
use crate::network::{Network, Way};
use crate::random::Random;
use crate::traffic::{Item, Source};
use std::collections::VecDeque;
use weft_protocol::reliable::{Config, JobSeal, Keyed, Link, LinkPosted, Phase};
use weft_wire::link::mac::Key;

/// With a key, or encrypted with one.
#[derive(Clone, Copy)]
pub enum Sealer {
    Keyed(Key),
    Encrypted([u8; 16]),
}

impl Sealer {
    pub fn at(self, config: &Config) -> JobSeal {
        match self {
            Self::Keyed(key) => JobSeal::Keyed(Keyed::new(&key)),
            Self::Encrypted(key) => JobSeal::new(&key, true, config.local, config.remote),
        }
    }
}

pub struct End {
    pub link: Link,
    pub way: Way,
    pub source: Source,
    /// Sends nothing before.
    pub starts_ns: u64,
    /// Closes when the source is dry.
    pub closes: bool,
    /// The part of a packet that was not accepted.
    rest: Option<Item>,
    /// What was accepted and has not been handed on at the other end.
    pub accepted: VecDeque<Item>,
    pub bytes_delivered: u64,
    /// How often a packet is not taken at once, and until when none is.
    pub refuses_ppm: u32,
    pub refusing_until_ns: u64,
    /// Every datagram that was sent, if that is wanted.
    pub keeps: Option<Vec<Vec<u8>>>,
    /// When it is next to be driven.
    pub wakes_ns: u64,
    /// It has lost its core until then: what arrives waits.
    pub stalled_until_ns: u64,
    /// A killed process: it neither sends nor takes anything.
    pub is_killed: bool,
}

impl End {
    pub fn new(config: Config, sealer: Sealer, way: Way, source: Source) -> Self {
        Self {
            link: Link::new(config, sealer.at(&config), 0),
            way,
            source,
            starts_ns: 0,
            closes: true,
            rest: None,
            accepted: VecDeque::new(),
            bytes_delivered: 0,
            refuses_ppm: 0,
            refusing_until_ns: 0,
            keeps: None,
            wakes_ns: 0,
            stalled_until_ns: 0,
            is_killed: false,
        }
    }

    /// Hands the link what it takes.
    fn feed(&mut self, now_ns: u64) {
        if now_ns < self.starts_ns {
            return;
        }
        while let Some(item) = self.rest.take().or_else(|| self.source.poll(now_ns)) {
            match self.link.try_send(&item.head, item.inline(), item.bulk()) {
                LinkPosted::Sent(bulk_bytes) => {
                    let (accepted, rest) = item.split(bulk_bytes);
                    self.accepted.push_back(accepted);
                    self.rest = rest;
                }
                LinkPosted::Full => {
                    self.rest = Some(item);
                    return;
                }
                LinkPosted::Gone => return,
            }
        }
        if self.closes && self.source.is_dry() {
            self.link.close();
        }
    }

    /// Everything that this end does of its own at this time.
    pub fn drive(&mut self, now_ns: u64, network: &mut Network) {
        if self.is_killed {
            return;
        }
        if self.link.next_timeout().is_some_and(|at_ns| at_ns <= now_ns) {
            self.link.handle_timeout(now_ns);
        }
        self.feed(now_ns);
        let mut buffer = [0; 9_100];
        // Whoever asks first whether there is anything misses nothing.
        while self.link.may_transmit(now_ns) {
            let Some(length) = self.link.poll_transmit(now_ns, &mut buffer) else { break };
            if let Some(kept) = &mut self.keeps {
                kept.push(buffer[..length].to_vec());
            }
            network.send(now_ns, &mut self.way, &buffer[..length]);
            self.feed(now_ns);
        }
        assert_eq!(self.link.poll_transmit(now_ns, &mut buffer), None, "there was something");
    }

    pub fn take(&mut self, now_ns: u64, datagram: Option<&[u8]>, expected: &mut VecDeque<Item>, random: &mut Random) {
        if self.is_killed {
            return;
        }
        let (refuses_ppm, mut until_ns, mut bytes) = (self.refuses_ppm, self.refusing_until_ns, 0);
        let deliver = |packet: weft_protocol::reliable::LinkPacket<'_>| {
            if until_ns > now_ns || random.chance(refuses_ppm) {
                until_ns = until_ns.max(now_ns + 100 * US);
                return false;
            }
            let item = expected.pop_front().expect("a packet that nobody sent");
            item.check(&packet);
            bytes += item.bytes();
            true
        };
        match datagram {
            Some(datagram) => _ = self.link.handle_datagram(now_ns, datagram, deliver),
            None => self.link.poll_delivered(now_ns, deliver),
        }
        self.refusing_until_ns = until_ns;
        self.bytes_delivered += bytes;
    }

    /// Whether packets that were refused are to be offered again now.
    pub fn stops_refusing(&mut self, now_ns: u64) -> bool {
        let stops = self.refusing_until_ns > 0 && self.refusing_until_ns <= now_ns;
        if stops {
            self.refusing_until_ns = 0;
        }
        stops
    }

    pub fn is_over(&self) -> bool {
        !matches!(self.link.phase(), Phase::Open | Phase::Closing)
    }

    /// When this end next wants to be driven.
    pub fn next_ns(&self, now_ns: u64) -> Option<u64> {
        if self.is_killed {
            return None;
        }
        let ahead = [self.refusing_until_ns, self.starts_ns, self.source.next_ns().unwrap_or(0)];
        let ahead = ahead.into_iter().filter(|at_ns| *at_ns > now_ns);
        ahead.chain(self.link.next_timeout()).min()
    }
}
