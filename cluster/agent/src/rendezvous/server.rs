//! The loop of the rendezvous.

use super::datagrams;
use super::sys::{self, ComeProcess, RendezvousListener, SentDescriptor};
use super::table::{Meeting, RendezvousTable, ShownEnd, Tuple};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use weft_kernel::DescriptorSet;
use weft_lanes::{Client, FarTurn, Guardian, ProcessMail};
use weft_wire::stream::datagram::DatagramPeer;
use weft_wire::stream::packet::{Answer, BYTES, StreamRequest, VERSION};
use weft_wire::stream::{arena, page};

/// A process, once it has said hello with its page.
struct ServedProcess {
    socket: OwnedFd,
    pid: u32,
    /// It names processes and threads by the numbers that we name them by.
    counts_as_we_do: bool,
    user: u32,
    page: Option<File>,
    mails: u32,
    /// Sockets that it has shown.
    looked: u32,
}

impl ServedProcess {
    /// Sends mail, then counts it. False when it is not taken.
    fn mail(&mut self, answer: &Answer, descriptor: Option<i32>) -> bool {
        let Some(page) = &self.page else { return false };
        if sys::send(&self.socket, &answer.pack(), descriptor).is_err() {
            return false;
        }
        self.mails = self.mails.wrapping_add(1);
        page.write_all_at(&self.mails.to_le_bytes(), page::MAILS_AT as u64).is_ok()
    }

    /// A socket that it has shown is not open here any more.
    fn has_looked(&mut self) {
        self.looked = self.looked.wrapping_add(1);
        if let Some(page) = &self.page {
            let _ = page.write_all_at(&self.looked.to_le_bytes(), page::LOOKED_AT as u64);
        }
    }

    /// Whether the memory is there still that has the page.
    fn is_there(&self) -> bool {
        self.page.as_ref().is_some_and(sys::is_mapped)
    }

    fn call(&self) {
        sys::call(&self.socket, self.pid, || self.is_there());
    }
}

/// What processes had counted that have ended since, however they ended.
#[derive(Default)]
struct EndedCounts {
    processes: u32,
    counters: [u64; COUNTERS],
}

impl EndedCounts {
    fn add(&mut self, process: &ServedProcess) {
        self.processes += 1;
        for (sum, counted) in self.counters.iter_mut().zip(counters(process).chunks_exact(8)) {
            // What a process says of itself may be anything.
            *sum = sum.wrapping_add(u64::from_le_bytes(counted.try_into().unwrap_or_default()));
        }
    }
}

const COUNTERS: usize = page::COUNTER_NAMES.len() + page::REASON_NAMES.len();

pub struct RendezvousServer {
    listeners: Vec<RendezvousListener>,
    set: DescriptorSet,
    table: RendezvousTable,
    processes: HashMap<Client, ServedProcess>,
    /// Those that have lost their way to us, live on, and have connections to other hosts.
    silent: Vec<Client>,
    arenas: HashMap<u64, File>,
    limits: RendezvousLimits,
    next: Client,
    /// Ours: where a guardian's connections are.
    namespace: u64,
    ended: EndedCounts,
    guardian: Option<Box<dyn Guardian>>,
}

/// What there may be at most: with the ends that a guardian keeps fewer descriptors than we may have.
#[derive(Clone, Copy)]
struct RendezvousLimits {
    /// Each with a socket and a page.
    processes: usize,
    arenas: usize,
}

impl RendezvousLimits {
    fn of(descriptors: usize) -> Self {
        Self { processes: descriptors / 4, arenas: descriptors / 8 }
    }
}

/// Packets of one process, or processes that have come, before others are looked at.
const TURN: usize = 32;
/// So often one looks after those that are silent.
const SILENCE: Duration = Duration::from_millis(25);

/// Key of the guardian in the set.
const GUARDIAN: u64 = u64::MAX;

/// Serves until nobody has been there for `idle`.
pub fn run(listeners: Vec<RendezvousListener>, guardian: Option<Box<dyn Guardian>>, idle: Duration) -> io::Result<()> {
    let mut server = RendezvousServer::new(listeners, guardian)?;
    server.serve_until(idle)
}

impl RendezvousServer {
    fn new(listeners: Vec<RendezvousListener>, guardian: Option<Box<dyn Guardian>>) -> io::Result<Self> {
        let limits = RendezvousLimits::of(sys::raise_limit());
        let set = DescriptorSet::new()?;
        for (key, listener) in listeners.iter().enumerate() {
            set.add(&listener.socket, key as u64)?;
        }
        if let Some(guardian) = &guardian {
            set.add(&**guardian, GUARDIAN)?;
        }
        Ok(Self {
            namespace: sys::namespace(&listeners[0].socket).unwrap_or(0),
            next: listeners.len() as Client,
            listeners,
            set,
            table: RendezvousTable::default(),
            processes: HashMap::new(),
            silent: Vec::new(),
            arenas: HashMap::new(),
            limits,
            ended: EndedCounts::default(),
            guardian,
        })
    }

    fn serve_until(&mut self, idle: Duration) -> io::Result<()> {
        let mut last = Instant::now();
        while self.is_needed() || last.elapsed() < idle {
            let limit = if self.is_needed() { idle } else { idle.saturating_sub(last.elapsed()) };
            let turn = self.until_turn();
            let mut is_due = turn.is_some_and(|turn| turn.is_zero());
            let silence = (!self.silent.is_empty()).then_some(SILENCE);
            let limit = [turn, silence].into_iter().flatten().fold(limit, Duration::min);
            for (key, _) in self.set.wait(Some(limit))? {
                if key == GUARDIAN {
                    is_due = true;
                } else {
                    self.serve(key);
                    last = Instant::now();
                }
            }
            self.look_after_silent();
            if is_due || self.until_turn().is_some_and(|turn| turn.is_zero()) {
                self.turn();
            }
        }
        Ok(())
    }

    /// Whether there are processes, or something that one has left.
    fn is_needed(&self) -> bool {
        !self.processes.is_empty() || self.until_turn().is_some()
    }

    fn until_turn(&self) -> Option<Duration> {
        self.guardian.as_ref()?.until_turn()
    }

    /// Lets the guardian do what it has to do, and hands out its mail.
    fn turn(&mut self) {
        let Some(guardian) = &mut self.guardian else { return };
        let FarTurn { mails, calls } = guardian.turn();
        for ProcessMail { client, place, packets } in mails {
            let process = self.processes.get_mut(&client);
            let is_told = process
                .is_some_and(|process| packets.iter().all(|(answer, descriptor)| process.mail(answer, *descriptor)));
            if !is_told {
                guardian.untold(client, &place);
            }
        }
        calls.iter().filter_map(|client| self.processes.get(client)).for_each(ServedProcess::call);
    }

    fn serve(&mut self, key: u64) {
        if let Some(listener) = self.listeners.get(key as usize) {
            for guest in (0..TURN).map_while(|_| listener.accept().ok()) {
                let is_welcome = guest.user == sys::user() || sys::user() == 0;
                // Who is not taken is let go of at once: his socket would end our sleep for ever.
                if is_welcome && self.processes.len() < self.limits.processes {
                    admit(&self.set, &mut self.processes, &mut self.next, guest);
                }
            }
            return;
        }
        for _ in 0..TURN {
            let Some(process) = self.processes.get(&key).filter(|_| !self.silent.contains(&key)) else { return };
            let mut packet = [0; BYTES];
            match sys::receive(&process.socket, &mut packet) {
                Ok((BYTES, descriptor)) => match StreamRequest::parse(&packet) {
                    Some(request) => self.answer(key, request, descriptor),
                    None => return self.hang_up(key),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => return self.hang_up(key),
            }
        }
    }

    /// Nothing comes from a process any more, or nonsense. Mostly it has ended, or become another program. But it may
    /// have lost only its socket: then it uses on what it has of us, and nobody else may have that.
    fn hang_up(&mut self, client: Client) {
        let lives = self.processes.get(&client).is_some_and(ServedProcess::is_there);
        if !lives || !self.guardian.as_mut().is_some_and(|guardian| guardian.fall_silent(client)) {
            return self.leave(client);
        }
        if let Some(process) = self.processes.get(&client) {
            self.set.remove(&process.socket);
        }
        self.silent.push(client);
        self.retire(client);
    }

    fn look_after_silent(&mut self) {
        let processes = &self.processes;
        let has_ended = |client: &mut Client| processes.get(client).is_none_or(|process| !process.is_there());
        let ended: Vec<Client> = self.silent.extract_if(.., has_ended).collect();
        ended.into_iter().for_each(|client| self.leave(client));
    }

    fn leave(&mut self, client: Client) {
        if let Some(process) = self.processes.remove(&client).filter(|process| process.page.is_some()) {
            self.ended.add(&process);
        }
        if let Some(guardian) = &mut self.guardian {
            guardian.leave(client);
        }
        self.retire(client);
    }

    /// What a process shares with others of this host gets no further connections.
    fn retire(&mut self, client: Client) {
        for (arena, other) in self.table.leave(client) {
            self.arenas.remove(&arena);
            if let Some(other) = self.processes.get_mut(&other) {
                other.mail(&Answer::Retired { arena }, None);
            }
        }
    }

    fn answer(&mut self, client: Client, request: StreamRequest, descriptor: Option<SentDescriptor>) {
        let is_shown = matches!(request, StreamRequest::Offer { .. } | StreamRequest::OfferPair { .. });
        self.act(client, request, descriptor);
        if let Some(process) = self.processes.get_mut(&client).filter(|_| is_shown) {
            process.has_looked();
        }
    }

    fn act(&mut self, client: Client, request: StreamRequest, descriptor: Option<SentDescriptor>) {
        match (request, descriptor) {
            (StreamRequest::Hello { version: VERSION }, Some(page)) => self.hello(client, page),
            // Two who meet name each other to the kernel by their numbers, which must mean the same to both. Others, in
            // containers that share a network, stay with it.
            (StreamRequest::Offer { .. } | StreamRequest::OfferPair { .. }, Some(_))
                if !self.counts_as_we_do(client) => {}
            (StreamRequest::Offer { cookie }, Some(shown)) => self.offer(client, cookie, shown),
            (StreamRequest::OfferPair { cookie, peer }, Some(shown)) => self.offer_pair(client, cookie, &peer, shown),
            (StreamRequest::Release(place), None) => {
                let is_far = self.guardian.as_mut().is_some_and(|guardian| guardian.release(client, &place));
                if !is_far {
                    self.table.release(place);
                }
            }
            (StreamRequest::Withdraw { cookie }, None) => {
                self.table.withdraw(client, cookie);
                if let Some(guardian) = &mut self.guardian {
                    guardian.withdraw(client, cookie);
                }
            }
            // More descriptors than we may have are under way: the kernel has kept this one.
            (StreamRequest::Offer { .. } | StreamRequest::OfferPair { .. }, None) if self.guardian.is_some() => {}
            (StreamRequest::Survey, None) => self.survey(client),
            // Another version, or what must come with a descriptor without one.
            _ => self.hang_up(client),
        }
    }

    fn counts_as_we_do(&self, client: Client) -> bool {
        self.processes.get(&client).is_some_and(|process| process.counts_as_we_do)
    }

    fn hello(&mut self, client: Client, page: SentDescriptor) {
        let serves_hosts = self.serves_hosts(client);
        // One is enough: by another one it could seem to have ended.
        if let Some(process) = self.processes.get_mut(&client).filter(|process| process.page.is_none()) {
            process.page = sys::as_page(page);
            if let Some(page) = process.page.as_ref().filter(|_| !process.counts_as_we_do) {
                let _ = page.write_all_at(&1u32.to_le_bytes(), page::APART_AT as u64);
            }
            if let Some(page) = process.page.as_ref().filter(|_| !serves_hosts) {
                let _ = page.write_all_at(&1u32.to_le_bytes(), page::HOST_ONLY_AT as u64);
            }
        }
    }

    /// Whether this process may have connections to other hosts.
    fn serves_hosts(&self, client: Client) -> bool {
        let is_ours = |process: &ServedProcess| process.counts_as_we_do && process.user == sys::user();
        self.guardian.is_some() && self.processes.get(&client).is_some_and(is_ours)
    }

    fn offer(&mut self, client: Client, cookie: u64, shown: SentDescriptor) {
        let Some(found) = sys::look_at(&shown).filter(|found| found.cookie == cookie) else { return };
        let serves_hosts = self.serves_hosts(client);
        // Where a socket of another network is from, equal addresses mean other hosts.
        if let Some(guardian) = self.guardian.as_mut().filter(|_| found.namespace == self.namespace)
            && guardian.leads(found.local, found.remote)
        {
            if let Some(shown) = shown.keep_if(serves_hosts) {
                guardian.offer(client, cookie, shown, [found.local, found.remote]);
            }
            return;
        }
        // An end of a connection inside a host is never kept alive here.
        drop(shown);
        let tuple = Tuple::new(found.namespace, found.local, found.remote);
        self.show(tuple, ShownEnd { client, cookie, peer: None });
    }

    fn offer_pair(&mut self, client: Client, cookie: u64, peer: &DatagramPeer, shown: SentDescriptor) {
        let Some(user) = self.processes.get(&client).map(|process| process.user) else { return };
        let found = datagrams::look_at(&shown, peer);
        drop(shown);
        let Some(found) = found.filter(|found| found.cookie == cookie) else { return };
        let tuple = Tuple::of_datagrams(found.namespace, found.local, found.remote, user);
        self.show(tuple, ShownEnd { client, cookie, peer: Some(*peer) });
    }

    fn show(&mut self, tuple: Tuple, end: ShownEnd) {
        let (arenas, most) = (&mut self.arenas, self.limits.arenas);
        let meeting = self.table.show(tuple, end, || {
            if arenas.len() >= most {
                return None;
            }
            let name = sys::random().ok()?;
            arenas.insert(name, sys::new_arena(name).ok()?);
            Some(name)
        });
        if let Some(meeting) = meeting {
            self.tell(&meeting);
        }
    }

    fn tell(&mut self, meeting: &Meeting) {
        for (side, (end, place)) in meeting.ends.iter().enumerate() {
            let memory = self.arenas.get(&place.arena).filter(|_| meeting.new_to[side]).map(|file| file.as_raw_fd());
            let (cookie, place_of_end) = (end.cookie, *place);
            let answer = match end.peer {
                None => Answer::Mail { cookie, place: place_of_end },
                Some(peer) => Answer::Pair { cookie, place: place_of_end, peer },
            };
            let told = self.processes.get_mut(&end.client).is_some_and(|process| process.mail(&answer, memory));
            if !told {
                // A side that does not know stays with the kernel, and with it the other one.
                self.table.release(*place);
                if meeting.new_to[side] {
                    self.table.forget_known(place.arena, side);
                }
            }
        }
    }

    /// Root sees everything of everybody; others see this only where all is theirs.
    fn survey(&self, client: Client) {
        let Some(asking) = self.processes.get(&client) else { return };
        if asking.user == sys::user() {
            for (key, process) in self.processes.iter().filter(|(_, process)| process.page.is_some()) {
                let offers = self.table.waiting_of(*key) as u32;
                let mut packet = Answer::Process { pid: process.pid, offers }.pack().to_vec();
                packet.extend(counters(process));
                let _ = sys::send(&asking.socket, &packet, None);
            }
            if self.ended.processes > 0 {
                let mut packet = Answer::Process { pid: 0, offers: self.ended.processes }.pack().to_vec();
                packet.extend(self.ended.counters.iter().flat_map(|sum| sum.to_le_bytes()));
                let _ = sys::send(&asking.socket, &packet, None);
            }
            for arena in self.table.arenas() {
                self.survey_arena(asking, arena);
            }
            self.survey_far(asking);
        }
        let _ = sys::send(&asking.socket, &Answer::End.pack(), None);
    }

    fn survey_far(&self, asking: &ServedProcess) {
        for far in self.guardian.iter().flat_map(|guardian| guardian.connections()) {
            let pid = self.processes.get(&far.client).map_or(0, |process| process.pid);
            let answer = Answer::Far { pid, port: far.port, peer: far.peer, bytes: far.bytes };
            let _ = sys::send(&asking.socket, &answer.pack(), None);
        }
    }

    fn survey_arena(&self, asking: &ServedProcess, arena: &super::table::SharedArena) {
        let pids = arena.clients.map(|client| self.processes.get(&client).map_or(0, |process| process.pid));
        let Some(memory) = self.arenas.get(&arena.name) else { return };
        for (slot, ports) in arena.connections() {
            let bytes = [0, 1].map(|side| {
                let mut head = [0; 8];
                let at = arena::direction_at(slot, side) + arena::direction::sender::HEAD;
                memory.read_exact_at(&mut head, at as u64).map_or(0, |()| u64::from_le_bytes(head))
            });
            let _ = sys::send(&asking.socket, &Answer::Connection { pids, ports, bytes }.pack(), None);
        }
    }
}

fn admit(set: &DescriptorSet, processes: &mut HashMap<Client, ServedProcess>, next: &mut Client, guest: ComeProcess) {
    let key = *next;
    *next += 1;
    if set.add(&guest.socket, key).is_ok() {
        let ComeProcess { socket, pid, user } = guest;
        let counts_as_we_do = sys::counts_as_we_do(pid);
        processes.insert(key, ServedProcess { socket, pid, counts_as_we_do, user, page: None, mails: 0, looked: 0 });
    }
}

/// The counters of a page, as they stand there.
fn counters(process: &ServedProcess) -> Vec<u8> {
    let mut counters = vec![0; COUNTERS * 8];
    if let Some(page) = &process.page {
        let _ = page.read_exact_at(&mut counters, page::COUNTERS_AT as u64);
    }
    counters
}

#[cfg(test)]
mod tests;
