//! The listener, and who has connected there and has not proven anything yet.

use super::guest::Guest;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use weft_wire::tcp::Nonce;

/// Guests that may say nothing at the same time. The one that has for longest makes room; until then each may: a rank
/// that has connected and computes says nothing either.
pub(super) const SILENT_GUESTS: usize = 64;
pub(super) struct StreamReception {
    /// The one that we began with, and a wider one where that was made later.
    pub listeners: Vec<OwnedFd>,
    pub guests: Vec<Option<Guest>>,
    /// No listener is watched until then, because what waits there cannot be taken.
    pub deaf_until_ns: Option<u64>,
    pub said_deaf: bool,
    pub said_crowded: bool,
    /// Calls of ranks that were heard. A rank makes each once, so a second one is somebody else's.
    pub heard_calls: HashSet<(u32, Nonce)>,
}

impl StreamReception {
    pub fn new(listener: OwnedFd) -> Self {
        Self {
            listeners: vec![listener],
            guests: Vec::new(),
            deaf_until_ns: None,
            said_deaf: false,
            said_crowded: false,
            heard_calls: HashSet::new(),
        }
    }

    /// Of too many guests that say nothing the one that has for longest.
    pub fn oldest_of_many(&self) -> Option<usize> {
        let since = |guest: &Option<Guest>| guest.as_ref().filter(|g| g.rank().is_none()).map(Guest::since_ns);
        let silent = self.guests.iter().enumerate().filter_map(|(index, guest)| Some((since(guest)?, index)));
        let many = silent.clone().count() >= SILENT_GUESTS;
        silent.min().filter(|_| many).map(|(_, index)| index)
    }

    /// A place for a guest.
    pub fn free_place(&mut self) -> usize {
        self.guests.iter().position(Option::is_none).unwrap_or_else(|| {
            self.guests.push(None);
            self.guests.len() - 1
        })
    }

    /// Places at the end that are free are none.
    pub fn close_up(&mut self) {
        while self.guests.last().is_some_and(Option::is_none) {
            self.guests.pop();
        }
    }

    /// A rank that is connected already is no guest.
    pub fn forget(&mut self, rank: u32) {
        for guest in &mut self.guests {
            if guest.as_ref().and_then(Guest::rank) == Some(rank) {
                *guest = None;
            }
        }
    }
}
