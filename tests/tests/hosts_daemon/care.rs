//! What who looks after a cluster meets: jobs to be ended, files with mistakes, another cluster on the same hosts.

use super::{Lab, MEMBERS, queued, refused, said, tree, used};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_job_that_is_killed_is_told_by_whom_and_so_is_one_that_waits() {
    let lab = Lab::with_daemons("");
    let first = lab.job(6, "never").spawn().expect("started");
    lab.began(6, "never");
    let name = lab.running_job("");
    let second = lab.job(1, "never too").spawn().expect("started");
    let view = lab.until("one waits", |view| queued(view) == 1);
    let waiting = view["queue"][0]["job"].as_str().expect("a name");
    let wrong = refused(lab.weft(3, &["kill", "-s", "USR1", waiting]).output().expect("started"));
    assert!(wrong.contains("takes only signals that end it"), "{wrong}");
    said(lab.weft(3, &["kill", waiting]).output().expect("started"));
    let told = refused(second.wait_with_output().expect("ended"));
    assert!(told.contains("user 'root' has ended it while it waited"), "{told}");
    lab.until("nobody waits", |view| queued(view) == 0 && used(view) == 6);
    let sent = said(lab.weft(3, &["kill", &name]).output().expect("started"));
    assert_eq!(sent, format!("job {name} was sent SIGTERM\n"));
    let told = refused(first.wait_with_output().expect("ended"));
    assert!(told.ends_with("user 'root' has sent it SIGTERM (weft kill)\n"), "{told}");
    let record = said(lab.weft(1, &["jobs", &name]).output().expect("started"));
    assert!(record.contains("user 'root' has sent it SIGTERM"), "{record}");
}

#[test]
fn a_job_is_ended_in_order_when_the_time_of_its_partition_is_over() {
    let lab = Lab::with_daemons("time = \"1s\"");
    let mut command = lab.weft(1, &["run", "--partition", "all", "--map", "host", "-n", "2", "sleep", "1000"]);
    let told = refused(command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("started"));
    assert!(told.contains("the job took longer than the 1s of partition 'all'"), "{told}");
    lab.until("it is over", |view| used(view) == 0 && view["partitions"][0]["seconds"] == 1);
    let records = said(lab.weft(1, &["jobs", "--json"]).output().expect("started"));
    let records: Value = serde_json::from_str(&records).expect("JSON");
    assert_eq!(records[0]["cause"], "the job took longer than the 1s of partition 'all'");
    assert!(records[0]["ranks"][1]["spent"]["wall_us"].as_u64().is_some_and(|time| time > 500_000), "{records:#}");
}

#[test]
fn a_daemon_is_neither_ended_nor_taken_for_its_own_by_another_cluster() {
    let lab = Lab::with_daemons("");
    let (third, home) = (lab.hosts.name(3), lab.folder.path().join("home"));
    let other = |name: &str, what: &str| {
        let file = lab.folder.path().join(format!("other/{name}.toml"));
        let key = file.with_extension("key");
        let launch = "launch = \"ip netns exec {host}\"";
        let text = format!("name = \"{name}\"\nport = 7447\n{launch}\n[[member]]\nname = \"{third}\"\n");
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(&file, text).expect("written");
        fs::write(&key, "18".repeat(32)).expect("written");
        fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("a mode");
        let mut command = lab.weft(3, &["cluster", what]);
        let command = command.env("WEFT_CLUSTER", &file).env("XDG_CONFIG_HOME", &home);
        let output = command.output().expect("started");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for (name, told) in [("hall", "a daemon of cluster 'lab' runs"), ("lab", "a daemon of another cluster 'lab' runs")]
    {
        for what in ["start", "stop"] {
            let said = other(name, what);
            assert!(said.contains(told) && said.contains(&format!("here, as '{third}'")), "{what}: {said}");
        }
    }
    assert!(!home.exists(), "a refused start leaves nothing");
    let shown =
        lab.weft(3, &["ps", "--cluster"]).env("WEFT_CLUSTER", lab.folder.path().join("other/hall.toml")).output();
    let shown = String::from_utf8_lossy(&shown.expect("started").stderr).into_owned();
    assert!(shown.contains("of cluster 'lab', not of 'hall'"), "{shown}");
    lab.until("nobody has gone", |view| view["members"][2]["standing"] == "alive");
    // Its own ends it.
    let text = fs::read_to_string(lab.file()).expect("read");
    fs::write(lab.file(), format!("launch = \"ip netns exec {{host}}\"\n{text}")).expect("written");
    let said = said(lab.weft(1, &["cluster", "stop"]).output().expect("started"));
    assert_eq!(said.matches("has ended").count(), MEMBERS, "{said}");
}

#[test]
fn a_broken_file_stops_no_work_where_a_daemon_has_the_last_good_one() {
    let lab = Lab::with_daemons("");
    let good = fs::read_to_string(lab.file()).expect("read");
    fs::write(lab.file(), good.replace("[[partition]]", "[[partition]")).expect("written");
    let all: [&[&str]; 3] =
        [&["run", "--partition", "all", "-n", "5", "true"], &["cluster", "show"], &["cluster", "reserve"]];
    for words in all {
        let output = lab.weft(1, words).output().expect("started");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {told}");
        assert!(told.contains("lab.toml', line ") && told.contains("the last good one, version 1, is used"), "{told}");
    }
    // A change would be one of a text that somebody has not finished.
    let reserve = ["cluster", "reserve", "course", "--for", "1h"];
    let broken = fs::read_to_string(lab.file()).expect("read");
    let refused = refused(lab.weft(1, &reserve).output().expect("started"));
    assert!(refused.contains("lab.toml', line "), "{refused}");
    assert_eq!(fs::read_to_string(lab.file()).expect("read"), broken);
}

#[test]
fn the_log_has_what_happens_with_its_time_and_a_missing_member_is_shown_with_the_reason() {
    let mut lab = Lab::with_daemons("users = [\"ann\"]");
    let log = |lab: &Lab, what: &str| {
        lab.until(what, |_| fs::read_to_string(lab.said_by(1)).expect("read").contains(what));
    };
    let third = lab.hosts.name(3);
    lab.stop(3);
    log(&lab, &format!("weftd: member '{third}' is dead: its daemon has ended in order"));
    lab.start(3);
    log(&lab, &format!("weftd: member '{third}' has begun again"));
    lab.kill(3);
    log(&lab, &format!("weftd: member '{third}' is silent"));
    let mut command = lab.on(1, "setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(tree().join("bin/weft"));
    refused(
        command.args(["run", "--partition", "all", "true"]).env("HOME", "/").current_dir("/").output().expect("run"),
    );
    log(&lab, "weftd: user 'nobody' is refused: partition 'all' is not for user 'nobody'");
    let text = fs::read_to_string(lab.file()).expect("read").replace("version = 1", "version = 2");
    fs::write(lab.file(), text + "[[member]]\nname = \"nosuch.invalid\"\n").expect("written");
    log(&lab, "weftd: uses version 2 of cluster 'lab' from now on");
    let trouble = |view: &Value, at: usize| view["members"][at]["trouble"].as_str().unwrap_or_default().to_owned();
    lab.until("the reasons are shown", |view| {
        trouble(view, 2).contains("Connection refused") && trouble(view, 3).starts_with("has no address")
    });
    lab.stop(1);
    let log = fs::read_to_string(lab.said_by(1)).expect("read");
    let is_stamped =
        |line: &str| line.starts_with("20") && line.get(19..).is_some_and(|rest| rest.starts_with("Z weftd: "));
    assert!(log.lines().all(is_stamped) && log.ends_with("weftd: ends; jobs go on\n"), "{log}");
}

#[test]
fn a_daemon_that_cannot_begin_says_at_once_why() {
    let lab = Lab::with_daemons("");
    let state = lab.folder.path().join("state");
    let begin = |file: &str, member: usize| {
        let (begun, name) = (Instant::now(), lab.hosts.name(member));
        let mut command = lab.on(1, tree().join("bin/weftd").to_str().expect("text"));
        command.arg(lab.folder.path().join(file)).args(["--name", &name, "--state"]).arg(&state);
        let told = refused(command.output().expect("started"));
        assert!(begun.elapsed() < Duration::from_secs(4) && told.lines().count() == 1, "{told}");
        told
    };
    let missing = begin("nosuch.toml", 1);
    assert!(missing.contains("nosuch.toml', No such file or directory"), "{missing}");
    let twice = begin("lab.toml", 1);
    assert!(twice.contains("a daemon of this member runs already"), "{twice}");
    fs::write(lab.folder.path().join("broken.toml"), "name = \"lab\"\n[[member]\n").expect("written");
    let broken = begin("broken.toml", 1);
    assert!(broken.contains("broken.toml', line 2"), "{broken}");
}
