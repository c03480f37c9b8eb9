//! Clusters whose members are network namespaces.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::{ranks, tree};

/// Each host has a configuration of its own, under a folder with its name.
fn settings(folder: &Path) -> [(&'static str, String); 4] {
    let launch = format!("env XDG_CONFIG_HOME={}/{{host}} ip netns exec {{host}}", folder.display());
    let own = folder.join("here").display().to_string();
    let slow = "100".to_owned();
    [("XDG_CONFIG_HOME", own), ("WEFT_CLUSTER", String::new()), ("WEFT_LAUNCH", launch), ("WEFT_LAUNCH_TIMEOUT", slow)]
}

fn weft(folder: &Path) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.envs(settings(folder)).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn jobs_run_on_a_partition_of_several_hosts_and_all_members_get_its_file() {
    let hosts = Namespaces::pair();
    let (folder, names) = (TempDir::new().expect("a folder"), [hosts.name(1), hosts.name(2)]);
    let run = |words: &[&str]| weft(folder.path()).args(words).output().expect("started");
    // Members that say no slots are asked for their cores.
    said(&run(&["cluster", "init", "lab", &names[0], &format!("{}:2", names[1])]));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let shown = said(&run(&["cluster", "show"]));
    assert!(shown.contains(&format!("up to {} ranks on", cores + 2)), "{shown}");
    let applied = said(&run(&["cluster", "apply"]));
    assert_eq!(applied.matches("has version 1 now, had none").count(), 2, "{applied}");
    assert_eq!(said(&run(&["cluster", "apply"])).matches("has version 1\n").count(), 2);
    for name in &names {
        assert!(folder.path().join(name).join("weft/lab.toml").exists());
    }

    let program = ranks::compile_from("tests/c/launcher", folder.path(), "named", &[]);
    let program = program.to_str().expect("text");
    let ranks = format!("{}", cores + 2);
    let wanted = |output: &str| output.lines().filter(|line| line.contains(&format!("of {ranks}, given"))).count();
    let by_option = said(&run(&["run", "--bind", "none", "--partition", "all", program]));
    assert_eq!(wanted(&by_option), cores + 2, "{by_option}");
    let mut by_name = Command::new(program);
    by_name.envs(settings(folder.path())).env("LD_LIBRARY_PATH", tree().join("lib")).stdin(Stdio::null());
    by_name.env("WEFT_PARTITION", "all").env("WEFT_BIND", "none");
    let by_name = said(&by_name.output().expect("started"));
    assert_eq!(wanted(&by_name), cores + 2, "{by_name}");

    let mut apply = weft(folder.path());
    let output = apply.args(["cluster", "apply"]).env("WEFT_LAUNCH", "false {host}").output().expect("started");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches("exit status: 1").count(), 2);
}
