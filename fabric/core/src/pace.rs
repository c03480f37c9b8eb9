//! The waiting policy: how long to spin, when to hand the core over, when to sleep.
//!
//! - *Spin* while a core is surely ours: as long as waits have been worth it lately, at most `spin_ns`.
//! - *Hand over* (`sched_yield` between polls) where the core is shared from the first poll on, else after spinning.
//! - *Sleep* on the doorbell after `yield_ns` of that, or instead of it where work of others wants the cores: a core
//!   that is handed over to such work comes back a time slice later, while a sleeper that is woken runs soon.
//!
//! A core is shared where ranks of this job on this host outnumber the cores that they may use (bound ranks: those on
//! the same core) or what their control group may keep busy ([`kernel::quota`]). Ranks of other jobs, and of this one
//! on what is another host only by name (a container), are not counted anywhere; they are seen by what handing over
//! costs ([`strangers`]). What else is runnable on the machine is asked of the kernel now and then.
//!
//! Spinning lasts at most 50 microseconds (`WEFT_SPIN_US`), less when waits have lately lasted longer. Handing over
//! lasts a millisecond (`WEFT_YIELD_US`); where ranks of the job share the core it begins after three polls, and after
//! a microsecond and a half where others were seen to take turns on it. The kernel is asked every 50 milliseconds at
//! most. Where so many ranks sleep that those awake have a core each, these spin all the same. The sleeper pays for a
//! wake-up that is not lost, not the sender (decision 3).

mod strangers;

use strangers::{Strangers, TURN_NS};
use weft_device::shm::Segment;
use weft_device::{kernel, sys};
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
/// Polls before the core is handed over where ranks of this job want it: few, for most of what is awaited there comes
/// from ranks that cannot run while we poll.
const POLLS_BEFORE_YIELD: u32 = 3;
/// How many waits a look at who sleeps holds for when it found no room: it takes a line from every rank.
const WAITS_WITHOUT_ROOM: u32 = 16;
/// Shortest spin that is ever chosen while a core is ours.
const LEAST_SPIN_NS: u64 = 2_000;
/// A core that comes back after more than this went to somebody who computes, not to ranks that poll and hand it on.
const LATE_NS: u64 = 500_000;
/// For how many waits a core that came back late is not handed over: at first, and at most, after it came back late
/// each time it was tried again.
const WAITS_AFTER_LATE: [u32; 2] = [4, 256];
/// After so much that moved it is looked whether any stranger wants the core.
const MOVES_ALONE: u32 = 256;
/// How often the kernel is asked who else wants to run.
const CROWD_PERIOD_NS: u64 = 50_000_000;

/// Where this process may run, and with whom of its job.
enum RunPlace {
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

impl RunPlace {
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
fn is_shared(place: &RunPlace, members: u32, quota: Option<u32>) -> bool {
    place.is_shared(members) || quota.is_some_and(|quota| members > quota)
}

/// What a process has learnt about its waits; lives as long as the endpoint.
pub struct Policy {
    bounds: Bounds,
    place: RunPlace,
    members: u32,
    /// Cores that our control group may keep busy, if it is limited.
    quota: Option<u32>,
    /// Ranks of this job want more cores than there are.
    shared: bool,
    /// So does work of others: handing the core to it may cost whole time slices, while a sleeper that is woken runs
    /// soon.
    crowded: bool,
    looked_ns: u64,
    /// Polls before the first look at the clock.
    free_polls: u32,
    /// The present bound of spinning.
    spin_ns: u64,
    /// Waits that begin before the next look at who sleeps.
    waits_to_look: u32,
    /// For how many waits the core was not handed over when it had last come back late; less, each time it is soon
    /// back.
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
        let place = match kernel::affinity().unwrap_or_default()[..] {
            [core] => {
                segment.set_core(member, Some(core as u32));
                RunPlace::Bound { core: core as u32, segment: segment.clone() }
            }
            ref cores => RunPlace::Free { cores: cores.len() as u32, segment: segment.clone() },
        };
        Self::at(bounds, place, segment.members(), kernel::quota().map(|cores| cores as u32))
    }

    fn at(bounds: Bounds, place: RunPlace, members: u32, quota: Option<u32>) -> Self {
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

    /// Whether the first turn of a wait is timed: among ranks of this job now and then, and where cores have come back
    /// late.
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
pub enum PaceStep {
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
    pub fn idle(&mut self, policy: &mut Policy) -> PaceStep {
        self.polls += 1;
        if !self.yielded && !self.polls.is_multiple_of(policy.free_polls) {
            return PaceStep::Poll;
        }
        self.slow(policy)
    }

    /// `timed_from`: the time, where it was looked at.
    fn hand_over(&mut self, policy: &mut Policy, timed_from: Option<u64>) -> PaceStep {
        sys::yield_core();
        if let Some(begin) = timed_from {
            let now = sys::now_ns();
            policy.came_back(now, now - begin, sys::involuntary_switches);
        }
        // Who finds nobody on its core goes on to spin.
        self.yielded = policy.shares_core() || self.yielding_since_ns != 0;
        PaceStep::Yielded
    }

    #[cold]
    fn slow(&mut self, policy: &mut Policy) -> PaceStep {
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
                return PaceStep::Poll;
            }
            policy.look_around(now);
            self.yielding_since_ns = now;
            if self.spun {
                policy.learn(true);
            }
        }
        if lies_down || now - self.yielding_since_ns >= policy.bounds.yield_ns {
            return PaceStep::Sleep;
        }
        if policy.crowded && !policy.strangers.take_turns() && !policy.strangers.is_time_to_look(now) {
            return PaceStep::Sleep;
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
mod tests;
