//! PMI-2, for ranks whose first line asked for it: MPI libraries that are linked with Slurm's `libpmi2`, say.
//!
//! A frame is six characters of length and `cmd=name;key=value;...;`. A semicolon inside a value is written twice.
//! `thrid` names the thread that asks, and comes back with the answer.
//!
//! Deliberately not there: spawning, and connecting to other jobs, which are refused.

use super::{Dialect, PROCESS_MAPPING, PmiEvent, PmiServer, SPAWN_REFUSED, excerpt};
use crate::pmi::KEY_MAX;
use crate::pmi::VALUE_MAX;
use weft_wire::interface::InterfaceName;

/// Longest frame in bytes, without its length: that of a spawn with many arguments.
pub const FRAME_MAX: usize = 64 * 1024;

/// A rank that waits until another one of its host has told something.
pub(super) struct HostWaiter {
    rank: usize,
    key: String,
    thread: Option<String>,
}

/// What a frame says, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Cuts a frame at its semicolons but those that are written twice. A word without `=` has no value.
    pub fn parse(frame: &str) -> Self {
        let mut words = vec![String::new()];
        let mut letters = frame.chars().peekable();
        while let Some(letter) = letters.next() {
            let is_end = letter == ';' && letters.next_if_eq(&';').is_none();
            match words.last_mut() {
                Some(word) if !is_end => word.push(letter),
                _ => words.push(String::new()),
            }
        }
        let pair = |word: &String| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key.to_owned(), value.to_owned())
        };
        Self(words.iter().filter(|word| !word.is_empty()).map(pair).collect())
    }

    pub fn value(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// The frame of these pairs, with its length.
pub(super) fn frame(pairs: &[(&str, &str)]) -> String {
    let body: String = pairs.iter().map(|(key, value)| format!("{key}={};", value.replace(';', ";;"))).collect();
    format!("{:6}{body}", body.len())
}

impl PmiServer {
    pub(super) fn on_frame(&mut self, rank: usize, text: &str) {
        let asked = Pairs::parse(text);
        let thread = asked.value("thrid");
        let Some(command) = asked.value("cmd") else {
            return self.fault(rank, format!("the PMI-2 frame '{}' names no command", excerpt(text)));
        };
        match command {
            "fullinit" => self.on_full_init(rank, thread),
            "job-getid" => self.answer(rank, command, thread, &[("jobid", &self.job.clone())]),
            "info-getjobattr" => self.on_job_attribute(rank, &asked),
            "info-putnodeattr" => self.on_put_of_host(rank, &asked),
            "info-getnodeattr" => self.on_get_of_host(rank, &asked),
            "kvs-put" => {
                let (key, value) = (asked.value("key").unwrap_or(""), asked.value("value").unwrap_or(""));
                let put = self.put(key, value);
                self.answer_or_refuse(rank, command, thread, put);
            }
            "kvs-get" => {
                let value = asked.value("key").and_then(|key| self.store.get(key)).cloned();
                self.answer_found(rank, command, thread, value.as_deref());
            }
            "kvs-fence" => {
                self.clients[rank].dialect = Dialect::Two { thread: thread.map(str::to_owned) };
                self.on_barrier_in(rank);
            }
            "name-publish" => {
                let published = self.publish(asked.value("name"), asked.value("port"));
                self.answer_or_refuse(rank, command, thread, published);
            }
            "name-unpublish" => {
                let gone = asked.value("name").and_then(|name| self.published.remove(name));
                self.answer_or_refuse(rank, command, thread, gone.map(drop).ok_or("service_not_found"));
            }
            "name-lookup" => {
                let port = asked.value("name").and_then(|name| self.published.get(name)).cloned();
                self.answer_found(rank, command, thread, port.as_deref());
            }
            "finalize" => {
                self.answer(rank, command, thread, &[]);
                self.end(rank);
            }
            "abort" => {
                // The code that the program gave is not told.
                let message = asked.value("msg").unwrap_or("").to_owned();
                self.events.push_back(PmiEvent::Abort { rank, code: 1, message, lost: None });
            }
            "spawn" => self.answer_or_refuse(rank, command, thread, Err(SPAWN_REFUSED)),
            "job-connect" | "job-disconnect" => {
                self.answer_or_refuse(rank, command, thread, Err("other_jobs_are_not_served"));
            }
            other => self.fault(rank, format!("the PMI-2 command '{}' is not served", excerpt(other))),
        }
    }

    fn on_full_init(&mut self, rank: usize, thread: Option<&str>) {
        let (number, size, program) = (rank.to_string(), self.clients.len().to_string(), self.appnum[rank].to_string());
        let version = [("pmi-version", "2"), ("pmi-subversion", "0")];
        let place = [("rank", &*number), ("size", &size), ("appnum", &program)];
        // Slurm's library wants to read both.
        let state = [("debugged", "FALSE"), ("pmiverbose", "FALSE")];
        let pairs = [&version[..], &place, &state].concat();
        self.answer(rank, "fullinit", thread, &pairs);
        if !self.clients[rank].initialised {
            self.begin(rank, InterfaceName::Mpi);
        }
    }

    fn on_job_attribute(&mut self, rank: usize, asked: &Pairs) {
        let value = match asked.value("key") {
            Some(PROCESS_MAPPING) => Some(self.mapping.clone()).filter(|mapping| !mapping.is_empty()),
            Some("universeSize") => Some(self.clients.len().to_string()),
            Some("hasNameServ") => Some("TRUE".to_owned()),
            _ => None,
        };
        self.answer_found(rank, "info-getjobattr", asked.value("thrid"), value.as_deref());
    }

    fn on_put_of_host(&mut self, rank: usize, asked: &Pairs) {
        let (key, value) = (asked.value("key").unwrap_or(""), asked.value("value").unwrap_or(""));
        let fits = (1..=KEY_MAX).contains(&key.len()) && value.len() <= VALUE_MAX;
        let put = if fits { Ok(()) } else { Err("bad_key_or_value_length") };
        self.answer_or_refuse(rank, "info-putnodeattr", asked.value("thrid"), put);
        if !fits {
            return;
        }
        let place = self.places[rank];
        self.of_hosts.insert((place, key.to_owned()), value.to_owned());
        let places = &self.places;
        let is_told = |waiting: &mut HostWaiter| places[waiting.rank] == place && waiting.key == key;
        let told: Vec<HostWaiter> = self.waiting.extract_if(.., is_told).collect();
        for HostWaiter { rank, thread, .. } in told {
            self.answer_found(rank, "info-getnodeattr", thread.as_deref(), Some(value));
        }
    }

    fn on_get_of_host(&mut self, rank: usize, asked: &Pairs) {
        let key = asked.value("key").unwrap_or("").to_owned();
        let thread = asked.value("thrid").map(str::to_owned);
        let found = self.of_hosts.get(&(self.places[rank], key.clone())).cloned();
        let waits = found.is_none() && asked.value("wait").is_some_and(|wait| wait.eq_ignore_ascii_case("true"));
        if waits && self.waiting.iter().filter(|waiting| waiting.rank == rank).count() < WAITING_MAX {
            self.waiting.push(HostWaiter { rank, key, thread });
            return;
        }
        self.answer_found(rank, "info-getnodeattr", thread.as_deref(), found.as_deref());
    }

    fn answer_found(&mut self, rank: usize, command: &str, thread: Option<&str>, value: Option<&str>) {
        match value {
            Some(value) => self.answer(rank, command, thread, &[("found", "TRUE"), ("value", value)]),
            None => self.answer(rank, command, thread, &[("found", "FALSE")]),
        }
    }

    fn answer_or_refuse(&mut self, rank: usize, command: &str, thread: Option<&str>, done: Result<(), &str>) {
        match done {
            Ok(()) => self.answer(rank, command, thread, &[]),
            Err(problem) => self.push_frame(rank, command, thread, &[("rc", "-1"), ("errmsg", problem)]),
        }
    }

    pub(super) fn answer(&mut self, rank: usize, command: &str, thread: Option<&str>, pairs: &[(&str, &str)]) {
        self.push_frame(rank, command, thread, &[&[("rc", "0")], pairs].concat());
    }

    fn push_frame(&mut self, rank: usize, command: &str, thread: Option<&str>, pairs: &[(&str, &str)]) {
        let command = format!("{command}-response");
        // A claim: longer than any of these numbers it is not given back.
        let thread = thread.filter(|thread| thread.len() <= KEY_MAX).map(|thread| ("thrid", thread));
        let all: Vec<_> = std::iter::once(("cmd", &*command)).chain(thread).chain(pairs.iter().copied()).collect();
        self.events.push_back(PmiEvent::Reply { rank, line: frame(&all) });
    }
}

/// So many threads of a rank may wait at a time.
const WAITING_MAX: usize = 64;

#[cfg(test)]
mod tests;
