//! What the interface keeps beside the endpoint, and has looked after where its threads wait.

use crate::port::PortNumber;
use std::collections::HashSet;
use std::os::fd::RawFd;
use std::time::Duration;
use weft_ports::{Companion, Endpoint, Peer};

#[derive(Default)]
pub struct Desk {
    /// Those that were seen to have taken their leave.
    left: HashSet<Peer>,
}

impl Desk {
    pub fn note_left(&mut self, process: Peer) {
        self.left.insert(process);
    }

    pub fn has_left(&self, process: Peer) -> bool {
        self.left.contains(&process)
    }

    pub fn forget_names_of(&mut self, port: PortNumber) {
        let _ = port;
    }
}

impl Companion for Desk {
    fn idle(&mut self, endpoint: &mut Endpoint, sleeps: bool) -> bool {
        let _ = (endpoint, sleeps);
        false
    }

    fn attended(&self) -> Option<RawFd> {
        None
    }

    fn longest_sleep(&self) -> Option<Duration> {
        None
    }
}
