//! What a line must reach, and whether it does.

use crate::format::{Unit, digits, figure};
use crate::machine::{CORES, CROWD};
use serde::Serialize;

/// A bar, always against something measured in the same run, or an absolute share that no machine changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bar {
    /// Times the best peer: at most where less is better, at least where more is.
    Best(f64),
    /// Like `Best`, wished for but not demanded.
    Stretch(f64),
    /// At most the cache-line time plus so many seconds.
    CacheLinePlus(f64),
    /// At most so many times the switch limit: ranks per core less one, each one context switch.
    Switches(f64),
    /// At most this value.
    AtMost(f64),
}

/// What bars are held against.
#[derive(Clone, Copy, Debug, Default)]
pub struct Against {
    pub best_peer: Option<f64>,
    pub cache_line_s: Option<f64>,
    pub switch_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Pass,
    Miss,
    /// Nothing to hold against, or nothing measured.
    Unknown,
}

impl Bar {
    /// The value that must be reached, `None` when what it refers to was not measured.
    pub fn threshold(self, against: &Against) -> Option<f64> {
        match self {
            Bar::Best(factor) | Bar::Stretch(factor) => against.best_peer.map(|b| factor * b),
            Bar::CacheLinePlus(extra) => against.cache_line_s.map(|c| c + extra),
            Bar::Switches(factor) => against.switch_s.map(|s| factor * f64::from(CROWD / CORES - 1) * s),
            Bar::AtMost(value) => Some(value),
        }
    }

    pub fn verdict(self, ours: Option<f64>, unit: Unit, against: &Against) -> Verdict {
        let (Some(ours), Some(threshold)) = (ours, self.threshold(against)) else { return Verdict::Unknown };
        let higher_is_better = unit.higher_is_better() && matches!(self, Bar::Best(_) | Bar::Stretch(_));
        let met = if higher_is_better { ours >= threshold } else { ours <= threshold };
        if met { Verdict::Pass } else { Verdict::Miss }
    }

    /// As the table prints it: `<= 0.85 best`.
    pub fn text(self, unit: Unit) -> String {
        let relation = if unit.higher_is_better() { ">=" } else { "<=" };
        match self {
            Bar::Best(1.0) => format!("{relation} best"),
            Bar::Best(factor) => format!("{relation} {factor} best"),
            Bar::Stretch(factor) => format!("wish {relation} {factor} best"),
            Bar::CacheLinePlus(extra) => format!("<= line + {} ns", digits(extra * 1e9).trim_end_matches(".0")),
            Bar::Switches(factor) => format!("<= {factor} x switch limit"),
            Bar::AtMost(value) => format!("<= {}", figure(value, unit)),
        }
    }

    pub fn demanded(self) -> bool {
        !matches!(self, Bar::Stretch(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGAINST: Against = Against { best_peer: Some(100e-9), cache_line_s: Some(60e-9), switch_s: Some(2e-6) };

    #[test]
    fn less_is_better_for_times_and_more_for_rates() {
        let bar = Bar::Best(0.85);
        assert_eq!(bar.verdict(Some(85e-9), Unit::Seconds, &AGAINST), Verdict::Pass);
        assert_eq!(bar.verdict(Some(86e-9), Unit::Seconds, &AGAINST), Verdict::Miss);
        let rates = Against { best_peer: Some(10e6), ..AGAINST };
        assert_eq!(Bar::Best(1.3).verdict(Some(13e6), Unit::PerSecond, &rates), Verdict::Pass);
        assert_eq!(Bar::Best(1.3).verdict(Some(12.9e6), Unit::PerSecond, &rates), Verdict::Miss);
    }

    #[test]
    fn limits_of_the_machine_are_bars() {
        assert_eq!(Bar::CacheLinePlus(70e-9).verdict(Some(129e-9), Unit::Seconds, &AGAINST), Verdict::Pass);
        assert_eq!(Bar::CacheLinePlus(70e-9).verdict(Some(131e-9), Unit::Seconds, &AGAINST), Verdict::Miss);
        // Four ranks per core are three switches of 2 us, twice that is 12 us.
        assert_eq!(Bar::Switches(2.0).verdict(Some(11.9e-6), Unit::Seconds, &AGAINST), Verdict::Pass);
        assert_eq!(Bar::Switches(2.0).verdict(Some(12.1e-6), Unit::Seconds, &AGAINST), Verdict::Miss);
    }

    #[test]
    fn without_a_peer_or_without_us_nothing_is_claimed() {
        assert_eq!(Bar::Best(1.0).verdict(Some(1.0), Unit::Seconds, &Against::default()), Verdict::Unknown);
        assert_eq!(Bar::AtMost(1.0).verdict(None, Unit::Percent, &AGAINST), Verdict::Unknown);
    }
}
