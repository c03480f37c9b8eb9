//! Jobs over real `ssh`: what works, and every way of not coming there, each of which is one clear line.
//!
//! The launcher runs in the first namespace; an `sshd` runs in each of the others.

use std::net::IpAddr;
use std::process::{Command, Stdio};
use weft_tests::build;
use weft_tests::namespaces::Namespaces;
use weft_tests::sshd::{Keys, Sshd};

struct Finished {
    code: i32,
    out: String,
    err: String,
}

/// Namespaces of which all but the first are hosts with an `sshd` that has these lines in its configuration.
struct Site {
    namespaces: Namespaces,
    keys: Keys,
    _servers: Vec<Sshd>,
}

impl Site {
    fn up(letter: char, hosts: usize, known: bool, lines: impl Fn(&Keys) -> String) -> Self {
        let namespaces = Namespaces::up(&format!("wt{}{letter}", std::process::id()), hosts + 1);
        let numbers = 2..hosts + 2;
        let addresses: Vec<IpAddr> = numbers.clone().map(|number| namespaces.address(number)).collect();
        let keys = Keys::new(if known { &addresses } else { &[] });
        let lines = lines(&keys);
        let servers = numbers.map(|number| Sshd::start(&keys, &namespaces.name(number), &lines)).collect();
        Self { namespaces, keys, _servers: servers }
    }

    fn run(&self, hosts: &[usize], script: &str) -> Finished {
        let list: Vec<String> = hosts.iter().map(|number| self.namespaces.address(*number).to_string()).collect();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespaces.name(1)]).arg(build::weft());
        command.args(["run", "--bind", "none", "--hosts", &list.join(","), "--launch", &self.keys.launch()]);
        command.args(["bash", "-c", script]).env("WEFT_LAUNCH_TIMEOUT", "60").stdin(Stdio::null());
        let output = command.output().expect("ip can be started");
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        Finished { code: output.status.code().unwrap_or(-1), out, err }
    }

    /// The job has not begun, for a reason that is told in one line with these parts.
    fn refuses(&self, host: usize, parts: &[&str]) {
        let done = self.run(&[host], "echo up");
        let begin = format!("weft run: host '{}': ", self.namespaces.address(host));
        assert_eq!((done.code, &*done.out, done.err.lines().count()), (1, "", 1), "{}", done.err);
        assert!(done.err.starts_with(&begin), "{}", done.err);
        parts.iter().for_each(|part| assert!(done.err.contains(part), "'{part}' in {}", done.err));
    }
}

#[test]
fn a_job_runs_over_ssh_whatever_banner_is_shown_before() {
    let banner = |keys: &Keys| {
        keys.write("banner", "Only for members\nof the institute\n");
        format!("Banner {}", keys.path("banner").display())
    };
    let site = Site::up('b', 2, true, banner);
    let done = site.run(&[2, 3], "ip -br address show eth0; echo to the error >&2");
    let mut addresses: Vec<&str> = done.out.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    addresses.sort_unstable();
    assert_eq!((done.code, addresses), (0, vec!["10.77.0.2/24", "10.77.0.3/24"]), "{}", done.err);
    assert_eq!(done.err, "to the error\n".repeat(2), "the banner is not the job's");
}

#[test]
fn what_a_login_script_prints_is_shown() {
    let site = Site::up('n', 1, true, |_| "ForceCommand echo Welcome to n1; eval \"$SSH_ORIGINAL_COMMAND\"".to_owned());
    site.refuses(2, &["'Welcome to n1' came in place of the agent's greeting", "login script"]);
}

#[test]
fn a_password_that_is_wanted_is_not_waited_for() {
    let site = Site::up('w', 1, true, |keys| {
        keys.write("authorized", "");
        "PasswordAuthentication yes".to_owned()
    });
    site.refuses(2, &["ended with code 255", "Permission denied (publickey", "nobody is asked for a password"]);
}

#[test]
fn a_host_key_that_is_not_known_is_said() {
    let site = Site::up('k', 1, false, |_| String::new());
    site.refuses(2, &["ended with code 255", "Host key verification failed", "log in once by hand"]);
}

#[test]
fn a_host_that_does_not_answer_and_one_that_has_no_server_are_told_apart() {
    let site = Site::up('s', 1, true, |_| String::new());
    site.refuses(99, &["ended with code 255", "10.77.0.99 port 22: "]);
    site.refuses(1, &["ended with code 255", "10.77.0.1 port 22: Connection refused"]);
}

#[test]
fn an_agent_that_is_killed_ends_the_job() {
    let site = Site::up('d', 2, true, |_| String::new());
    // The rank's parent is the keeper, and the keeper's the agent.
    let script = "if [ $PMI_RANK = 1 ]; then kill -9 $(ps -o ppid= $PPID); fi; sleep 1000";
    let done = site.run(&[2, 3], script);
    let line =
        format!("weft run: the launcher cannot go on: the agent of host '{}' is gone: ", site.namespaces.address(3));
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.err.lines().next().is_some_and(|first| first.starts_with(&line)), "{}", done.err);
}
