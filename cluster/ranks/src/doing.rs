//! What a rank does, in words.

use crate::process::Cpu;
use crate::read::{RankStage, SeenRank};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// What a rank does, and how long it has been blocked there.
#[derive(Clone, Debug, PartialEq)]
pub struct Doing {
    pub words: String,
    pub blocked: Option<Duration>,
}

impl SeenRank {
    /// What the rank does; with `peer`, with whom.
    pub fn words(&self, peer: bool) -> String {
        match (self.stage, &self.blocked) {
            (RankStage::Absent, _) => "not joined yet".into(),
            (RankStage::Left, _) => format!("left ({})", self.left_by),
            (RankStage::Joined, _) if !self.is_alive() => "died".into(),
            (RankStage::Joined, Some(blocked)) => format!("blocked in {}", blocked.text(peer)),
            (RankStage::Joined, None) if self.counters.is_empty() => {
                "shows no status page (WEFT_STATUS=off, or another version of Weft)".into()
            }
            (RankStage::Joined, None) if self.cpu == Cpu::Running => "computing".into(),
            (RankStage::Joined, None) => "not waiting for a message".into(),
        }
    }

    pub fn doing(&self) -> Doing {
        let blocked = self.blocked.as_ref().filter(|_| self.is_alive());
        let blocked = blocked.map(|blocked| Duration::from_secs_f64(blocked.seconds));
        Doing { words: self.words(true), blocked }
    }
}

impl Doing {
    /// What ranks do, a line for those that do the same, in the order of their first. Of more than `most` lines the
    /// last one counts the ranks that are left.
    pub fn lines(ranks: &BTreeMap<u32, Self>, most: usize) -> Vec<String> {
        let mut groups: Vec<(&str, Vec<u32>, Option<Duration>)> = Vec::new();
        for (rank, Self { words, blocked }) in ranks {
            match groups.iter_mut().find(|(same, ..)| same == words) {
                Some((_, members, longest)) => {
                    members.push(*rank);
                    *longest = (*longest).max(*blocked);
                }
                None => groups.push((words, vec![*rank], *blocked)),
            }
        }
        let shown = if groups.len() > most { most - 1 } else { most };
        let others: usize = groups.iter().skip(shown).map(|(_, members, _)| members.len()).sum();
        let line = |(words, members, longest): &(&str, Vec<u32>, Option<Duration>)| {
            let [many, up_to] = if members.len() > 1 { ["s", "up to "] } else { [""; 2] };
            let time =
                longest.map(|longest| format!(" for {up_to}{}", seconds(longest.as_secs_f64()))).unwrap_or_default();
            format!("rank{many} {}: {words}{time}", list(members))
        };
        let rest = (others > 0).then(|| format!("and {others} others"));
        groups.iter().take(shown).map(line).chain(rest).collect()
    }
}

/// Numbers in ascending order, as ranges: `0-3,7`.
pub fn list(ranks: &[u32]) -> String {
    let mut text = String::new();
    for run in ranks.chunk_by(|one, next| one + 1 == *next) {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match run {
            [one] => write!(text, "{comma}{one}"),
            _ => write!(text, "{comma}{}-{}", run[0], run[run.len() - 1]),
        };
    }
    text
}

/// A time that may be short.
pub fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { duration(Duration::from_secs_f64(seconds)) }
}

/// A time in one or two units.
pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        s @ ..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doing(words: &str, blocked: Option<f64>) -> Doing {
        Doing { words: words.into(), blocked: blocked.map(Duration::from_secs_f64) }
    }

    #[test]
    fn ranks_that_do_the_same_share_a_line() {
        let all = [
            doing("blocked in MPI_Recv from rank 3, tag 7", Some(58.0)),
            doing("blocked in MPI_Barrier", Some(2.0)),
            doing("computing", None),
            doing("blocked in MPI_Barrier", Some(3.5)),
        ];
        let ranks: BTreeMap<u32, Doing> = (0..).zip(all).collect();
        let expected = [
            "rank 0: blocked in MPI_Recv from rank 3, tag 7 for 58 s",
            "ranks 1,3: blocked in MPI_Barrier for up to 3.5 s",
            "rank 2: computing",
        ];
        assert_eq!(Doing::lines(&ranks, 3), expected);
        assert_eq!(Doing::lines(&ranks, 2)[1], "and 3 others");
    }

    #[test]
    fn numbers_and_times_are_short() {
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!([seconds(0.04), seconds(75.0), seconds(7300.0)], ["0.0 s", "1 min 15 s", "2 h 1 min"]);
    }
}
