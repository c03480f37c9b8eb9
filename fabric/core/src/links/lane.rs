//! The lane beside the socket, as long as it works.

use super::{Links, Looks};
use weft_device::xdp::Lane;

#[derive(Default)]
pub(super) struct LaneUse {
    /// Otherwise it is received from only.
    sends: bool,
    /// A lane that is gone, and what went by it.
    failed: Option<Box<Lane>>,
    past_datagrams: u64,
}

impl Links {
    /// Datagrams come by this lane, and with `sends` they go by it where it leads.
    pub fn set_lane(&mut self, lane: Lane, sends: bool) {
        self.port.set_lane(lane, sends);
        self.by_lane.sends = sends;
        self.looks = Looks::new(false);
    }

    /// Whether there is one that works, and datagrams go by it.
    pub fn has_lane(&self) -> bool {
        self.by_lane.sends && self.port.lane().is_some()
    }

    /// Datagrams that went by it.
    pub fn lane_datagrams(&self) -> u64 {
        self.by_lane.past_datagrams + self.port.lane().map_or(0, |lane| lane.counters().sent)
    }

    /// What failed is given up, and the socket goes on.
    pub(super) fn look_at_lane(&mut self) {
        let sent = self.lane_datagrams();
        if let Some(lane) = self.port.take_failed_lane() {
            self.by_lane.past_datagrams = sent;
            self.notices
                .push(format!("xdp is no longer used, udp is: {}", lane.fault().unwrap_or("the lane did not say why")));
            self.by_lane.failed = Some(Box::new(lane));
        }
    }

    /// A lane that has failed, once: for who watches its descriptor, and ends that.
    #[inline]
    pub fn take_failed_lane(&mut self) -> Option<Box<Lane>> {
        self.by_lane.failed.take()
    }
}
