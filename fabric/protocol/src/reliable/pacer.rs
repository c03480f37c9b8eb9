//! Spreads what a window allows over the round trip, so that it does not arrive in one heap at a short queue.

pub struct Pacer {
    /// Bytes that may go at once.
    burst: f64,
    /// Bytes that may go now; below zero after a datagram that was larger.
    allowed: f64,
    bytes_per_ns: f64,
    at_ns: u64,
}

impl Pacer {
    pub fn new(burst_bytes: u64, now_ns: u64) -> Self {
        let burst = burst_bytes as f64;
        Self { burst, allowed: burst, bytes_per_ns: f64::INFINITY, at_ns: now_ns }
    }

    /// Bytes that may go at once from now on.
    pub fn set_burst(&mut self, burst_bytes: u64) {
        self.burst = burst_bytes as f64;
    }

    /// A window and the round trip in which it goes; a quarter more is allowed, and twice as much while looking for the
    /// window.
    pub fn set_rate(&mut self, window_bytes: u64, round_ns: u64, slow_start: bool) {
        let gain = if slow_start { 2.0 } else { 1.25 };
        self.bytes_per_ns = window_bytes as f64 / round_ns.max(1) as f64 * gain;
    }

    #[inline]
    pub fn may_send(&mut self, now_ns: u64) -> bool {
        self.allowed > 0.0 || {
            let passed_ns = now_ns.saturating_sub(self.at_ns);
            self.at_ns = self.at_ns.max(now_ns);
            if passed_ns > 0 {
                self.allowed = (self.allowed + passed_ns as f64 * self.bytes_per_ns).min(self.burst);
            }
            self.allowed > 0.0
        }
    }

    #[inline]
    pub fn handle_sent(&mut self, bytes: usize) {
        self.allowed -= bytes as f64;
    }

    /// When the next datagram may go, once [`Self::may_send`] has said no.
    pub fn ready_ns(&self) -> u64 {
        self.at_ns + (-self.allowed / self.bytes_per_ns) as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let mut pacer = Pacer::new(3_000, 0);
        pacer.set_rate(8_000, 10_000, false);
        let (mut now_ns, mut sent_ns) = (0, Vec::new());
        for _ in 0..6 {
            while !pacer.may_send(now_ns) {
                now_ns = pacer.ready_ns();
            }
            pacer.handle_sent(1_000);
            sent_ns.push(now_ns / 100);
        }
        assert_eq!(sent_ns, [0, 0, 0, 0, 10, 20]);
    }
}
