//! The lines of the table: what is measured, in which ways, and what it must reach.

use crate::format::Unit;
use serde::Serialize;

named! {
    /// A column of the table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum SockWay {
        /// With the library preloaded.
        Weft = "Weft",
        /// Kernel TCP, as programs use it.
        Kernel = "kernel TCP",
        /// Kernel TCP, asked again and again without waiting.
        Polled = "TCP polled",
        /// A Unix stream socket.
        Unix = "Unix socket",
    }
}

/// What a line must reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SockBar {
    /// At least so many times better than this way.
    Times(f64, SockWay),
    /// At most so many times the time of a cache line from core to core.
    CacheLines(f64),
    /// At most this value.
    AtMost(f64),
}

/// How a line is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SockJob {
    /// The pair program: what, how it waits, bytes (or connections).
    Pair {
        what: &'static str,
        wait: &'static str,
        bytes: u64,
    },
    Redis {
        clients: u32,
        pipeline: u32,
        busy: u32,
    },
    Nginx {
        clients: u32,
        busy: u32,
    },
    Memcached {
        clients: u32,
        busy: u32,
    },
    Pgbench {
        clients: u32,
        busy: u32,
    },
}

impl SockJob {
    /// Two processes on a core each, whose cache line decides: samples are told apart by it.
    pub fn is_between_cores(self) -> bool {
        match self {
            SockJob::Pair { what, .. } => matches!(what, "pingpong" | "datagrams" | "stream"),
            SockJob::Redis { clients, busy, .. } => clients == 1 && busy == 0,
            SockJob::Nginx { clients, busy }
            | SockJob::Memcached { clients, busy }
            | SockJob::Pgbench { clients, busy } => clients == 1 && busy == 0,
        }
    }

    /// Into how many shorter measurements a turn is cut. Where a few per cent count, the kernel's own changes from one
    /// second to the next must not.
    pub fn pieces(self) -> u32 {
        match self {
            SockJob::Pair { wait: "outside", .. } | SockJob::Pair { what: "connect", .. } => 4,
            _ => 1,
        }
    }

    /// What many idle connections take is a matter of design and not of time: it is measured in one turn.
    pub fn is_once(self) -> bool {
        matches!(self, SockJob::Pair { what: "idle" | "talked", .. })
    }
}

/// One line.
#[derive(Clone, Debug)]
pub struct SockLine {
    pub id: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    pub job: SockJob,
    /// The figure of the pair program that this line shows.
    pub figure: &'static str,
    pub ways: &'static [SockWay],
    pub bars: Vec<SockBar>,
}

use SockWay::{Kernel, Polled, Unix, Weft};

const TWO: &[SockWay] = &[Weft, Kernel];
const THREE: &[SockWay] = &[Weft, Kernel, Unix];
const KIB: f64 = 1024.0;

fn pair(id: &'static str, title: &'static str, job: SockJob, ways: &'static [SockWay], bars: &[SockBar]) -> SockLine {
    let SockJob::Pair { what, .. } = job else { unreachable!("only pairs") };
    let (unit, figure) = match what {
        "pingpong" | "datagrams" => (Unit::Seconds, "pingpong"),
        "stream" if id == "stream-64" => (Unit::PerSecond, "stream"),
        "stream" => (Unit::BytesPerSecond, "stream"),
        "connect" => (Unit::PerSecond, "connect"),
        _ if id.ends_with("-cpu") => (Unit::Percent, "idle-cpu"),
        _ => (Unit::Bytes, "idle-memory"),
    };
    SockLine { id, title, unit, job, figure, ways, bars: bars.to_vec() }
}

fn program(id: &'static str, title: &'static str, job: SockJob, times: f64) -> SockLine {
    SockLine { id, title, unit: Unit::PerSecond, job, figure: "", ways: TWO, bars: vec![SockBar::Times(times, Kernel)] }
}

/// Every line, in the order of the table.
pub fn all() -> Vec<SockLine> {
    [pairs(), programs()].concat()
}

fn pairs() -> Vec<SockLine> {
    let job = |what, wait, bytes| SockJob::Pair { what, wait, bytes };
    let short = [SockBar::Times(50.0, Kernel), SockBar::Times(10.0, Polled), SockBar::CacheLines(5.0)];
    let by_epoll = [SockBar::Times(20.0, Kernel)];
    let idle_cpu = [SockBar::AtMost(0.1)];
    vec![
        pair("pingpong-1", "one way 1 B", job("pingpong", "block", 1), &SockWay::ALL, &short),
        pair("pingpong-64", "one way 64 B", job("pingpong", "block", 64), &SockWay::ALL, &short),
        pair("pingpong-level", "one way 64 B, epoll by level", job("pingpong", "level", 64), THREE, &by_epoll),
        pair("pingpong-edge", "one way 64 B, epoll by edge", job("pingpong", "edge", 64), THREE, &by_epoll),
        pair("udp-64", "one way 64 B, UDP beside kernel UDP", job("datagrams", "block", 64), TWO, &[]),
        pair("stream-64", "stream of 64 B calls", job("stream", "block", 64), THREE, &[SockBar::Times(10.0, Kernel)]),
        pair(
            "stream-64K",
            "stream of 64 KiB calls",
            job("stream", "block", 65536),
            THREE,
            &[SockBar::Times(2.0, Kernel), SockBar::Times(1.0, Unix)],
        ),
        pair("connect", "connections set up", job("connect", "block", 1), THREE, &[SockBar::Times(0.7, Kernel)]),
        pair(
            "outside-64",
            "one way 64 B, peer outside",
            job("pingpong", "outside", 64),
            TWO,
            &[SockBar::Times(0.97, Kernel)],
        ),
        pair(
            "outside-64K",
            "stream of 64 KiB, peer outside",
            job("stream", "outside", 65536),
            TWO,
            &[SockBar::Times(0.97, Kernel)],
        ),
        pair(
            "idle-memory",
            "memory of an idle connection of 10,000, 1 request",
            job("idle", "block", 10_000),
            TWO,
            &[SockBar::AtMost(16.0 * KIB)],
        ),
        pair("idle-cpu", "core used by 10,000 idle, 1 request", job("idle", "block", 10_000), TWO, &idle_cpu),
        pair(
            "talked-memory",
            "memory of an idle connection of 10,000, 8 requests",
            job("talked", "block", 10_000),
            TWO,
            &[SockBar::AtMost(16.0 * KIB)],
        ),
        pair("talked-cpu", "core used by 10,000 idle, 8 requests", job("talked", "block", 10_000), TWO, &idle_cpu),
    ]
}

fn programs() -> Vec<SockLine> {
    vec![
        program("redis-1", "redis GET, 1 client", SockJob::Redis { clients: 1, pipeline: 1, busy: 0 }, 4.0),
        program("redis-50", "redis GET, 50 clients", SockJob::Redis { clients: 50, pipeline: 1, busy: 0 }, 1.5),
        program(
            "redis-50-P16",
            "redis GET, 50 clients, -P 16",
            SockJob::Redis { clients: 50, pipeline: 16, busy: 0 },
            1.0,
        ),
        program("nginx-1", "nginx + wrk 600 B, 1 client", SockJob::Nginx { clients: 1, busy: 0 }, 2.0),
        program("nginx-16", "nginx + wrk 600 B, 16 clients", SockJob::Nginx { clients: 16, busy: 0 }, 1.15),
        program("memcached-1", "memcached get, 1 client", SockJob::Memcached { clients: 1, busy: 0 }, 2.0),
        program("memcached-16", "memcached get, 16 clients", SockJob::Memcached { clients: 16, busy: 0 }, 1.15),
        program("pgbench-1", "pgbench -S, 1 client", SockJob::Pgbench { clients: 1, busy: 0 }, 2.0),
        program("pgbench-16", "pgbench -S, 16 clients", SockJob::Pgbench { clients: 16, busy: 0 }, 1.15),
        program(
            "busy-redis",
            "redis GET, 50 clients, beside 2 busy",
            SockJob::Redis { clients: 50, pipeline: 1, busy: 2 },
            1.0,
        ),
        program("busy-nginx", "nginx + wrk, 16 clients, beside 2 busy", SockJob::Nginx { clients: 16, busy: 2 }, 1.0),
        program(
            "busy-memcached",
            "memcached, 16 clients, beside 2 busy",
            SockJob::Memcached { clients: 16, busy: 2 },
            1.0,
        ),
        program(
            "busy-pgbench",
            "pgbench -S, 16 clients, beside 2 busy",
            SockJob::Pgbench { clients: 16, busy: 2 },
            1.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_and_bars_refer_to_columns_of_their_line() {
        let lines = all();
        for (at, line) in lines.iter().enumerate() {
            assert!(lines[..at].iter().all(|other| other.id != line.id), "{} twice", line.id);
            for bar in &line.bars {
                assert!(!matches!(bar, SockBar::Times(_, way) if !line.ways.contains(way)), "{}", line.id);
            }
        }
    }
}
