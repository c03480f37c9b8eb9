//! A part of what the ranks of a job have written.

use serde::{Deserialize, Serialize};

/// Pieces as the launcher has put them together, and where they stand among all that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPart {
    /// Where they begin: later than was asked where what came before is not kept any more.
    pub begin: u64,
    /// Where they end: what comes next is asked for from here on.
    pub next: u64,
    /// Where all that there is so far ends.
    pub end: u64,
    /// The job is over: no more will come.
    pub is_over: bool,
    /// How many ranks it has, or 0 where that is not known.
    #[serde(default)]
    pub ranks: usize,
    /// A character for each byte, with its number.
    text: String,
}

impl LogPart {
    /// Of these bytes, which begin there. `end` and `is_over` as above.
    pub fn new(begin: u64, bytes: &[u8], end: u64, is_over: bool) -> Self {
        let text = bytes.iter().map(|byte| char::from(*byte)).collect();
        Self { begin, next: begin + bytes.len() as u64, end, is_over, ranks: 0, text }
    }

    /// The same of a job with so many ranks.
    pub fn of_ranks(self, ranks: usize) -> Self {
        Self { ranks, ..self }
    }

    /// What is no byte is none.
    pub fn bytes(&self) -> Vec<u8> {
        self.text.chars().filter_map(|byte| u8::try_from(byte).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_kind_come_through() {
        let all: Vec<u8> = (0..=255).collect();
        let part = LogPart::new(7, &all, 300, true);
        assert_eq!((part.next, part.bytes()), (263, all));
        let line = serde_json::to_string(&part).expect("JSON");
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<LogPart>(&line).expect("read"), part);
    }
}
