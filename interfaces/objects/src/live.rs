//! The processes of a job: the machine beside an endpoint, with a group for its order and missives for its messages.
//!
//! All moves where a thread waits or polls, and a process that computes for long keeps those waiting who need an object
//! that is there only. Who calls in a loop what needs nobody else never waits, so a call looks at what has come, unless
//! one has just before. Or all moves by a thread that delivers while the others compute, if the program wants one.

use crate::driver::Driver;
use crate::fault::ObjectFault;
use crate::message::{CallId, ObjectId};
use crate::runtime::{Effect, Runtime};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use weft_group::{GroupError, GroupEvent, GroupId, GroupRules, GroupView, OrderedGroups, USUAL_RULES, process_of};
use weft_ports::missives::Missives;
use weft_ports::{Companion, Delivery, Endpoint, InterfaceName, Messenger, Peer, Waiting, ticks};

static MESSENGER: Messenger<Work> = Messenger::new();

/// Contexts: the group's, and that of messages to one process. Each takes the next one, too.
const ORDER: u32 = 10;
const DIRECT: u32 = 12;

/// Not a name that programs would use.
const GROUP: &str = "weft objects";

/// A process that computes for long answers nobody meanwhile: only a death that is proven ends its part.
const RULES: GroupRules = GroupRules { silence_ms: u64::MAX, ..USUAL_RULES };

/// How long a thread sleeps that waits for some time only.
const LOOK: Duration = Duration::from_millis(20);

/// A call looks at what has come if none has for so many ticks of the processor's counter: one microsecond to four.
const DUE_TICKS: u64 = 1 << 12;

/// Operations whose names are kept for those who look at what this process waits for, at most.
const MOST_NAMES: usize = 1024;

fn waiting(call: &'static str) -> Waiting {
    Waiting { call, peer: None, tag: None, context: ORDER }
}

/// What is kept beside the endpoint.
struct Work {
    groups: OrderedGroups,
    group: GroupId,
    letters: Missives,
    runtime: Runtime,
    /// For the order, and not taken yet.
    unsent: VecDeque<Arc<[u8]>>,
    members: BTreeSet<u32>,
    /// This process is no member any more.
    is_over: bool,
    /// What was waited for, by its name.
    names: BTreeMap<(ObjectId, u16), &'static str>,
    /// Threads that wait for some time only.
    impatient: u32,
    /// When a call last looked at what has come.
    looked: u64,
}

impl Work {
    fn new(endpoint: &mut Endpoint) -> Result<Self, GroupError> {
        let (me, size) = (endpoint.me().0, endpoint.world_size());
        let mut groups = OrderedGroups::new(endpoint, ORDER);
        let mut letters = Missives::new(DIRECT);
        letters.post(endpoint);
        let group = groups.join(endpoint, GROUP, RULES)?;
        let (unsent, members, names) = (VecDeque::new(), BTreeSet::new(), BTreeMap::new());
        let runtime = Runtime::new(me, size).keeping_replicas(endpoint.keeps_going());
        Ok(Self { groups, group, letters, runtime, unsent, members, is_over: false, names, impatient: 0, looked: 0 })
    }

    /// What a call waits for, as `weft ps` shows it.
    fn what(&mut self, call: CallId) -> Waiting {
        let Some((object, number, asked)) = self.runtime.awaited(call) else {
            return waiting(self.runtime.call_name(call));
        };
        let has_room = self.names.len() < MOST_NAMES;
        let name = self.names.get(&(object, number)).copied().or_else(|| {
            let name: &str = self.runtime.name_of(object, number).filter(|_| has_room)?.leak();
            self.names.insert((object, number), name);
            Some(name)
        });
        Waiting { peer: asked.map(Peer), ..waiting(name.unwrap_or("operation")) }
    }

    /// Takes in what others have sent, if that is due: before a call, since what they wait for comes first.
    #[inline]
    fn look(&mut self, endpoint: &mut Endpoint) {
        let now = ticks();
        if now.wrapping_sub(self.looked) < DUE_TICKS {
            return;
        }
        self.looked = now;
        if endpoint.progress() {
            self.turn(endpoint);
        } else {
            self.idle(endpoint, false);
        }
    }

    /// Takes in what has come, and sends what follows from that.
    #[inline]
    fn turn(&mut self, endpoint: &mut Endpoint) {
        self.groups.advance(endpoint);
        loop {
            self.flush(endpoint);
            let Some(event) = self.groups.take_event(endpoint, self.group) else { break };
            self.on_event(endpoint, event);
        }
        while let Some(missive) = self.letters.next(endpoint) {
            let bytes = missive.tail.as_deref().unwrap_or_else(|| missive.bytes());
            self.runtime.handle_direct(missive.from.0, bytes);
            self.letters.give_back(missive);
        }
        self.flush(endpoint);
    }

    #[inline]
    fn on_event(&mut self, endpoint: &mut Endpoint, event: GroupEvent) {
        match event {
            GroupEvent::Message { sequence, message } => {
                self.runtime.handle_ordered(sequence + 1, process_of(message.origin).0, &message.bytes);
            }
            GroupEvent::View(view) => self.on_view(endpoint, &view),
            GroupEvent::Left => self.is_over = true,
            GroupEvent::Excluded => self.end("the others have taken this process for dead"),
        }
    }

    fn on_view(&mut self, endpoint: &mut Endpoint, view: &GroupView) {
        let members = view.members.iter().map(|member| process_of(*member).0).collect();
        let before = std::mem::replace(&mut self.members, members);
        for process in before.difference(&self.members) {
            // What was to leave for it is over.
            endpoint.lose_ended(Peer(*process));
            self.runtime.handle_gone(*process);
        }
    }

    fn end(&mut self, why: &str) {
        self.is_over = true;
        self.unsent.clear();
        self.runtime.handle_broken_order(why);
    }

    #[inline]
    fn flush(&mut self, endpoint: &mut Endpoint) {
        while let Some(effect) = self.runtime.poll_effect() {
            match effect {
                Effect::Order(event) => self.unsent.push_back(event.into()),
                Effect::Send(to, message) => {
                    let receiver = [(Peer(to), 0)].into_iter();
                    self.letters.send(endpoint, receiver, 0, (&[], &message), || message.as_slice().into());
                }
            }
        }
        while let Some(event) = self.unsent.front() {
            match self.groups.try_send(endpoint, self.group, event.clone()) {
                Ok(true) => drop(self.unsent.pop_front()),
                Ok(false) => break,
                Err(fault) => self.end(&fault.to_string()),
            }
        }
    }

    /// Whether all processes of the job are members; an error if one cannot become one.
    fn is_complete(&self, endpoint: &mut Endpoint) -> Option<Result<(), ObjectFault>> {
        let size = endpoint.world_size();
        if self.members.len() == size as usize {
            return Some(Ok(()));
        }
        let missing = (0..size).filter(|process| !self.members.contains(process));
        let ended = missing.into_iter().find(|process| endpoint.is_lost(Peer(*process)))?;
        Some(Err(ObjectFault::Group(format!("process {ended} has ended before it opened the space"))))
    }
}

impl Companion for Work {
    #[inline]
    fn advance(&mut self, endpoint: &mut Endpoint) {
        self.turn(endpoint);
    }

    fn idle(&mut self, endpoint: &mut Endpoint, sleeps: bool) -> bool {
        self.letters.post(endpoint);
        if sleeps {
            self.letters.reclaim(endpoint);
        }
        let has_changed = self.groups.idle(endpoint, sleeps);
        if has_changed {
            self.turn(endpoint);
        }
        has_changed
    }

    fn is_awaited() -> Option<bool> {
        Some(WAITING.load(Ordering::Relaxed) > 0)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let looks = (self.impatient > 0).then_some(LOOK);
        looks.into_iter().chain(self.groups.longest_sleep()).min()
    }

    fn withdraw(&mut self, endpoint: &mut Endpoint) {
        self.groups.withdraw(endpoint);
        self.letters.withdraw(endpoint);
    }
}

/// Threads that wait for a call: what comes is taken by them.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// As long as it lives, this thread waits.
struct WaitingThread;

impl WaitingThread {
    fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for WaitingThread {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// This process in its job.
pub struct Live {
    /// The thread that delivers, if there is one.
    delivery: Mutex<Option<Delivery<Work>>>,
    /// Whether there is.
    delivers: AtomicBool,
}

impl Live {
    /// Joins the job, and waits until all its processes have.
    ///
    /// # Errors
    /// The process cannot join, or another one has ended instead.
    pub fn open() -> Result<Self, ObjectFault> {
        let cannot = |why: String| ObjectFault::Group(why);
        if MESSENGER.is_open() {
            return Err(cannot("this process has opened its space already".to_owned()));
        }
        let mut endpoint = Endpoint::join_as(InterfaceName::Objects, &[]).map_err(|fault| cannot(fault.to_string()))?;
        let work = Work::new(&mut endpoint).map_err(|fault| cannot(fault.to_string()))?;
        MESSENGER.open_beside(endpoint, work, true);
        MESSENGER.lend();
        let live = Self { delivery: Mutex::new(None), delivers: AtomicBool::new(false) };
        MESSENGER.wait_both(waiting("Space::open"), |endpoint, work| work.is_complete(endpoint))?;
        Ok(live)
    }
}

impl Driver for Live {
    fn with(&self, what: &mut dyn FnMut(&mut Runtime)) {
        MESSENGER.with_both(|endpoint, work| {
            work.look(endpoint);
            what(&mut work.runtime);
            work.turn(endpoint);
        });
    }

    fn wait(&self, call: CallId) -> Result<Vec<u8>, ObjectFault> {
        let _waiting = WaitingThread::begin();
        // Most calls are over, and only who waits says for what.
        let begun = MESSENGER.with_both(|endpoint, work| match work.runtime.poll_answer(call) {
            Some(answer) => {
                endpoint.push_out();
                Ok(answer)
            }
            None => Err(work.what(call)),
        });
        begun.unwrap_or_else(|what| MESSENGER.wait_both(what, |_, work| work.runtime.poll_answer(call)))
    }

    fn wait_within(&self, call: CallId, patience: Duration) -> Option<Result<Vec<u8>, ObjectFault>> {
        let _waiting = WaitingThread::begin();
        let until = Instant::now() + patience;
        let what = MESSENGER.with_both(|_, work| {
            work.impatient += 1;
            work.what(call)
        });
        MESSENGER.wait_both(what, |_, work| {
            let answer = work.runtime.poll_answer(call);
            let is_over = answer.is_some() || Instant::now() >= until;
            work.impatient -= u32::from(is_over);
            is_over.then_some(answer)
        })
    }

    fn poll(&self) {
        // The thread that delivers would look for what this one has found already.
        if !self.delivers.load(Ordering::Relaxed) {
            MESSENGER.poll();
        }
    }

    fn deliver(&self, delivers: bool) -> Result<(), ObjectFault> {
        let mut delivery = self.delivery.lock().unwrap_or_else(PoisonError::into_inner);
        if !delivers {
            *delivery = None;
        } else if delivery.is_none() {
            let cannot = |fault| ObjectFault::Group(format!("there is no thread to deliver: {fault}"));
            *delivery = Some(MESSENGER.deliver().map_err(cannot)?);
        }
        self.delivers.store(delivers, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Live {
    /// Leaves: with the others where all have closed, else as one that ends.
    fn drop(&mut self) {
        let is_closed = MESSENGER.with_both(|endpoint, work| {
            let is_closed = work.runtime.is_closed() && !work.is_over;
            if is_closed {
                work.groups.leave(endpoint, work.group);
            }
            is_closed
        });
        if is_closed {
            MESSENGER.wait_both(waiting("leaving"), |endpoint, work| {
                let has_left = work.groups.has_left(endpoint) & work.letters.reclaim(endpoint);
                (work.is_over && has_left).then_some(())
            });
        }
        drop(self.delivery.get_mut().map(Option::take));
        MESSENGER.close();
    }
}
