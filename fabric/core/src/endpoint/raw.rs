//! Bytes between two processes, without messages.

use super::Endpoint;
use crate::api::{Peer, RequestId};

impl Endpoint {
    /// Sends as many of the bytes over the raw channel as can leave now; answers how many.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes.
    pub unsafe fn try_raw_send(&mut self, to: Peer, data: *const u8, length: usize) -> usize {
        // SAFETY: the caller's promise.
        let sent = unsafe { crate::raw::try_send(&mut self.devices, to, data, length) };
        self.devices.push(to.0, false);
        if sent < length {
            self.give_up_unreachable();
        }
        sent
    }

    /// Starts to receive exactly `capacity` bytes from the raw channel.
    ///
    /// # Safety
    /// As [`Self::post_receive`].
    pub unsafe fn post_raw_receive(&mut self, from: Peer, buffer: *mut u8, capacity: usize) -> RequestId {
        // SAFETY: the caller's promise.
        unsafe { self.switch.others.raw.post_receive(from, buffer, capacity, &mut self.switch.port.requests) }
    }
}
