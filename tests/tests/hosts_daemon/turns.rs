//! Jobs that take turns on their hosts, and reservations.

use super::{Lab, MEMBERS, STUCK, refused, said, used};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How a daemon begins to say that it may not give turns.
const NO_TURNS: &str = "the policy gang is not applied: ";

/// Whether a process runs before all that are not real-time.
fn is_first(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let policy = stat[stat.rfind(')').expect("a name") + 1..].split_ascii_whitespace().nth(38);
    policy.is_some_and(|policy| policy == "2")
}

/// Waits until of each job all ranks run so, or none does.
fn until_first(what: &str, jobs: &[(&[i32], bool)]) {
    let begun = Instant::now();
    while jobs.iter().any(|(ranks, first)| ranks.iter().any(|rank| is_first(*rank) != *first)) {
        assert!(begun.elapsed() < STUCK, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Three members with one core each, where jobs take turns.
fn turning_lab() -> Lab {
    let lab = Lab::up("policy = \"gang\"");
    let text = fs::read_to_string(lab.file()).expect("read").replace("slots = 2", "slots = 2\ncores = 1");
    fs::write(lab.file(), format!("slice_ms = 200\n{text}")).expect("written");
    lab
}

/// Two jobs with a rank on each member, and the processes of their ranks.
fn two_jobs(lab: &Lab) -> [(Child, Vec<i32>); 2] {
    let jobs = ["one", "two"].map(|end| (end, lab.mapped_job(MEMBERS, end, "host").spawn().expect("started")));
    jobs.map(|(end, job)| {
        lab.began(MEMBERS, end);
        let pid = |rank: usize| {
            let text = fs::read_to_string(lab.folder.path().join(format!("{end}.{rank}"))).expect("read");
            text.trim().parse::<i32>().expect("a number")
        };
        (job, (0..MEMBERS).map(pid).collect())
    })
}

fn end_both(lab: &Lab, jobs: [Child; 2]) {
    for (end, job) in ["one", "two"].into_iter().zip(jobs) {
        lab.end(end);
        said(job.wait_with_output().expect("ended"));
    }
}

/// What daemons promise that may not run anything in real time, such as in a control group without it: each says so
/// once, and jobs run as without turns.
fn go_on_without_turns(lab: &Lab) {
    let [(first, one), (second, two)] = two_jobs(lab);
    let told = |number| fs::read_to_string(lab.said_by(number)).expect("read").matches(NO_TURNS).count();
    lab.until("all daemons say it", |_| (1..=MEMBERS).all(|number| told(number) > 0));
    assert!(one.iter().chain(&two).all(|rank| !is_first(*rank)));
    end_both(lab, [first, second]);
    said(lab.weft(1, &["run", "--partition", "all", "-n", "2", "--wait", "true"]).output().expect("started"));
    (1..=MEMBERS).for_each(|number| assert_eq!(told(number), 1, "daemon {number}"));
}

#[test]
fn without_real_time_daemons_say_so_once_and_jobs_run_without_turns() {
    let mut lab = turning_lab();
    lab.rights = &["--bounding-set=-sys_nice", "prlimit", "--rtprio=0"];
    go_on_without_turns(&lab.started());
}

#[test]
fn jobs_take_turns_on_all_their_hosts_and_no_death_leaves_one_before_the_others() {
    let mut lab = turning_lab().started();
    let may_be_first = Command::new("chrt").args(["-r", "1", "true"]).stderr(Stdio::null()).status();
    if !may_be_first.expect("chrt of util-linux").success() {
        return go_on_without_turns(&lab);
    }
    let [(first, one), (second, two)] = two_jobs(&lab);
    let turns = |when: &str| {
        until_first(&format!("the first has its turn {when}"), &[(&one, true), (&two, false)]);
        until_first(&format!("the second has its turn {when}"), &[(&one, false), (&two, true)]);
    };
    turns("at first");
    (1..=MEMBERS).for_each(|number| lab.kill(number));
    until_first("nobody has a turn without daemons", &[(&one, false), (&two, false)]);
    // That could be between two turns.
    std::thread::sleep(Duration::from_millis(500));
    until_first("nobody has a turn later", &[(&one, false), (&two, false)]);
    (1..=MEMBERS).for_each(|number| lab.start(number));
    turns("again");
    end_both(&lab, [first, second]);
}

#[test]
fn what_is_reserved_for_others_is_free_when_they_do_not_have_it_any_more() {
    let lab = Lab::with_daemons("");
    let reserve = |words: &[&str]| lab.weft(1, &[&["cluster", "reserve"], words].concat()).output().expect("started");
    let run = || lab.weft(2, &["run", "--partition", "all", "-n", "5", "true"]).output().expect("started");
    said(run());
    let third = lab.hosts.name(3);
    let told = said(reserve(&["work", "--members", &third, "--for", "1h"]));
    assert!(told.contains("for nobody") && told.contains("version 2"), "{told}");
    lab.until("all have it", |view| view["version"] == 2 && used(view) == 0);
    let reason = refused(run());
    assert!(reason.contains("4 free slots that reservation 'work' leaves"), "{reason}");
    for (words, wanted) in [
        (&["work", "--for", "1h"][..], "is there already"),
        (&["more", "--for", "1 hour"], "--for '1 hour': allowed are times as"),
        (&["more", "--from", "+1h", "--until", "now"], "not after its begin"),
        (&["more"], "--until TIME or --for DURATION"),
        (&["more", "--slots", "7", "--for", "1h"], "slots = 7, and partition 'all' has 6"),
        (&["more", "--remove"], "is no reservation of cluster 'lab', which has work"),
    ] {
        let reason = refused(reserve(words));
        assert!(reason.contains(wanted) && reason.trim_end().lines().count() == 1, "{reason}");
    }
    assert!(said(reserve(&[])).starts_with("work: "));
    said(reserve(&["work", "--remove"]));
    lab.until("it is gone for all", |view| view["version"] == 3);
    said(run());
}
