//! Who else wants our core and is counted nowhere: seen by how long it is away when it is handed over.
//!
//! Soon back: nobody wants it. Later: somebody takes turns with us, who hands it on. Late: somebody computes, and keeps
//! it for a time slice. That is learnt from the first turns, and looked at again now and then by who does not hand its
//! core over.
//!
//! A rank that always spins with success tries it every 2 ms at most (decision 30). Work that computes gets no more
//! turns for some time, before it is tried again. Ranks that outnumber the cores see it by the same sign, and sleep at
//! once for some waits.

/// A core that comes back after more than this may have been somebody else's meanwhile: two switches, and his polls.
pub(super) const TURN_NS: u64 = 1_500;
/// Who keeps it for longer than this, as a rule, computes. Strangers who send each other long messages take half of
/// that.
const LATE_NS: u64 = 1_000_000;
/// Longer times than this say no more than that.
const MOST_AWAY_NS: u64 = 4_000_000;
/// What is thought of strangers before any was seen: once late is chance, twice is not.
const FIRST_AWAY_NS: u64 = 250_000;
/// How many times in a row it must not have been needed that the core is handed over soon, after a stranger was seen to
/// take turns.
const TIMES_IN_COMPANY: u32 = 64;
/// Between two looks.
const ALONE_NS: u64 = 2_000_000;
/// A turn of more is one in which everything was stopped, and counts as so long.
const LONGEST_NS: u64 = 8_000_000;
/// A core that came back late stays ours for so many times as long: at first, and at most, after it came back late each
/// time it was tried again. Beside one who computes a turn costs several of his time slices.
const TIMES_AFTER_LATE: [u32; 2] = [8, 1024];

/// What is known of them.
pub(super) struct Strangers {
    /// So many times more one is expected to take turns.
    company: u32,
    /// How often the kernel had given our core to somebody else when that was last asked.
    switches: u64,
    /// About how long they keep the core, of late.
    away_ns: u64,
    /// For how many times as long it stayed ours when it had last come back late.
    late: u32,
    /// Before that nobody looks whether there are any, nor
    look_ns: u64,
    /// before that.
    ours_until_ns: u64,
}

impl Default for Strangers {
    fn default() -> Self {
        Self { company: 0, switches: 0, away_ns: FIRST_AWAY_NS, late: 0, look_ns: 0, ours_until_ns: 0 }
    }
}

impl Strangers {
    /// Whether one takes turns with us.
    #[inline]
    pub fn take_turns(&self) -> bool {
        self.company > 0
    }

    /// Whether it is time to look whether one wants the core, which is to be handed over then.
    pub fn is_time_to_look(&mut self, now_ns: u64) -> bool {
        let looks = now_ns >= self.look_ns.max(self.ours_until_ns);
        if looks {
            self.look_ns = now_ns + ALONE_NS;
        }
        looks
    }

    /// The core was handed over, and came back after so long. How often the kernel has given it to somebody else is
    /// asked where that may have been an interrupt.
    pub fn came_back(&mut self, now_ns: u64, after_ns: u64, switches: impl FnOnce() -> u64) {
        if after_ns <= TURN_NS {
            return self.note_alone();
        }
        // Asking is a system call: while he is expected, every so many times.
        if after_ns < LATE_NS && (self.company > TIMES_IN_COMPANY / 2 || !self.has_switched(switches())) {
            return self.note_alone();
        }
        self.away_ns = (7 * self.away_ns + after_ns.min(MOST_AWAY_NS)) / 8;
        if self.away_ns < LATE_NS {
            // By the rule and not by this turn: who takes turns has work for once, and who computes is preempted early
            // for once.
            (self.company, self.late) = (TIMES_IN_COMPANY, 0);
        } else if after_ns < LATE_NS {
            self.company = 0;
        } else {
            let [least, most] = TIMES_AFTER_LATE;
            (self.company, self.late) = (0, (self.late * 2).clamp(least, most));
            self.ours_until_ns = now_ns + after_ns.min(LONGEST_NS) * u64::from(self.late);
        }
    }

    fn has_switched(&mut self, switches: u64) -> bool {
        std::mem::replace(&mut self.switches, switches) != switches
    }

    /// Nobody took the core, or it was not handed over: what was waited for came first.
    #[inline]
    pub fn note_alone(&mut self) {
        self.company = self.company.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_turns_is_expected_to_go_on_for_some_time() {
        let mut strangers = Strangers::default();
        strangers.came_back(0, TURN_NS, || unreachable!("nobody took it"));
        assert!(!strangers.take_turns());
        strangers.came_back(0, TURN_NS + 1, || 0);
        assert!(!strangers.take_turns(), "it was an interrupt");
        strangers.came_back(0, TURN_NS + 1, || 1);
        (1..TIMES_IN_COMPANY).for_each(|_| strangers.came_back(0, TURN_NS, || 1));
        assert!(strangers.take_turns(), "he may be asleep for once");
        strangers.note_alone();
        assert!(!strangers.take_turns());
        strangers.came_back(0, TURN_NS + 1, || 2);
        (0..TIMES_IN_COMPANY * 2).for_each(|_| strangers.came_back(0, TURN_NS + 1, || 2));
        assert!(!strangers.take_turns(), "interrupts do not keep him");
    }

    #[test]
    fn who_keeps_the_core_as_a_rule_gets_it_less_and_less_often() {
        let mut strangers = Strangers::default();
        let mut switches = 0;
        let mut came_back = |strangers: &mut Strangers, after_ns| {
            switches += 1;
            strangers.came_back(7, after_ns, || switches);
        };
        let slice = 2 * MOST_AWAY_NS;
        came_back(&mut strangers, 10 * TURN_NS);
        came_back(&mut strangers, slice);
        assert!(strangers.take_turns() && strangers.ours_until_ns == 0, "he may have work for once");
        came_back(&mut strangers, slice);
        for times in (0..).map(|round| TIMES_AFTER_LATE[0] << round).take_while(|times| *times <= TIMES_AFTER_LATE[1]) {
            let until = 7 + u64::from(times) * slice;
            assert_eq!(
                (strangers.take_turns(), strangers.ours_until_ns),
                (false, until),
                "who computes takes no turns"
            );
            assert!(!strangers.is_time_to_look(until - 1) && strangers.is_time_to_look(until));
            assert!(!strangers.is_time_to_look(until + ALONE_NS - 1) && strangers.is_time_to_look(until + ALONE_NS));
            came_back(&mut strangers, slice);
        }
        let until = strangers.ours_until_ns;
        came_back(&mut strangers, 10 * TURN_NS);
        came_back(&mut strangers, TURN_NS);
        assert!(!strangers.take_turns(), "and may be preempted early, or be away, for once");
        assert_eq!((strangers.late, strangers.ours_until_ns), (TIMES_AFTER_LATE[1], until));
        (0..20).for_each(|_| came_back(&mut strangers, 10 * TURN_NS));
        assert!(strangers.take_turns() && strangers.late == 0);
        (0..10).for_each(|_| came_back(&mut strangers, u64::MAX / 2));
        assert_eq!(strangers.ours_until_ns, 7 + LONGEST_NS * u64::from(strangers.late), "all was stopped");
    }
}
