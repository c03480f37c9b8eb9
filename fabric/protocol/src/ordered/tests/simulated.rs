//! A group over a network in which words take any time, processes die, and halves are cut off from each other.

use super::super::*;
use std::collections::{BTreeMap, BTreeSet};

/// What happens in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    pub deaths: u64,
    pub cuts: u64,
    pub safe: bool,
    /// On so many hosts, process after process; 0: it is not known.
    pub hosts: u32,
}

/// Steps in which things happen; then everything comes to rest.
const STEPS: usize = 600;

/// Processes at the start, and in all.
const FIRST: usize = 6;
const MOST: usize = 12;

/// Xorshift: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

/// One process. Who was a member is none again: it would come with another number.
#[derive(Default)]
struct Process {
    group: Option<OrderedGroup>,
    dead: bool,
    /// By sequence number.
    delivered: BTreeMap<u64, String>,
    sent: Vec<String>,
    views: Vec<GroupView>,
}

impl Process {
    fn is_member(&self) -> bool {
        self.group.as_ref().is_some_and(OrderedGroup::has_view)
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, process) in self.processes.iter().enumerate() {
            write!(f, "\nP{at}: dead {}, delivered {:?}", process.dead, process.delivered.keys().last())?;
            if let Some(group) = &process.group {
                write!(
                    f,
                    ", {:?}, {:?}, {} unplaced, {:?}",
                    group.standing,
                    group.view,
                    group.own.len(),
                    group.change
                )?;
                write!(
                    f,
                    ", {:?}, stable {}, told {}, delivered {}, next {}",
                    group.sequencer,
                    group.stable,
                    group.told,
                    group.delivered,
                    group.history.next()
                )?;
            }
        }
        let words = self.channels.iter().filter(|(_, words)| !words.is_empty());
        words.take(4).try_for_each(|(at, words)| {
            write!(f, "\n{at:?}: {:?}", words.front().map(|word| GroupWord::read(word, None)))
        })
    }
}

struct Simulation {
    random: Random,
    course: Course,
    processes: Vec<Process>,
    channels: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
    /// Who is cut off from the others, and until when.
    cut: (BTreeSet<usize>, u64),
    /// Who has not heard of whose death.
    proofs: Vec<(usize, usize)>,
    now_ms: u64,
}

fn member(at: usize) -> GroupMember {
    GroupMember(at as u32)
}

/// # Panics
/// If anything is wrong, with the seed.
pub fn run(seed: u64, course: &Course) {
    let result = std::panic::catch_unwind(|| Simulation::new(seed, *course).run());
    assert!(result.is_ok(), "seed {seed} of {course:?}");
}

impl Simulation {
    fn new(seed: u64, course: Course) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| _ = random.below(2));
        let processes = (0..2 + random.below(FIRST - 1)).map(|_| Process::default()).collect();
        let cut = (BTreeSet::new(), 0);
        Self { random, course, processes, channels: BTreeMap::new(), cut, proofs: Vec::new(), now_ms: 0 }
    }

    fn rules(&self) -> GroupRules {
        GroupRules { reserve_from: 12, safe: self.course.safe, history_bytes: 100, ..super::RULES }
    }

    fn host_of(&self) -> Option<HostNumber> {
        let hosts = self.course.hosts;
        (hosts > 0).then(|| Arc::new(move |member: GroupMember| member.0 % hosts) as HostNumber)
    }

    fn run(mut self) {
        let mut first = OrderedGroup::create(member(0), self.rules());
        if let Some(host_of) = self.host_of() {
            first.know_hosts(host_of);
        }
        self.processes[0].group = Some(first);
        let (mut deaths, mut cuts) = (self.course.deaths, self.course.cuts);
        for _ in 0..STEPS {
            match self.random.below(40) {
                0 if deaths > 0 && self.random.one_in(8) => {
                    deaths -= 1;
                    self.kill();
                }
                1 if cuts > 0 && self.now_ms > self.cut.1 && self.random.one_in(8) => {
                    cuts -= 1;
                    self.cut_off();
                }
                2 => self.tell_death(),
                3 if self.random.one_in(6) => self.leave(),
                4..8 => self.join(),
                8..16 => self.send(),
                16..18 => self.pass_time(),
                _ => _ = self.deliver(),
            }
        }
        self.come_to_rest();
        self.check();
    }

    fn any(&mut self) -> usize {
        self.random.below(self.processes.len())
    }

    fn kill(&mut self) {
        let at = self.any();
        if self.processes[at].dead {
            return;
        }
        self.processes[at].dead = true;
        // Of what it has said last some is never heard.
        for to in 0..self.processes.len() {
            if let Some(channel) = self.channels.get_mut(&(at, to)) {
                let keep = self.random.below(channel.len() + 1);
                channel.truncate(keep);
            }
        }
        self.proofs.extend((0..self.processes.len()).map(|to| (to, at)));
    }

    fn cut_off(&mut self) {
        let all = 0..self.processes.len();
        let off = all.filter(|_| self.random.one_in(3)).collect();
        self.cut = (off, self.now_ms + 20 + self.random.below(400) as u64);
    }

    fn tell_death(&mut self) {
        if self.proofs.is_empty() {
            return;
        }
        let which = self.random.below(self.proofs.len());
        let (to, of) = self.proofs.swap_remove(which);
        if let Some(group) = &mut self.processes[to].group {
            group.handle_death(member(of));
        }
        self.collect(to);
    }

    fn leave(&mut self) {
        let at = self.any();
        if let Some(group) = self.processes[at].group.as_mut().filter(|group| !group.view().members.is_empty()) {
            group.leave();
        }
        self.collect(at);
    }

    /// Somebody who is no member asks one to be let in; who has asked asks another one.
    fn join(&mut self) {
        if self.processes.len() < MOST && self.random.one_in(10) {
            self.processes.push(Process::default());
        }
        let (at, contact) = (self.any(), self.any());
        if at == contact || self.processes[at].dead || !self.processes[contact].is_member() {
            return;
        }
        let (rules, host_of) = (self.rules(), self.host_of());
        let all = self.processes.iter().enumerate();
        let known = all.filter(|(of, process)| process.dead && !self.proofs.contains(&(at, *of)));
        let known: Vec<_> = known.map(|(of, _)| member(of)).collect();
        match &mut self.processes[at].group {
            Some(group) if group.has_view() || group.is_over() => return,
            Some(group) => group.ask_to_join(member(contact)),
            none => {
                let mut group = OrderedGroup::join(member(at), rules, member(contact));
                if let Some(host_of) = host_of {
                    group.know_hosts(host_of);
                }
                known.into_iter().for_each(|dead| group.handle_death(dead));
                *none = Some(group);
            }
        }
        self.collect(at);
    }

    fn send(&mut self) {
        let at = self.any();
        let long = if self.random.one_in(3) { "long message" } else { "" };
        let process = &mut self.processes[at];
        if let Some(group) = process.group.as_mut().filter(|_| !process.dead) {
            let text = format!("{at}.{}{long}", process.sent.len());
            if group.try_send(text.as_bytes().into()) {
                process.sent.push(text);
            }
        }
        self.collect(at);
    }

    fn pass_time(&mut self) {
        self.now_ms += self.random.below(12) as u64;
        for at in 0..self.processes.len() {
            if let Some(group) = &mut self.processes[at].group {
                group.handle_time(self.now_ms);
            }
            self.collect(at);
        }
    }

    /// One word arrives, or several of one channel.
    fn deliver(&mut self) -> bool {
        let (off, until) = &self.cut;
        let is_cut = |from: usize, to: usize| self.now_ms < *until && off.contains(&from) != off.contains(&to);
        let open = self.channels.iter().filter(|((from, to), words)| !words.is_empty() && !is_cut(*from, *to));
        let open: Vec<_> = open.map(|(channel, _)| *channel).collect();
        if open.is_empty() {
            return false;
        }
        let channel = open[self.random.below(open.len())];
        for _ in 0..1 + self.random.below(4) {
            let Some(word) = self.channels.get_mut(&channel).and_then(VecDeque::pop_front) else { break };
            let process = &mut self.processes[channel.1];
            if let Some(group) = process.group.as_mut().filter(|_| !process.dead) {
                let word = GroupWord::read(&word, None).expect("a word");
                let heard = group.handle_word(member(channel.0), word.clone());
                assert_eq!(heard, Ok(()), "{channel:?}: {word:?}: {self:?}");
            }
            if self.random.one_in(2) {
                self.collect(channel.1);
            }
        }
        self.collect(channel.1);
        true
    }

    /// Takes what a process has to say, and has delivered.
    fn collect(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let Some(group) = process.group.as_mut() else { return };
        if process.dead {
            return;
        }
        group.handle_pause();
        while let Some(event) = group.poll_event() {
            match event {
                GroupEvent::Message { sequence, message } => {
                    let text = String::from_utf8(message.bytes.to_vec()).expect("text");
                    assert!(text.starts_with(&format!("{}.", message.origin.0)));
                    let last = process.delivered.last_key_value().map(|(last, _)| last + 1);
                    assert!(last.is_none_or(|last| last == sequence), "no gap: {last:?}, {sequence}");
                    assert_eq!(process.delivered.insert(sequence, text), None);
                }
                GroupEvent::View(view) => process.views.push(view),
                GroupEvent::Left | GroupEvent::Excluded => {}
            }
        }
        let mut head = Vec::new();
        while let Some((to, word)) = group.poll_word() {
            let to: Vec<_> = match to {
                WordTo::One(one) => vec![one],
                WordTo::Others { but } => group.receivers(but).collect(),
                WordTo::Hosts { origin, passes_on } => group.receivers_by_hosts(origin, passes_on).collect(),
            };
            let tail = word.write(&mut head);
            let bytes = [head.as_slice(), tail].concat();
            for to in to {
                assert_ne!(to, member(at), "{word:?}");
                self.channels.entry((at, to.0 as usize)).or_default().push_back(bytes.clone());
            }
        }
    }

    fn come_to_rest(&mut self) {
        self.cut.1 = 0;
        let mut quiet = 0;
        for _ in 0..200_000 {
            if quiet >= 150 && self.proofs.is_empty() {
                return;
            }
            if self.random.one_in(40) {
                self.tell_death();
                self.join();
            }
            if !self.processes.iter().any(|process| !process.dead && process.is_member()) {
                // Nobody is left who could let anybody in.
                return;
            }
            if self.deliver() {
                quiet = 0;
            } else {
                quiet += 1;
                self.pass_time();
            }
        }
        panic!("no rest: {self:?}");
    }

    fn check(&self) {
        let living: Vec<_> = self.processes.iter().filter(|process| !process.dead).collect();
        let members: Vec<_> = living.iter().filter(|process| process.is_member()).collect();
        let mut order: BTreeMap<u64, &String> = BTreeMap::new();
        let mut views: BTreeMap<u32, &GroupView> = BTreeMap::new();
        for process in &members {
            let group = process.group.as_ref().expect("a member");
            let first = members[0].group.as_ref().expect("a member");
            assert_eq!((group.view(), group.unplaced()), (first.view(), 0), "{self:?}");
            for text in &process.sent {
                assert!(process.delivered.values().any(|delivered| delivered == text), "{text} is missing");
            }
            for view in &process.views {
                assert_eq!(*views.entry(view.number).or_insert(view), view);
            }
        }
        let all = self.processes.iter();
        let compared =
            all.filter(|process| self.course.safe || members.iter().any(|one| std::ptr::eq(**one, *process)));
        for process in compared {
            for (sequence, text) in &process.delivered {
                assert_eq!(*order.entry(*sequence).or_insert(text), text, "at {sequence}");
            }
            let once: BTreeSet<_> = process.delivered.values().collect();
            assert_eq!(once.len(), process.delivered.len(), "each once");
        }
        let end = |process: &Process| process.delivered.last_key_value().map(|(last, _)| *last);
        let last = members.iter().map(|one| end(one)).max().flatten();
        assert!(members.iter().all(|one| one.delivered.is_empty() || end(one) == last), "all have all: {self:?}");
    }
}
