//! How long a datagram and its acknowledgement take (RFC 6298, in nanoseconds).

/// The clocks of callers are no finer than this.
const GRANULARITY_NS: u64 = 1_000;
/// An acknowledgement that did not come is waited for at most so many times longer.
const MOST_DOUBLINGS: u32 = 16;

pub struct Rtt {
    smoothed_ns: u64,
    variation_ns: u64,
    latest_ns: u64,
    sampled: bool,
    /// Eighths of the round trip that a datagram may be overtaken by; grows when one was given up that then arrived.
    reordering: u64,
}

/// Eighths of the round trip with which the tolerance of overtaking begins, and the most of them.
const FIRST_REORDERING: u64 = 2;
const MOST_REORDERING: u64 = 16;

impl Rtt {
    pub fn new(first_ns: u64) -> Self {
        Self {
            smoothed_ns: first_ns,
            variation_ns: first_ns / 2,
            latest_ns: first_ns,
            sampled: false,
            reordering: FIRST_REORDERING,
        }
    }

    #[inline]
    pub fn handle_sample(&mut self, sample_ns: u64) {
        let sample_ns = sample_ns.max(1);
        self.latest_ns = sample_ns;
        if !self.sampled {
            self.sampled = true;
            (self.smoothed_ns, self.variation_ns) = (sample_ns, sample_ns / 2);
            return;
        }
        let distance = self.smoothed_ns.abs_diff(sample_ns);
        self.variation_ns = (3 * self.variation_ns + distance) / 4;
        self.smoothed_ns = (7 * self.smoothed_ns + sample_ns) / 8;
    }

    pub fn smoothed_ns(&self) -> u64 {
        self.smoothed_ns
    }

    /// A datagram that was sent before one that has been acknowledged counts as lost after this time.
    #[inline]
    pub fn lost_after_ns(&self) -> u64 {
        let round = self.smoothed_ns.max(self.latest_ns);
        round + (round / 8 * self.reordering).max(GRANULARITY_NS)
    }

    /// A datagram was given up that had only been overtaken.
    pub fn handle_overtaken(&mut self) {
        self.reordering = (self.reordering * 2).min(MOST_REORDERING);
    }

    /// A long time without overtaking.
    pub fn forget_overtaken(&mut self) {
        self.reordering = self.reordering.saturating_sub(1).max(FIRST_REORDERING);
    }

    /// How long to wait for any acknowledgement before asking for one, after `doublings` questions without answer.
    #[inline]
    pub fn probe_after_ns(&self, ack_delay_ns: u64, doublings: u32, within_ns: (u64, u64)) -> u64 {
        let once = self.smoothed_ns + (4 * self.variation_ns).max(GRANULARITY_NS) + ack_delay_ns;
        (once.max(within_ns.0) << doublings.min(MOST_DOUBLINGS)).min(within_ns.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_replaces_the_guess() {
        let mut rtt = Rtt::new(1_000_000);
        rtt.handle_sample(80_000);
        assert_eq!((rtt.smoothed_ns, rtt.variation_ns), (80_000, 40_000));
    }

    #[test]
    fn steady_samples_leave_no_variation() {
        let mut rtt = Rtt::new(1_000_000);
        (0..100).for_each(|_| rtt.handle_sample(80_000));
        assert_eq!(rtt.smoothed_ns, 80_000);
        assert!(rtt.variation_ns < 10);
        assert_eq!(rtt.probe_after_ns(20_000, 0, (0, u64::MAX)), 101_000);
    }

    #[test]
    fn probes_come_more_and_more_rarely_up_to_a_bound() {
        let rtt = Rtt::new(100_000);
        let after = |doublings| rtt.probe_after_ns(0, doublings, (500_000, 100_000_000));
        assert_eq!([after(0), after(1), after(3)], [500_000, 1_000_000, 4_000_000]);
        assert_eq!(after(40), 100_000_000);
    }

    #[test]
    fn overtaking_is_tolerated_once_it_has_been_seen() {
        let mut rtt = Rtt::new(80_000);
        let before = rtt.lost_after_ns();
        rtt.handle_overtaken();
        assert!(rtt.lost_after_ns() > before);
        (0..100).for_each(|_| rtt.forget_overtaken());
        assert_eq!(rtt.lost_after_ns(), before);
    }
}
