//! How an endpoint leaves its job, for good or to come back.

use super::Endpoint;
use crate::api::Peer;
use crate::join::JobMembership;
use crate::process::company;
use weft_device::sys::yield_core;
use weft_wire::segment::MemberState;

/// Passes without progress between two looks at whether those we wait for at the end still live.
const IDLE_PASSES_PER_LOOK: u32 = 500;

/// Who leaves a job on several hosts and waits for others sleeps after so many, at most for so long at a time.
const IDLE_PASSES_BEFORE_SLEEP: u32 = 4 * IDLE_PASSES_PER_LOOK;
const LEAVING_SLEEP: std::time::Duration = std::time::Duration::from_millis(10);

impl Endpoint {
    /// Whether the endpoint can [`Self::rest`]: not across hosts, where connections end with a farewell.
    pub fn can_rest(&self) -> bool {
        !self.devices.is_across()
    }

    /// As [`Self::leave`], but to be able to come back ([`Self::resume`]). Meanwhile the others and the manager see a
    /// process that has left.
    pub fn rest(&mut self) {
        self.finish(|endpoint| endpoint.switch.has_work());
        self.devices.count(&mut self.switch.port.counters);
        self.devices.segment().set_state(self.devices.my_member(), MemberState::Left);
        self.tell_leave();
    }

    fn tell_leave(&self) {
        if let Some(Err(error)) = self.membership.as_ref().map(JobMembership::rest) {
            eprintln!("weft: rank {}: {error}", self.me);
        }
    }

    /// Comes back to the job after a [`Self::rest`].
    pub fn resume(&mut self) {
        self.devices.segment().set_state(self.devices.my_member(), MemberState::Joined);
        if let Some(Err(error)) = self.membership.as_ref().map(JobMembership::resume) {
            eprintln!("weft: rank {}: {error}", self.me);
        }
    }

    /// Makes progress until everything started has left this process, except for peers that have ended; then leaves the
    /// job.
    pub fn leave(mut self) {
        self.finish(|endpoint| endpoint.switch.has_work() || endpoint.devices.has_held());
        self.devices.say_farewell();
        self.finish(|endpoint| endpoint.devices.has_output());
        self.devices.count(&mut self.switch.port.counters);
        self.devices.segment().set_state(self.devices.my_member(), MemberState::Left);
        self.tell_leave();
        self.membership.iter().for_each(|membership| membership.enrolment().end());
    }

    fn finish(&mut self, more: impl Fn(&Self) -> bool) {
        let mut idle = 0u32;
        while more(self) {
            if self.progress() {
                idle = 0;
                continue;
            }
            idle = idle.wrapping_add(1);
            // Whom we wait for may wait for another interface of this process.
            let _ = company().is_some_and(|others| others.progress(std::ptr::null()));
            if idle.is_multiple_of(IDLE_PASSES_PER_LOOK) || idle > IDLE_PASSES_BEFORE_SLEEP {
                self.give_up_ended();
            }
            // A rank that computes may let us wait for long.
            if idle >= IDLE_PASSES_BEFORE_SLEEP && self.devices.is_across() {
                if self.devices.arm() {
                    self.devices.sleeper().sleep(Some(LEAVING_SLEEP));
                }
                self.devices.disarm();
            } else {
                yield_core();
            }
        }
    }

    /// Whether `peer` has left the job, as far as is known here: it takes no messages any more.
    pub fn has_ended(&self, peer: Peer) -> bool {
        self.devices.has_ended(peer.0)
    }

    fn give_up_ended(&mut self) {
        for peer in self.switch.awaited() {
            if self.devices.has_ended(peer) {
                self.switch.handle_end(peer);
            }
        }
    }
}
