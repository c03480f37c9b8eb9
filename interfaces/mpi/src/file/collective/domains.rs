//! Which process serves which part of the file, and when.

use super::AccessSurvey;
use crate::file::hints::{BUFFER, BUFFER_REMOTE, Hints};

/// Borders lie on multiples of this, so that two processes do not write one page.
const PAGE: u64 = 4096;
/// Processes that serve unless a hint says otherwise.
const MOST: u32 = 8;
/// Bytes of a file that are worth one more of them.
const WORTH: u64 = 64 << 10;

/// The range of the file that an access touches, cut in domains of equal length, one for each aggregator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    start: u64,
    end: u64,
    /// Bytes of each domain.
    length: u64,
    /// Bytes of each window.
    buffer: u64,
    aggregators: u32,
    ranks: u32,
    pub rounds: u64,
}

impl Domains {
    /// One process at least has bytes.
    pub fn new(all: &[AccessSurvey], hints: &Hints, ranks: u32) -> Self {
        let with_data = || all.iter().filter(|survey| survey.bytes > 0);
        let start = with_data().map(|survey| survey.first).min().unwrap_or(0) / PAGE * PAGE;
        let end = with_data().map(|survey| survey.end).max().unwrap_or(0).max(start + 1);
        let worth = (end - start).div_ceil(WORTH).min(u64::from(MOST)) as u32;
        let aggregators = hints.nodes.unwrap_or(worth).clamp(1, ranks);
        let length = (end - start).div_ceil(u64::from(aggregators)).next_multiple_of(PAGE);
        let chosen = if all.iter().any(|survey| survey.remote) { BUFFER_REMOTE } else { BUFFER };
        let buffer = hints.buffer.unwrap_or(chosen).next_multiple_of(PAGE).min(length);
        Self { start, end, length, buffer, aggregators, ranks, rounds: length.div_ceil(buffer) }
    }

    /// The rank of an aggregator; they are spread evenly.
    fn rank(&self, aggregator: u32) -> u32 {
        (u64::from(aggregator) * u64::from(self.ranks) / u64::from(self.aggregators)) as u32
    }

    /// First byte and the byte after the last of what an aggregator serves in a round.
    fn window(&self, aggregator: u32, round: u64) -> (u64, u64) {
        let first = self.start.saturating_add(u64::from(aggregator) * self.length).min(self.end);
        let last = first.saturating_add(self.length).min(self.end);
        let start = first.saturating_add(round * self.buffer).min(last);
        (start, start.saturating_add(self.buffer).min(last))
    }

    /// The windows of a round with the ranks that serve them, in the order of the file.
    pub fn windows(&self, round: u64) -> impl Iterator<Item = (u32, (u64, u64))> {
        (0..self.aggregators).map(move |aggregator| (self.rank(aggregator), self.window(aggregator, round)))
    }

    /// The window of one rank; empty if it serves none.
    pub fn window_of(&self, rank: u32, round: u64) -> (u64, u64) {
        self.windows(round).find(|window| window.0 == rank).map_or((0, 0), |window| window.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_of_all_rounds_are_the_range_once() {
        for (first, end, ranks, nodes, buffer) in
            [(5, 6, 4, None, 1 << 12), (100_000, 1_234_567, 3, Some(2), 1 << 14), (0, 10 << 20, 5, None, 4 << 20)]
        {
            let all = [AccessSurvey { first, end, bytes: 1, piece: 1, ..AccessSurvey::NOTHING }];
            let mut hints = Hints::default();
            (hints.nodes, hints.buffer) = (nodes, Some(buffer));
            let domains = Domains::new(&all, &hints, ranks);
            let rounds = (0..domains.rounds).flat_map(|round| domains.windows(round).collect::<Vec<_>>());
            let mut windows: Vec<(u64, u64)> = rounds.map(|window| window.1).filter(|w| w.0 < w.1).collect();
            windows.sort_unstable();
            assert!(windows[0].0 <= first && windows.last().unwrap().1 == end);
            assert!(windows.windows(2).all(|pair| pair[0].1 == pair[1].0), "{windows:?}");
            assert!((0..domains.rounds).all(|round| domains.windows(round).all(|w| w.0 < ranks)));
        }
    }
}
