//! Medians and spread of the few samples a line has (one per turn).

use crate::format::{Unit, figure};

/// What the table shows of a set of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Summary {
    /// Summary of `samples`, `None` when there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        };
        Some(Self { median, min, max })
    }

    /// Half of the whole range as a share of the median, in per cent; 0 for a median of 0.
    pub fn spread_percent(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { 50.0 * (self.max - self.min) / self.median }
    }

    /// The median, and half of the range.
    pub fn text(&self, unit: Unit) -> String {
        format!("{} ±{:.0}%", figure(self.median, unit), self.spread_percent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Summary::of(&[7.0]).unwrap(), Summary { median: 7.0, min: 7.0, max: 7.0 });
    }

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn one_outlier_moves_the_spread_and_not_the_median() {
        let s = Summary::of(&[10.0, 10.0, 30.0, 10.0, 10.0]).unwrap();
        assert_eq!((s.median, s.spread_percent()), (10.0, 100.0));
    }
}
