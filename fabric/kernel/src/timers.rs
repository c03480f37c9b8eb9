//! Times at which something is due.

use std::time::Instant;

/// One time for each of a few names. What is due first by the order of the names comes first.
pub struct Timers<K>(Vec<(K, Instant)>);

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord> Timers<K> {
    /// Sets a timer. One that runs already keeps its time.
    pub fn start(&mut self, name: K, at: Instant) {
        if let Err(place) = self.0.binary_search_by_key(&name, |timer| timer.0) {
            self.0.insert(place, (name, at));
        }
    }

    pub fn stop(&mut self, name: K) {
        self.0.retain(|timer| timer.0 != name);
    }

    /// A timer whose time has come, which runs no more.
    pub fn take_due(&mut self, now: Instant) -> Option<K> {
        let at = self.0.iter().position(|timer| timer.1 <= now)?;
        Some(self.0.remove(at).0)
    }

    /// When the next is due.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().map(|timer| timer.1).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_due_comes_once_and_a_timer_that_runs_keeps_its_time() {
        let now = Instant::now();
        let in_ms = |ms| now + Duration::from_millis(ms);
        let mut timers = Timers::default();
        assert_eq!((timers.next(), timers.take_due(now)), (None, None));
        for (name, ms) in [('b', 1), ('a', 2), ('c', 9), ('b', 7)] {
            timers.start(name, in_ms(ms));
        }
        assert_eq!((timers.next(), timers.take_due(now)), (Some(in_ms(1)), None));
        timers.stop('c');
        assert_eq!([0; 3].map(|_| timers.take_due(in_ms(10))), [Some('a'), Some('b'), None]);
        assert_eq!(timers.next(), None);
    }
}
