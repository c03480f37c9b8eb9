//! What a connection between hosts goes through once its ends have met, as its rendezvous sees it: pure.

const MS: u64 = 1_000_000;
/// Until parcels have come by lane both ways.
pub const PROVING_NS: u64 = 2_000 * MS;
/// Until the other host has confirmed everything that a program left.
pub const LEAVING_NS: u64 = 20_000 * MS;
/// So long the other host's last questions are answered.
const LINGERING_NS: u64 = 1_000 * MS;
/// Until a connection is given up on which something is unconfirmed, and nothing has been confirmed since.
pub const SILENCE_NS: u64 = 60_000 * MS;
/// So long a program may see by itself that its peer wants bytes back.
const PATIENCE_NS: u64 = 2 * MS;
/// A program that does not is called so often.
const CALL_AGAIN_NS: u64 = 20 * MS;

/// What is to be seen of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionFacts {
    pub is_proven: bool,
    /// The other host knows everything, or its side is over.
    pub is_settled: bool,
    pub calls_program: bool,
    /// Another number whenever the two hosts have come further.
    pub progress: u64,
    /// Nothing comes or goes by the lane any more.
    pub has_failed: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    /// The program gets its mail.
    Tell,
    /// The program is called by a signal.
    Call,
    /// The program has never heard of it, and never will.
    GiveUp,
    /// The other host does not answer any more, or the lane has failed.
    Reset,
    /// Nothing is left to be told, or it takes too long, and bytes may be missing: the kernel's end may go.
    Release {
        is_whole: bool,
    },
    /// Whatever the other host may still ask was answered.
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StageState {
    Proving {
        since_ns: u64,
    },
    Told,
    Leaving {
        since_ns: u64,
    },
    /// The other host may not have had the last word yet, and ask for it.
    Lingering {
        since_ns: u64,
    },
}

#[derive(Debug)]
pub struct ConnectionStage {
    state: StageState,
    /// Since when the peer wants bytes back, and when the program was called last.
    wanted_ns: Option<u64>,
    called_ns: Option<u64>,
    /// The last progress, and since when there has been no other although some is awaited.
    progress: u64,
    silent_ns: Option<u64>,
    was_reset: bool,
}

impl ConnectionStage {
    pub fn new(now_ns: u64) -> Self {
        Self {
            state: StageState::Proving { since_ns: now_ns },
            wanted_ns: None,
            called_ns: None,
            progress: 0,
            silent_ns: None,
            was_reset: false,
        }
    }

    /// What to do now. A connection that is told of, or given up, says so itself: the state has changed with the
    /// answer.
    pub fn step(&mut self, facts: &ConnectionFacts, now_ns: u64) -> Act {
        if facts.is_settled || facts.progress != self.progress {
            self.silent_ns = None;
        }
        self.progress = facts.progress;
        let silent_ns = if facts.is_settled { now_ns } else { *self.silent_ns.get_or_insert(now_ns) };
        match self.state {
            StageState::Proving { .. } if facts.is_proven => {
                self.state = StageState::Told;
                Act::Tell
            }
            StageState::Proving { since_ns } if now_ns >= since_ns + PROVING_NS => {
                self.state = StageState::Lingering { since_ns: now_ns };
                Act::GiveUp
            }
            StageState::Leaving { since_ns } if facts.is_settled || now_ns >= since_ns + LEAVING_NS => {
                self.state = StageState::Lingering { since_ns: now_ns };
                Act::Release { is_whole: facts.is_settled }
            }
            StageState::Lingering { since_ns } if now_ns >= since_ns + LINGERING_NS => Act::Finish,
            StageState::Told if !self.was_reset && (facts.has_failed || now_ns >= silent_ns + SILENCE_NS) => {
                self.was_reset = true;
                Act::Reset
            }
            StageState::Told if facts.calls_program => self.call(now_ns),
            _ => {
                (self.wanted_ns, self.called_ns) = (None, None);
                Act::Nothing
            }
        }
    }

    fn call(&mut self, now_ns: u64) -> Act {
        let wanted_ns = *self.wanted_ns.get_or_insert(now_ns);
        let is_due = match self.called_ns {
            None => now_ns > wanted_ns + PATIENCE_NS,
            Some(called_ns) => now_ns >= called_ns + CALL_AGAIN_NS,
        };
        if !is_due {
            return Act::Nothing;
        }
        self.called_ns = Some(now_ns);
        Act::Call
    }

    /// The program's side is over. False where it was before.
    pub fn leave(&mut self, now_ns: u64) -> bool {
        let first = !self.is_over();
        if first {
            self.state = StageState::Leaving { since_ns: now_ns };
        }
        first
    }

    pub fn hurries(&self) -> bool {
        self.is_proving() || self.is_leaving() || self.wanted_ns.is_some()
    }

    pub fn is_proving(&self) -> bool {
        matches!(self.state, StageState::Proving { .. })
    }

    pub fn is_leaving(&self) -> bool {
        matches!(self.state, StageState::Leaving { .. })
    }

    /// Whether only the other host's last questions are left.
    pub fn is_lingering(&self) -> bool {
        matches!(self.state, StageState::Lingering { .. })
    }

    /// Whether the program's side is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, StageState::Leaving { .. } | StageState::Lingering { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVEN: ConnectionFacts =
        ConnectionFacts { is_proven: true, is_settled: false, calls_program: false, progress: 0, has_failed: false };

    fn told() -> ConnectionStage {
        let mut stage = ConnectionStage::new(0);
        assert_eq!(stage.step(&PROVEN, 0), Act::Tell);
        stage
    }

    #[test]
    fn a_program_is_told_once_and_only_of_what_is_proven() {
        let mut stage = ConnectionStage::new(0);
        assert_eq!(
            stage.step(&ConnectionFacts { is_settled: true, ..ConnectionFacts::default() }, 5 * MS),
            Act::Nothing
        );
        assert!(stage.is_proving());
        assert_eq!(stage.step(&PROVEN, 10 * MS), Act::Tell);
        assert_eq!(stage.step(&PROVEN, 15 * MS), Act::Nothing);
        assert!(!stage.is_proving() && !stage.is_leaving());
    }

    #[test]
    fn what_is_not_proven_in_time_is_given_up_and_then_finished() {
        let mut stage = ConnectionStage::new(MS);
        assert_eq!(stage.step(&ConnectionFacts::default(), PROVING_NS), Act::Nothing);
        assert_eq!(stage.step(&ConnectionFacts::default(), PROVING_NS + MS), Act::GiveUp);
        assert_eq!(stage.step(&PROVEN, PROVING_NS + 2 * MS), Act::Nothing, "the program is not told any more");
        assert_eq!(stage.step(&PROVEN, PROVING_NS + MS + LINGERING_NS), Act::Finish);
    }

    #[test]
    fn who_leaves_is_let_go_once_it_is_confirmed_or_after_a_while() {
        let mut stage = told();
        assert!(stage.leave(MS) && !stage.leave(2 * MS));
        assert_eq!(stage.step(&PROVEN, MS), Act::Nothing);
        assert_eq!(
            stage.step(&ConnectionFacts { is_settled: true, ..PROVEN }, 2 * MS),
            Act::Release { is_whole: true }
        );
        assert_eq!(stage.step(&PROVEN, LINGERING_NS), Act::Nothing, "the other host may still ask");
        assert_eq!(stage.step(&PROVEN, LINGERING_NS + 2 * MS), Act::Finish);
        assert!(!stage.leave(LINGERING_NS), "once");
        let mut stage = told();
        stage.leave(MS);
        assert_eq!(stage.step(&PROVEN, LEAVING_NS), Act::Nothing);
        assert_eq!(stage.step(&PROVEN, LEAVING_NS + MS), Act::Release { is_whole: false });
    }

    #[test]
    fn a_program_that_does_not_see_its_peer_s_wish_is_called_now_and_then() {
        let mut stage = told();
        let wish = ConnectionFacts { calls_program: true, ..PROVEN };
        let acts: Vec<Act> = (0..12).map(|tick| stage.step(&wish, tick * 5 * MS)).collect();
        let calls: Vec<usize> = (0..12).filter(|tick| acts[*tick] == Act::Call).collect();
        assert_eq!(calls, [1, 5, 9]);
        // It has seen it; the next wish begins anew.
        assert_eq!(stage.step(&PROVEN, 60 * MS), Act::Nothing);
        assert_eq!(stage.step(&wish, 61 * MS), Act::Nothing);
        assert_eq!(stage.step(&wish, 63 * MS), Act::Nothing);
        assert_eq!(stage.step(&wish, 63 * MS + 1), Act::Call);
    }

    #[test]
    fn who_has_left_is_called_no_more() {
        let mut stage = told();
        stage.leave(0);
        let wish = ConnectionFacts { calls_program: true, ..PROVEN };
        assert!((0..100).all(|tick| stage.step(&wish, tick * MS) == Act::Nothing));
    }

    #[test]
    fn a_host_that_has_fallen_silent_is_given_up_and_one_that_has_nothing_to_say_is_not() {
        let mut stage = ConnectionStage::new(0);
        assert_eq!(stage.step(&PROVEN, 0), Act::Tell);
        let settled = ConnectionFacts { is_settled: true, ..ConnectionFacts::default() };
        assert_eq!(stage.step(&settled, 10 * SILENCE_NS), Act::Nothing);
        let open = |progress| ConnectionFacts { progress, ..ConnectionFacts::default() };
        let start = 20 * SILENCE_NS;
        assert_eq!(stage.step(&open(1), start), Act::Nothing);
        assert_eq!(stage.step(&open(1), start + SILENCE_NS - MS), Act::Nothing);
        assert_eq!(stage.step(&open(2), start + SILENCE_NS), Act::Nothing, "it has gone on");
        assert_eq!(stage.step(&open(2), start + 2 * SILENCE_NS), Act::Reset);
        assert_eq!(stage.step(&open(2), start + 4 * SILENCE_NS), Act::Nothing, "once");
        let mut stage = ConnectionStage::new(0);
        assert_eq!(stage.step(&PROVEN, 0), Act::Tell);
        assert_eq!(stage.step(&ConnectionFacts { has_failed: true, ..settled }, MS), Act::Reset);
    }
}
