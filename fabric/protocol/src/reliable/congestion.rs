//! How much may be on its way at once, so that a link is full, shared fairly, and not flooded.
//!
//! Once a round trip the window is set from how long the queue on the path is (FAST TCP; Wei, Jin, Low, Hegde, 2006):
//! each sender aims at so many bytes of its own waiting there, [`CongestionLimits::queue_bytes`], and goes half of the
//! way at once. All senders over a bottleneck then have equal shares, whenever they began. The length of the queue is
//! known from the least round trip of the round against the least one ever seen, so that a datagram that was held up by
//! chance does not count. To see the path without a queue, a sender that has not for [`BASE_LIFE_NS`] goes down to its
//! least window for two round trips; those over one bottleneck do so together, because the first one that does shows it
//! to the others.
//!
//! Datagrams are lost by chance as well, so a loss alone changes nothing. More than one in sixteen lost is congestion,
//! where the queue is too short for what everybody aims at: then the window shrinks by three tenths.

/// How long a round trip without a queue is believed.
const BASE_LIFE_NS: u64 = 250_000_000;
/// Two senders that have seen a queue this much longer than the base, in parts of it, call it empty.
const EMPTY_PART: u64 = 16;
/// One datagram in so many may be lost by chance.
const CHANCE_PART: u64 = 16;
/// The share of lost bytes is judged by at least so many least windows.
const LEAST_JUDGED: u64 = 8;

#[derive(Clone, Copy, Debug)]
pub struct CongestionLimits {
    pub least_bytes: u64,
    pub first_bytes: u64,
    pub most_bytes: u64,
    /// What this sender wants to have waiting at the bottleneck.
    pub queue_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CongestionLook {
    No,
    /// Until no more than the least window is on its way.
    Emptying,
    /// For so many rounds more.
    Measuring(u32),
}

pub struct Congestion {
    limits: CongestionLimits,
    window: u64,
    slow_start: bool,
    base_ns: u64,
    base_seen_ns: u64,
    look: CongestionLook,
    /// The round ends when this number has arrived.
    round_end: u64,
    round_least_ns: u64,
    /// The window has kept something back in this round.
    limited: bool,
    arrived_bytes: u64,
    lost_bytes: u64,
    lost_now: bool,
}

impl Congestion {
    pub fn new(limits: CongestionLimits, now_ns: u64) -> Self {
        Self {
            limits,
            window: limits.first_bytes.max(limits.least_bytes),
            slow_start: true,
            base_ns: u64::MAX,
            base_seen_ns: now_ns,
            look: CongestionLook::No,
            round_end: 0,
            round_least_ns: u64::MAX,
            limited: false,
            arrived_bytes: 0,
            lost_bytes: 0,
            lost_now: false,
        }
    }

    /// The datagrams have another size: the least window is a few of them.
    pub fn set_least(&mut self, least_bytes: u64) {
        self.limits.least_bytes = least_bytes;
        self.window = self.window.max(least_bytes);
    }

    /// Bytes that may be on their way.
    #[inline]
    pub fn window(&self) -> u64 {
        if self.look == CongestionLook::No { self.window } else { self.limits.least_bytes }
    }

    pub fn in_slow_start(&self) -> bool {
        self.slow_start
    }

    /// Something could not be sent for want of window.
    #[inline]
    pub fn handle_limited(&mut self) {
        self.limited = true;
    }

    pub fn handle_lost(&mut self, bytes: u64) {
        self.lost_bytes += bytes;
        self.lost_now = true;
    }

    /// Two questions in a row have found no answer: whatever was known of the path may not hold any more.
    pub fn handle_silence(&mut self) {
        self.window = self.limits.least_bytes;
        self.slow_start = true;
    }

    /// Datagrams have arrived: the newest was number `newest` and took `rtt_ns`, if that is known. `next` is the number
    /// of the next datagram, and `in_flight` what is on its way now. Whether that ends a round.
    #[inline]
    pub fn handle_arrived(
        &mut self,
        now_ns: u64,
        bytes: u64,
        (newest, next): (u64, u64),
        rtt_ns: Option<u64>,
        in_flight: u64,
    ) -> bool {
        self.arrived_bytes += bytes;
        if let Some(rtt_ns) = rtt_ns {
            self.round_least_ns = self.round_least_ns.min(rtt_ns);
            self.handle_rtt(now_ns, rtt_ns);
        }
        if self.look == CongestionLook::Emptying && in_flight <= self.limits.least_bytes {
            self.look = CongestionLook::Measuring(2);
        } else if newest >= self.round_end {
            self.end_round(now_ns, in_flight);
        } else {
            return false;
        }
        self.begin_round(next);
        true
    }

    #[inline]
    fn handle_rtt(&mut self, now_ns: u64, rtt_ns: u64) {
        if rtt_ns <= self.base_ns.saturating_add(self.base_ns / EMPTY_PART) {
            self.base_ns = self.base_ns.min(rtt_ns);
            self.base_seen_ns = now_ns;
        }
    }

    fn begin_round(&mut self, next: u64) {
        self.round_end = next;
        self.round_least_ns = u64::MAX;
        self.limited = false;
        self.lost_now = false;
    }

    fn end_round(&mut self, now_ns: u64, in_flight: u64) {
        let least_ns = self.round_least_ns;
        if least_ns == u64::MAX {
            return;
        }
        match self.look {
            CongestionLook::Measuring(1) => {
                (self.base_ns, self.base_seen_ns) = (least_ns, now_ns);
                self.look = CongestionLook::No;
            }
            CongestionLook::Measuring(rounds) => self.look = CongestionLook::Measuring(rounds - 1),
            CongestionLook::Emptying => {}
            CongestionLook::No => {
                self.adjust(least_ns);
                if now_ns.saturating_sub(self.base_seen_ns) > BASE_LIFE_NS {
                    self.look_for_base(now_ns, least_ns, in_flight);
                }
            }
        }
    }

    /// Who sends little sees the path as it is; others make room first.
    fn look_for_base(&mut self, now_ns: u64, least_ns: u64, in_flight: u64) {
        if in_flight <= self.limits.least_bytes {
            (self.base_ns, self.base_seen_ns) = (least_ns, now_ns);
        } else {
            self.look = CongestionLook::Emptying;
        }
    }

    fn adjust(&mut self, least_ns: u64) {
        let base_ns = self.base_ns.min(least_ns);
        // What of the window is on the path and not in the queue.
        let moving = (u128::from(self.window) * u128::from(base_ns) / u128::from(least_ns)) as u64;
        let queued = self.window - moving;
        let aim = moving + self.limits.queue_bytes;
        if self.judge_losses() {
            self.slow_start = false;
            self.window = self.window / 10 * 7;
        } else if self.slow_start && queued < self.limits.queue_bytes / 2 {
            self.window *= 1 + u64::from(self.limited);
        } else {
            let next = if self.slow_start { aim } else { self.window.midpoint(aim) };
            self.slow_start = false;
            if self.limited || next < self.window {
                self.window = next;
            }
        }
        self.window = self.window.clamp(self.limits.least_bytes, self.limits.most_bytes);
    }

    /// Whether more has been lost lately than chance explains.
    fn judge_losses(&mut self) -> bool {
        let judged = self.arrived_bytes + self.lost_bytes;
        if judged < LEAST_JUDGED * self.limits.least_bytes {
            return false;
        }
        let congested = self.lost_now && self.lost_bytes * CHANCE_PART > judged;
        if congested {
            (self.arrived_bytes, self.lost_bytes) = (0, 0);
        } else if judged > 4 * LEAST_JUDGED * self.limits.least_bytes {
            self.arrived_bytes /= 2;
            self.lost_bytes /= 2;
        }
        congested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: CongestionLimits =
        CongestionLimits { least_bytes: 4_000, first_bytes: 10_000, most_bytes: 1_000_000, queue_bytes: 30_000 };

    struct Path {
        congestion: Congestion,
        now_ns: u64,
        number: u64,
    }

    impl Path {
        fn new() -> Self {
            Self { congestion: Congestion::new(LIMITS, 0), now_ns: 0, number: 0 }
        }

        /// A round in which everything arrives, `rtt_ns` after it was sent.
        fn round(&mut self, rtt_ns: u64) -> u64 {
            let window = self.congestion.window();
            self.now_ns += rtt_ns;
            self.number += window / 1_000;
            self.congestion.handle_limited();
            let numbers = (self.number, self.number + 1);
            let in_flight = if self.congestion.look == CongestionLook::No { window } else { 0 };
            self.congestion.handle_arrived(self.now_ns, window, numbers, Some(rtt_ns), in_flight);
            self.congestion.window()
        }
    }

    #[test]
    fn an_empty_path_is_filled_by_doubling() {
        let mut path = Path::new();
        assert_eq!([path.round(100_000), path.round(100_000), path.round(100_000)], [20_000, 40_000, 80_000]);
    }

    #[test]
    fn the_window_settles_where_the_queue_is_as_long_as_wanted() {
        let mut path = Path::new();
        path.round(100_000);
        // One byte per nanosecond: what is more than 100 kB waits in the queue.
        for _ in 0..30 {
            let rtt_ns = path.congestion.window().max(100_000);
            path.round(rtt_ns);
        }
        assert!(path.congestion.window().abs_diff(130_000) < 3_000, "{}", path.congestion.window());
    }

    #[test]
    fn one_loss_in_a_hundred_is_chance_and_one_in_five_is_not() {
        for (part, shrinks) in [(100, false), (5, true)] {
            let mut path = Path::new();
            (0..3).for_each(|_| _ = path.round(100_000));
            let before = path.congestion.window();
            path.congestion.handle_lost(before / part);
            assert_eq!(path.round(100_000) < before, shrinks, "one in {part}");
        }
    }

    #[test]
    fn who_is_not_held_back_does_not_grow() {
        let mut path = Path::new();
        path.congestion.handle_arrived(1, 100, (1, 2), Some(100_000), 0);
        assert_eq!(path.congestion.window(), LIMITS.first_bytes);
    }

    #[test]
    fn a_path_that_never_looks_empty_is_emptied_to_look() {
        let mut path = Path::new();
        path.round(100_000);
        let mut looked = false;
        for _ in 0..2_000 {
            let looking = path.round(if path.congestion.look == CongestionLook::No { 300_000 } else { 200_000 });
            looked |= looking == LIMITS.least_bytes && path.congestion.look != CongestionLook::No;
        }
        assert!(looked);
        assert_eq!(path.congestion.base_ns, 200_000, "the path is longer than it was");
    }
}
