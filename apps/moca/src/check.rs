//! What is known of the result: the first cluster is what one process alone finds, bit for bit; no pair is lost; and a
//! pair that is alone escapes with the probability of Onsager's theory.

use crate::physics::{ONSAGER, escape};
use crate::random::GlobalRandom;
use crate::simulation::{ClusterTally, IonSimulation};
use weft_app_objects::AppAnswer;

/// So many pairs are followed one by one, from this distance on.
const PAIRS: u32 = 500;
const DISTANCE: f64 = ONSAGER / 2.0;

/// So many times the usual deviation may the mean differ; the numbers are always the same, so it always does or never.
const DEVIATIONS: f64 = 3.0;

pub fn run(
    answer: &mut AppAnswer,
    initial: &IonSimulation,
    pairs: usize,
    tallies: &(ClusterTally, Option<ClusterTally>),
) {
    let (all, first) = tallies;
    let mut alone = initial.clone();
    alone.run_until(|simulation| simulation.tally.clusters > 0);
    answer.check(first.as_ref() == Some(&alone.tally), || "the first cluster is not that of one process".to_owned());
    let counted = all.curve.iter().sum::<u64>() + all.survivors;
    let right = u64::from(all.clusters) * pairs as u64;
    answer.check(counted == right, || format!("{counted} pairs at the end of {right}"));
    let (found, known) = (mean_escape(), escape(DISTANCE));
    let deviation = (known * (1.0 - known) / f64::from(PAIRS)).sqrt();
    answer.check((found - known).abs() <= DEVIATIONS * deviation, || {
        format!("a pair alone escapes with a probability of {found:.3}, and should with {known:.3}")
    });
}

fn mean_escape() -> f64 {
    let mut pairs = IonSimulation::new(vec![[0.0; 3]], Some(DISTANCE), PAIRS, GlobalRandom::start(1));
    pairs.run_until(|_| false);
    pairs.tally.escaped / f64::from(PAIRS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_are_alone_escape_as_onsager_says() {
        let deviation = (escape(DISTANCE) * (1.0 - escape(DISTANCE)) / f64::from(PAIRS)).sqrt();
        let found = mean_escape();
        assert!((found - escape(DISTANCE)).abs() < DEVIATIONS * deviation, "{found}");
    }
}
