//! Jobs on many hosts, which are network namespaces: started as a tree all is as with one launch command for each host,
//! and what many send to one arrives.

#[path = "launcher/support.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod launcher;

use launcher::{Finished, Running, finish, kill, lines_sorted};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

const LAUNCH: &str = "ip netns exec {host}";
const HOSTS: usize = 9;
/// Of nine hosts the agents of the first, fourth and seventh start two others each.
const TREE: &str = "4";
const FLAT: &str = "never";
/// The fourth, and those that its agent starts.
const MIDDLE: usize = 4;
const BELOW: [usize; 2] = [5, 6];

/// The hosts, which all tests of this process use.
fn hosts() -> &'static Namespaces {
    static HOSTS_UP: OnceLock<Namespaces> = OnceLock::new();
    HOSTS_UP.get_or_init(|| Namespaces::up(&format!("wm{}x", std::process::id()), HOSTS))
}

fn names() -> String {
    (1..=HOSTS).map(|number| hosts().name(number)).collect::<Vec<_>>().join(",")
}

/// Options of a run on all hosts, which may take long to answer: the machine may be loaded.
fn on_all(mut command: Command, launch: &str, shape: &str) -> Command {
    command.args(["--hosts", &names(), "--launch", launch]).stdin(Stdio::null());
    command.env("WEFT_LAUNCH_TIMEOUT", "120").env("WEFT_LAUNCH_TREE", shape);
    command
}

/// A shell script on each.
fn script(shape: &str, options: &str, text: &str) -> Command {
    let mut command = on_all(launcher::weft_run(options), LAUNCH, shape);
    command.args(["sh", "-c", text]);
    command
}

/// Jobs of many processes run one at a time, so that what is asked of fairness is asked of the network.
fn alone() -> impl Drop {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Name, state and parent of a process that is there.
fn status(pid: i32) -> Option<(String, String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (front, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (state, parent) = (words.next()?, words.next()?);
    Some((front.split_once('(')?.1.to_owned(), state, parent.parse().ok()?))
}

/// The agent of a host, and who runs the keeper of its launch command.
fn agent(number: usize) -> (i32, i32) {
    let list = Command::new("ip").args(["netns", "pids", &hosts().name(number)]).output().expect("ip can be started");
    let pids = String::from_utf8(list.stdout).expect("text");
    let found = pids.lines().map(|pid| pid.parse().expect("a number")).filter_map(|pid| Some((pid, status(pid)?)));
    let agents: Vec<_> = found.filter(|(_, (name, ..))| name == "weft-agent").collect();
    let [(pid, (_, _, keeper))] = &agents[..] else { panic!("{agents:?}") };
    (*pid, status(*keeper).expect("a living process").2)
}

/// What a job says, without the numbers of its processes.
fn said(done: &Finished) -> (i32, Vec<String>, Vec<String>) {
    let plain = |line: &&str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        (1..words.len())
            .filter(|at| words[at - 1].ends_with("pid"))
            .collect::<Vec<_>>()
            .iter()
            .for_each(|at| words[*at] = "N");
        words.join(" ")
    };
    let lines = |text: &str| lines_sorted(text).iter().map(plain).collect();
    (done.code, lines(&done.out), lines(&done.err))
}

#[test]
fn a_job_started_as_a_tree_says_and_answers_what_it_does_otherwise() {
    let _alone = alone();
    for (options, text, code) in [
        ("", "echo $PMI_RANK of $PMI_SIZE; echo bad $PMI_RANK >&2", 0),
        ("--tag-output", "seq -f \"$PMI_RANK %.0f\" 1 3000; cd /; pwd", 0),
        ("", "test $PMI_RANK != 5 || exit 7; exec sleep 1000", 7),
        ("", "test $PMI_RANK != 8 || kill -9 $$; exec sleep 1000", 137),
        ("--timeout 2", "exec sleep 1000", 124),
        (
            "",
            "hostname -I; ip -br address show dev eth0 | tr -s ' '; test $PMI_RANK = 4 || exit 0; sleep 0.2; exit 3",
            3,
        ),
    ] {
        let [flat, tree] = [FLAT, TREE].map(|shape| said(&finish(&mut script(shape, options, text))));
        assert_eq!(flat.0, code, "{text}: {flat:?}");
        assert_eq!(flat, tree, "{text}");
    }
}

#[test]
fn input_and_much_output_go_through_agents() {
    let _alone = alone();
    let bytes = vec![b'x'; 3_000_000];
    for shape in [FLAT, TREE] {
        // Where a line takes long, others may come in between; none of its bytes is lost.
        let mut command = script(shape, "--stdin all", "wc -c >&2; head -c 2000000 /dev/zero | tr '\\0' y");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut weft = command.spawn().expect("weft can be started");
        weft.stdin.take().expect("piped").write_all(&bytes).expect("written");
        let output = weft.wait_with_output().expect("it ends");
        let counts = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{shape}: {counts}");
        assert_eq!(lines_sorted(&counts), ["3000000"; HOSTS], "{shape}");
        assert_eq!(output.stdout.iter().filter(|byte| **byte == b'y').count(), HOSTS * 2_000_000, "{shape}");
    }
}

/// Agents in the middle end when they have said all; what they carried may then still wait for room in the launcher.
#[test]
fn a_launcher_that_lags_behind_passes_on_all_that_agents_carried() {
    let _alone = alone();
    for _ in 0..4 {
        let mut command = script(TREE, "", "head -c 2000000 /dev/zero | tr '\\0' y");
        let mut weft = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft can be started");
        let mut out = weft.stdout.take().expect("piped");
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            out.read_to_end(&mut bytes).expect("read");
            bytes.iter().filter(|byte| **byte == b'y').count()
        });
        while weft.try_wait().expect("our child").is_none() {
            for (signal, milliseconds) in [(libc::SIGSTOP, 5), (libc::SIGCONT, 1)] {
                kill(weft.id() as i32, signal);
                std::thread::sleep(Duration::from_millis(milliseconds));
            }
        }
        let output = weft.wait_with_output().expect("it has ended");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(reader.join().expect("counted"), HOSTS * 2_000_000);
    }
}

#[test]
fn agents_in_the_middle_start_the_others_and_signals_reach_all() {
    let _alone = alone();
    let text = "trap 'echo end $PMI_RANK; exit 0' USR1; echo up; while :; do sleep 0.05; done";
    // A shell says on its standard error which signal its child had.
    let mut job = Running::start(script(TREE, "", text).stderr(Stdio::null()));
    (0..HOSTS).for_each(|_| assert_eq!(job.line(), "up"));
    let (middle, launcher) = agent(MIDDLE);
    assert_eq!(launcher, job.weft.id() as i32);
    assert_eq!(BELOW.map(|number| agent(number).1), [middle; 2]);
    job.signal(libc::SIGUSR1);
    let mut text = String::new();
    job.out.read_to_string(&mut text).expect("text");
    let expected: Vec<String> = (0..HOSTS).map(|rank| format!("end {rank}")).collect();
    assert_eq!((job.code(), lines_sorted(&text)), (0, expected.iter().map(String::as_str).collect()));
    job.wait_until_nothing_lives();
}

/// It dies while its own rank runs, or when that has ended and it only stands between.
#[test]
fn an_agent_in_the_middle_that_dies_is_named_and_what_it_started_ends() {
    let _alone = alone();
    for stands_between in [false, true] {
        let exits = if stands_between { "test $PMI_RANK != 3 || exit 0; " } else { "" };
        let text = format!("echo $$; {exits}exec sleep 1000");
        let mut job = Running::start(script(TREE, "", &text).stderr(Stdio::piped()));
        (0..HOSTS).for_each(|_| assert!(job.line().parse::<i32>().is_ok()));
        let middle = agent(MIDDLE).0;
        // Of its two keepers that of its ranks is gone, as far as it can be before the agent is.
        let is_over = |pid: i32| status(pid).is_none_or(|(_, state, _)| state == "Z");
        while stands_between && !launcher::children(middle).into_iter().any(is_over) {
            std::thread::yield_now();
        }
        kill(middle, libc::SIGKILL);
        let mut err = String::new();
        job.weft.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
        assert_eq!(job.code(), 1, "{err}");
        job.wait_until_nothing_lives();
        assert!(err.contains(&format!("the agent of host '{}'", hosts().name(MIDDLE))), "{err}");
        assert!(BELOW.iter().all(|number| !err.contains(&format!("'{}'", hosts().name(*number)))), "{err}");
    }
}

#[test]
fn a_host_that_an_agent_cannot_reach_is_named_with_that_agent() {
    let _alone = alone();
    let bad = hosts().name(BELOW[1]);
    let launch =
        format!("sh -c 'test $0 != {bad} || {{ echo down >&2; exit 3; }}; exec ip netns exec $0 \"$@\"' {{host}}");
    let mut command = on_all(launcher::weft_run(""), &launch, TREE);
    let done = finish(command.arg("true"));
    let expected = format!("host '{bad}': launch command ");
    let middle = format!("' of the agent on host '{}' ended with code 3: down", hosts().name(MIDDLE));
    assert!(done.code != 0 && done.err.contains(&expected) && done.err.contains(&middle), "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
}

/// Each host has a home of its own, and nothing where this program is.
#[test]
fn hosts_that_lack_weft_get_a_copy_by_way_of_agents() {
    let _alone = alone();
    let folder = tempfile::tempdir_in(build::profile_directory()).expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["weft/bin", "nothing", "homes"] {
        std::fs::create_dir_all(path(name)).expect("made");
    }
    let weft = path("weft/bin/weft");
    let strip = Command::new("strip").arg("-o").arg(&weft).arg(build::weft()).status();
    assert!(strip.expect("strip can be started").success());
    let text = format!(
        "host=$1; shift; mkdir -p {homes}/$host; export HOME={homes}/$host; unset XDG_CACHE_HOME\n\
         exec ip netns exec $host sh -c 'mount --bind {nothing} {hidden} && exec \"$@\"' sh \"$@\"\n",
        homes = path("homes").display(),
        nothing = path("nothing").display(),
        hidden = path("weft").display(),
    );
    std::fs::write(path("launch"), text).expect("written");
    let launch = format!("sh {} {{host}}", path("launch").display());
    let mut command = Command::new(&weft);
    command.args(["run", "--bind", "none", "--stage"]);
    let done = finish(on_all(command, &launch, TREE).args(["sh", "-c", "echo up"]));
    assert_eq!((done.code, done.out.lines().count()), (0, HOSTS), "{}", done.err);
    assert!(done.err.starts_with("weft run: copied weft") && done.err.lines().count() == 1, "{}", done.err);
    for number in 1..=HOSTS {
        assert!(path("homes").join(hosts().name(number)).join(".cache/weft").exists(), "host {number}");
    }
}

#[test]
fn what_many_hosts_send_to_one_arrives_and_nobody_starves() {
    let _alone = alone();
    let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/mpi/hosts_incast.c");
    for (devices, bytes, count) in
        [("auto", 16_384, 6_000), ("auto", 200_000, 600), ("udp", 16_384, 2_000), ("tcp", 16_384, 6_000)]
    {
        let mut command = Command::new(tree().join("bin/weft"));
        command.args(["run", "--bind", "none", "--timeout", "300", "--device", devices]);
        let mut command = on_all(command, LAUNCH, FLAT);
        let done = finish(
            command
                .env_remove("WEFT_LAUNCH_TREE")
                .arg(&program)
                .args([bytes, count].map(|number: u32| number.to_string())),
        );
        assert_eq!((done.code, done.out.trim(), done.err.trim()), (0, "ok", ""), "{devices}, {bytes}");
    }
}
