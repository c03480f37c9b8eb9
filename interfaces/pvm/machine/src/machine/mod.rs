//! The state machine: what daemons have seen goes in by [`VirtualMachine::handle_seen`], what they are to do comes out
//! by [`VirtualMachine::poll_order`].

mod contexts;
mod gathering;
mod groups;
mod hosts;
mod mailbox;
mod meetings;
mod notices;
mod output;
mod spawning;
mod tasks;
#[cfg(test)]
mod tests;

use crate::code;
use crate::frame::{Answer, ByteString, Event, Order, Request, Seen, Told, VERSION, framed, read};
use contexts::ContextNumbers;
use gathering::Gathering;
use groups::{Barrier, TaskGroups};
use hosts::MachineHosts;
use mailbox::MachineMailbox;
use meetings::{GroupMeetings, JobBlock};
use notices::Notices;
use spawning::Spawning;
use std::collections::{HashMap, VecDeque};
use tasks::Tasks;

/// Asks a process to end.
const TERMINATE: i32 = 15;

/// A client: the host whose daemon it has come to, and its number there.
pub(crate) type ClientNumber = (u32, u32);

/// The virtual machine. One host, the first, is always there.
pub struct VirtualMachine {
    hosts: MachineHosts,
    tasks: Tasks,
    /// Those that have connected, with their task once they have enrolled.
    clients: HashMap<ClientNumber, Option<i32>>,
    spawning: Spawning,
    gathering: Vec<Gathering>,
    mailbox: MachineMailbox,
    groups: TaskGroups,
    meetings: GroupMeetings,
    contexts: ContextNumbers,
    notices: Notices,
    orders: VecDeque<(u32, Order)>,
    /// It does not end with its last task.
    stays: bool,
    /// The job that it ends with all the same.
    ends_with: String,
    had_tasks: bool,
    has_ended: bool,
}

impl VirtualMachine {
    /// A machine of the host of this name, which ends with a job, if one is named.
    pub fn new(name: &str, stays: bool, ends_with: &str) -> Self {
        Self {
            hosts: MachineHosts::new(name),
            tasks: Tasks::default(),
            clients: HashMap::new(),
            spawning: Spawning::default(),
            gathering: Vec::new(),
            mailbox: MachineMailbox::default(),
            groups: TaskGroups::default(),
            meetings: GroupMeetings::default(),
            contexts: ContextNumbers::default(),
            notices: Notices::default(),
            orders: VecDeque::new(),
            stays,
            ends_with: ends_with.to_owned(),
            had_tasks: false,
            has_ended: false,
        }
    }

    /// What the daemon of a host has seen.
    pub fn handle_seen(&mut self, host: u32, seen: Seen) {
        match seen {
            Seen::Asked { client, bytes } => self.on_bytes((host, client), &bytes.0),
            Seen::ClientGone { client } => self.on_gone((host, client)),
            Seen::Started { tid, pid } => self.on_started(host, tid, pid),
            Seen::Ended { tid } => self.on_ended(host, tid),
            Seen::Printed { tid, bytes } => self.on_printed(host, tid, bytes),
            Seen::HostUp { number, name, architecture } => self.on_host_up(number, name, architecture),
            Seen::HostDown { number, code } => self.on_host_down(number, code),
            Seen::Pulse => {}
        }
    }

    /// What the daemon of a host is to do next.
    pub fn poll_order(&mut self) -> Option<(u32, Order)> {
        self.orders.pop_front()
    }

    /// Whether nobody needs the machine any more.
    pub fn is_idle(&self) -> bool {
        self.has_ended
            || !self.stays && self.had_tasks && !self.tasks.any_process() && self.clients.values().all(Option::is_none)
    }

    /// Whether it was halted.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn order(&mut self, host: u32, order: Order) {
        self.orders.push_back((host, order));
    }

    fn tell(&mut self, client: ClientNumber, told: &Told) {
        let bytes = ByteString(framed(told));
        self.order(client.0, Order::Tell { client: client.1, bytes });
    }

    fn answer(&mut self, client: ClientNumber, answer: Answer) {
        self.tell(client, &Told::Answer { answer });
    }

    fn answer_code(&mut self, client: ClientNumber, code: i32) {
        self.answer(client, Answer::Code { code });
    }

    /// Tells a task something, if it can be told.
    fn tell_task(&mut self, tid: i32, event: Event) {
        if let Some(client) = self.tasks.client(tid) {
            self.tell(client, &Told::Event { event });
        }
    }

    fn on_bytes(&mut self, client: ClientNumber, bytes: &[u8]) {
        let task = *self.clients.entry(client).or_insert(None);
        match (read(bytes), task) {
            (Some(Request::Speak { version: VERSION }), None) => {}
            (Some(Request::Speak { .. }), None) => {
                self.answer_code(client, code::OTHER_VERSION);
                self.order(client.0, Order::Close { client: client.1 });
                self.on_gone(client);
            }
            (Some(Request::Enrol { who }), None) => self.enrol(client, who),
            (Some(request), Some(tid)) => self.on_request(client, tid, request),
            // Who has left asks whether those are there still that it has sent to.
            (Some(Request::TaskStatus { tid }), None) => {
                let code = self.tasks.status(tid);
                self.answer_code(client, code);
            }
            // It speaks another language, or out of turn.
            _ => {
                self.order(client.0, Order::Close { client: client.1 });
                self.on_gone(client);
            }
        }
    }

    fn on_request(&mut self, client: ClientNumber, tid: i32, request: Request) {
        let code = match request {
            Request::Speak { .. } | Request::Enrol { .. } => code::ALREADY,
            Request::Leave => {
                self.meetings.leave_all(client);
                self.end_task(tid);
                self.clients.insert(client, None);
                // Who was the last one is told, and can wait for the end.
                i32::from(self.is_idle())
            }
            Request::Meet { tid: other } => return self.meet(client, tid, other),
            Request::Spawn { program, place, count, prints_to, context } => {
                return self.spawn(client, tid, program, &place.text(), count, prints_to, context);
            }
            Request::Signal { tid: other, signal } => self.signal(other, signal),
            Request::TaskStatus { tid: other } => self.tasks.status(other),
            Request::HostStatus { name } => self.hosts.status(&name.text()),
            Request::Tasks { of } => return self.answer_tasks(client, of),
            Request::Hosts => return self.answer(client, Answer::Hosts { hosts: self.hosts.all() }),
            Request::AddHosts { names } => return self.add_hosts(Some(client), names),
            Request::DeleteHosts { names } => return self.delete_hosts(client, &names),
            Request::Notify { what, context, tag, count, of } => self.notify(tid, what, context, tag, count, &of),
            Request::Context { free: 0 } => self.contexts.new_for(tid),
            Request::Context { free } => self.contexts.free(tid, free),
            Request::Put { name, index, flags, content } => self.put(tid, name, index, flags, content),
            Request::Get { name, index, flags } => return self.get(client, tid, name, index, flags),
            Request::Delete { name, index } => self.mailbox.delete(tid, &name, index),
            Request::Names { pattern } => {
                return self.answer(client, Answer::Names { names: self.mailbox.names(&pattern.text()) });
            }
            Request::Reset { class, index, kills, keep } => self.reset(tid, &class, index, kills, &keep),
            Request::JoinGroup { name } => {
                let code = self.groups.join(&name, tid);
                self.end_meetings();
                code
            }
            Request::LeaveGroup { name } => self.leave_group(&name, tid),
            Request::Members { name } => return self.answer(client, self.groups.members(&name)),
            Request::Freeze { name, size } => return self.group_wait(client, tid, &name, size, true),
            Request::Barrier { name, count } => return self.group_wait(client, tid, &name, count, false),
            Request::PrintTo { destination } => self.change_output(tid, destination),
            Request::Halt => return self.halt(),
            Request::Time { .. } => return self.answer_time(client),
            Request::ShowCard { card, is_wide } => return self.show_card(tid, card, is_wide),
            Request::OfferBlock { block } => return self.tasks.offer(tid, block),
            Request::LeftMeeting { number } => return self.meetings.leave(number, client),
            Request::Groups => return self.answer(client, Answer::Names { names: self.groups.names() }),
        };
        self.answer_code(client, code);
    }

    fn on_gone(&mut self, client: ClientNumber) {
        if let Some(Some(tid)) = self.clients.remove(&client) {
            self.end_task(tid);
        }
        self.spawning.forget(client);
        self.forget_gathered(client);
        self.mailbox.forget(client);
    }

    /// Everything ends.
    fn halt(&mut self) {
        self.has_ended = true;
        for (host, pid) in self.tasks.others() {
            self.order(host, Order::Signal { pid, signal: TERMINATE });
        }
        let numbers: Vec<u32> = self.hosts.numbers().collect();
        numbers.into_iter().rev().for_each(|host| self.order(host, Order::End));
    }

    fn leave_group(&mut self, name: &ByteString, tid: i32) -> i32 {
        let (code, released) = self.groups.leave(name, tid);
        self.end_meetings();
        self.release(released, code::NO_GROUP);
        code
    }

    fn group_wait(&mut self, client: ClientNumber, tid: i32, name: &ByteString, count: i32, freezes: bool) {
        match self.groups.wait(name, tid, client, count, freezes) {
            Barrier::Waits => {}
            Barrier::Refused(code) => self.answer_code(client, code),
            Barrier::Again(client) => self.answer_code(client, code::OK),
            Barrier::Complete { released, was_frozen } => {
                // Members of a frozen group do not look for news before each barrier.
                if !was_frozen {
                    self.begin_meeting(name);
                }
                self.release(released, code::OK);
            }
        }
    }

    /// Where the members of a group share memory, they have their next barriers there.
    fn begin_meeting(&mut self, name: &ByteString) {
        let Some(tids) = self.groups.unmet(name) else { return };
        let members: Vec<i32> = tids.iter().copied().filter(|tid| *tid != 0).collect();
        let Some(JobBlock { job, block }) = self.tasks.shared_by(&members) else { return };
        let clients: Option<Vec<ClientNumber>> = members.iter().map(|tid| self.tasks.client(*tid)).collect();
        let Some(clients) = clients else { return };
        let Some((number, place)) = self.meetings.begin(job, clients, |job| self.tasks.is_job(job)) else { return };
        self.groups.set_meeting(name, number);
        for tid in &members {
            let event = Event::MeetAt { name: name.clone(), number, block, place, tids: members.clone() };
            self.tell_task(*tid, event);
        }
    }

    /// Tells the members of groups that have changed, before anybody is told of the change.
    fn end_meetings(&mut self) {
        while let Some(number) = self.groups.take_over() {
            for client in self.meetings.members(number).to_vec() {
                self.tell(client, &Told::Event { event: Event::MeetNoMore { number } });
            }
        }
    }

    fn release(&mut self, waiting: Vec<ClientNumber>, code: i32) {
        waiting.into_iter().for_each(|client| self.answer_code(client, code));
    }

    /// The one clock that this crate looks at: programs ask what time it is on a host.
    fn answer_time(&mut self, client: ClientNumber) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let (seconds, microseconds) = (now.as_secs(), now.subsec_micros());
        self.answer(client, Answer::Time { seconds, microseconds });
    }
}
