//! `weft ps --sockets`: what the rendezvous of this user knows, with the rate of each connection.

use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weft_agent::rendezvous::{self, Survey};
use weft_records::show::bytes;
use weft_wire::stream::page::{COUNTER_NAMES, REASON_MEANINGS, REASON_NAMES};

/// How long a single look lasts: rates need two.
const LOOK: Duration = Duration::from_millis(250);

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SocketEnd {
    pub pid: u32,
    pub program: String,
    pub port: u16,
    /// Sent through shared memory, in all and lately.
    pub bytes: u64,
    pub bytes_per_second: f64,
}

/// A process with the socket library.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SocketProcess {
    pub pid: u32,
    pub program: String,
    /// Connections whose other end has not been shown: it has no library, or has not sent enough yet.
    pub waiting: u32,
    pub counters: BTreeMap<&'static str, u64>,
    /// Connections that stay with the kernel, by reason; reasons that never occurred are left out.
    pub fallen_back: BTreeMap<&'static str, u64>,
}

/// All processes that have ended while the rendezvous ran, also those that were killed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedProcesses {
    pub processes: u32,
    pub counters: BTreeMap<&'static str, u64>,
    pub fallen_back: BTreeMap<&'static str, u64>,
}

/// A connection to another host, past the kernel's stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FarSocket {
    /// The end here, with what it has sent.
    pub end: SocketEnd,
    pub remote: SocketAddr,
    /// What the other host has sent, in all and lately.
    pub bytes_back: u64,
    pub bytes_back_per_second: f64,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SocketsTable {
    pub processes: Vec<SocketProcess>,
    pub ended: Option<EndedProcesses>,
    pub connections: Vec<[SocketEnd; 2]>,
    pub far: Vec<FarSocket>,
}

/// Looks twice, a moment apart. Without a rendezvous there is nothing to see, and that is no error.
///
/// # Errors
/// The rendezvous does not answer.
pub fn look() -> Result<SocketsTable> {
    let start = Instant::now();
    let Some(first) = ask()? else { return Ok(SocketsTable::default()) };
    std::thread::sleep(LOOK);
    let Some(second) = ask()? else { return Ok(SocketsTable::default()) };
    Ok(SocketsTable::between(&first, &second, start.elapsed(), &program))
}

fn ask() -> Result<Option<Survey>> {
    match rendezvous::survey() {
        Ok(survey) => Ok(Some(survey)),
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error).context("the rendezvous of this user does not answer"),
    }
}

/// The name of a process as the kernel knows it.
fn program(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned())
}

impl SocketsTable {
    /// What two looks say, so far apart in time.
    fn between(first: &Survey, second: &Survey, apart: Duration, program: &dyn Fn(u32) -> String) -> Self {
        let named = |names: &[&'static str], numbers: &[u64], all: bool| {
            let pairs = names.iter().copied().zip(numbers.iter().copied());
            pairs.filter(|(_, number)| all || *number > 0).collect()
        };
        let processes = second.processes.iter().map(|process| SocketProcess {
            pid: process.pid,
            program: program(process.pid),
            waiting: process.waiting,
            counters: named(&COUNTER_NAMES, &process.counters, true),
            fallen_back: named(&REASON_NAMES, &process.fallen_back, false),
        });
        let connections = second.connections.iter().map(|connection| {
            let same = |other: &&rendezvous::SurveyedConnection| {
                other.pids == connection.pids && other.ports == connection.ports
            };
            // One that came in between began at 0.
            let before = first.connections.iter().find(same).map_or([0, 0], |found| found.bytes);
            [0, 1].map(|side| SocketEnd {
                pid: connection.pids[side],
                program: program(connection.pids[side]),
                port: connection.ports[side],
                bytes: connection.bytes[side],
                bytes_per_second: connection.bytes[side].saturating_sub(before[side]) as f64 / apart.as_secs_f64(),
            })
        });
        let ended = second.ended.as_ref().map(|all| EndedProcesses {
            processes: all.waiting,
            counters: named(&COUNTER_NAMES, &all.counters, true),
            fallen_back: named(&REASON_NAMES, &all.fallen_back, false),
        });
        let far = second.far.iter().map(|found| FarSocket::between(&first.far, found, apart, program));
        Self { processes: processes.collect(), ended, connections: connections.collect(), far: far.collect() }
    }

    /// For people: connections, the busiest first, then processes with what fell back.
    pub fn text(&self) -> String {
        if self.processes.is_empty() && self.ended.is_none() {
            return "no program of this user has the socket library loaded and connections to show\n".to_owned();
        }
        let mut text = format!("{} connections over shared memory\n", self.connections.len());
        let rate = |ends: &[SocketEnd; 2]| ends[0].bytes_per_second + ends[1].bytes_per_second;
        let mut busiest: Vec<&[SocketEnd; 2]> = self.connections.iter().collect();
        busiest.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        for [one, other] in busiest {
            let way = |end: &SocketEnd| format!("{} ({}/s)", bytes(end.bytes), bytes(end.bytes_per_second as u64));
            let name = |end: &SocketEnd| format!("{} {} port {}", end.program, end.pid, end.port);
            let _ = writeln!(text, "  {} -> {}: {}, back: {}", name(one), name(other), way(one), way(other));
        }
        if !self.far.is_empty() {
            let _ = writeln!(text, "{} connections to other hosts by lanes", self.far.len());
        }
        for FarSocket { end, remote, bytes_back, bytes_back_per_second } in &self.far {
            let way = |all, lately| format!("{} ({}/s)", bytes(all), bytes(lately as u64));
            let (out, back) = (way(end.bytes, end.bytes_per_second), way(*bytes_back, *bytes_back_per_second));
            let _ = writeln!(text, "  {} {} port {} -> {remote}: {out}, back: {back}", end.program, end.pid, end.port);
        }
        for process in &self.processes {
            let _ = write!(text, "{} {}: ", process.program, process.pid);
            counted(&mut text, &process.counters);
            // Most of those that wait have a reason of their own among the others.
            let told = process.fallen_back.get("not preloaded").map_or(0, |times| *times);
            match u64::from(process.waiting).saturating_sub(told) {
                0 => {}
                waiting => _ = writeln!(text, "  {waiting} waiting for the other end, which may have no library"),
            }
            stayed(&mut text, &process.fallen_back);
        }
        if let Some(ended) = &self.ended {
            let _ = write!(text, "{} that have ended: ", ended.processes);
            counted(&mut text, &ended.counters);
            stayed(&mut text, &ended.fallen_back);
        }
        text
    }
}

impl FarSocket {
    fn between(
        first: &[rendezvous::SurveyedFar],
        found: &rendezvous::SurveyedFar,
        apart: Duration,
        program: &dyn Fn(u32) -> String,
    ) -> Self {
        let same = |other: &&rendezvous::SurveyedFar| {
            (other.pid, other.port, other.remote) == (found.pid, found.port, found.remote)
        };
        let before = first.iter().find(same).map_or([0, 0], |far| far.bytes);
        let lately = |side: usize| found.bytes[side].saturating_sub(before[side]) as f64 / apart.as_secs_f64();
        let rendezvous::SurveyedFar { pid, port, remote, bytes } = *found;
        Self {
            end: SocketEnd { pid, program: program(pid), port, bytes: bytes[0], bytes_per_second: lately(0) },
            remote,
            bytes_back: bytes[1],
            bytes_back_per_second: lately(1),
        }
    }
}

fn counted(text: &mut String, counters: &BTreeMap<&'static str, u64>) {
    let count = |name: &str| counters.get(name).copied().unwrap_or(0);
    let both = |what: &str| {
        let [into, out] = ["in", "out"].map(|way| count(&format!("{what}_{way}")));
        bytes(into.wrapping_add(out))
    };
    let _ = write!(text, "{} accelerated, ", count("accelerated"));
    let _ = writeln!(text, "{} over shared memory, {} through the kernel", both("bytes_ring"), both("bytes_kernel"));
    let datagrams = count("datagrams_ring_in").wrapping_add(count("datagrams_ring_out"));
    if datagrams > 0 {
        let _ = writeln!(text, "  {datagrams} datagrams over shared memory");
    }
}

fn stayed(text: &mut String, fallen_back: &BTreeMap<&'static str, u64>) {
    for (reason, times) in fallen_back {
        let at = REASON_NAMES.iter().position(|name| name == reason);
        let _ = writeln!(text, "  {times} with the kernel: {}", at.map_or(*reason, |at| REASON_MEANINGS[at]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(bytes: [u64; 2]) -> Survey {
        let mut fallen_back = vec![0; REASON_NAMES.len()];
        fallen_back[4] = 3;
        let counters = vec![1, 1024, 1024, 10, 20, 0, 0, 3, 4];
        Survey {
            ended: Some(rendezvous::SurveyedProcess {
                pid: 0,
                waiting: 3,
                counters: counters.clone(),
                fallen_back: vec![],
            }),
            processes: vec![rendezvous::SurveyedProcess { pid: 7, waiting: 2, counters, fallen_back }],
            connections: vec![rendezvous::SurveyedConnection { pids: [7, 8], ports: [40000, 80], bytes }],
            far: vec![rendezvous::SurveyedFar { pid: 7, port: 40001, remote: ([10, 0, 0, 2], 90).into(), bytes }],
        }
    }

    fn between(first: &Survey, second: &Survey) -> SocketsTable {
        SocketsTable::between(first, second, Duration::from_millis(500), &|pid| format!("p{pid}"))
    }

    #[test]
    fn rates_are_differences_over_time() {
        let sockets = between(&survey([1000, 0]), &survey([3048, 512]));
        let rates = sockets.connections[0].each_ref().map(|end| end.bytes_per_second);
        assert_eq!(rates, [4096.0, 1024.0]);
        let fresh = between(&Survey::default(), &survey([512, 0]));
        assert_eq!(fresh.connections[0][0].bytes_per_second, 1024.0, "a connection that is new began at 0");
    }

    #[test]
    fn people_read_who_talks_with_whom_and_what_fell_back() {
        let text = between(&survey([0, 0]), &survey([2048, 0])).text();
        assert!(text.contains("p7 7 port 40000 -> p8 8 port 80: 2.0 KiB (4.0 KiB/s), back: 0 B (0 B/s)"), "{text}");
        let far = "1 connections to other hosts by lanes\n  p7 7 port 40001 -> 10.0.0.2:90: 2.0 KiB (4.0 KiB/s), back: 0 B (0 B/s)\n";
        assert!(text.contains(far), "{text}");
        assert!(text.contains("2.0 KiB over shared memory, 30 B through the kernel"), "{text}");
        assert!(text.contains("  7 datagrams over shared memory\n"), "{text}");
        assert!(text.contains("  3 with the kernel: standard input and output on it\n"), "{text}");
        assert!(text.contains("  2 waiting for the other end"), "{text}");
        assert!(text.ends_with("3 that have ended: 1 accelerated, 2.0 KiB over shared memory, 30 B through the kernel\n  7 datagrams over shared memory\n"), "{text}");
        assert!(SocketsTable::default().text().starts_with("no program"));
    }
}
