//! In which state of the machine a sample was taken, and which samples of a line count.
//!
//! The processors of a virtual machine change their places: a cache line between them takes several times as long in
//! one minute as in the next, and the library measured in the better minute would win. So the cache line is measured
//! before and after each sample, and libraries are compared by samples of one state.

use crate::format::digits;
use serde::Serialize;

/// Cache lines of one state differ at most by this factor.
pub const NEAR: f64 = 1.5;
/// A line whose libraries have too few samples in one state gets more turns, until it has had so many times the turns
/// asked for.
pub const MOST: u32 = 3;

/// What a library reached in one turn (start-up: several), in base units of the line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    pub value: f64,
    /// The cache line one way between the two cores, right before and right after. `None` where ranks do not sit on one
    /// core each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_ns_before: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_ns_after: Option<f64>,
}

/// What the samples that count have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// Cache lines about as short as the shortest of the run.
    Near,
    /// Cache lines about as long as each other.
    Far,
    /// Nothing: the cache line changed, or was not measured.
    Any,
}

impl CacheState {
    fn text(self) -> &'static str {
        match self {
            CacheState::Near => "near",
            CacheState::Far => "far",
            CacheState::Any => "any",
        }
    }
}

impl Sample {
    /// Without cache line.
    pub fn plain(value: f64) -> Self {
        Self { value, line_ns_before: None, line_ns_after: None }
    }

    pub fn lines_ns(&self) -> impl Iterator<Item = f64> {
        self.line_ns_before.into_iter().chain(self.line_ns_after)
    }

    /// The longer one of the two cache lines.
    fn longer_ns(&self) -> Option<f64> {
        self.line_ns_before.zip(self.line_ns_after).map(|(before, after)| before.max(after))
    }

    /// Whether both cache lines are of the state that begins at `from_ns`.
    fn is_in(&self, from_ns: f64) -> bool {
        self.longer_ns().is_some_and(|ns| ns <= NEAR * from_ns) && self.lines_ns().all(|ns| ns >= from_ns)
    }
}

/// The shortest cache line that a sample had on both sides: one outlier is none. Infinite when none was measured.
pub fn shortest_ns<'a>(samples: impl Iterator<Item = &'a Sample>) -> f64 {
    samples.filter_map(Sample::longer_ns).fold(f64::INFINITY, f64::min)
}

/// Where the nearest state begins of which each library has at least `turns` samples of a line, if there is one. A
/// library that dropped out, and so has fewer samples than others, has no say.
pub fn shared_from_ns(libraries: &[&[Sample]], turns: u32) -> Option<f64> {
    let most = libraries.iter().map(|l| l.len()).max()?;
    let enough = |from_ns: &f64| {
        let in_state = |l: &[Sample]| l.iter().filter(|s| s.is_in(*from_ns)).count();
        libraries.iter().filter(|l| l.len() == most).all(|l| in_state(l) >= turns as usize)
    };
    libraries.iter().copied().flatten().flat_map(Sample::lines_ns).filter(enough).min_by(f64::total_cmp)
}

/// The name of the state that begins at `from_ns`, in a run with this shortest line.
pub fn named(from_ns: Option<f64>, shortest_ns: f64) -> CacheState {
    match from_ns {
        None => CacheState::Any,
        Some(from) if from <= NEAR * shortest_ns => CacheState::Near,
        Some(_) => CacheState::Far,
    }
}

/// Whether a line needs no more turns: it has samples of a shared state, or none for which the state was measured.
pub fn settled(libraries: &[&[Sample]], turns: u32) -> bool {
    let mut lines = libraries.iter().copied().flatten().flat_map(Sample::lines_ns);
    lines.next().is_none() || shared_from_ns(libraries, turns).is_some()
}

/// Those of `samples` that count: the ones of the shared state, all if there is none.
pub fn counted(samples: &[Sample], from_ns: Option<f64>) -> impl Iterator<Item = &Sample> {
    samples.iter().filter(move |s| from_ns.is_none_or(|from| s.is_in(from)))
}

/// How many samples of each library count, and in which state they were taken; `None` where there is none.
pub fn counts_text(counts: impl Iterator<Item = usize>, state: CacheState, from_ns: Option<f64>) -> Option<String> {
    let counts: Vec<usize> = counts.collect();
    let (min, max) = (counts.iter().min()?, counts.iter().max()?);
    let number = if min < max { format!("{min}-{max}") } else { min.to_string() };
    let from = from_ns.map_or(String::new(), |ns| format!(", {ns:.0} ns"));
    Some(format!("{number} {}{from}", state.text()))
}

/// What [`counts_text`] means in a column of this name.
pub fn legend(column: &str, shortest_ns: Option<f64>) -> Option<String> {
    let bound = digits(NEAR * shortest_ns?);
    Some(format!(
        "{column}: how many count, beside cache lines of the time given to {NEAR} times that; \
         near: at most {bound} ns; far: more; any: all samples"
    ))
}

/// That some of what is measured took more turns than were asked for.
pub fn more_turns(asked: u32, taken: u32, what: &str) -> String {
    if taken > asked { format!(", for some {what} up to {taken}") } else { String::new() }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn sample(value: f64, before: f64, after: f64) -> Sample {
        Sample { value, line_ns_before: Some(before), line_ns_after: Some(after) }
    }

    /// A sample per letter: near, far, changed on the way (both directions), nearer than ever for a moment.
    fn samples(states: &str) -> Vec<Sample> {
        let one = |(turn, letter): (usize, char)| match letter {
            'n' => sample(turn as f64, 60.0, 66.0),
            'f' => sample(turn as f64, 290.0, 262.0),
            '>' => sample(turn as f64, 60.0, 280.0),
            '<' => sample(turn as f64, 280.0, 60.0),
            'o' => sample(turn as f64, 36.0, 60.0),
            _ => panic!("{letter:?} is no state"),
        };
        states.chars().enumerate().map(one).collect()
    }

    fn shared_by(turns: u32, libraries: &[&str]) -> CacheState {
        let all: Vec<_> = libraries.iter().map(|l| samples(l)).collect();
        let all: Vec<_> = all.iter().map(Vec::as_slice).collect();
        let from_ns = shared_from_ns(&all, turns);
        assert_eq!(settled(&all, turns), from_ns.is_some());
        named(from_ns, 60.0)
    }

    #[test]
    fn on_a_quiet_machine_all_is_near_after_the_turns_asked_for() {
        assert_eq!(shared_by(3, &["nnn", "nnn", "nnn", "nnn"]), CacheState::Near);
        assert_eq!(shared_by(3, &["nn", "nn"]), CacheState::Any);
    }

    #[test]
    fn a_machine_that_never_was_near_is_compared_far_from_far() {
        assert_eq!(shared_by(3, &["fff", "fff"]), CacheState::Far);
    }

    #[test]
    fn near_goes_before_far_and_waits_for_the_last_library() {
        assert_eq!(shared_by(2, &["nnff", "ffnn"]), CacheState::Near);
        assert_eq!(shared_by(2, &["nnnf", "ffnf"]), CacheState::Any);
        assert_eq!(shared_by(2, &["nnff", "fffn"]), CacheState::Far);
    }

    #[test]
    fn samples_under_which_the_machine_changed_are_in_no_state() {
        assert_eq!(shared_by(2, &["><><", "nnnn"]), CacheState::Any);
        assert_eq!(shared_by(2, &["n><n", "nnnn"]), CacheState::Near);
    }

    #[test]
    fn one_library_alone_follows_the_same_rule() {
        assert_eq!(shared_by(2, &["fnn"]), CacheState::Near);
        assert_eq!(shared_by(2, &["fn"]), CacheState::Any);
    }

    #[test]
    fn a_library_that_dropped_out_is_not_waited_for() {
        assert_eq!(shared_by(3, &["nnn", "ff", ""]), CacheState::Near);
    }

    #[test]
    fn one_line_that_is_shorter_than_all_others_costs_its_sample_only() {
        assert_eq!(shared_by(3, &["nnn", "non"]), CacheState::Any);
        assert_eq!(shared_by(3, &["nnnn", "nonn"]), CacheState::Near);
        assert_eq!(shortest_ns(samples("fonf").iter()), 60.0);
    }

    #[test]
    fn samples_within_the_factor_are_one_state_and_the_next_one_above_is_another() {
        let all = [sample(1.0, 60.0, 90.0), sample(2.0, 61.0, 91.0)];
        assert_eq!(shared_from_ns(&[&all[..1]], 1), Some(60.0));
        assert_eq!(shared_from_ns(&[&all], 2), None);
    }

    #[test]
    fn only_samples_of_the_state_count() {
        let all = samples("nf>n<");
        let values = |from_ns| counted(&all, from_ns).map(|s| s.value).collect::<Vec<_>>();
        assert_eq!(values(Some(60.0)), [0.0, 3.0]);
        assert_eq!(values(Some(262.0)), [1.0]);
        assert_eq!(values(None), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn near_is_near_beside_the_rest_of_the_run() {
        assert_eq!([60.0, 250.0].map(|run| named(Some(262.0), run)), [CacheState::Far, CacheState::Near]);
    }

    #[test]
    fn without_cache_lines_nothing_is_waited_for() {
        let plain = [Sample::plain(1.0), Sample::plain(2.0)];
        assert_eq!(shortest_ns(plain.iter()), f64::INFINITY);
        assert!(settled(&[&plain, &[]], 5) && settled(&[], 5));
        assert_eq!(shared_from_ns(&[&plain], 2), None);
        let half = Sample { line_ns_after: None, ..sample(1.0, 60.0, 0.0) };
        assert!(!half.is_in(60.0));
    }
}
