//! Several machines over a made-up network: each seed is another course of events.
//!
//! - `network`: what is on its way, and who has ended. - `program`: what threads do. - `checker`: whether there is an
//!   order of all operations that explains what they answered. - `tests`: what holds in every course. - `faults`:
//!   single ones.

mod checker;
mod faults;
mod network;
mod program;
mod tests;

use crate::message::DirectMessage;

/// Which messages wait for the events that their senders had: all, unless a test wants to see what that is for.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub requests: bool,
    pub answers: bool,
}

impl Default for Rule {
    fn default() -> Self {
        Self { requests: true, answers: true }
    }
}

impl Rule {
    pub fn delays(self, message: &DirectMessage) -> bool {
        match message {
            DirectMessage::Request { .. } => self.requests,
            DirectMessage::Reply { .. } => self.answers,
            _ => true,
        }
    }
}
