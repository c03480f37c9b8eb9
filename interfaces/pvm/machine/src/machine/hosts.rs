//! The hosts of the machine.

use super::{ClientNumber, VirtualMachine};
use crate::code::{self, notify, spawn as flag};
use crate::frame::{Answer, ByteString, HostInfo, Order};
use crate::tid;
use std::collections::BTreeMap;

/// The number of the host whose daemon has the machine.
pub const FIRST: u32 = 1;

struct MachineHost {
    name: String,
    architecture: String,
    speed: i32,
    /// Its daemon has said that it is there.
    is_up: bool,
}

impl MachineHost {
    fn new(name: String, speed: i32) -> Self {
        Self { name, architecture: code::ARCHITECTURE.to_owned(), speed, is_up: false }
    }
}

/// A call whose hosts are being added.
struct HostsCall {
    client: Option<ClientNumber>,
    /// Numbers, or codes.
    hosts: Vec<Result<u32, i32>>,
    awaited: usize,
}

pub struct MachineHosts {
    all: BTreeMap<u32, MachineHost>,
    /// Where a task was started last.
    last: u32,
    calls: Vec<HostsCall>,
}

impl MachineHosts {
    pub fn new(name: &str) -> Self {
        let first = MachineHost { is_up: true, ..MachineHost::new(name.to_owned(), code::SPEED) };
        Self { all: BTreeMap::from([(FIRST, first)]), last: 0, calls: Vec::new() }
    }

    pub fn is_there(&self, number: u32) -> bool {
        self.all.get(&number).is_some_and(|host| host.is_up)
    }

    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.all.keys().copied()
    }

    pub fn status(&self, name: &str) -> i32 {
        match self.named(name) {
            Some(number) if self.is_there(number) => code::OK,
            Some(_) => code::HOST_FAIL,
            None => code::NO_HOST,
        }
    }

    pub fn named(&self, name: &str) -> Option<u32> {
        let is_it = |host: &MachineHost| host.name == name || host.name.split('.').next() == Some(name);
        self.all.iter().find(|(_, host)| is_it(host)).map(|(number, _)| *number)
    }

    fn info(&self, number: u32) -> Option<HostInfo> {
        let host = self.all.get(&number)?;
        Some(HostInfo {
            tid: tid::task(number, 0),
            name: host.name.clone(),
            architecture: host.architecture.clone(),
            speed: host.speed,
            signature: code::SIGNATURE,
        })
    }

    pub fn all(&self) -> Vec<HostInfo> {
        let up = self.all.iter().filter(|(_, host)| host.is_up);
        up.filter_map(|(number, _)| self.info(*number)).collect()
    }

    /// MachineHosts for so many tasks, in turn; `None` where none is meant by the place.
    pub fn choose(&mut self, flags: i32, place: &str, own: u32, count: u32) -> Vec<Option<u32>> {
        let meant = |number: u32, host: &MachineHost| {
            let is_it = match flags & (flag::HOST | flag::ARCH) {
                0 => return true,
                flag::HOST if place == "." => number == own,
                flag::HOST => self.named(place) == Some(number),
                _ => host.architecture == place,
            };
            is_it != (flags & flag::COMPLEMENT != 0)
        };
        let fit = self.all.iter().filter(|(number, host)| host.is_up && meant(**number, host));
        let fit: Vec<u32> = fit.map(|(number, _)| *number).collect();
        (0..count)
            .map(|_| {
                let next = fit.iter().find(|number| **number > self.last).or(fit.first()).copied()?;
                self.last = next;
                Some(next)
            })
            .collect()
    }

    fn free_number(&self) -> Option<u32> {
        (FIRST..=tid::HOSTS).find(|number| !self.all.contains_key(number))
    }
}

impl VirtualMachine {
    /// For a client, who is answered, or for a job. Each name may have options behind it, as in a hostfile.
    pub(super) fn add_hosts(&mut self, client: Option<ClientNumber>, names: Vec<ByteString>) {
        let mut call = HostsCall { client, hosts: Vec::new(), awaited: 0 };
        for line in names {
            let text = line.text();
            let name = text.split_whitespace().next().unwrap_or_default().to_owned();
            let known = self.hosts.named(&name).is_some();
            let number = if known { None } else { self.hosts.free_number() };
            let outcome = match number {
                _ if name.is_empty() => Err(code::BAD_PARAM),
                None if known => Err(code::DUP_HOST),
                None => Err(code::OUT_OF_RES),
                Some(number) => {
                    let speed = text.split_whitespace().find_map(|word| word.strip_prefix("sp=")?.parse().ok());
                    self.hosts.all.insert(number, MachineHost::new(name, speed.unwrap_or(code::SPEED)));
                    self.order(FIRST, Order::AddHost { number, name: line });
                    call.awaited += 1;
                    Ok(number)
                }
            };
            call.hosts.push(outcome);
        }
        self.hosts.calls.push(call);
        self.finish_hosts();
    }

    pub(super) fn on_host_up(&mut self, number: u32, name: String, architecture: String) {
        let Some(host) = self.hosts.all.get_mut(&number).filter(|host| !host.is_up) else { return };
        host.is_up = true;
        host.architecture = architecture;
        if !name.is_empty() {
            host.name = name;
        }
        self.on_host_known(number, Ok(number));
    }

    pub(super) fn on_host_down(&mut self, number: u32, code: i32) {
        if number == FIRST {
            return;
        }
        let was_up = self.hosts.is_there(number);
        self.hosts.all.remove(&number);
        if was_up {
            self.lose(number);
            self.refuse_gathered(code::HOST_FAIL);
        } else {
            self.on_host_known(number, Err(code));
        }
    }

    fn on_host_known(&mut self, number: u32, outcome: Result<u32, i32>) {
        let is_it = |call: &&mut HostsCall| call.awaited > 0 && call.hosts.contains(&Ok(number));
        if let Some(call) = self.hosts.calls.iter_mut().find(is_it) {
            call.awaited -= 1;
            call.hosts.iter_mut().filter(|there| **there == Ok(number)).for_each(|there| *there = outcome);
        }
        self.finish_hosts();
    }

    fn finish_hosts(&mut self) {
        while let Some(place) = self.hosts.calls.iter().position(|call| call.awaited == 0) {
            let HostsCall { client, hosts, .. } = self.hosts.calls.remove(place);
            let info = |outcome: &Result<u32, i32>| match outcome {
                Ok(number) => self.hosts.info(*number).unwrap_or_default(),
                Err(code) => HostInfo { tid: *code, ..HostInfo::default() },
            };
            let told = hosts.iter().map(info).collect();
            match client {
                Some(client) => self.answer(client, Answer::Added { hosts: told }),
                None => hosts.iter().filter_map(|outcome| outcome.err()).for_each(|code| self.refuse_gathered(code)),
            }
            let new: Vec<u32> = hosts.into_iter().flatten().collect();
            if !new.is_empty() {
                self.tell_new_hosts(&new);
            }
        }
        self.finish_gathering();
    }

    pub(super) fn delete_hosts(&mut self, client: ClientNumber, names: &[ByteString]) {
        let codes = names.iter().map(|name| match self.hosts.named(&name.text()) {
            None => code::NO_HOST,
            Some(FIRST) => code::BAD_PARAM,
            Some(number) => {
                self.order(number, Order::End);
                self.order(FIRST, Order::DropHost { number });
                self.hosts.all.remove(&number);
                self.lose(number);
                code::OK
            }
        });
        let tids = codes.collect();
        self.answer(client, Answer::Tids { code: code::OK, tids });
    }

    /// A host is gone, with its tasks.
    fn lose(&mut self, number: u32) {
        for tid in self.tasks.of_host(number) {
            if let Some(task) = self.tasks.get_mut(tid) {
                (task.is_running, task.is_open) = (false, false);
            }
            self.on_started(number, tid, code::HOST_FAIL);
            self.end_task(tid);
        }
        let gone: Vec<ClientNumber> = self.clients.keys().copied().filter(|client| client.0 == number).collect();
        gone.into_iter().for_each(|client| self.on_gone(client));
        self.tell_end_of(notify::HOST_DELETE, number as i32);
    }
}
