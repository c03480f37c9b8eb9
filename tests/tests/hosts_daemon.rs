//! A cluster with daemons, whose members are network namespaces: no launch command is there, so whatever runs on
//! another member was let in by its daemon.

use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

#[path = "hosts_daemon/care.rs"]
mod care;
#[path = "hosts_daemon/lost.rs"]
mod lost;
#[path = "hosts_daemon/registered.rs"]
mod registered;
#[path = "hosts_daemon/turns.rs"]
mod turns;

/// Only what is stuck takes so long.
const STUCK: Duration = Duration::from_secs(60);
const MEMBERS: usize = 3;
const NOBODY: u32 = 65534;

/// Three members with two slots each; the first two are servers.
struct Lab {
    hosts: Namespaces,
    folder: TempDir,
    daemons: Vec<Option<Child>>,
    /// How `setpriv` starts the daemons.
    rights: &'static [&'static str],
}

impl Lab {
    fn up(partition: &str) -> Self {
        static LABS: AtomicU32 = AtomicU32::new(0);
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let hosts = Namespaces::up(&format!("wd{}x{number}n", std::process::id()), MEMBERS);
        let folder = TempDir::new().expect("a folder");
        let lab = Self { hosts, folder, daemons: (0..MEMBERS).map(|_| None).collect(), rights: &[] };
        let member = |number| {
            let (name, address) = (lab.hosts.name(number), lab.hosts.address(number));
            format!("[[member]]\nname = \"{name}\"\naddress = \"{address}\"\nslots = 2\n")
        };
        let members: String = (1..=MEMBERS).map(member).collect();
        let servers = format!("servers = [\"{}\", \"{}\"]", lab.hosts.name(1), lab.hosts.name(2));
        let text =
            format!("name = \"lab\"\nversion = 1\n{servers}\n{members}[[partition]]\nname = \"all\"\n{partition}\n");
        let key = lab.folder.path().join("lab.key");
        fs::write(lab.file(), text).expect("written");
        fs::write(&key, "17".repeat(32)).expect("written");
        fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("a mode");
        fs::set_permissions(lab.folder.path(), Permissions::from_mode(0o755)).expect("a mode");
        lab
    }

    fn with_daemons(partition: &str) -> Self {
        Self::up(partition).started()
    }

    fn started(mut self) -> Self {
        (1..=MEMBERS).for_each(|number| self.start(number));
        self.until("all members are seen", |view| {
            let members = view["members"].as_array().expect("members");
            members.iter().all(|member| member["standing"] == "alive")
        });
        self
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("lab.toml")
    }

    /// Starts the daemon of a member, which ends with this process.
    fn start(&mut self, number: usize) {
        let mut command = self.on(number, "setpriv");
        let state = self.folder.path().join("state");
        command.args(["--pdeathsig", "KILL"]).args(self.rights).arg(tree().join("bin/weftd")).arg(self.file());
        command.args(["--name", &self.hosts.name(number), "--state"]).arg(state);
        let said = File::options().create(true).append(true).open(self.said_by(number)).expect("opened");
        self.daemons[number - 1] = Some(command.stdin(Stdio::null()).stderr(said).spawn().expect("started"));
    }

    /// Where all that the daemon of a member says is kept.
    fn said_by(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("said.{number}"))
    }

    fn kill(&mut self, number: usize) {
        let mut daemon = self.daemons[number - 1].take().expect("it runs");
        daemon.kill().expect("killed");
        daemon.wait().expect("ended");
    }

    /// Ends a daemon in order.
    fn stop(&mut self, number: usize) {
        let mut daemon = self.daemons[number - 1].take().expect("it runs");
        said(self.on(number, "kill").arg(daemon.id().to_string()).output().expect("started"));
        assert!(daemon.wait().expect("ended").success());
    }

    /// A command on a member.
    fn on(&self, number: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hosts.name(number), program]).env("WEFT_CLUSTER", self.file());
        command.env("WEFT_LAUNCH_TIMEOUT", "50").env_remove("WEFT_LAUNCH").env("WEFT_BIND", "none");
        command.stdin(Stdio::null());
        command
    }

    /// `weft` on a member.
    fn weft(&self, number: usize, words: &[&str]) -> Command {
        let mut command = self.on(number, tree().join("bin/weft").to_str().expect("text"));
        command.args(words);
        command
    }

    /// Ranks that tell of themselves when they begin, and end when the file `end` is there.
    fn job(&self, ranks: usize, end: &str) -> Command {
        self.mapped_job(ranks, end, "slot")
    }

    fn mapped_job(&self, ranks: usize, end: &str, map: &str) -> Command {
        let end = self.folder.path().join(end);
        let end = end.display();
        let script =
            format!("echo begun $(id -u); echo $$ > {end}.$PMI_RANK; until test -e {end}; do sleep 0.05; done");
        let mut command = self.weft(1, &["run", "--partition", "all", "-n", &ranks.to_string(), "--wait"]);
        command.args(["--map", map]);
        command.args(["sh", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Waits until so many ranks of it have begun.
    fn began(&self, ranks: usize, end: &str) {
        let text = |rank| fs::read_to_string(self.folder.path().join(format!("{end}.{rank}")));
        let all = || (0..ranks).all(|rank| text(rank).is_ok_and(|text| !text.is_empty()));
        self.until("all ranks have begun", |_| all());
    }

    /// The name of the job that runs and has another name than this.
    fn running_job(&self, other: &str) -> String {
        let name = |view: &Value| view["jobs"][0]["job"].as_str().map(str::to_owned);
        let view = self.until("a job runs", |view| name(view).is_some_and(|name| name != other));
        name(&view).expect("it runs")
    }

    fn end(&self, end: &str) {
        fs::write(self.folder.path().join(end), "").expect("written");
    }

    fn view(&self) -> Value {
        let seen = (1..=MEMBERS).filter(|number| self.daemons[number - 1].is_some()).find_map(|number| {
            let output = self.weft(number, &["ps", "--cluster", "--json"]).output().expect("started");
            serde_json::from_slice(&output.stdout).ok()
        });
        seen.unwrap_or(Value::Null)
    }

    /// Looks at the cluster until it is so.
    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let view = self.view();
            if !view.is_null() && is_so(&view) {
                return view;
            }
            assert!(begun.elapsed() < STUCK, "{what}: {view:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().flatten() {
            let _ = daemon.kill().and_then(|()| daemon.wait());
        }
        if std::thread::panicking() {
            (1..=MEMBERS)
                .for_each(|number| eprint!("{}", fs::read_to_string(self.said_by(number)).unwrap_or_default()));
        }
    }
}

fn used(view: &Value) -> u64 {
    view["members"].as_array().expect("members").iter().map(|member| member["used"].as_u64().expect("slots")).sum()
}

fn queued(view: &Value) -> usize {
    view["queue"].as_array().expect("a queue").len()
}

fn said(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(output: Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn jobs_enter_members_by_their_daemons_and_wait_where_there_is_no_room() {
    let lab = Lab::with_daemons("");
    let first = lab.job(5, "first").spawn().expect("started");
    lab.until("it has five slots", |view| used(view) == 5);
    let second = lab.job(2, "second").spawn().expect("started");
    lab.until("one waits", |view| queued(view) == 1 && view["jobs"][0]["size"] == 5);
    let third = lab.weft(3, &["run", "--partition", "all", "-n", "2", "true"]).output().expect("started");
    let reason = refused(third);
    assert!(reason.contains("1 before it") && reason.contains("--wait"), "{reason}");
    let too_many = refused(lab.weft(2, &["run", "--partition", "all", "-n", "7", "true"]).output().expect("started"));
    assert!(too_many.contains("7 ranks"), "{too_many}");
    lab.end("first");
    let first = said(first.wait_with_output().expect("ended"));
    assert_eq!(first.matches("begun 0").count(), 5, "{first}");
    lab.until("the other has begun", |view| used(view) == 2 && queued(view) == 0);
    lab.end("second");
    said(second.wait_with_output().expect("ended"));
    lab.until("nothing is left", |view| used(view) == 0);
}

#[test]
fn a_job_goes_on_while_daemons_are_killed_and_begin_again() {
    let mut lab = Lab::with_daemons("");
    let job = lab.job(6, "end").spawn().expect("started");
    lab.began(6, "end");
    (1..=MEMBERS).for_each(|number| lab.kill(number));
    (1..=MEMBERS).for_each(|number| lab.start(number));
    lab.until("it is known again", |view| used(view) == 6);
    let reason = refused(lab.weft(2, &["run", "--partition", "all", "-n", "1", "true"]).output().expect("started"));
    assert!(reason.contains("0 free slots"), "{reason}");
    lab.end("end");
    let output = said(job.wait_with_output().expect("ended"));
    assert_eq!(output.matches("begun").count(), 6, "{output}");
    lab.until("it is over", |view| used(view) == 0);
}

#[test]
fn a_server_that_dies_is_followed_by_the_next_and_who_waits_is_served() {
    let mut lab = Lab::with_daemons("");
    let first = lab.job(6, "first").spawn().expect("started");
    lab.began(6, "first");
    let mut second = lab.weft(3, &["run", "--partition", "all", "-n", "1", "--wait", "echo", "served"]);
    let second = second.stdout(Stdio::piped()).spawn().expect("started");
    lab.until("one waits", |view| queued(view) == 1);
    lab.kill(1);
    lab.until("it waits with the other server", |view| queued(view) == 1 && view["server"] == lab.hosts.name(2));
    lab.end("first");
    said(first.wait_with_output().expect("ended"));
    lab.start(1);
    assert_eq!(said(second.wait_with_output().expect("ended")), "served\n");
}

#[test]
fn who_kills_the_launcher_ends_the_ranks_on_all_members_and_frees_their_slots() {
    let lab = Lab::with_daemons("");
    let mut job = lab.job(6, "never").spawn().expect("started");
    let name = lab.running_job("");
    job.kill().and_then(|()| job.wait()).expect("killed");
    lab.until("its slots are free", |view| used(view) == 0);
    // From another member, and in order: by the job's name.
    let again = lab.job(6, "never").spawn().expect("started");
    let next = lab.running_job(&name);
    said(lab.weft(3, &["kill", &next]).output().expect("started"));
    assert!(!again.wait_with_output().expect("ended").status.success());
    lab.until("its slots are free, too", |view| used(view) == 0);
    let gone = refused(lab.weft(2, &["kill", &next]).output().expect("started"));
    assert!(gone.contains("no job"), "{gone}");
}

#[test]
fn a_drained_member_gets_nothing_new() {
    let lab = Lab::with_daemons("");
    said(lab.weft(1, &["drain", &lab.hosts.name(3)]).output().expect("started"));
    lab.until("it is drained", |view| view["members"][2]["slots"] == 0);
    let reason = refused(lab.weft(1, &["run", "--partition", "all", "-n", "5", "true"]).output().expect("started"));
    assert!(reason.contains("4 free slots"), "{reason}");
    said(lab.weft(2, &["drain", "--undo", &lab.hosts.name(3)]).output().expect("started"));
    lab.until("it is not", |view| view["members"][2]["slots"] == 2);
    said(lab.weft(1, &["run", "--partition", "all", "-n", "5", "true"]).output().expect("started"));
    let more = refused(lab.weft(1, &["drain", "--slots", "3", &lab.hosts.name(3)]).output().expect("started"));
    assert!(more.contains("3 slots for '") && more.contains("has 2 in the file"), "{more}");
}

#[test]
fn jobs_run_as_their_user_on_all_members_and_nobody_acts_for_others() {
    let lab = Lab::with_daemons("");
    let as_nobody = |number: usize, words: &[&str]| {
        let mut command = lab.weft(number, words);
        command.env("HOME", "/").current_dir("/");
        // The namespace is entered by root.
        let inner: Vec<String> = command.get_args().skip(3).map(|word| word.to_string_lossy().into_owned()).collect();
        let mut command = lab.on(number, "setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).args(inner);
        command.env("HOME", "/").current_dir("/");
        command
    };
    let output = as_nobody(1, &["run", "--partition", "all", "-n", "6", "id", "-u"]).output().expect("started");
    assert_eq!(said(output).matches(&NOBODY.to_string()).count(), 6);
    lab.until("the first one is over", |view| used(view) == 0 && view["jobs"][0].is_null());
    let job = lab.job(2, "end").spawn().expect("started");
    let name = lab.running_job("");
    let reason = refused(as_nobody(2, &["kill", &name]).output().expect("started"));
    assert!(reason.contains("not yours"), "{reason}");
    let reason = refused(as_nobody(2, &["drain", &lab.hosts.name(1)]).output().expect("started"));
    assert!(reason.contains("may not drain"), "{reason}");
    lab.end("end");
    said(job.wait_with_output().expect("ended"));
}

#[test]
fn a_partition_is_for_those_whom_it_names() {
    let lab = Lab::with_daemons("users = [\"ann\"]");
    let mut command = lab.on(1, "setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(tree().join("bin/weft"));
    command.args(["run", "--partition", "all", "true"]).env("HOME", "/").current_dir("/");
    let reason = refused(command.output().expect("started"));
    assert!(reason.contains("is not for user 'nobody'"), "{reason}");
    let higher = lab.weft(1, &["run", "--partition", "all", "--priority", "5", "true"]).output().expect("started");
    let reason = refused(higher);
    assert!(reason.contains("the highest is 0"), "{reason}");
}

#[test]
fn a_daemon_of_another_key_is_not_let_in_and_a_newer_database_comes_to_all() {
    let mut lab = Lab::up("");
    let other = lab.folder.path().join("other.key");
    fs::write(&other, "23".repeat(32)).expect("written");
    fs::set_permissions(&other, Permissions::from_mode(0o600)).expect("a mode");
    lab.start(1);
    lab.until("the first is seen", |view| view["members"][0]["standing"] == "alive");
    // The second has a database of its own, which is newer.
    let text = fs::read_to_string(lab.file()).expect("read").replace("version = 1", "version = 2");
    let file = lab.folder.path().join("second.toml");
    fs::write(&file, text).expect("written");
    let start = |key: &str, name: &str| {
        let mut command = lab.on(2, "setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(tree().join("bin/weftd")).arg(&file).args(["--name", name]);
        command.args(["--key", key, "--state"]).arg(lab.folder.path().join("state")).process_group(0);
        command.stdin(Stdio::null()).spawn().expect("started")
    };
    let mut stranger = start(other.to_str().expect("text"), &lab.hosts.name(2));
    let begun = Instant::now();
    // It answers its own clients, and tries to reach the other server meanwhile.
    while !lab.weft(2, &["ps", "--cluster"]).output().expect("started").status.success() {
        assert!(begun.elapsed() < STUCK, "it does not begin");
    }
    assert_eq!(lab.view()["members"][1]["standing"], "unknown");
    stranger.kill().and_then(|()| stranger.wait()).expect("ended");
    let key = lab.folder.path().join("lab.key");
    let mut member = start(key.to_str().expect("text"), &lab.hosts.name(2));
    lab.until("both have the newer one", |view| {
        view["version"] == 2 && view["members"][1]["standing"] == "alive" && view["members"][0]["load"]["version"] == 2
    });
    assert!(fs::read_to_string(lab.file()).expect("read").contains("version = 2"));
    member.kill().and_then(|()| member.wait()).expect("ended");
}

#[test]
fn a_daemon_that_begins_with_a_broken_file_uses_the_last_good_one_until_it_is_mended() {
    let mut lab = Lab::with_daemons("");
    let good = fs::read_to_string(lab.file()).expect("read");
    lab.kill(1);
    fs::write(lab.file(), good.replace("[[partition]]", "[[partition]")).expect("written");
    lab.start(1);
    let trouble = |view: &Value| view["members"][0]["trouble"].as_str().map(str::to_owned);
    let view = lab.until("it is there, and tells", |view| {
        view["members"][0]["standing"] == "alive" && trouble(view).is_some() && view["version"] == 1
    });
    let told = trouble(&view).expect("trouble");
    assert!(told.contains("line ") && told.ends_with("the last good one, version 1, is used"), "{told}");
    fs::write(lab.file(), good.replace("version = 1", "version = 2")).expect("written");
    lab.until("the mended one is taken", |view| view["version"] == 2 && trouble(view).is_none());
}

#[test]
fn what_ranks_wait_for_and_have_sent_is_told_to_who_looks() {
    let lab = Lab::with_daemons("");
    let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/mpi/hosts_waits.c");
    let mut job = lab.weft(3, &["run", "--partition", "all", "--map", "host", "-n", "3"]);
    let mut job = job.arg(program).spawn().expect("started");
    let view = lab.until("all wait", |view| {
        let ranks = view["jobs"][0]["ranks"].as_array();
        ranks.is_some_and(|ranks| {
            let waits = |rank: &&Value| rank["blocked"].as_str().is_some_and(|what| what.contains("tag 7"));
            ranks.iter().filter(waits).count() == 3
        })
    });
    job.kill().and_then(|()| job.wait()).expect("killed");
    assert_eq!(view["jobs"][0]["ranks"][2]["blocked"], "MPI_Recv from rank 0, tag 7, MPI_COMM_WORLD");
    // Wherever it has been placed.
    let sender = &view["jobs"][0]["ranks"][0]["host"];
    let (of_sender, of_others): (Vec<_>, Vec<_>) =
        view["traffic"].as_array().expect("flows").iter().partition(|flow| flow["from"] == *sender);
    let sent = |flows: &[&Value]| flows.iter().map(|flow| flow["bytes"].as_u64().expect("bytes")).sum::<u64>();
    assert!(sent(&of_sender) >= 2 << 20 && sent(&of_others) < 1 << 20, "{} {}", view["jobs"], view["traffic"]);
}

#[test]
fn a_job_whose_daemon_is_ended_in_order_keeps_its_slots_while_it_runs() {
    let mut lab = Lab::with_daemons("");
    let job = lab.job(6, "end").spawn().expect("started");
    lab.began(6, "end");
    lab.until("it is told of", |view| used(view) == 6);
    lab.stop(1);
    let is_second = |view: &Value| view["server"] == lab.hosts.name(2) && view["members"][0]["standing"] == "dead";
    lab.until("the other server orders jobs, and knows it", |view| is_second(view) && used(view) == 6);
    let reason = refused(lab.weft(3, &["run", "--partition", "all", "-n", "1", "true"]).output().expect("started"));
    assert!(reason.contains("0 free slots"), "{reason}");
    lab.end("end");
    said(job.wait_with_output().expect("ended"));
    lab.until("its slots are free", |view| used(view) == 0);
}

/// As systemd does: listens, and starts the daemon when somebody comes.
const LISTEN: &str = "import os, select, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind('\\0weftd/0')
listener.listen()
select.select([listener], [], [])
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn who_comes_before_the_daemon_is_served_where_somebody_listens_for_it() {
    let mut lab = Lab::up("");
    lab.rights = &["python3", "-c", LISTEN];
    lab.start(1);
    lab.until("it has begun", |view| view["members"][0]["standing"] == "alive");
    let log = fs::read_to_string(lab.said_by(1)).expect("read");
    let is_usual = |line: &str| ["Z weftd: begins as '", "Z weftd: member '"].iter().any(|usual| line.contains(usual));
    assert!(log.contains("begins as '") && log.lines().all(is_usual), "{log}");
}

/// By its user and root alone, also when its daemon has begun again, its launcher was killed, and it is over.
#[test]
fn what_a_job_has_written_is_shown_on_any_member() {
    let mut lab = Lab::with_daemons("");
    let script = "echo out $PMI_RANK; echo err $PMI_RANK >&2; printf cut; exec sleep 1000";
    let mut job = lab.weft(1, &["run", "--partition", "all", "--map", "host", "-n", "2", "sh", "-c", script]);
    let mut job = job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    let name = lab.running_job("");
    let logs =
        |lab: &Lab, words: &[&str]| lab.weft(2, &[&["logs", &*name][..], words].concat()).output().expect("started");
    lab.until("both ranks have written", |_| {
        String::from_utf8_lossy(&logs(&lab, &[]).stdout).matches("cut").count() == 2
    });
    let follow = lab.weft(3, &["logs", "--follow", &name]).stdout(Stdio::piped()).spawn().expect("started");
    let of_one = logs(&lab, &["--rank", "1"]);
    assert_eq!((&*of_one.stdout, &*of_one.stderr), (&b"out 1\ncut"[..], &b"err 1\n"[..]));
    let mut stranger = lab.on(2, "setpriv");
    stranger
        .args(["--reuid", &NOBODY.to_string(), "--clear-groups"])
        .arg(tree().join("bin/weft"))
        .args(["logs", &name]);
    let reason = refused(stranger.output().expect("started"));
    assert!(reason.contains("is not yours"), "{reason}");
    let reason = refused(lab.weft(2, &["logs", &format!("{}.999", lab.hosts.name(1))]).output().expect("started"));
    assert!(reason.contains(".999 is known"), "{reason}");
    lab.kill(1);
    lab.start(1);
    lab.until("it is found again", |view| used(view) == 2);
    assert!(said(logs(&lab, &[])).contains("out 1\n"));
    job.kill().and_then(|()| job.wait()).expect("killed");
    lab.until("it is over", |view| used(view) == 0);
    for rank in ["2", "22"] {
        let none = refused(logs(&lab, &["--rank", rank]));
        assert!(none.contains(&format!("has no rank {rank}: its ranks are 0 to 1")), "{none}");
    }
    let after = said(logs(&lab, &[]));
    assert!(["out 0\n", "out 1\n"].iter().all(|line| after.contains(line)), "{after}");
    let followed = said(follow.wait_with_output().expect("ended"));
    assert!(["out 0\n", "out 1\n"].iter().all(|line| followed.contains(line)), "{followed}");
}
