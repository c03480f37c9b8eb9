//! Connections between two hosts by lanes, with whole programs: whatever becomes of the network and of either side, no
//! byte is wrong, and nobody waits for ever.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use weft_device::udp::Faults;
use weft_tests::lanes::LaneHosts;
use weft_tests::namespaces::Namespaces;
use weft_tests::sockets::{self, Moved};
use weft_tests::{build, signal};

/// With so many seeds of the oracle enough goes by lanes.
const MOST_SEEDS: usize = 8;
/// For programs that may have to wait until what is lost is said again.
const STUCK: Duration = Duration::from_secs(30);
/// For as many connections as it takes until enough went by lanes.
const LONG: Duration = Duration::from_secs(60);
/// A connection that has met by then is met.
const MEETING: Duration = Duration::from_millis(300);

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build::c_program(Path::new("cc"), "tests/c/sockets/lanes.c"))
}

/// One side of a connection.
struct Side {
    process: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
    /// Where it counts what it has sent.
    count: PathBuf,
}

impl Side {
    fn start(hosts: &LaneHosts, number: usize, words: &[&str], how: &[(&str, &str)]) -> Self {
        let count = hosts.folder().join(format!("count-{number}-{}", words[1]));
        std::fs::write(&count, [0; 8]).expect("a file");
        let mut command = hosts.on(number, program());
        command
            .args(words)
            .env("LANES_COUNT", &count)
            .envs(how.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let process = command.spawn().expect("ip can be started");
        Self::of(process, count)
    }

    fn of(mut process: Child, count: PathBuf) -> Self {
        let out = BufReader::new(process.stdout.take().expect("piped"));
        let err = BufReader::new(process.stderr.take().expect("piped"));
        Self { process, out, err, count }
    }

    /// Whether its connection goes by a lane, once that is decided. It was started with the log of connections.
    fn is_accelerated(&mut self) -> bool {
        let mut said = String::new();
        self.err.read_line(&mut said).expect("text");
        let decided = ["accelerated", "stays with the kernel"].map(|words| said.contains(words));
        assert_ne!(decided, [false, false], "{said}");
        decided[0]
    }

    fn signal(&self, number: i32) {
        signal::send(self.process.id() as i32, number);
    }

    fn sent(&self) -> u64 {
        let bytes = std::fs::read(&self.count).expect("a file");
        u64::from_ne_bytes(bytes.try_into().expect("a count"))
    }

    /// What it says at its end, which comes in time.
    fn end(mut self) -> Ended {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("our child") {
                break status;
            }
            if begin.elapsed() > STUCK {
                let _ = self.process.kill();
                panic!("a side does not end; it has sent {}", self.sent());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let mut said = String::new();
        self.out.read_to_string(&mut said).expect("text");
        let mut complaints = String::new();
        self.err.read_to_string(&mut complaints).expect("text");
        assert!(status.success(), "{status}: {said}{complaints}");
        Ended::of(&said, Moved::of(&complaints))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Debug)]
struct Ended {
    sent: u64,
    received: u64,
    how: String,
    moved: Moved,
}

impl Ended {
    fn of(said: &str, moved: Moved) -> Self {
        let words: Vec<&str> = said.split_whitespace().skip_while(|word| *word != "sent").collect();
        let ["sent", sent, sending, "received", received, receiving, ..] = words[..] else {
            panic!("it says {said:?}")
        };
        let number = |word: &str| word.parse().expect("a number");
        Self { sent: number(sent), received: number(received), how: format!("{sending} {receiving}"), moved }
    }
}

/// Both sides of a connection from host 1 to host 2.
fn connected(hosts: &LaneHosts, port: &str, kind: &str, bytes: u64) -> [Side; 2] {
    connected_so(hosts, [port, kind], bytes, |_| vec![])
}

/// The same, with more in the environment of the side on each host.
fn connected_so<'a>(
    hosts: &LaneHosts,
    [port, kind]: [&str; 2],
    bytes: u64,
    how: impl Fn(usize) -> Vec<(&'a str, &'a str)>,
) -> [Side; 2] {
    let bytes = bytes.to_string();
    let mut serving = Side::start(hosts, 2, &["serve", port, kind, &bytes, port], &how(2));
    let mut said = String::new();
    serving.out.read_line(&mut said).expect("text");
    assert_eq!(said, "listening\n");
    [Side::start(hosts, 1, &[&hosts.address(2), port, kind, &bytes, port], &how(1)), serving]
}

/// The same without an end on the first port from `first` on whose connection goes by lanes, once it does so both ways:
/// where the hosts are busy they may meet too late for some, which stay with the kernel.
fn connected_by_lanes(hosts: &LaneHosts, first: u16) -> [Side; 2] {
    let begin = Instant::now();
    for port in first.. {
        assert!(begin.elapsed() < LONG, "no connection goes by lanes");
        let how = |_| vec![("WEFT_SOCK_LOG", "all")];
        let mut sides = connected_so(hosts, [&port.to_string(), "duplex"], u64::MAX, how);
        if sides.iter_mut().all(Side::is_accelerated) {
            // By then whatever the kernel still had has arrived, and has been answered.
            let enough = [0, 1].map(|at| sides[at].sent() + 20_000);
            while sides.iter().zip(enough).any(|(side, enough)| side.sent() < enough) {
                assert!(begin.elapsed() < LONG, "nothing moves");
                std::thread::sleep(Duration::from_millis(1));
            }
            return sides;
        }
    }
    panic!("no port is left");
}

/// Both ends get all of it, and most went by lanes.
fn arrives(sides: [Side; 2], bytes: u64) {
    for ended in sides.map(Side::end) {
        assert_eq!((ended.sent, ended.received, &*ended.how), (bytes, bytes, "all end"), "{ended:?}");
        assert!(ended.moved.by_ring > bytes, "not by lanes: {ended:?}");
    }
}

#[test]
fn what_both_send_arrives_also_where_the_cable_is_away_for_a_second() {
    let hosts = LaneHosts::up("lc", &[]);
    let bytes = 6_000_000;
    let sides = connected(&hosts, "7301", "duplex", bytes);
    for _ in 0..2 {
        std::thread::sleep(MEETING);
        hosts.set_cable("down");
        std::thread::sleep(Duration::from_secs(1));
        hosts.set_cable("up");
    }
    arrives(sides, bytes);
    arrives(connected(&hosts, "7306", "duplex", 300_000), 300_000);
}

/// A program that makes connections when it is told to, and does not end in between.
struct Reaching(Side);

impl Reaching {
    fn start(hosts: &LaneHosts, number: usize, words: &[&str]) -> Self {
        let mut command = hosts.on(number, build::c_program(Path::new("cc"), "tests/c/sockets/reach.c"));
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = command.spawn().expect("ip can be started");
        let mut reaching = Self(Side::of(process, PathBuf::new()));
        reaching.is_done();
        reaching
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.0.process.stdin.as_ref().expect("piped"), "{command}").expect("it reads");
    }

    fn is_done(&mut self) {
        let mut said = String::new();
        self.0.out.read_line(&mut said).expect("text");
        assert_eq!(said, "done\n", "{}", self.complaints());
    }

    fn complaints(&mut self) -> String {
        drop(self.0.process.stdin.take());
        let mut complaints = String::new();
        self.0.err.read_to_string(&mut complaints).expect("text");
        complaints
    }
}

/// Both hosts look for each other in vain as long as the cable is away, and find each other when it is back.
#[test]
fn connections_go_by_lanes_again_after_some_were_begun_while_the_cable_was_away() {
    let hosts = LaneHosts::up("lg", &[]);
    let serving = Reaching::start(&hosts, 2, &["serve", "7307"]);
    let mut both = [Reaching::start(&hosts, 1, &[&hosts.address(2), "7307"]), serving];
    let mut each = |command: &str| {
        both.iter_mut().for_each(|one| one.tell(command));
        both.iter_mut().for_each(Reaching::is_done);
    };
    // As many as a program shows in vain before it grows tired of that, but one.
    each("open 7");
    hosts.set_cable("down");
    each("talk");
    std::thread::sleep(Duration::from_millis(2500));
    hosts.set_cable("up");
    each("hear");
    let messages = 20_000;
    each(&format!("pong {messages}"));
    for mut one in both {
        let said = one.complaints();
        let moved = Moved::of(&said);
        assert!(moved.accelerated == 1 && moved.by_ring > 16 * messages, "not by lane: {moved:?} {said}");
    }
}

/// Connections one after the other, with so many in a thousand parcels lost, doubled, spoilt and held back on each way,
/// until a good deal went by lanes. How many that takes is a matter of time: whose peer is 16 KiB behind goes by the
/// kernel from then on, as is meant, and these send without waiting; and with faults two hosts may meet only when a
/// short one is over.
fn arrive_with_faults(prefix: &str, seed: u64, [dropped, doubled, spoilt, held]: [u32; 4], bytes: u64) {
    let seed = std::env::var("LANES_SEED").map_or(seed, |text| text.parse().expect("a number"));
    let hosts = LaneHosts::with_faults(prefix, |way| Faults::new(seed + way, dropped, doubled, spoilt, held));
    let mut by_ring = 0;
    let begin = Instant::now();
    for port in 7600..8000 {
        if begin.elapsed() > LONG || (port > 7602 && by_ring > 2 * bytes && hosts.done().passed > 400) {
            break;
        }
        for ended in connected(&hosts, &port.to_string(), "duplex", bytes).map(Side::end) {
            assert_eq!((ended.sent, ended.received, &*ended.how), (bytes, bytes, "all end"), "{ended:?}");
            by_ring += ended.moved.by_ring;
        }
    }
    let done = hosts.done();
    println!("LANES_SEED={seed}: {by_ring} bytes by lanes, {done:?}");
    assert!(by_ring > 2 * bytes && done.passed > 400, "not by lanes: {by_ring} bytes, {done:?}");
    let few = |count: u64, thousandths: u32| count * 2000 < done.passed * u64::from(thousandths);
    assert!(!few(done.dropped, dropped) && !few(done.doubled, doubled), "{done:?}");
    assert!(!few(done.spoilt, spoilt) && !few(done.held, held), "{done:?}");
}

#[test]
fn what_both_send_arrives_also_where_a_few_parcels_are_lost_doubled_spoilt_and_late() {
    arrive_with_faults("lp", 22, [10, 10, 10, 10], 100_000);
}

#[test]
fn what_both_send_arrives_also_where_many_parcels_are_lost() {
    arrive_with_faults("lq", 66, [100, 0, 0, 0], 40_000);
}

/// With these seeds the headers of some parcels are spoilt so that the other side learns a wrong way back.
#[test]
fn what_both_send_arrives_also_where_many_parcels_are_doubled_spoilt_and_late() {
    arrive_with_faults("lv", 111, [0, 100, 100, 100], 40_000);
    arrive_with_faults("lw", 122, [0, 100, 100, 100], 40_000);
}

#[test]
fn what_both_send_arrives_also_where_sides_and_rendezvous_are_stopped_for_a_while() {
    let hosts = LaneHosts::up("ls", &[]);
    let bytes = 6_000_000;
    let sides = connected(&hosts, "7302", "duplex", bytes);
    std::thread::sleep(MEETING);
    for pid in [sides[0].process.id() as i32, sides[1].process.id() as i32, hosts.rendezvous(1), hosts.rendezvous(2)] {
        signal::send(pid, libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(700));
        signal::send(pid, libc::SIGCONT);
        std::thread::sleep(Duration::from_millis(50));
    }
    arrives(sides, bytes);
}

/// Whoever is killed: what it had sent arrives, then the other side gets an end, soon.
#[test]
fn all_that_a_killed_side_had_sent_arrives_and_then_an_end() {
    let hosts = LaneHosts::up("lk", &[]);
    let mut by_ring = 0;
    for round in 0..16 {
        let port = (7310 + round).to_string();
        let [calling, serving] = connected(&hosts, &port, "stream", u64::MAX);
        std::thread::sleep(Duration::from_millis(20 + 7 * round));
        let (killed, left) = if round % 4 == 3 { (serving, calling) } else { (calling, serving) };
        killed.signal(libc::SIGKILL);
        let begin = Instant::now();
        let ended = left.end();
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}: {ended:?}", begin.elapsed());
        assert!(ended.received >= killed.sent(), "{} were sent: {ended:?}", killed.sent());
        by_ring += u64::from(ended.moved.by_ring > 0);
    }
    assert!(by_ring > 8, "only {by_ring} were ended while they went by lanes");
}

fn descriptors(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors").count()
}

/// More processes one after the other than there are lanes, half of them killed: each gets one, and nothing is left.
#[test]
fn lanes_go_from_one_process_to_the_next() {
    let hosts = LaneHosts::up("ll", &["--lane-count", "2"]);
    let mut before = None;
    for round in 0..8 {
        let mut ports = (7330 + 20 * round)..;
        let mut connect = || {
            let port = ports.next().expect("a port").to_string();
            connected(&hosts, &port, "pong", 1_000_000)
        };
        if round % 2 == 1 {
            let sides = connect();
            std::thread::sleep(MEETING / 4);
            sides[round / 2 % 2].signal(libc::SIGKILL);
            continue;
        }
        // Where others have the cores two may have done all before they meet.
        let tried = (0..5).any(|_| connect().map(Side::end).iter().all(|ended| ended.moved.by_ring > 0));
        assert!(tried, "round {round} gets no lane");
        std::thread::sleep(MEETING);
        let now = [1, 2].map(|number| descriptors(hosts.rendezvous(number)));
        // One more is made when a bell is rung for the first time.
        let most = before.get_or_insert(now).map(|count| count + 1);
        assert!(now[0] <= most[0] && now[1] <= most[1], "descriptors of the two rendezvous: {now:?}, first {before:?}");
    }
}

/// Processor time that a process has had.
fn worked(pid: i32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let words = stat.rsplit(')').next().expect("behind its name").split_whitespace();
    // User and system time, in hundredths of a second.
    let ticks: u64 = words.skip(11).take(2).map(|word| word.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(10 * ticks)
}

/// What the program on host 1 does when it has sent half.
fn halfway(host: usize, what: &'static str) -> Vec<(&'static str, &'static str)> {
    if host == 1 { vec![("LANES_HALFWAY", what)] } else { vec![] }
}

/// Each rendezvous has worked little while this was done, and for two seconds more: what programs have left is kept for
/// longer.
fn rests(hosts: &LaneHosts, meanwhile: impl FnOnce()) {
    let rendezvous = [1, 2].map(|number| hosts.rendezvous(number));
    let (begin, before) = (Instant::now(), rendezvous.map(worked));
    meanwhile();
    std::thread::sleep(Duration::from_secs(2));
    let most = begin.elapsed() / 4;
    let worked = [0, 1].map(|at| worked(rendezvous[at]) - before[at]);
    assert!(worked[0] < most && worked[1] < most, "the two rendezvous have worked for {worked:?}, at most {most:?}");
}

/// Takes the interfaces away: each side gets an error, soon, and what the kernel has waits for ever, as it does without
/// us.
fn are_told_soon(hosts: &LaneHosts, sides: [Side; 2]) {
    rests(hosts, || {
        hosts.remove_interfaces();
        let begin = Instant::now();
        for ended in sides.map(Side::end) {
            assert!(ended.how.contains("reset") && ended.moved.by_ring > 0, "{ended:?}");
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    });
}

#[test]
fn where_the_interface_vanishes_both_sides_are_told_soon() {
    let hosts = LaneHosts::up("lv", &[]);
    let sides = connected_by_lanes(&hosts, 7345);
    are_told_soon(&hosts, sides);
}

/// On a connection on which all is told and confirmed nothing is sent.
#[test]
fn where_the_interface_vanishes_those_are_told_who_only_wait() {
    let hosts = LaneHosts::up("lu", &[]);
    let sides = connected_by_lanes(&hosts, 7355);
    sides.iter().for_each(|side| side.signal(libc::SIGTERM));
    std::thread::sleep(MEETING);
    are_told_soon(&hosts, sides);
}

/// A lane that has failed may be readable for ever: who watched it on would never sleep.
#[test]
fn a_program_that_breaks_its_lane_and_ends_keeps_no_rendezvous_awake() {
    let hosts = LaneHosts::up("lb", &["--lane-count", "2"]);
    let [mut calling, serving] = connected_so(&hosts, ["7346", "duplex"], 3_000_000, |host| halfway(host, "breaks"));
    calling.process.wait().expect("our child");
    rests(&hosts, || ());
    serving.signal(libc::SIGKILL);
    arrives(connected(&hosts, "7347", "duplex", 200_000), 200_000);
}

/// A program that has lost its way to the rendezvous goes on by its lane, which nobody else gets before it has ended.
#[test]
fn who_has_lost_its_socket_to_the_rendezvous_keeps_its_lane_until_it_ends() {
    let hosts = LaneHosts::up("lr", &["--lane-count", "1"]);
    let bytes = 3_000_000;
    let sides = connected_so(&hosts, ["7341", "duplex"], bytes, |host| halfway(host, "loses"));
    while sides[0].sent() < bytes * 3 / 4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    sides[0].signal(libc::SIGSTOP);
    // What a program has left that has ended is kept for a second.
    std::thread::sleep(Duration::from_millis(1500));
    for ended in connected(&hosts, "7342", "duplex", 20_000).map(Side::end) {
        assert_eq!((ended.received, ended.moved.by_ring), (20_000, 0), "it has got a lane that is used: {ended:?}");
    }
    sides[0].signal(libc::SIGCONT);
    arrives(sides, bytes);
    arrives(connected(&hosts, "7343", "duplex", 200_000), 200_000);
}

#[test]
fn who_becomes_another_program_leaves_its_lane_to_others() {
    let hosts = LaneHosts::up("le", &["--lane-count", "1"]);
    let [calling, serving] = connected_so(&hosts, ["7348", "duplex"], 1_000_000, |host| halfway(host, "execs"));
    let ended = serving.end();
    assert!(ended.received > 500_000 && ended.moved.by_ring > 0, "{ended:?}");
    arrives(connected(&hosts, "7349", "duplex", 200_000), 200_000);
    calling.signal(libc::SIGKILL);
}

/// A program shows a connection of another network to the rendezvous, where the addresses are the same.
#[test]
fn connections_of_other_networks_stay_with_the_kernel() {
    let hosts = LaneHosts::up("ln", &[]);
    let others = Namespaces::cable(&format!("lm{}x", std::process::id()));
    let files = [1, 2].map(|number| format!("/run/netns/{}", others.name(number)));
    let elsewhere = |host: usize| vec![("LANES_NETWORK", &*files[host - 1])];
    for ended in connected_so(&hosts, ["7351", "duplex"], 200_000, elsewhere).map(Side::end) {
        assert_eq!((ended.received, ended.moved.by_ring), (200_000, 0), "{ended:?}");
    }
}

/// Random operations between the hosts, with the kernel's own connections between them as the oracle, from one seed
/// after the other until enough went by lanes: with some seeds most connections are made somebody's standard input, or
/// outlive an exec, and stay with the kernel, and with a few not even the kernel's do what the oracle expects.
fn oracle(hosts: &LaneHosts, only: &str, operations: u64) {
    let mut by_ring = 0;
    for _ in 0..MOST_SEEDS {
        by_ring += one_oracle(hosts, only, operations).map_or(0, |said| Moved::of(&said).by_ring);
        if by_ring > 50_000 {
            return;
        }
    }
    panic!("not by lanes: {by_ring} bytes with {MOST_SEEDS} seeds");
}

fn one_oracle(hosts: &LaneHosts, only: &str, operations: u64) -> Option<String> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| build::c_folder("tests/c/sockets/oracle"));
    let names = [hosts.name(1), hosts.name(2), hosts.address(2), "fd77::2".to_owned()].join(",");
    let mut command = Command::new(program);
    command.args(["--only", only, "--operations", &operations.to_string(), "--hosts", &names]);
    command.arg("--preload").arg(sockets::library());
    command.env("WEFT_SOCK_STATS", "1").env("WEFT_SOCK_ATTACH_CALLS", "1");
    command.args(std::env::var("ORACLE_SEED").ok());
    sockets::oracle_says(&mut command)
}

#[test]
fn calls_in_lockstep_answer_what_the_kernel_answers() {
    oracle(&LaneHosts::up("lo", &[]), "lockstep", 6000);
}

#[test]
fn both_sides_at_once_lose_nothing() {
    oracle(&LaneHosts::up("lf", &[]), "free", 10_000);
}
