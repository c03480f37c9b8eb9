//! What is known of a job on two hosts when it is over, and where a rank has failed.

use super::support::on_hosts;
use crate::launcher::finish;
use std::process::Command;
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, root};

fn record(path: &std::path::Path) -> serde_json::Value {
    serde_json::from_str(std::fs::read_to_string(path).expect("a record").trim_end()).expect("a line of JSON")
}

#[test]
fn a_record_has_the_ranks_of_both_hosts() {
    let (folder, hosts) = (TempDir::new().expect("a folder"), Namespaces::pair());
    let path = folder.path().join("record");
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let mut command = on_hosts(2, &format!("--record {}", path.display()));
    let done = finish(command.args(["bash", "-c", script]));
    assert_eq!(done.code, 0, "{}", done.err);
    let record = record(&path);
    assert_eq!(record["hosts"], serde_json::json!([hosts.name(1), hosts.name(2)]));
    let ranks = record["ranks"].as_array().expect("ranks");
    assert_eq!(ranks.iter().map(|rank| rank["host"].as_u64().unwrap_or(9)).collect::<Vec<_>>(), [0, 0, 1, 1]);
    for rank in ranks {
        assert_eq!(rank["exit"]["code"], 0, "{rank}");
        assert!(rank["spent"]["user_us"].as_u64().is_some_and(|time| time > 0), "{rank}");
    }
}

/// The processes of both hosts are this machine's, and so below the command: they count once all the same.
#[test]
fn time_counts_both_hosts_once() {
    let hosts = Namespaces::pair();
    let run = on_hosts(1, "");
    let mut command = Command::new(build::weft());
    command.args(["time", "--json"]).arg(run.get_program()).args(run.get_args()).env("WEFT_LAUNCH_TIMEOUT", "120");
    let busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let done = finish(command.args(["bash", "-c", busy]));
    assert_eq!(done.code, 0, "{}", done.err);
    let times: serde_json::Value = serde_json::from_str(&done.err).expect("JSON");
    assert_eq!((times["jobs"].as_u64(), times["ranks"].as_u64()), (Some(1), Some(2)));
    let host = |number| times["hosts"][hosts.name(number)]["user_us"].as_u64().expect("a number") as f64 / 1e6;
    let all = times["user_seconds"].as_f64().expect("a number");
    let ranks = host(1) + host(2);
    assert!(host(1) > 0.0 && host(2) > 0.0 && all >= ranks && all < 1.5 * ranks, "{times}");
}

#[test]
fn a_core_on_another_host_is_read_there() {
    let (folder, hosts) = (TempDir::new().expect("a folder"), Namespaces::pair());
    let program = folder.path().join("fails");
    let source = root().join("tests/c/faults/fails.c");
    let made = Command::new("cc").args(["-g", "-O1", "-o"]).arg(&program).arg(source).status();
    assert!(made.expect("a C compiler").success());
    let path = folder.path().join("record");
    let mut command = on_hosts(1, &format!("--cores cores --record {}", path.display()));
    let done = finish(command.arg(&program).arg("1").current_dir(&folder));
    assert_eq!(done.code, 139, "{}", done.err);
    let told = format!("rank 1 on {} failed in innermost\n", hosts.name(2));
    assert!(done.err.contains(&told) && done.err.contains("#2  main at fails.c:21"), "{}", done.err);
    let record = record(&path);
    let core = record["fault"]["core"].as_str().expect("a path");
    let wanted = format!("cores/{}/rank-1/core", record["job"].as_str().expect("a name"));
    assert!(core.ends_with(&wanted) && std::path::Path::new(core).is_file(), "{core}");
}
