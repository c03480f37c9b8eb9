//! Tests with those who do not keep to the rules: whatever they say, the daemon lives, and others are answered.

use crate::between::{DaemonLetter, DaemonLink, Errand, Response};
use crate::daemon::{Daemon, Me};
use crate::file::DatabaseFile;
use crate::records::Records;
use crate::seal::{self, Preamble, message};
use crate::{accept_clients, accept_others};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

const KEY: seal::Secret = [7; 32];
/// Only what is blocked takes so long.
const STUCK: Duration = Duration::from_secs(30);
/// A task that panics is gone in silence.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// A daemon in this process.
pub struct Besieged {
    _folder: tempfile::TempDir,
    pub daemon: Rc<Daemon>,
    clients: std::os::unix::net::SocketAddr,
    others: SocketAddr,
}

impl Besieged {
    /// `server` is in charge: jobs are placed where it is this one, `one`.
    pub async fn up(server: &str) -> Self {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |what| {
            PANICKED.store(true, Ordering::Relaxed);
            before(what);
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let others = listener.local_addr().expect("its address");
        let members = ["one", "two"].map(|name| format!("[[member]]\nname = \"{name}\"\naddress = \"127.0.0.1\"\n"));
        let text = format!(
            "name = \"lab\"\nversion = 1\nport = {}\nservers = [\"{server}\"]\n{}",
            others.port(),
            members.concat()
        );
        let cluster = weft_database::read(&text).expect("a cluster");
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::open(&folder.path().join("records")).expect("opened");
        let file = DatabaseFile::new(folder.path().join("lab.toml"), None);
        let me = Me { member: "one".to_owned(), uid: weft_kernel::user(), user: "ann".to_owned(), key: KEY, file };
        let daemon = Daemon::new(me, cluster, text, records).expect("a daemon");
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("weftd-hostile/{}/{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let clients = std::os::unix::net::SocketAddr::from_abstract_name(name).expect("a name");
        let socket = std::os::unix::net::UnixListener::bind_addr(&clients).expect("bound");
        socket.set_nonblocking(true).expect("set");
        let socket = UnixListener::from_std(socket).expect("a listener");
        let (to_clients, to_others) = (Rc::clone(&daemon), Rc::clone(&daemon));
        tokio::task::spawn_local(async move { accept_clients(&to_clients, socket).await });
        tokio::task::spawn_local(async move { accept_others(&to_others, vec![listener]).await });
        Self { _folder: folder, daemon, clients, others }
    }

    fn connect(&self) -> UnixStream {
        let stream = std::os::unix::net::UnixStream::connect_addr(&self.clients).expect("connected");
        stream.set_nonblocking(true).expect("set");
        UnixStream::from_std(stream).expect("a stream")
    }

    /// Writes, and reads what comes back until nothing more does, if it is wanted.
    async fn say(&self, bytes: &[u8], reads: bool) -> Vec<u8> {
        let mut stream = self.connect();
        let mut heard = Vec::new();
        // It may end the connection before all is written.
        let _ = stream.write_all(bytes).await;
        if reads {
            let _ = stream.shutdown().await;
            let _ = tokio::time::timeout(STUCK, stream.read_to_end(&mut heard)).await.expect("an end");
        }
        heard
    }

    /// Somebody who keeps to the rules is answered, by both ways, and nothing has broken.
    async fn serves(&self) {
        let mut reader = BufReader::new(self.connect());
        for demand in [json!({"Begin": {"version": weft_requests::VERSION, "weft": "x"}}), json!("Page")] {
            reader.get_mut().write_all(format!("{demand}\n").as_bytes()).await.expect("written");
            let mut line = String::new();
            tokio::time::timeout(STUCK, reader.read_line(&mut line)).await.expect("in time").expect("read");
            assert!(line.contains("lab") || line.contains("Refused"), "{line}");
        }
        let addresses = [self.others];
        let link = DaemonLink::connect(&KEY, "lab", "one", &addresses);
        let link = tokio::time::timeout(STUCK, link).await.expect("in time").expect("let in");
        let response = link.ask(Errand::Ranks).last().await.expect("answered");
        assert!(matches!(response, Response::Ranks(_)), "{response:?}");
        assert!(!PANICKED.load(Ordering::Relaxed), "a task has panicked");
    }
}

pub fn run<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

/// What clients say.
fn demands() -> Vec<Value> {
    let about = json!({"id": "1-a", "program": "p", "arguments": ["a"], "ranks": 2, "since": 0});
    vec![
        json!({"Begin": {"version": weft_requests::VERSION, "weft": "x"}}),
        json!({"Place": {"partition": null, "ranks": 2, "map": "slot", "about": about, "priority": null, "wait": true, "seconds": null}}),
        json!({"Register": about}),
        json!({"Enter": {"job": "two.1", "host": "two"}}),
        json!({"Finish": {"job": "one.1", "record": null}}),
        json!({"Look": {"ranks": true}}),
        json!({"Signal": {"job": "none.1", "signal": 0}}),
        json!({"Drain": {"member": "none", "slots": 1}}),
        json!({"Finished": {"most": 7, "everywhere": false}}),
        json!("Page"),
        json!("Database"),
        json!({"HasKey": {"key": "17"}}),
    ]
}

/// What daemons say.
fn errands() -> Vec<Value> {
    let asker = json!({"user": "ann", "uid": 1, "groups": ["g"], "pid": 0, "began": 0});
    let load = json!({"cores": 2, "load": 0.5, "pressure": 1.0, "memory_bytes": 9, "free_bytes": 4, "weft": "x", "version": 1});
    let view = json!({"job": "two.3", "user": "ann", "partition": "lab", "program": "p", "arguments": [], "size": 2,
        "hosts": [["one", 1], ["two", 1]], "since": 3, "priority": 0, "id": "", "ranks": []});
    let held = json!({"user": "ann", "partition": "lab", "hosts": [["one", 1]], "until": 9});
    let report =
        json!({"member": "two", "slots": 2, "load": load, "trouble": null, "jobs": [{"view": view, "until": 5}]});
    vec![
        json!({"Greet": {"cluster": "lab", "member": "one"}}),
        json!({"For": {"asker": asker, "demand": {"Look": {"ranks": false}}}}),
        json!({"For": {"asker": asker, "demand": {"Drain": {"member": "one", "slots": 5}}}}),
        json!({"Order": {"asker": asker, "job": "two.4", "placing": demands()[1]["Place"]}}),
        json!({"Granted": {"job": "two.5", "held": held}}),
        json!({"Over": {"job": "two.5"}}),
        json!({"Holds": {"job": "one.1"}}),
        json!({"Turns": {"server": "two", "turns": {"rows": 2, "slice_ms": 0, "jobs": {"two.9": 1}}}}),
        json!("Clock"),
        json!({"Admit": {"job": "two.6", "user": "ann", "priority": 0, "partition": "lab"}}),
        json!({"Heed": report}),
        json!({"Still": {"member": "two", "load": load}}),
        json!({"Adopt": {"text": "name = \"lab\"\nversion = 1\n"}}),
    ]
}

/// Goes through a value and the values in it, and puts `with` in the place of one. What comes back is how many there
/// are.
fn change(value: &mut Value, at: usize, with: &Value) -> usize {
    if at == 0 {
        *value = with.clone();
        return 1;
    }
    let inner: Vec<&mut Value> = match value {
        Value::Array(inner) => inner.iter_mut().collect(),
        Value::Object(inner) => inner.values_mut().collect(),
        _ => Vec::new(),
    };
    inner.into_iter().fold(1, |seen, value| seen + change(value, at.wrapping_sub(seen), with))
}

/// The same with one value changed for another.
fn mutated(mut value: Value, at: usize, with: usize) -> Value {
    let strange = [
        json!(null),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(i32::MIN),
        json!(""),
        json!("one"),
        json!("one.18446744073709551615"),
        json!("\u{0}\n\u{1b}[2J"),
        json!("x".repeat(5000)),
        json!([]),
        json!([["one", usize::MAX], ["one", usize::MAX]]),
        json!({}),
        json!(true),
    ];
    let count = change(&mut value, usize::MAX, &Value::Null);
    change(&mut value, at % count, &strange[with % strange.len()]);
    value
}

/// Lines in any order: as they are meant, with another value, cut, or noise.
fn lines(of: Vec<Value>) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let good = proptest::sample::select(of);
    let text = |value: Value| value.to_string().into_bytes();
    let line = prop_oneof![
        1 => good.clone().prop_map(text),
        6 => (good.clone(), 0..40_usize, 0..40_usize).prop_map(move |(good, at, with)| text(mutated(good, at, with))),
        2 => (good.prop_map(text), any::<proptest::sample::Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
            let at = at.index(line.len());
            line[at] = byte;
            line
        }),
        1 => proptest::collection::vec(any::<u8>(), 0..300),
    ];
    proptest::collection::vec(line, 1..12)
}

/// So many examples, the same each time.
fn examples<T: std::fmt::Debug>(count: usize, strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    let one = |_| strategy.new_tree(&mut runner).expect("an example").current();
    (0..count).map(one).collect()
}

#[test]
fn whatever_clients_say_the_daemon_lives_and_others_are_answered() {
    run(async {
        // Nobody places anything: a job that takes too long is ended with its launcher, which is this process.
        let besieged = Besieged::up("two").await;
        let begin = demands()[0].to_string();
        for (number, lines) in examples(1000, lines(demands())).into_iter().enumerate() {
            let greeted = if number % 4 == 0 { Vec::new() } else { format!("{begin}\n").into_bytes() };
            let said = [greeted, lines.join(&b'\n'), b"\n".to_vec()].concat();
            // The last line of some is cut.
            besieged.say(&said[..said.len() - number % 3], number % 2 == 0).await;
        }
        besieged.serves().await;
    });
}

#[test]
fn whatever_is_said_by_who_has_the_key_the_daemon_lives_and_others_are_answered() {
    run(async {
        let besieged = Besieged::up("one").await;
        for lines in examples(3000, lines(errands())) {
            let stream = TcpStream::connect(besieged.others).await.expect("connected");
            let (mut reader, mut writer) = seal::initiate(stream, Preamble::Daemon, &KEY).await.expect("let in");
            for (number, line) in lines.into_iter().enumerate() {
                // As a call where it is JSON, else as it is.
                let call = serde_json::from_slice::<Value>(&line).map(|errand| json!({"Call": [number, errand]}));
                let line = call.map_or(line, |call| call.to_string().into_bytes());
                if message::write(&mut writer, &line).await.is_err() {
                    break;
                }
            }
            // Some who ask wait for their answers.
            let answer = tokio::time::timeout(Duration::from_millis(1), message::read(&mut reader)).await;
            if let Ok(Ok(Some(answer))) = answer {
                assert!(matches!(serde_json::from_slice(&answer), Ok(DaemonLetter::Response(..))));
            }
        }
        besieged.daemon.decide();
        besieged.serves().await;
    });
}

#[test]
fn what_registers_is_bounded_and_counted_by_its_kind() {
    run(async {
        let besieged = Besieged::up("two").await;
        let home = &besieged.daemon.home;
        let begin = demands()[0].to_string();
        let register = |kind: &str, program: String, arguments: &[&str]| {
            let id = "i".repeat(999);
            let about =
                json!({"id": id, "program": program, "arguments": arguments, "ranks": 7, "kind": kind, "since": 0});
            json!({"Register": about}).to_string()
        };
        // It has gone before it is greeted.
        besieged.say(format!("{begin}\n{}\n", register("pvm", "first".to_owned(), &[])).as_bytes(), false).await;
        let is_taken_in = async {
            while home.running().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(STUCK, is_taken_in).await.expect("in time");
        let long = register("sockets", "\u{1b}".repeat(150 << 10), &["\n"]);
        let mut lines = vec![long, register("job", "p".to_owned(), &[])];
        lines.extend((0..300).map(|_| register("sockets", "x".repeat(4096), &["y"; 1500])));
        lines.push(register("job", "q".to_owned(), &[]));
        let mut heard = String::new();
        // The answers to so many fit into a socket before they are read.
        for some in lines.chunks(100) {
            let said = format!("{begin}\n{}\n", some.join("\n"));
            heard += &String::from_utf8_lossy(&besieged.say(said.as_bytes(), true).await);
        }
        assert_eq!((heard.matches("Registered").count(), heard.matches("Refused").count()), (257, 46));
        assert!(heard.contains("has 256 processes that are no jobs here already"), "{heard}");
        let told = home.running();
        let first = &told[1].view;
        assert_eq!(
            (&first.program, &*first.arguments, &*first.id, first.size),
            (&"?".repeat(4096), &["?".to_owned()][..], "", 0)
        );
        assert_eq!((told[2].view.id.len(), told[2].view.size), (64, 7));
        assert_eq!(told.last().map(|job| &*job.view.program), Some("q"));
        assert!(serde_json::to_vec(&told).expect("JSON").len() < 512 << 10);
        besieged.serves().await;
    });
}

#[test]
fn who_says_too_much_or_nothing_keeps_nobody_else_waiting() {
    run(async {
        let besieged = Besieged::up("two").await;
        let begin = format!("{}\n", demands()[0]);
        // A line without an end, and one that is a demand behind what is too long.
        let long = [begin.as_bytes(), &vec![b'x'; 3 << 20]].concat();
        let heard = besieged.say(&long, true).await;
        assert_eq!(String::from_utf8_lossy(&heard).matches("Refused").count(), 1, "it is told once");
        // Many who ask and never read, many who say half of something, many who are only there.
        let asking = format!("{begin}{}", "{\"Finished\":{\"most\":9,\"everywhere\":false}}\n".repeat(2000));
        let mut idle = Vec::new();
        let count = if weft_kernel::user() == 0 { 1500 } else { 150 };
        for number in 0..count {
            let mut stream = besieged.connect();
            let said: &[u8] = match number % 3 {
                0 => b"",
                1 => b"{\"Begin\":{\"vers",
                _ => asking.as_bytes(),
            };
            // As much as it takes.
            let _ = stream.try_write(said);
            let _ = stream.flush().await;
            idle.push(stream);
            tokio::task::yield_now().await;
        }
        let mut strangers = Vec::new();
        for number in 0..2 * crate::MOST_FROM_ONE {
            let mut stream = TcpStream::connect(besieged.others).await.expect("connected");
            let _ = stream.write_all(&Preamble::Daemon.bytes()[..number % 24]).await;
            strangers.push(stream);
        }
        let mut reader = BufReader::new(besieged.connect());
        reader.get_mut().write_all(begin.as_bytes()).await.expect("written");
        let mut line = String::new();
        tokio::time::timeout(STUCK, reader.read_line(&mut line)).await.expect("in time").expect("read");
        assert!(line.contains("Welcome"), "{line}");
        drop((idle, strangers));
        besieged.serves().await;
    });
}
