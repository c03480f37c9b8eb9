//! What the time is on platform 0, by which clocks are compared.

use crate::labels::{MessageLabel, MessagePurpose, waiting};
use crate::message::{Content, words_of};
use crate::shared::time::PandaTime;
use crate::takers;
use crate::world::{PandaWorld, WORLD};
use weft_fabric::Peer;

/// Samples whose way there and back took more than so many times the shortest one's do not count.
const SLOW: i128 = 2;

/// One comparison: how far this clock is ahead, and how long it took, nanoseconds.
fn sample(call: &'static str) -> (i128, i128) {
    let before = PandaTime::now().nanoseconds();
    let number = WORLD.enter().ask_time();
    let said = takers::wait(waiting(call, Some(Peer(0))), |world| world.calls.take(number));
    let after = PandaTime::now().nanoseconds();
    let there = said.ok().and_then(|content| content.bytes().try_into().ok()).map_or(before, i128::from_le_bytes);
    ((before + after) / 2 - there, after - before)
}

impl PandaWorld {
    /// Answers who asks what the time is.
    pub fn answer_time(&mut self, from: Peer, number: u32) {
        let bytes = PandaTime::now().nanoseconds().to_le_bytes();
        let content = Content { words: words_of(&bytes), length: bytes.len() };
        self.give(from, MessageLabel { what: MessagePurpose::Reply, beside: number }, content);
    }

    fn ask_time(&mut self) -> u32 {
        let number = self.calls.begin(Peer(0));
        let content = Content::default();
        self.give(Peer(0), MessageLabel { what: MessagePurpose::Clock, beside: number }, content);
        number
    }
}

/// How far this platform's clock is ahead of that of platform 0, the standard deviation of that, and of how many
/// samples: those that did not take long. Nanoseconds.
pub fn compare(call: &'static str, samples: usize) -> (i128, f64, usize) {
    let all: Vec<_> = (0..samples).map(|_| sample(call)).collect();
    let shortest = all.iter().map(|(_, took)| *took).min().unwrap_or(0);
    let good: Vec<i128> = all.iter().filter(|(_, took)| *took <= SLOW * shortest).map(|(shift, _)| *shift).collect();
    let count = good.len().max(1) as i128;
    let mean = good.iter().sum::<i128>() / count;
    let squares: f64 = good.iter().map(|shift| ((shift - mean) as f64).powi(2)).sum();
    (mean, (squares / count as f64).sqrt(), good.len())
}
