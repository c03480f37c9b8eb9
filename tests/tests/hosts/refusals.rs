//! Every way of not coming to be: one line that names host and cause, and nothing left anywhere.

use super::support::{LAUNCH, with_hosts};
use crate::launcher::Running;
use std::process::{Command, Stdio};
use weft_cluster::frame::{AgentHello, Frame, PROTOCOL, greeting};
use weft_tests::namespaces::Namespaces;

/// Exit code and standard error of a job that must not begin, when nothing of it lives any more.
fn refused(command: &mut Command) -> (i32, String) {
    // Made before there is a witness, which what looks after them would hold open.
    Namespaces::pair();
    let mut job = Running::start(command.stderr(Stdio::piped()));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut job.weft.stderr.take().unwrap(), &mut text).unwrap();
    assert_eq!(job.line(), "", "something has run");
    let code = job.code();
    job.wait_until_nothing_lives();
    (code, text)
}

fn run(hosts: &str, launch: &str, program: &str) -> Command {
    let mut command = with_hosts(hosts, launch, "");
    command.args(program.split(' '));
    command
}

fn host(number: usize) -> String {
    Namespaces::pair().name(number)
}

/// One line that begins so and contains all of these.
fn assert_line(text: &str, begin: &str, parts: &[&str]) {
    assert!(text.starts_with(&format!("weft run: {begin}")), "{text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn slips_in_the_list_of_hosts_are_told_before_anything_is_started() {
    let cases = [
        ("a:2,a", "--hosts: host 'a' is listed twice"),
        ("a:x", "--hosts: host 'a:x': a host is NAME or NAME:SLOTS"),
        ("-oProxyCommand=x", "--hosts: host '-oProxyCommand=x'"),
    ];
    for (hosts, begin) in cases {
        let mut command = with_hosts("a", LAUNCH, "");
        command = {
            let mut other = Command::new(command.get_program());
            other.args(["run", &format!("--hosts={hosts}"), "--launch", "false {host}", "echo"]);
            other.stdin(Stdio::null());
            other
        };
        let (code, text) = refused(&mut command);
        assert_eq!(code, 2, "{text}");
        assert_line(&text, begin, &[]);
    }
    let mut command = with_hosts("a:1,b:1", "false {host}", "-n 3");
    let (code, text) = refused(command.arg("echo"));
    assert_eq!(code, 2);
    assert_line(&text, "--hosts: 3 ranks, but the hosts have 2 slots: a:1, b:1", &[]);
    let (code, text) = refused(with_hosts("a", "false host", "").arg("echo"));
    assert_eq!(code, 2);
    assert_line(&text, "invalid value 'false host'", &["{host}"]);
}

#[test]
fn every_bad_line_of_a_host_file_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hosts");
    std::fs::write(&file, "a slots=2\nb slots=none\n\n# fine\na\n").unwrap();
    let mut command = crate::launcher::weft_run("");
    command.arg("--hostfile").arg(&file).args(["--launch", "false {host}", "echo"]);
    let (code, text) = refused(&mut command);
    assert_eq!(code, 2);
    let front = format!("weft run: --hostfile '{}': ", file.display());
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(&front).expect(line)).collect();
    assert!(lines[0].starts_with("line 2: 'b slots=none' is not NAME"), "{text}");
    assert_eq!(lines[1..], ["line 5: host 'a' stands in line 1 already; list it once, with all its slots"]);

    std::fs::remove_file(&file).unwrap();
    let mut command = crate::launcher::weft_run("");
    let (code, text) = refused(command.arg("--hostfile").arg(&file).arg("echo"));
    assert_eq!(code, 2);
    assert_line(&text, "--hostfile", &["No such file"]);
}

#[test]
fn a_host_file_says_where_the_ranks_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hosts");
    std::fs::write(&file, format!("{} slots=2 # the first\n{}\n", host(1), host(2))).unwrap();
    let mut command = crate::launcher::weft_run("");
    command.arg("--hostfile").arg(&file).args(["--launch", LAUNCH]).env("WEFT_LAUNCH_TIMEOUT", "120");
    let done = crate::launcher::finish(command.args(["sh", "-c", "echo $PMI_RANK $MPI_LOCALNRANKS"]));
    assert_eq!(crate::launcher::lines_sorted(&done.out), ["0 2", "1 2", "2 1"], "{}", done.err);
}

#[test]
fn a_host_that_cannot_be_reached_is_named_with_what_the_command_said() {
    let (code, text) = refused(&mut run(&format!("{},nowhere", host(1)), LAUNCH, "echo up"));
    assert_eq!(code, 1);
    assert_line(&text, "host 'nowhere': launch command 'ip netns exec nowhere ", &["ended with code", "nowhere"]);
}

#[test]
fn a_launch_command_that_is_not_there_is_named() {
    let (code, text) = refused(&mut run("a", "no-such-command {host}", "echo up"));
    assert_eq!(code, 1);
    assert_line(&text, "host 'a': launch command 'no-such-command a ", &["could not be started", "No such file"]);
}

#[test]
fn a_launch_command_that_fails_or_is_killed_is_named() {
    let (code, text) = refused(&mut run("a", "sh -c 'echo first >&2; echo last >&2; exit 3' {host}", "echo up"));
    assert_eq!(code, 1);
    assert_line(&text, "host 'a': launch command 'sh ", &["ended with code 3: last"]);
    let (code, text) = refused(&mut run("a", "sh -c 'kill -9 $$' {host}", "echo up"));
    assert_eq!(code, 1);
    assert_line(&text, "host 'a': launch command 'sh ", &["was killed by signal 9"]);
    let (code, text) = refused(&mut run("a", "true {host}", "echo up"));
    assert_eq!(code, 1);
    assert_line(&text, "host 'a': launch command 'true a", &["ended with code 0"]);
}

#[test]
fn a_host_that_does_not_answer_is_given_up() {
    let mut command = run(
        &format!("{},b", host(1)),
        "sh -c 'test $0 = b && exec sleep 1000; exec ip netns exec $0 \"$@\"' {host}",
        "echo up",
    );
    let (code, text) = refused(command.env("WEFT_LAUNCH_TIMEOUT", "1"));
    assert_eq!(code, 1);
    // On a loaded machine the other may not have answered either.
    assert_line(&text, "host '", &["nothing was heard within 1 s (WEFT_LAUNCH_TIMEOUT)"]);
}

#[test]
fn noise_before_the_greeting_is_shown() {
    let launch = "sh -c 'echo Welcome to $0; exec ip netns exec $0 \"$@\"' {host}";
    let (code, text) = refused(&mut run(&host(1), launch, "echo up"));
    assert_eq!(code, 1);
    let line = format!("host '{}': 'Welcome to {}' came in place of the agent's greeting", host(1), host(1));
    assert_line(&text, &line, &["login script"]);
}

/// A launch command whose agent says these bytes and then waits.
fn agent_that_says(directory: &tempfile::TempDir, bytes: &[u8]) -> String {
    let (words, script) = (directory.path().join("words"), directory.path().join("agent"));
    std::fs::write(&words, bytes).unwrap();
    std::fs::write(&script, format!("cat '{}'\nexec cat > /dev/null\n", words.display())).unwrap();
    // Read by a shell: a program that has just been written may be open for writing still, in a process that another
    // test is starting.
    format!("sh {} {{host}}", script.display())
}

fn hello(version: &str) -> Vec<u8> {
    let mut bytes = greeting().to_vec();
    let hello =
        AgentHello { version: version.into(), checksum: 1, pid: 1, host: "other".into(), addresses: Vec::new() };
    Frame::Hello(hello).encode(&mut bytes);
    bytes
}

#[test]
fn another_protocol_version_or_build_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut other = greeting();
    other[8] = 200;
    let (code, text) = refused(&mut run("a", &agent_that_says(&directory, &other), "echo up"));
    assert_eq!(code, 1);
    let begin = format!("host 'a': its weft speaks protocol 200 with launchers, this one {PROTOCOL}");
    assert_line(&text, &begin, &["same on both"]);

    let (code, text) = refused(&mut run("a", &agent_that_says(&directory, &hello("9.9.9")), "echo up"));
    assert_eq!(code, 1);
    assert_line(&text, "host 'a': its weft is version 9.9.9, this one 0.1.0", &["same on both"]);

    let (code, text) = refused(&mut run("a", &agent_that_says(&directory, &hello("0.1.0")), "echo up"));
    assert_eq!(code, 1);
    assert_line(&text, "host 'a': its weft 0.1.0 is another build (checksum 0000000000000001)", &["same on both"]);
}

#[test]
fn nonsense_after_the_greeting_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let launch = agent_that_says(&directory, &[&greeting()[..], b"and then nonsense"].concat());
    let (code, text) = refused(&mut run("a", &launch, "echo up"));
    assert_eq!(code, 1);
    assert_line(&text, "host 'a': ", &["means nothing"]);
}

#[test]
fn what_cannot_be_started_there_is_told_with_the_code_of_shells() {
    let hosts = format!("{},{}", host(1), host(2));
    let both = format!("hosts '{}', '{}'", host(1), host(2));
    let (code, text) = refused(&mut run(&hosts, LAUNCH, "no-such-program"));
    assert_eq!(code, 127);
    assert_line(&text, &both, &[": program 'no-such-program' is not in PATH"]);
    let (code, text) = refused(&mut run(&hosts, LAUNCH, "/etc/passwd"));
    assert_eq!(code, 126);
    assert_line(&text, &both, &[": program '/etc/passwd' is not executable"]);
    let (code, text) = refused(&mut run(&host(2), LAUNCH, "--wdir /no/such true"));
    assert_eq!(code, 1);
    assert_line(&text, &format!("host '{}': working directory '/no/such'", host(2)), &[]);
}

/// The second host greets, and never hears what it is to start. The first one hears it half a second before that is
/// found to be late, and refuses.
#[test]
fn a_refusal_is_told_also_where_another_host_is_late() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("launch");
    let (first, second) = (host(1), host(2));
    let input = format!("if test $1 = {second}; then exec sleep 1000; fi; sleep 0.5; exec cat");
    std::fs::write(&script, format!("({input}) | ip netns exec \"$@\"\n")).unwrap();
    let launch = format!("sh {} {{host}}", script.display());
    let mut command = run(&format!("{first},{second}"), &launch, "no-such-program");
    let (code, text) = refused(command.env("WEFT_LAUNCH_TIMEOUT", "1"));
    assert_eq!(code, 127, "{text}");
    let line = format!("host '{first}': program 'no-such-program' is not in PATH");
    let late = format!("; host '{second}': its agent was not ready within 1 s (WEFT_LAUNCH_TIMEOUT)");
    assert_line(&text, &line, &[&late]);
}

#[test]
fn an_interrupt_while_hosts_are_awaited_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let launch = format!("sh -c 'echo up > {}; exec sleep 1000' {{host}}", fifo.display());
    Namespaces::pair();
    let mut job = Running::start(run("a", &launch, "echo up").stderr(Stdio::null()));
    assert_eq!(std::fs::read_to_string(&fifo).unwrap(), "up\n");
    job.signal(libc::SIGINT);
    assert_eq!(job.code(), 130);
    job.wait_until_nothing_lives();
}
