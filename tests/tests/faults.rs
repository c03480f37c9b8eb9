//! Ranks that a signal ends: where they have failed, their cores, and what is known of the job afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;
use weft_tests::{build, root};

#[allow(dead_code)]
#[path = "launcher/support.rs"]
mod launcher;
use launcher::{Finished, finish, on_ranks, weft_run};

/// The program that fails, with the names of its lines; one that loads our library, and one that does not.
fn programs() -> &'static (PathBuf, PathBuf) {
    static PROGRAMS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let library = build::native_library();
        let place = build::profile_directory().join("c-programs");
        std::fs::create_dir_all(&place).expect("a place for C programs");
        let compiled = |name: &str, more: &[&str]| {
            let program = place.join(format!("{name}-{}", std::process::id()));
            let source = root().join("tests/c/faults/fails.c");
            let mut cc = Command::new("cc");
            cc.args(["-g", "-O1", "-Wall", "-o"]).arg(&program).arg(source).args(more);
            assert!(cc.status().expect("a C compiler").success());
            program
        };
        let path = format!("-Wl,-rpath,{}", library.parent().expect("a folder").display());
        let library = library.to_str().expect("a plain path");
        (compiled("fails-ours", &["-Wl,--no-as-needed", library, &path]), compiled("fails-plain", &[]))
    })
}

fn fails(program: &Path, options: &str, arguments: &[&str], folder: &Path) -> Finished {
    finish(weft_run(options).arg(program).args(arguments).current_dir(folder))
}

fn records(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("records");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

const TRACE: [&str; 3] = ["#0  innermost at fails.c:12", "#1  between at fails.c:16", "#2  main at fails.c:21"];

#[test]
fn without_a_core_the_first_fault_is_told_with_its_backtrace() {
    let folder = TempDir::new().expect("a folder");
    let done = fails(&programs().0, "-n 3", &["1"], folder.path());
    assert_eq!(done.code, 139, "{}", done.err);
    assert!(done.err.contains("rank 1 on ") && done.err.contains(" failed in innermost\n"), "{}", done.err);
    TRACE.iter().for_each(|frame| assert!(done.err.contains(frame), "{frame}: {}", done.err));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("it").collect();
    assert!(left.is_empty(), "no core where none was wanted: {left:?}");
}

/// Whoever fails while the first one is looked at ends after it, also where more call than the kernel queues.
#[test]
fn of_many_that_fail_at_once_the_first_is_told_with_its_backtrace() {
    let folder = TempDir::new().expect("a folder");
    let script = format!("exec {} $PMI_RANK", programs().0.display());
    let done = finish(on_ranks("-n 40", &script).current_dir(&folder));
    assert_eq!(done.code, 139, "{}", done.err);
    let first = done.err.lines().next().and_then(|line| line.strip_prefix("weft run: rank ")).expect("a failure");
    let rank = first.split(' ').next().expect("a number");
    assert!(done.err.contains(&format!("\nweft run: rank {rank} on ")) && done.err.contains(TRACE[2]), "{}", done.err);
}

/// The rank has gone elsewhere since it was started.
#[test]
fn a_core_that_is_not_found_is_told_with_where_it_was_looked_for() {
    let folder = TempDir::new().expect("a folder");
    let script = format!("mkdir d; cd d; exec {} 0", programs().1.display());
    let done = finish(on_ranks("-n 1 --cores cores", &script).current_dir(&folder));
    let told = format!("its core was not found in '{}'", folder.path().display());
    assert!(done.err.contains(&told), "{told}: {}", done.err);
}

#[test]
fn an_abort_is_told_by_the_program_s_own_function() {
    let folder = TempDir::new().expect("a folder");
    let done = fails(&programs().0, "-n 2", &["0", "abort"], folder.path());
    assert_eq!(done.code, 134, "{}", done.err);
    assert!(done.err.contains(" failed in innermost\n") && done.err.contains("main at fails.c:21"), "{}", done.err);
}

#[test]
fn who_does_not_want_it_gets_no_backtrace() {
    let folder = TempDir::new().expect("a folder");
    let done = finish(weft_run("-n 1").arg(&programs().0).arg("0").env("WEFT_BACKTRACE", "off"));
    assert!(done.code == 139 && !done.err.contains("innermost"), "{}", done.err);
    drop(folder);
}

/// The kernel writes cores to the directory of a process here (`kernel.core_pattern`), from where they are moved.
#[test]
fn cores_land_in_a_folder_for_each_rank_and_are_read() {
    let folder = TempDir::new().expect("a folder");
    let record = folder.path().join("records");
    let options = format!("-n 2 --cores cores --record {}", record.display());
    let done = fails(&programs().1, &options, &["1"], folder.path());
    assert_eq!(done.code, 139, "{}", done.err);
    TRACE.iter().for_each(|frame| assert!(done.err.contains(frame), "{frame}: {}", done.err));
    let record = &records(&record)[0];
    let job = record["job"].as_str().expect("a name");
    let core = folder.path().join("cores").join(job).join("rank-1/core");
    assert!(core.is_file(), "{}", done.err);
    let told = format!("core of rank 1, on {}: {}", record["hosts"][0].as_str().expect("a name"), core.display());
    assert!(done.err.contains(&told), "{told}: {}", done.err);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).expect("it").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 2, "the rank's directory is as it was: {names:?}");
    assert_eq!(record["fault"]["function"], "innermost");
    assert_eq!(record["fault"]["signal"], 11);
}

/// A shell says of a program that it has run which signal has ended it.
#[test]
fn a_core_of_what_a_script_has_run_is_found() {
    let folder = TempDir::new().expect("a folder");
    let script = format!("{} 0; exit $?", programs().1.display());
    let done = finish(on_ranks("-n 1 --cores cores", &script).current_dir(folder.path()));
    assert_eq!(done.code, 139, "{}", done.err);
    assert!(done.err.contains(" failed in innermost\n") && done.err.contains("cores/"), "{}", done.err);
}

#[test]
fn where_no_core_can_be_a_line_says_why() {
    let folder = TempDir::new().expect("a folder");
    let mut command = Command::new("bash");
    let weft = build::weft().display();
    let program = programs().1.display();
    command.args(["-c", &format!("ulimit -c 0; {weft} run -n 1 --bind none --cores cores {program} 0")]);
    let done = finish(command.current_dir(folder.path()));
    assert!(done.code == 139 && done.err.contains("no core was written: the limit for cores is 0"), "{}", done.err);
}

#[test]
fn a_record_tells_how_each_rank_ended_and_what_it_used() {
    let folder = TempDir::new().expect("a folder");
    let record = folder.path().join("records");
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit $((PMI_RANK * 7))";
    for _ in 0..2 {
        finish(on_ranks(&format!("-n 2 --keep-going --record {}", record.display()), script).current_dir(&folder));
    }
    let records = records(&record);
    assert_eq!(records.len(), 2, "each job appends a line");
    let ranks = records[0]["ranks"].as_array().expect("ranks");
    assert_eq!(ranks.iter().map(|rank| rank["exit"]["code"].as_i64()).collect::<Vec<_>>(), [Some(0), Some(7)]);
    for rank in ranks {
        let spent = |name: &str| rank["spent"][name].as_u64().expect("a number");
        assert!(spent("user_us") + spent("system_us") > 0 && spent("peak_bytes") > 100_000, "{rank}");
        assert!(spent("wall_us") > 0 && rank["sent"].is_null() && rank["finalised"].is_null(), "{rank}");
    }
    assert!(records[0]["started"].as_u64().expect("a time") > 1_700_000_000);
    let shown = finish(Command::new(build::weft()).args(["jobs", "--file"]).arg(&record));
    assert_eq!(shown.out.lines().count(), 3, "{}", shown.out);
}

#[test]
fn what_a_rank_leaves_behind_counts_for_it() {
    let folder = TempDir::new().expect("a folder");
    let record = folder.path().join("records");
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    // Who is started by a process that has ended is nobody's child, until the keeper takes it.
    let script = format!("if [ $PMI_RANK = 1 ]; then mkfifo f; ( ({busy}; echo > f) & ); read line < f; fi");
    let done = finish(on_ranks(&format!("-n 2 --record {}", record.display()), &script).current_dir(&folder));
    assert_eq!(done.code, 0, "{}", done.err);
    let record = &records(&record)[0];
    let user = |rank: usize| record["ranks"][rank]["spent"]["user_us"].as_u64().expect("a number");
    assert!(user(1) > 4 * user(0), "{record}");
}

#[test]
fn a_record_tells_what_ranks_have_sent_and_that_they_have_left() {
    let folder = TempDir::new().expect("a folder");
    let (library, program) = (build::native_library(), folder.path().join("thin"));
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O1", "-pthread", "-I"]).arg(root().join("interfaces/native/include"));
    cc.arg("-o").arg(&program).arg(root().join("tests/c/native/thin.c")).arg(&library);
    cc.arg(format!("-Wl,-rpath,{}", library.parent().expect("a folder").display()));
    assert!(cc.status().expect("a C compiler").success());
    let record = folder.path().join("record");
    let done = finish(weft_run(&format!("-n 2 --record {}", record.display())).arg(&program));
    assert_eq!(done.code, 0, "{}", done.err);
    for rank in records(&record)[0]["ranks"].as_array().expect("ranks") {
        assert!(rank["sent"]["shm"].as_u64().is_some_and(|bytes| bytes > 0), "{rank}");
        assert_eq!(rank["finalised"], true, "{rank}");
    }
}

#[test]
fn a_record_that_cannot_be_written_is_told_before_the_job() {
    let done = finish(&mut on_ranks("-n 1 --record /no/such/file", "echo ran"));
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.starts_with("weft run: the record cannot be written to '/no/such/file'"), "{}", done.err);
}

#[test]
fn time_counts_the_ranks_of_all_jobs_and_ends_as_its_command() {
    let weft = build::weft().display();
    let script = format!("{weft} run -n 2 true; {weft} run -n 3 --bind none true; exit 7");
    let done = finish(Command::new(build::weft()).args(["time", "--json", "bash", "-c", &script]));
    assert_eq!((done.code, done.out.as_str()), (7, ""), "{}", done.err);
    let times: serde_json::Value = serde_json::from_str(&done.err).expect("JSON");
    assert_eq!((times["jobs"].as_u64(), times["ranks"].as_u64()), (Some(2), Some(5)), "{times}");
    let hosts = times["hosts"].as_object().expect("hosts");
    assert_eq!(hosts.values().next().expect("this one")["ranks"], 5);
}
