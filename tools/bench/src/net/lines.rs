//! The lines of all tables: what is measured, in which ways, and what it must reach.

use super::ways::NetWay;
use crate::format::{Unit, size};
use serde::Serialize;

named! {
    /// The state of the cable: which of the two tables.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Wire {
        /// TCP has its segmentation offload.
        Plain = "the bare cable",
        /// The filter of the device xdp is attached to both ends, in the way that it is unless told.
        Xdp = "with Weft's XDP filter attached to both ends",
        /// It is attached in the driver, as native XDP programs are.
        Native = "with a native XDP program attached to both ends",
        /// Many hosts, each with a bare cable into one bridge.
        Bridge = "kernels among all hosts",
    }
}

impl Wire {
    pub fn has_filter(self) -> bool {
        matches!(self, Wire::Xdp | Wire::Native)
    }

    /// How the filter is attached, in the words of the setting.
    pub fn mode(self) -> &'static str {
        if self == Wire::Native { "native" } else { "auto" }
    }
}

/// What runs once for all lines of it that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetJob {
    /// The measuring program. Several short jobs and not one long one, so that ways follow each other quickly.
    Short,
    Long,
    Collective,
    /// Two of many hosts at a time, one pair after the other.
    Pairs,
    /// The application, whose own table says how much faster two hosts are than one.
    Heat,
    /// Bytes of a ping-pong over one connection.
    Ping(u64),
    /// Bytes of each call of a stream over one connection.
    Stream(u64),
}

/// What one of our ways must reach, held against the best of others in the same line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetBar {
    pub ours: NetWay,
    pub theirs: &'static [NetWay],
    pub must: Must,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Must {
    /// At most this share of their time.
    Share(f64),
    /// At least so many times as good.
    Times(f64),
}

#[derive(Clone, Debug)]
pub struct NetLine {
    /// Stable name, for `--only` and JSON.
    pub id: String,
    pub title: String,
    pub wire: Wire,
    pub job: NetJob,
    /// What the measuring program is told.
    pub spec: String,
    pub unit: Unit,
    pub ways: &'static [NetWay],
    pub bars: Vec<NetBar>,
}

use Must::{Share, Times};
use NetWay::{KernelTcp, MpichOfi, MpichUcx, PolledTcp, WeftSock, WeftSockLane};
use NetWay::{WeftAll, WeftAllEncrypted, WeftDefault, WeftEncrypted, WeftTcp, WeftUdp, WeftXdp};

const BARE: &[NetWay] = &[WeftDefault, WeftUdp, WeftTcp, WeftEncrypted, MpichOfi, MpichUcx];
const FILTERED: &[NetWay] = &[WeftXdp, WeftAll, WeftDefault, WeftAllEncrypted, MpichOfi, MpichUcx];
/// Among many hosts, and between each two of them.
const KERNELS: &[NetWay] = &[WeftDefault, WeftUdp, WeftTcp, MpichOfi, MpichUcx];
const PAIRS: &[NetWay] = &[WeftDefault];
/// For the application, of which each way takes seconds.
const DEFAULT: &[NetWay] = &[WeftDefault, MpichOfi, MpichUcx];
const BEST: &[NetWay] = &[WeftXdp, WeftAll, MpichOfi, MpichUcx];

/// Who is the other side of bars of MPI.
pub const PEERS: &[NetWay] = &[MpichOfi, MpichUcx];

fn bar(ours: NetWay, must: Must) -> Vec<NetBar> {
    vec![NetBar { ours, theirs: PEERS, must }]
}

/// Every line between two hosts, in the order of the tables.
pub fn all() -> Vec<NetLine> {
    let mut lines = Vec::new();
    for wire in [Wire::Plain, Wire::Xdp, Wire::Native] {
        let ways = if wire == Wire::Plain { BARE } else { FILTERED };
        let mut mpi = |job, what: &str, title: &str, bytes: Option<u64>, unit, bars| {
            let bytes_title = bytes.map_or(String::new(), |bytes| format!(" {}", size(bytes)));
            lines.push(NetLine {
                id: line_id(wire, what, bytes),
                title: format!("{title}{bytes_title}"),
                wire,
                job,
                spec: bytes.map_or(what.into(), |bytes| format!("{what}:{bytes}")),
                unit,
                ways,
                bars,
            });
        };
        let plain = wire == Wire::Plain;
        let on = |plain_bars, xdp_bars| if plain { plain_bars } else { xdp_bars };
        let short = on(bar(WeftUdp, Share(0.7)), bar(WeftXdp, Share(0.3)));
        let rate = on(bar(WeftUdp, Times(5.0)), bar(WeftXdp, Times(5.0)));
        let long = || on(bar(WeftDefault, Times(1.0)), bar(WeftAll, Times(1.3)));
        let collective = || on(Vec::new(), bar(WeftXdp, Share(0.35)));
        mpi(NetJob::Short, "latency", "one way", Some(8), Unit::Seconds, short);
        mpi(NetJob::Short, "rate", "message rate, window 64,", Some(8), Unit::PerSecond, rate);
        mpi(NetJob::Long, "latency", "one way", Some(16 << 10), Unit::Seconds, Vec::new());
        mpi(NetJob::Long, "latency", "one way", Some(64 << 10), Unit::Seconds, long());
        mpi(NetJob::Long, "latency", "one way", Some(1 << 20), Unit::Seconds, long());
        mpi(NetJob::Collective, "barrier", "barrier", None, Unit::Seconds, collective());
        mpi(NetJob::Collective, "allreduce", "allreduce", Some(8), Unit::Seconds, collective());
        lines.push(heat(wire));
        lines.push(ping(wire));
        lines.push(stream(wire));
    }
    lines
}

fn line_id(wire: Wire, what: &str, bytes: Option<u64>) -> String {
    let wire = match wire {
        Wire::Plain => "plain",
        Wire::Xdp => "xdp",
        Wire::Native => "native",
        Wire::Bridge => "hosts",
    };
    bytes.map_or(format!("{wire}/{what}"), |bytes| format!("{wire}/{what}/{bytes}"))
}

/// Every line among so many hosts: the kernels, then each pair.
pub fn among(hosts: u32) -> Vec<NetLine> {
    let mut lines = Vec::new();
    let mut line = |job, what: &str, title: String, bytes: Option<u64>, unit, ways| {
        let id = line_id(Wire::Bridge, what, bytes);
        let spec = bytes.map_or(what.into(), |bytes| format!("{what}:{bytes}"));
        lines.push(NetLine { id, title, wire: Wire::Bridge, job, spec, unit, ways, bars: Vec::new() });
    };
    let kernels = [(NetJob::Short, 8), (NetJob::Long, 8 << 10), (NetJob::Long, 64 << 10)];
    for (job, bytes) in kernels {
        for (what, title) in [
            ("ring", "ring, each to the next,"),
            ("allgather", "all to all, the same to each,"),
            ("alltoall", "all to all, to each its own,"),
            ("bcast", "broadcast,"),
        ] {
            line(job, what, format!("{title} {}", size(bytes)), Some(bytes), Unit::Seconds, KERNELS);
        }
    }
    line(NetJob::Collective, "barrier", "barrier".into(), None, Unit::Seconds, KERNELS);
    let incast = format!("incast {} to 1, {}", hosts - 1, size(64 << 10));
    line(NetJob::Collective, "incast", incast, Some(64 << 10), Unit::BytesPerSecond, KERNELS);
    for (what, bytes, unit) in [("latency", 8, Unit::Seconds), ("bandwidth", 64 << 10, Unit::BytesPerSecond)] {
        for (first, second) in (0..hosts).flat_map(|first| (first + 1..hosts).map(move |second| (first, second))) {
            let title = format!("{what} {}, hosts {} and {}", size(bytes), first + 1, second + 1);
            line(NetJob::Pairs, &format!("{what}-{first}-{second}"), title, Some(bytes), unit, PAIRS);
        }
    }
    lines
}

fn heat(wire: Wire) -> NetLine {
    let (ways, ours) = if wire == Wire::Plain { (DEFAULT, WeftDefault) } else { (BEST, WeftAll) };
    NetLine {
        id: line_id(wire, "heat", Some(1024)),
        title: "heat, n = 1024: speed-up by the second host".into(),
        wire,
        job: NetJob::Heat,
        spec: String::new(),
        unit: Unit::Times,
        ways,
        bars: bar(ours, Times(1.0)),
    }
}

/// Sockets between hosts are the kernel's, and ours look before they sleep; or they go by lanes.
fn ping(wire: Wire) -> NetLine {
    let held_against = |theirs, share| NetBar { ours: WeftSockLane, theirs, must: Share(share) };
    let (ways, bars): (&[NetWay], _) = match wire.has_filter() {
        true => (
            &[WeftSock, WeftSockLane, KernelTcp, PolledTcp],
            vec![held_against(&[KernelTcp], 0.1), held_against(&[PolledTcp], 0.5)],
        ),
        false => (&[WeftSock, KernelTcp, PolledTcp], Vec::new()),
    };
    socket(wire, "ping", NetJob::Ping(64), "TCP connection, one way 64 B", Unit::Seconds, ways, bars)
}

fn stream(wire: Wire) -> NetLine {
    let (ways, ours): (&[NetWay], &[NetWay]) = match wire.has_filter() {
        true => (&[WeftSock, WeftSockLane, KernelTcp], &[WeftSock, WeftSockLane]),
        false => (&[WeftSock, KernelTcp], &[WeftSock]),
    };
    let bars = ours.iter().map(|ours| NetBar { ours: *ours, theirs: &[KernelTcp], must: Times(1.0) }).collect();
    let (title, unit) = ("TCP connection, stream of 64 KiB", Unit::BytesPerSecond);
    socket(wire, "stream", NetJob::Stream(1 << 16), title, unit, ways, bars)
}

fn socket(
    wire: Wire,
    what: &str,
    job: NetJob,
    title: &str,
    unit: Unit,
    ways: &'static [NetWay],
    bars: Vec<NetBar>,
) -> NetLine {
    let id = line_id(wire, "sock", None) + "/" + what;
    NetLine { id, title: title.into(), wire, job, spec: String::new(), unit, ways, bars }
}

impl NetBar {
    /// As the table prints it: `udp <= 0.7 x best MPICH`.
    pub fn text(self) -> String {
        let ours = self.ours.title().trim_start_matches("Weft ");
        let theirs = match self.theirs {
            [one] => one.title(),
            _ => "best MPICH",
        };
        match self.must {
            Share(share) => format!("{ours} <= {share} x {theirs}"),
            Times(times) => format!("{ours} >= {times} x {theirs}"),
        }
    }

    /// Ours beside the best of theirs as the bar means it.
    pub fn ratio(self, unit: Unit, ours: f64, best: f64) -> f64 {
        let is_share = matches!(self.must, Share(_));
        if is_share || unit.higher_is_better() { ours / best } else { best / ours }
    }

    pub fn is_met(self, ratio: f64) -> bool {
        match self.must {
            Share(share) => ratio <= share,
            Times(times) => ratio >= times,
        }
    }
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
                let columns = || bar.theirs.iter().chain([&bar.ours]);
                assert!(columns().all(|way| line.ways.contains(way)), "{}: {}", line.id, bar.text());
                let is_share = matches!(bar.must, Share(_));
                assert!(!is_share || !line.unit.higher_is_better(), "{}: a share of what is good", line.id);
            }
        }
    }

    #[test]
    fn every_pair_of_hosts_has_its_lines() {
        for hosts in [3, 9] {
            let lines = among(hosts);
            let pairs: Vec<_> = lines.iter().filter(|line| line.job == NetJob::Pairs).collect();
            assert_eq!(pairs.len() as u32, hosts * (hosts - 1));
            let ids: std::collections::HashSet<_> = lines.iter().map(|line| &line.id).collect();
            assert_eq!(ids.len(), lines.len());
            assert!(lines.iter().all(|line| line.ways.iter().all(|way| !way.attaches())));
        }
    }

    #[test]
    fn nobody_who_attaches_the_filter_is_measured_on_the_bare_cable() {
        let bare = all().into_iter().filter(|line| line.wire == Wire::Plain);
        assert!(bare.flat_map(|line| line.ways).all(|way| !way.attaches()));
    }

    #[test]
    fn a_share_wants_less_and_a_multiple_wants_more() {
        let share = NetBar { ours: NetWay::WeftXdp, theirs: PEERS, must: Share(0.3) };
        let ratio = share.ratio(Unit::Seconds, 1e-6, 5e-6);
        assert!((ratio - 0.2).abs() < 1e-9 && share.is_met(ratio) && !share.is_met(0.31));
        let times = NetBar { ours: NetWay::WeftAll, theirs: PEERS, must: Times(1.3) };
        assert!(
            (times.ratio(Unit::Seconds, 10e-6, 20e-6) - 2.0).abs() < 1e-9 && times.is_met(2.0) && !times.is_met(1.29)
        );
        assert!((times.ratio(Unit::PerSecond, 3e6, 1e6) - 3.0).abs() < 1e-9);
        assert_eq!(times.text(), "xdp,udp,tcp >= 1.3 x best MPICH");
    }

    #[test]
    fn connections_are_held_against_those_of_the_kernel_in_the_same_state() {
        let bars = |id: &str| {
            let line = all().into_iter().find(|line| line.id == id).expect("a line");
            line.bars.into_iter().map(NetBar::text).collect::<Vec<_>>()
        };
        assert_eq!(bars("xdp/sock/ping"), ["sock, lanes <= 0.1 x kernel TCP", "sock, lanes <= 0.5 x TCP polled"]);
        assert_eq!(bars("xdp/sock/stream"), ["sock >= 1 x kernel TCP", "sock, lanes >= 1 x kernel TCP"]);
        assert_eq!(bars("plain/sock/stream"), ["sock >= 1 x kernel TCP"]);
        assert_eq!(bars("plain/sock/ping"), [""; 0]);
    }
}
