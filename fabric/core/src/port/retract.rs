//! Taking a send back that nobody receives yet.
//!
//! What has left without asking is at the receiver, and its send is complete: only what asks can be taken back. The
//! sender cannot know whether its ask has been answered meanwhile, so it says that it wants it back and goes on
//! waiting. The receiver forgets an ask that nothing has matched and says so; else the answer is on its way already.

use super::{Port, RequestId};
use crate::api::{Fault, Peer};
use crate::protocol::Breach;
use crate::requests::RequestState;
use weft_device::Packet;
use weft_wire::cell::Kind;

impl Port {
    /// Cancels a send if nothing has matched it. It is complete when that is known, cancelled or not.
    pub fn cancel_send(&mut self, id: RequestId) {
        let entry = self.requests.at(id);
        let (state, to) = (entry.state, entry.outcome.peer);
        match state {
            RequestState::Asked if to.0 == self.me => {
                let found = self.arrived.asked_by(to, id.0.into());
                if found.is_some_and(|message| self.forget(to, message)) {
                    self.fail(id, Fault::Cancelled);
                }
            }
            RequestState::Asked => self.reply(to.0, Kind::Retract, &[id.0.into()]),
            RequestState::Sending => {
                let messages = &mut self.outbound[to.0 as usize].messages;
                let before = messages.len();
                messages.retain(|message| message.request != id);
                if messages.len() < before {
                    self.fail(id, Fault::Cancelled);
                }
            }
            _ => {}
        }
    }

    /// Forgets a message that nobody has received; false if somebody has.
    fn forget(&mut self, from: Peer, message: u32) -> bool {
        let forgotten = self.matcher.forget_unexpected(from.0, message)
            || self.incoming.orders[from.0 as usize].forget_held(message);
        if forgotten {
            self.arrived.remove(message);
        }
        forgotten
    }

    /// A sender wants its ask back. If there is none, it was answered.
    pub(super) fn retract(&mut self, from: Peer, remote: u64) {
        let found = self.arrived.asked_by(from, remote);
        if found.is_some_and(|message| self.forget(from, message)) {
            self.reply(from.0, Kind::Retracted, &[remote]);
        }
    }

    pub(super) fn on_retracted(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let id = self.answered(&packet)?;
        if self.requests.at(id).state != RequestState::Asked {
            return Err("a message is forgotten that is being copied");
        }
        self.fail(id, Fault::Cancelled);
        Ok(())
    }
}
