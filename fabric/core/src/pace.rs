//! The waiting policy: how long to spin, when to hand the core over, when to sleep.
//!
//! - *Spin* while a core is surely ours: as long as waits have been worth it lately, at most `spin_ns`.
//! - *Hand over* (`sched_yield` between polls) where the core is shared from the first poll on, else after spinning.
//! - *Sleep* on the doorbell after `yield_ns` of that, or instead of it where work of others wants the cores: a core that
//!   is handed over to such work comes back a time slice later, while a sleeper that is woken runs soon.
//!
//! A core is shared where ranks of this job on this host outnumber the cores that they may use (bound ranks: those on the
//! same core) or what their control group may keep busy ([`crate::quota`]). Ranks of other jobs, and of this one on what is
//! another host only by name (a container), are not counted anywhere; they are seen by what handing over costs
//! ([`strangers`]). What else is runnable on the machine is asked of the kernel now and then.

mod strangers;

use strangers::{Strangers, TURN_NS};
use weft_device::shm::Segment;
use weft_device::sys;
use weft_wire::settings::Settings;

/// Bounds of the policy.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub spin_ns: u64,
    pub yield_ns: u64,
}

/// What `auto` means.
const SPIN_US: u64 = 50;
const YIELD_US: u64 = 1000;

impl From<&Settings> for Bounds {
    fn from(settings: &Settings) -> Self {
        let ns = |set: Option<u64>, auto_us| set.unwrap_or(auto_us) * 1000;
        Self { spin_ns: ns(settings.spin_us, SPIN_US), yield_ns: ns(settings.yield_us, YIELD_US) }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}

/// Polls between two looks at the clock while spinning.
const POLLS_PER_LOOK: u32 = 128;
/// Polls before the core is handed over where ranks of this job want it: few, for most of what is awaited there comes from
/// ranks that cannot run while we poll.
const POLLS_BEFORE_YIELD: u32 = 3;
/// How many waits a look at who sleeps holds for when it found no room: it takes a line from every rank.
const WAITS_WITHOUT_ROOM: u32 = 16;
/// Shortest spin that is ever chosen while a core is ours.
const LEAST_SPIN_NS: u64 = 2_000;
/// A core that comes back after more than this went to somebody who computes, not to ranks that poll and hand it on.
const LATE_NS: u64 = 500_000;
/// For how many waits a core that came back late is not handed over: at first, and at most, after it came back late each
/// time it was tried again.
const WAITS_AFTER_LATE: [u32; 2] = [4, 256];
/// After so much that moved it is looked whether any stranger wants the core.
const MOVES_ALONE: u32 = 256;
/// How often the kernel is asked who else wants to run.
const CROWD_PERIOD_NS: u64 = 50_000_000;

/// Where this process may run, and with whom of its job.
enum Place {
    /// Any of so many cores.
    Free {
        cores: u32,
        segment: Segment,
    },
    Bound {
        core: u32,
        segment: Segment,
    },
    /// Told by a test.
    #[cfg(test)]
    Told {
        shared: bool,
        crowded: bool,
    },
}

impl Place {
    /// Whether ranks of this job share our core.
    fn is_shared(&self, members: u32) -> bool {
        match self {
            Self::Free { cores, .. } => members > *cores,
            Self::Bound { core, segment } => segment.bound_to(*core) > 1,
            #[cfg(test)]
            Self::Told { shared, .. } => *shared,
        }
    }

    /// Ranks of this job that do not sleep, and the cores that they may use; unknown where ranks are bound.
    fn awake(&self) -> Option<(u32, u32)> {
        match self {
            Self::Free { cores, segment } => Some((segment.awake() as u32, *cores)),
            Self::Bound { .. } => None,
            #[cfg(test)]
            Self::Told { .. } => None,
        }
    }

    /// Whether the machine has more to run than cores.
    fn is_crowded(&self) -> bool {
        match self {
            Self::Free { cores, .. } => runnable().is_some_and(|n| n > *cores),
            // Others on our core show in the machine's count, which says nothing of where they run.
            Self::Bound { .. } => runnable().is_some_and(|n| n > sys::online_cores()),
            #[cfg(test)]
            Self::Told { crowded, .. } => *crowded,
        }
    }
}

/// Whether ranks of this job want more cores than there are for them.
fn is_shared(place: &Place, members: u32, quota: Option<u32>) -> bool {
    place.is_shared(members) || quota.is_some_and(|quota| members > quota)
}

/// What a process has learnt about its waits; lives as long as the endpoint.
pub struct Policy {
    bounds: Bounds,
    place: Place,
    members: u32,
    /// Cores that our control group may keep busy, if it is limited.
    quota: Option<u32>,
    /// Ranks of this job want more cores than there are.
    shared: bool,
    /// So does work of others: handing the core to it may cost whole time slices, while a sleeper that is woken runs soon.
    crowded: bool,
    looked_ns: u64,
    /// Polls before the first look at the clock.
    free_polls: u32,
    /// The present bound of spinning.
    spin_ns: u64,
    /// Waits that begin before the next look at who sleeps.
    waits_to_look: u32,
    /// For how many waits the core was not handed over when it had last come back late; less, each time it is soon back.
    late: u32,
    /// Those of them that are still to come.
    waits_to_hand_over: u32,
    /// What has moved.
    moves: u32,
    strangers: Strangers,
}

impl Policy {
    /// The policy of `member`, which says in the segment where it is bound.
    pub fn new(bounds: Bounds, segment: &Segment, member: u32) -> Self {
        let place = match sys::affinity()[..] {
            [core] => {
                segment.set_core(member, Some(core));
                Place::Bound { core, segment: segment.clone() }
            }
            ref cores => Place::Free { cores: cores.len() as u32, segment: segment.clone() },
        };
        Self::at(bounds, place, segment.members(), crate::quota::cores())
    }

    fn at(bounds: Bounds, place: Place, members: u32, quota: Option<u32>) -> Self {
        let shared = is_shared(&place, members, quota);
        Self {
            bounds,
            place,
            members,
            quota,
            shared,
            crowded: false,
            looked_ns: 0,
            free_polls: if shared { POLLS_BEFORE_YIELD } else { POLLS_PER_LOOK },
            spin_ns: bounds.spin_ns,
            waits_to_look: 0,
            late: 0,
            waits_to_hand_over: 0,
            moves: 0,
            strangers: Strangers::default(),
        }
    }

    #[inline]
    pub fn shares_core(&self) -> bool {
        self.shared || self.strangers.take_turns()
    }

    /// Whether so many ranks of this job sleep that those awake have a core each.
    fn has_room(&self) -> bool {
        self.place.awake().is_some_and(|(awake, cores)| awake <= self.quota.map_or(cores, |quota| quota.min(cores)))
    }

    /// The same at the begin of a wait: a look that found no room holds for some waits more.
    fn may_have_room(&mut self) -> bool {
        if self.waits_to_look > 0 {
            self.waits_to_look -= 1;
            return false;
        }
        let room = self.has_room();
        (self.waits_to_look, self.free_polls) =
            if room { (0, POLLS_PER_LOOK) } else { (WAITS_WITHOUT_ROOM, POLLS_BEFORE_YIELD) };
        room
    }

    /// Whether a wait hands the core over before it spins.
    fn begins_with_turn(&mut self) -> bool {
        if self.shared {
            return !self.may_have_room();
        }
        if self.strangers.take_turns() || self.free_polls == POLLS_PER_LOOK {
            return false;
        }
        self.free_polls = POLLS_PER_LOOK;
        self.strangers.is_time_to_look(sys::now_ns())
    }

    fn set_free_polls(&mut self) {
        self.free_polls = if self.shares_core() { POLLS_BEFORE_YIELD } else { POLLS_PER_LOOK };
    }

    /// How long a wait spins.
    fn spin_ns(&self) -> u64 {
        match self.shared {
            true if !self.has_room() => 0,
            false if self.strangers.take_turns() => self.spin_ns.min(TURN_NS),
            _ => self.spin_ns,
        }
    }

    /// Whether a wait that begins should lie down at once, because a core that is handed over comes back late.
    fn lies_down(&mut self) -> bool {
        let lies_down = self.waits_to_hand_over > 0;
        self.waits_to_hand_over -= u32::from(lies_down);
        lies_down
    }

    /// Whether the first turn of a wait is timed: among ranks of this job now and then, and where cores have come back late.
    fn times_first_turn(&self) -> bool {
        !self.shared || self.late > 0 || self.waits_to_look == WAITS_WITHOUT_ROOM
    }

    /// The core was handed over, and came back after so long.
    fn came_back(&mut self, now_ns: u64, after_ns: u64, switches: impl FnOnce() -> u64) {
        if !self.shared {
            self.strangers.came_back(now_ns, after_ns, switches);
            return self.set_free_polls();
        }
        if after_ns < LATE_NS {
            self.late = self.late.saturating_sub(1 + self.late / 32);
        } else {
            let [least, most] = WAITS_AFTER_LATE;
            self.late = (self.late * 2).clamp(least, most);
            self.waits_to_hand_over = self.late;
        }
    }

    fn look_around(&mut self, now_ns: u64) {
        if now_ns - self.looked_ns < CROWD_PERIOD_NS {
            return;
        }
        self.looked_ns = now_ns;
        self.shared = is_shared(&self.place, self.members, self.quota);
        self.crowded = !self.shared && self.place.is_crowded();
        self.set_free_polls();
    }

    /// A wait that spun has ended: was it worth it?
    fn learn(&mut self, spun_out: bool) {
        self.spin_ns = if spun_out {
            (self.spin_ns / 2).max(LEAST_SPIN_NS.min(self.bounds.spin_ns))
        } else {
            (self.spin_ns * 2).min(self.bounds.spin_ns)
        };
    }
}

/// Runnable tasks of the machine, ourselves included.
fn runnable() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Poll,
    /// The core was handed over and came back.
    Yielded,
    Sleep,
}

/// One wait.
#[derive(Debug, Default)]
pub struct Pace {
    polls: u32,
    /// The core has been handed over; from then on it is after every poll.
    yielded: bool,
    since_ns: u64,
    yielding_since_ns: u64,
    spun: bool,
}

impl Pace {
    /// After a poll that found nothing.
    #[inline]
    pub fn idle(&mut self, policy: &mut Policy) -> Step {
        self.polls += 1;
        if !self.yielded && !self.polls.is_multiple_of(policy.free_polls) {
            return Step::Poll;
        }
        self.slow(policy)
    }

    /// `timed_from`: the time, where it was looked at.
    fn hand_over(&mut self, policy: &mut Policy, timed_from: Option<u64>) -> Step {
        sys::yield_core();
        if let Some(begin) = timed_from {
            let now = sys::now_ns();
            policy.came_back(now, now - begin, sys::involuntary_switches);
        }
        // Who finds nobody on its core goes on to spin.
        self.yielded = policy.shares_core() || self.yielding_since_ns != 0;
        Step::Yielded
    }

    #[cold]
    fn slow(&mut self, policy: &mut Policy) -> Step {
        let hands_over = policy.bounds.yield_ns > 0;
        let lies_down = hands_over && policy.shared && policy.lies_down();
        // Most waits among ranks that share cores end after one such turn: most go without the clock.
        if hands_over && !lies_down && !self.yielded && policy.begins_with_turn() {
            let timed_from = policy.times_first_turn().then(sys::now_ns);
            return self.hand_over(policy, timed_from);
        }
        let now = sys::now_ns();
        if self.since_ns == 0 {
            self.since_ns = now;
        }
        if self.yielding_since_ns == 0 {
            if !lies_down && now - self.since_ns < policy.spin_ns() {
                self.spun = !policy.strangers.take_turns();
                return Step::Poll;
            }
            policy.look_around(now);
            self.yielding_since_ns = now;
            if self.spun {
                policy.learn(true);
            }
        }
        if lies_down || now - self.yielding_since_ns >= policy.bounds.yield_ns {
            return Step::Sleep;
        }
        if policy.crowded && !policy.strangers.take_turns() && !policy.strangers.is_time_to_look(now) {
            return Step::Sleep;
        }
        self.hand_over(policy, Some(now))
    }

    /// Something moved: the wait for the next thing begins anew.
    #[inline]
    pub fn moved(&mut self, policy: &mut Policy) {
        if self.polls >= POLLS_PER_LOOK && self.yielding_since_ns == 0 && self.spun {
            policy.learn(false);
        }
        if policy.strangers.take_turns() {
            policy.strangers.note_alone();
            policy.set_free_polls();
        }
        policy.moves = policy.moves.wrapping_add(1);
        if policy.moves.is_multiple_of(MOVES_ALONE) && !policy.shared && policy.bounds.yield_ns > 0 {
            policy.free_polls = POLLS_BEFORE_YIELD;
        }
        *self = Self::default();
    }

    /// The wait is over. What was waited for may have come past the devices, in shared memory.
    #[inline]
    pub fn ended(&mut self, policy: &mut Policy) {
        if self.polls > 0 {
            self.moved(policy);
        }
    }

    /// Since when this wait has been long, nanoseconds; 0 while it is short.
    pub fn long_since_ns(&self) -> u64 {
        if self.yielding_since_ns == 0 { 0 } else { self.since_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_core_is_handed_over_after_a_few_polls() {
        let mut policy = Policy::at(Bounds::default(), Place::Told { shared: true, crowded: false }, 2, None);
        let mut pace = Pace::default();
        for _ in 1..POLLS_BEFORE_YIELD {
            assert_eq!(pace.idle(&mut policy), Step::Poll);
        }
        assert_eq!(pace.idle(&mut policy), Step::Yielded);
        // It may have come back late, where the tests run.
        (policy.late, policy.waits_to_hand_over) = (0, 0);
        assert_eq!(pace.idle(&mut policy), Step::Yielded, "no more spinning in this wait");
    }

    #[test]
    fn a_shared_core_that_comes_back_late_is_not_handed_over_for_some_waits() {
        let mut policy = Policy::at(Bounds::default(), Place::Told { shared: true, crowded: false }, 2, None);
        let first = |policy: &mut Policy| {
            let mut pace = Pace::default();
            std::iter::from_fn(|| Some(pace.idle(policy))).find(|step| *step != Step::Poll)
        };
        assert_eq!(first(&mut policy), Some(Step::Yielded));
        // It may have come back late, where the tests run.
        (policy.late, policy.waits_to_hand_over) = (0, 0);
        let [least, most] = WAITS_AFTER_LATE;
        for waits in [least, least * 2, least * 4] {
            policy.came_back(0, LATE_NS, || 0);
            for _ in 0..waits {
                assert_eq!(first(&mut policy), Some(Step::Sleep));
            }
            assert!(!policy.lies_down() && policy.times_first_turn(), "then it is tried again, and timed");
        }
        policy.came_back(0, LATE_NS - 1, || 0);
        assert_eq!(policy.late, least * 4 - 1, "one that is soon back shortens the next round");
        (0..4 * least).for_each(|_| policy.came_back(0, LATE_NS - 1, || 0));
        assert_eq!(policy.late, 0);
        (0..20).for_each(|_| policy.came_back(0, LATE_NS, || 0));
        assert_eq!(policy.late, most);
    }

    /// What was learnt of strangers is forgotten: others may have wanted the core, where the tests run.
    fn forget(policy: &mut Policy) {
        policy.strangers = Strangers::default();
        policy.set_free_polls();
    }

    #[test]
    fn who_never_hands_its_core_over_looks_now_and_then_whether_a_stranger_wants_it() {
        let mut policy = Policy::at(Bounds::default(), Place::Told { shared: false, crowded: false }, 2, None);
        let last_of_a_wait_after = |moves, policy: &mut Policy| {
            (0..moves).for_each(|_| Pace::default().moved(policy));
            let mut pace = Pace::default();
            let steps = [(); POLLS_BEFORE_YIELD as usize].map(|()| pace.idle(policy));
            steps[POLLS_BEFORE_YIELD as usize - 1]
        };
        assert_eq!(last_of_a_wait_after(MOVES_ALONE - 1, &mut policy), Step::Poll);
        assert_eq!(last_of_a_wait_after(1, &mut policy), Step::Yielded);
        forget(&mut policy);
        assert!(policy.strangers.is_time_to_look(u64::MAX / 2));
        assert_eq!(last_of_a_wait_after(MOVES_ALONE, &mut policy), Step::Poll, "it has just looked");
        let bounds = Bounds { yield_ns: 0, ..Bounds::default() };
        policy = Policy::at(bounds, Place::Told { shared: false, crowded: false }, 2, None);
        assert_eq!(last_of_a_wait_after(MOVES_ALONE, &mut policy), Step::Poll, "it is told not to hand over");
        assert_eq!(policy.free_polls, POLLS_PER_LOOK);
    }

    #[test]
    fn among_strangers_who_take_turns_the_core_is_handed_over_soon() {
        let mut policy = Policy::at(Bounds::default(), Place::Told { shared: false, crowded: false }, 2, None);
        let seen = |policy: &Policy| (policy.spin_ns(), policy.free_polls, policy.shares_core());
        let alone = (policy.bounds.spin_ns, POLLS_PER_LOOK, false);
        policy.came_back(0, TURN_NS, || 0);
        assert_eq!(seen(&policy), alone, "nobody took it");
        for moves in [true, false] {
            policy.came_back(0, TURN_NS + 1, || 1 + u64::from(moves));
            assert_eq!(seen(&policy), (TURN_NS, POLLS_BEFORE_YIELD, true));
            for _ in 0..100 {
                let mut pace = Pace { polls: 1, ..Pace::default() };
                if moves { pace.ended(&mut policy) } else { policy.came_back(0, TURN_NS, || 0) }
            }
            assert_eq!(seen(&policy), alone, "until it is not needed for long");
        }
    }

    #[test]
    fn a_crowd_is_given_the_core_where_it_takes_turns() {
        let mut policy = Policy::at(Bounds::default(), Place::Told { shared: false, crowded: true }, 2, None);
        let after_spinning = |policy: &mut Policy| {
            let mut pace = Pace::default();
            std::iter::from_fn(|| Some(pace.idle(policy))).find(|step| *step != Step::Poll)
        };
        assert_eq!(after_spinning(&mut policy), Some(Step::Yielded), "whoever it is");
        forget(&mut policy);
        assert!(policy.strangers.is_time_to_look(u64::MAX / 2));
        assert_eq!(after_spinning(&mut policy), Some(Step::Sleep), "who wants the cores took no turns on this one");
        policy.came_back(0, TURN_NS + 1, || 1);
        assert_eq!(after_spinning(&mut policy), Some(Step::Yielded));
    }

    #[test]
    fn ranks_that_lie_down_leave_room_after_some_waits() {
        let segment = Segment::create(2).expect("segment");
        let place = Place::Free { cores: segment.awake() as u32 - 1, segment: segment.clone() };
        let mut policy = Policy::at(Bounds::default(), place, 2, None);
        assert!(!policy.may_have_room());
        policy.place = Place::Free { cores: segment.awake() as u32, segment };
        let waits = (1..).find(|_| policy.may_have_room()).expect("room");
        assert_eq!(waits, WAITS_WITHOUT_ROOM + 1, "and not a look in each wait");
        assert!(policy.may_have_room(), "where there was room each wait looks");
        assert_eq!(policy.free_polls, POLLS_PER_LOOK, "and spins");
    }

    #[test]
    fn a_quota_of_fewer_cores_than_ranks_hands_over_as_well() {
        let shared = |members, quota| {
            Policy::at(Bounds::default(), Place::Told { shared: false, crowded: false }, members, quota).shared
        };
        assert_eq!([shared(2, None), shared(2, Some(2)), shared(2, Some(1))], [false, false, true]);
        assert!(shared(1, Some(0)), "half a core is less than one");
        let mut policy = Policy::at(Bounds::default(), Place::Told { shared: false, crowded: false }, 2, Some(1));
        policy.look_around(CROWD_PERIOD_NS);
        let mut pace = Pace::default();
        let steps: Vec<Step> = (0..POLLS_BEFORE_YIELD).map(|_| pace.idle(&mut policy)).collect();
        assert_eq!(steps.last(), Some(&Step::Yielded), "as where ranks share a core");
    }

    #[test]
    fn room_for_those_awake_is_bounded_by_the_quota_too() {
        let segment = Segment::create(2).expect("segment");
        let awake = segment.awake() as u32;
        let has_room = |cores, quota| {
            let place = Place::Free { cores, segment: segment.clone() };
            Policy::at(Bounds::default(), place, 2, quota).has_room()
        };
        assert!(has_room(awake, None) && has_room(awake, Some(awake)));
        assert!(awake > 0 && !has_room(awake, Some(awake - 1)));
    }

    #[test]
    fn an_own_core_spins_then_yields_then_sleeps() {
        let mut policy = Policy::at(
            Bounds { spin_ns: 10_000, yield_ns: 100_000 },
            Place::Told { shared: false, crowded: false },
            2,
            None,
        );
        let mut pace = Pace::default();
        let mut seen = Vec::new();
        loop {
            let step = pace.idle(&mut policy);
            if seen.last() != Some(&step) {
                seen.push(step);
            }
            if step == Step::Sleep {
                break;
            }
        }
        assert_eq!(seen, [Step::Poll, Step::Yielded, Step::Sleep]);
    }

    #[test]
    fn the_spin_bound_shrinks_when_spinning_did_not_pay_and_grows_again() {
        let mut policy =
            Policy::at(Bounds { spin_ns: 8_000, yield_ns: 0 }, Place::Told { shared: false, crowded: false }, 2, None);
        policy.learn(true);
        assert_eq!(policy.spin_ns, 4_000);
        for _ in 0..5 {
            policy.learn(true);
        }
        assert_eq!(policy.spin_ns, LEAST_SPIN_NS);
        for _ in 0..5 {
            policy.learn(false);
        }
        assert_eq!(policy.spin_ns, 8_000);
    }
}
