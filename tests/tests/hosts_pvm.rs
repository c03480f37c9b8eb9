//! PVM on several hosts, which are network namespaces.

use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::pvm::compiled;
use weft_tests::{ranks, tree};

const LAUNCH: &str = "ip netns exec {host}";

/// `program` with its words, on the first host.
fn on_first(hosts: &Namespaces, machine: &str, words: &[&str]) -> Output {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &hosts.name(1), "timeout", "60"]).args(words);
    command.env("PVM_VMID", format!("hosts-{}-{machine}", std::process::id())).env("WEFT_LAUNCH", LAUNCH);
    command.stdin(Stdio::null()).output().expect("ip can be started")
}

#[test]
fn a_console_begins_with_the_hosts_of_a_file() {
    let hosts = Namespaces::pair();
    let folder = TempDir::new().expect("there is room for a folder");
    let file = folder.path().join("hosts");
    let text = format!("# all\none\n* sp=500 wd=/tmp\n{}\n& later\n-oNo\n", hosts.name(2));
    std::fs::write(&file, text).expect("it can be written");
    let script = format!(
        "printf 'conf\\nspawn -{} -> /bin/pwd\\nspawn /bin/sleep 70\\nhalt\\n' | $0 pvm -n one $1",
        hosts.name(2)
    );
    let weft = tree().join("bin/weft");
    let words = ["sh", "-c", &script, weft.to_str().expect("text"), file.to_str().expect("text")];
    let output = on_first(hosts, "console", &words);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    for wanted in ["2 hosts", "LINUX64    500", "1 successful", "-oNo"] {
        assert!(out.contains(wanted), "{wanted}: {out}{err}");
    }
}

#[test]
fn tasks_of_two_hosts_talk_and_a_host_that_is_lost_is_told() {
    let hosts = Namespaces::pair();
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "hosts");
    let output = on_first(hosts, "all", &[program.to_str().expect("text"), &hosts.name(2)]);
    ranks::assert_ok("a task that adds the other host", &output);
}
