//! What the interface keeps beside the endpoint, and has looked after where its threads wait: the office of named
//! ports, groups, messages that were started, descriptors that a thread waits for, and times at which one looks again.

use crate::begun_desk::BegunMessages;
use crate::elsewhere;
use crate::end_desk::EndNotices;
use crate::group_desk::GroupDesk;
use crate::known::PortNumber;
use crate::office::Office;
use crate::started_desk::{StartedJob, StartedJobs};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};
use weft_kernel::DescriptorSet;
use weft_ports::{Companion, Endpoint, Messenger, Waiting};

pub static FABRIC: Messenger<Desk> = Messenger::new();

/// Who looks for messages again and again looks after visitors each so many times.
const LOOKS_PER_VISIT: u32 = 16;

/// What stands in the set of all that is attended: the office, what threads select, and launchers of what was started.
const OFFICE: u64 = 0;
const SELECTED: u64 = 1;
const STARTED: u64 = 2;

/// How often a thread looks for what nothing wakes it for.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

#[derive(Default)]
pub struct Desk {
    pub office: Option<Office>,
    /// From the first word of one on.
    pub groups: Option<Box<GroupDesk>>,
    pub begun: BegunMessages,
    pub started: StartedJobs,
    pub notices: EndNotices,
    /// All descriptors that end a sleep.
    set: Option<DescriptorSet>,
    /// How many there are.
    attended: u32,
    /// What an event loop of the program waits on.
    pub bell: Option<DescriptorSet>,
    /// Something that a thread selects was seen to be ready.
    pub noticed: bool,
    /// When threads look again, and the numbers by which they take that back.
    times: Vec<(u64, Instant)>,
    given: u64,
    looks: u32,
    /// Until then the office is not in the set.
    rests_until: Option<Instant>,
}

impl Desk {
    pub fn forget_names_of(&mut self, port: PortNumber) {
        elsewhere::forget_port(port);
        if let Some(office) = &mut self.office {
            office.forget_port(port);
        }
    }

    /// The set of all that ends a sleep.
    pub fn set(&mut self) -> std::io::Result<&DescriptorSet> {
        if self.set.is_none() {
            self.set = Some(DescriptorSet::new()?);
        }
        self.set.as_ref().ok_or_else(|| std::io::Error::other("no set"))
    }

    fn attend(&mut self, descriptor: RawFd, key: u64) -> std::io::Result<()> {
        self.set()?.watch(descriptor, libc::POLLIN, key)?;
        self.attended += 1;
        Ok(())
    }

    /// What the office waits for ends a sleep from now on.
    pub fn attend_office(&mut self, office: &Office) -> std::io::Result<()> {
        self.attend(office.as_raw_fd(), OFFICE)
    }

    /// A set of descriptors that a thread selects ends a sleep, until [`Self::leave_selected`].
    pub fn attend_selected(&mut self, selected: &DescriptorSet) -> std::io::Result<()> {
        self.attend(selected.as_raw_fd(), SELECTED)
    }

    /// What the launcher of these processes says ends a sleep from now on, until that is closed.
    pub fn add_started(&mut self, job: StartedJob) -> std::io::Result<()> {
        job.descriptor().map_or(Ok(()), |launcher| self.attend(launcher, STARTED))?;
        self.started.add(job);
        Ok(())
    }

    /// Takes what launchers of started processes say.
    pub fn hear_launchers(&mut self) {
        if let Some(set) = &self.set {
            self.attended -= self.started.listen(set);
            self.notices.look_soon();
        }
    }

    pub fn leave_selected(&mut self, selected: &DescriptorSet) {
        if let Some(set) = &self.set {
            set.remove(selected);
            self.attended -= 1;
        }
    }

    /// A thread looks again at this time, until [`Self::forget_time`] of the answer.
    pub fn look_at(&mut self, time: Instant) -> u64 {
        self.given += 1;
        self.times.push((self.given, time));
        self.given
    }

    pub fn forget_time(&mut self, number: u64) {
        self.times.retain(|(given, _)| *given != number);
    }

    /// How long nobody is to look after the office.
    pub fn rest(&self) -> Option<Duration> {
        self.rests_until.map(span)
    }

    /// Serves who has come to the office, and looks who is gone; true if anybody has come or is.
    pub fn serve(&mut self, endpoint: &mut Endpoint) -> bool {
        (self.attended > 0 && self.attend_all(endpoint)) | self.look(endpoint)
    }

    /// Looks now and then which processes have ended that something waits for; true if any has.
    pub fn look(&mut self, endpoint: &mut Endpoint) -> bool {
        self.begun.look(endpoint) | self.notices.look(endpoint, &mut self.started)
    }

    /// Serves who comes to the office, and notices what is ready of what threads select. True if anything is.
    fn attend_all(&mut self, endpoint: &mut Endpoint) -> bool {
        let Some(Ok(ready)) = self.set.as_ref().map(|set| set.wait(Some(Duration::ZERO))) else { return false };
        let (mut any, mut is_told) = (false, false);
        for (key, _) in ready {
            any = true;
            match (key, &mut self.office) {
                (OFFICE, Some(office)) => office.serve(endpoint),
                (STARTED, _) => is_told = true,
                _ => self.noticed = true,
            }
        }
        if is_told {
            self.hear_launchers();
        }
        any | self.mind_rest(endpoint)
    }

    /// Leaves an office alone that cannot let anybody in, and looks after it again when it has rested; true then.
    fn mind_rest(&mut self, endpoint: &mut Endpoint) -> bool {
        let Self { office: Some(office), set: Some(set), rests_until, .. } = self else { return false };
        let has_rested = rests_until.is_some_and(|until| Instant::now() >= until);
        if has_rested {
            office.serve(endpoint);
        }
        let begins = rests_until.is_none();
        *rests_until = office.rests_until();
        match *rests_until {
            Some(_) if begins => set.remove(office),
            // That it cannot be watched shows as before, when it was first.
            None if !begins => _ = set.add(office, OFFICE),
            _ => {}
        }
        has_rested
    }
}

/// How long it is until then, and no shorter than is worth a sleep.
fn span(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_micros(100))
}

impl Desk {
    /// Looks whether groups have something to do; true if that changed anything.
    fn serve_groups(&mut self, endpoint: &mut Endpoint, sleeps: bool) -> bool {
        match &mut self.groups {
            Some(groups) => groups.ordered().idle(endpoint, sleeps),
            None if GroupDesk::is_asked(endpoint) => {
                let groups = self.groups.insert(Box::new(GroupDesk::new(endpoint)));
                groups.ordered().advance(endpoint);
                true
            }
            None => false,
        }
    }

    /// How long nobody is to look after groups, or whether processes have ended.
    pub fn others_rest(&self) -> Option<Duration> {
        let groups = self.groups.as_ref().and_then(|groups| groups.longest_sleep());
        groups.into_iter().chain(self.begun.rest()).chain(self.notices.rest()).min()
    }

    /// Whether a group has something to receive, after what has come was taken.
    pub fn has_group_news(&mut self, endpoint: &mut Endpoint) -> bool {
        let Some(groups) = &mut self.groups else { return false };
        groups.ordered().advance(endpoint);
        groups.has_news(endpoint)
    }
}

/// Waits until `done` answers, at most for `patience`.
pub fn wait<R>(
    what: Waiting,
    patience: Option<Duration>,
    mut done: impl FnMut(&mut Endpoint, &mut Desk) -> Option<R>,
) -> Option<R> {
    let until = patience.and_then(|patience| Instant::now().checked_add(patience));
    let mut number = until.map(|until| FABRIC.with_both(|_, desk| desk.look_at(until)));
    let mut looks = 0_u32;
    FABRIC.wait_both(what, |endpoint, desk: &mut Desk| {
        let found = done(endpoint, desk);
        // What has come before is taken at least once.
        let is_over = found.is_some() || looks > 0 && until.is_some_and(|until| Instant::now() >= until);
        looks = looks.saturating_add(1);
        is_over.then(|| {
            number.take().into_iter().for_each(|number| desk.forget_time(number));
            found
        })
    })
}

/// Waits until `step` answers, which is asked now and again.
pub fn wait_looking<R>(what: Waiting, mut step: impl FnMut(&mut Endpoint, &mut Desk) -> Option<R>) -> R {
    let mut next: Option<(u64, Instant)> = None;
    FABRIC.wait_both(what, |endpoint, desk: &mut Desk| {
        let now = Instant::now();
        if next.is_some_and(|(_, time)| now < time) {
            return None;
        }
        next.take().into_iter().for_each(|(number, _)| desk.forget_time(number));
        let found = step(endpoint, desk);
        if found.is_none() {
            next = Some((desk.look_at(now + LOOK_AGAIN), now + LOOK_AGAIN));
        }
        found
    })
}

impl Companion for Desk {
    #[inline]
    fn advance(&mut self, endpoint: &mut Endpoint) {
        if let Some(groups) = &mut self.groups {
            groups.ordered().advance(endpoint);
        }
    }

    fn idle(&mut self, endpoint: &mut Endpoint, sleeps: bool) -> bool {
        self.looks = self.looks.wrapping_add(1);
        if !sleeps && !self.looks.is_multiple_of(LOOKS_PER_VISIT) {
            return false;
        }
        self.serve_groups(endpoint, sleeps) | self.serve(endpoint)
    }

    fn attended(&self) -> Option<RawFd> {
        self.set.as_ref().filter(|_| self.attended > 0).map(DescriptorSet::as_raw_fd)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let next = self.times.iter().map(|(_, time)| *time).chain(self.rests_until).min().map(span);
        next.into_iter().chain(self.others_rest()).min()
    }

    fn withdraw(&mut self, endpoint: &mut Endpoint) {
        if let Some(groups) = &mut self.groups {
            groups.ordered().withdraw(endpoint);
        }
    }
}
