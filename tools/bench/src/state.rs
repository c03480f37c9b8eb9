//! In which state of the machine a sample was taken, and which samples of a line count.
//!
//! The processors of a virtual machine change their places: a cache line between them takes several times as long in one
//! minute as in the next, and the library measured in the better minute would win. So the cache line is measured
//! before and after each sample, and libraries are compared by samples of one state.

use serde::Serialize;

/// Near is a cache line of at most so many times the shortest one of the run.
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
pub enum State {
    /// The cache line was near before and after.
    Near,
    /// Neither before nor after.
    Far,
    /// Nothing: it changed, or was not measured.
    Any,
}

impl State {
    pub fn text(self) -> &'static str {
        match self {
            State::Near => "near",
            State::Far => "far",
            State::Any => "any",
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

    fn state(&self, shortest_ns: f64) -> State {
        let near = |ns: f64| ns <= NEAR * shortest_ns;
        match (self.line_ns_before.map(near), self.line_ns_after.map(near)) {
            (Some(true), Some(true)) => State::Near,
            (Some(false), Some(false)) => State::Far,
            _ => State::Any,
        }
    }
}

/// The shortest cache line beside any of `samples`, infinite when none was measured.
pub fn shortest_ns<'a>(samples: impl Iterator<Item = &'a Sample>) -> f64 {
    samples.flat_map(Sample::lines_ns).fold(f64::INFINITY, f64::min)
}

/// The state in which each library has at least `turns` samples of a line, near before far; `Any` when there is none.
/// A library that dropped out, and so has fewer samples than others, has no say.
pub fn shared(libraries: &[&[Sample]], shortest_ns: f64, turns: u32) -> State {
    let most = libraries.iter().map(|l| l.len()).max().unwrap_or(0);
    let enough = |state: &State| {
        let of_state = |l: &[Sample]| l.iter().filter(|s| s.state(shortest_ns) == *state).count();
        libraries.iter().filter(|l| l.len() == most).all(|l| of_state(l) >= turns as usize)
    };
    [State::Near, State::Far].into_iter().find(enough).unwrap_or(State::Any)
}

/// Whether a line has what it needs: samples of a shared state, or of machines and lines where states do not matter.
pub fn settled(libraries: &[&[Sample]], shortest_ns: f64, turns: u32) -> bool {
    let measured = libraries.iter().any(|l| l.iter().any(|s| s.lines_ns().next().is_some()));
    !measured || shared(libraries, shortest_ns, turns) != State::Any
}

/// Those of `samples` that count when `state` is what the libraries share.
pub fn counted(samples: &[Sample], state: State, shortest_ns: f64) -> impl Iterator<Item = &Sample> {
    samples.iter().filter(move |s| state == State::Any || s.state(shortest_ns) == state)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn sample(value: f64, before: f64, after: f64) -> Sample {
        Sample { value, line_ns_before: Some(before), line_ns_after: Some(after) }
    }

    /// A sample per letter: near, far, changed on the way (both directions). The shortest line is 60 ns.
    pub fn samples(states: &str) -> Vec<Sample> {
        let one = |(turn, letter): (usize, char)| match letter {
            'n' => sample(turn as f64, 60.0, 90.0),
            'f' => sample(turn as f64, 280.0, 91.0),
            '>' => sample(turn as f64, 60.0, 280.0),
            '<' => sample(turn as f64, 280.0, 60.0),
            _ => panic!("{letter:?} is no state"),
        };
        states.chars().enumerate().map(one).collect()
    }

    fn shared_by(turns: u32, libraries: &[&str]) -> State {
        let all: Vec<_> = libraries.iter().map(|l| samples(l)).collect();
        let all: Vec<_> = all.iter().map(Vec::as_slice).collect();
        let state = shared(&all, 60.0, turns);
        assert_eq!(settled(&all, 60.0, turns), state != State::Any);
        state
    }

    #[test]
    fn on_a_quiet_machine_all_is_near_after_the_turns_asked_for() {
        assert_eq!(shared_by(3, &["nnn", "nnn", "nnn", "nnn"]), State::Near);
        assert_eq!(shared_by(3, &["nn", "nn"]), State::Any);
    }

    #[test]
    fn a_machine_that_never_was_near_is_compared_far_from_far() {
        assert_eq!(shared_by(3, &["fff", "fff"]), State::Far);
    }

    #[test]
    fn near_goes_before_far_and_waits_for_the_last_library() {
        assert_eq!(shared_by(2, &["nnff", "ffnn"]), State::Near);
        assert_eq!(shared_by(2, &["nnnf", "ffnf"]), State::Any);
        assert_eq!(shared_by(2, &["nnff", "fffn"]), State::Far);
    }

    #[test]
    fn samples_under_which_the_machine_changed_are_in_no_state() {
        assert_eq!(shared_by(2, &["><><", "nnnn"]), State::Any);
        assert_eq!(shared_by(2, &["n><n", "nnnn"]), State::Near);
    }

    #[test]
    fn one_library_alone_follows_the_same_rule() {
        assert_eq!(shared_by(2, &["fnn"]), State::Near);
        assert_eq!(shared_by(2, &["fn"]), State::Any);
    }

    #[test]
    fn a_library_that_dropped_out_is_not_waited_for() {
        assert_eq!(shared_by(3, &["nnn", "ff", ""]), State::Near);
    }

    #[test]
    fn only_samples_of_the_state_count() {
        let all = samples("nf>n<");
        let values = |state| counted(&all, state, 60.0).map(|s| s.value).collect::<Vec<_>>();
        assert_eq!(values(State::Near), [0.0, 3.0]);
        assert_eq!(values(State::Far), [1.0]);
        assert_eq!(values(State::Any), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_shorter_line_later_in_the_run_makes_far_of_what_seemed_near() {
        let far = samples("ff");
        let shortest = shortest_ns(far.iter());
        assert_eq!((shortest, far[0].state(250.0)), (91.0, State::Near));
        let all: Vec<_> = far.iter().chain(&samples("n")).cloned().collect();
        assert_eq!((shortest_ns(all.iter()), far[0].state(60.0)), (60.0, State::Far));
    }

    #[test]
    fn without_cache_lines_nothing_is_waited_for() {
        let plain = [Sample::plain(1.0), Sample::plain(2.0)];
        assert_eq!(shortest_ns(plain.iter()), f64::INFINITY);
        assert!(settled(&[&plain, &[]], f64::INFINITY, 5));
        assert_eq!(shared(&[&plain], f64::INFINITY, 2), State::Any);
        let half = [Sample { line_ns_after: None, ..sample(1.0, 60.0, 0.0) }];
        assert_eq!(half[0].state(60.0), State::Any);
    }
}
