//! Real runs against MPICH, which the first of them installs into the user's peers directory if it is not there yet.

use clap::Parser;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One run at a time: they would disturb each other, and one test looks at what stands in /dev/shm.
static MACHINE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(clap::Parser)]
struct Cli {
    #[command(flatten)]
    bench: weft_bench::BenchArgs,
}

/// A short run with these arguments, and its report.
fn bench(args: &[&str]) -> (anyhow::Result<()>, Value) {
    let (result, report) = bench_for("0.02", args);
    let report = report.unwrap_or_else(|| panic!("no report: {result:?}"));
    (result, report)
}

fn bench_for(seconds: &str, args: &[&str]) -> (anyhow::Result<()>, Option<Value>) {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("report.json");
    let common = ["bench", "--quick", "--turns", "1", "--seconds", seconds, "--libs", "mpich", "--json"];
    let all = common.into_iter().chain([json.to_str().unwrap()]).chain(args.iter().copied());
    let result = weft_bench::run(Cli::parse_from(all).bench);
    (result, fs::read_to_string(json).ok().map(|text| serde_json::from_str(&text).unwrap()))
}

fn medians(report: &Value) -> Vec<(String, f64)> {
    let lines = report["lines"].as_array().unwrap().iter();
    lines.map(|l| (l["id"].as_str().unwrap().into(), l["results"][0]["median"].as_f64().unwrap())).collect()
}

#[test]
fn every_kind_of_line_is_measured() {
    let _alone = alone();
    let patterns = "latency/8,latency/4194304,rate/8,bandwidth/512,barrier,bcast/8,reduce/8,allreduce/8,alltoall/8,\
                    crowd/latency/8,idle,memory/2,start";
    let (result, report) = bench(&["--only", patterns]);
    result.unwrap();
    let medians = medians(&report);
    let of = |id: &str| medians.iter().find(|m| m.0 == id).unwrap_or_else(|| panic!("no {id} in {medians:?}")).1;
    assert!(medians.iter().all(|m| m.1 > 0.0), "{medians:?}");
    // No times: only what holds on any machine.
    assert!(of("latency/4194304") > of("latency/8"));
    assert!(of("idle") <= 400.0);
    assert!(of("memory/2") > 100_000.0, "a rank with MPI holds more than 100 kB");
    let starts = report["lines"].as_array().unwrap().iter().find(|l| l["id"] == "start/true").unwrap();
    assert_eq!(starts["results"][0]["samples"].as_array().unwrap().len(), 10);
    assert!(report["libraries"][0]["version"].as_str().unwrap().starts_with("MPICH "), "{}", report["libraries"]);
    for line in report["lines"].as_array().unwrap() {
        let sample = &line["results"][0]["samples"][0];
        let [before, after] = ["line_ns_before", "line_ns_after"].map(|key| sample[key].as_f64());
        let between = report["machine"]["cpus_used"].as_array().unwrap().len() > 1
            && line["group"].as_str().is_some_and(|g| ["latency", "stream", "collective"].contains(&g));
        assert_eq!((before.is_some(), after.is_some()), (between, between), "{line}");
        assert!([before, after].into_iter().flatten().all(|ns| ns > 1.0), "{line}");
    }
    let limits = report["limits"].as_array().unwrap();
    assert!(limits.iter().filter(|l| !l["samples"].as_array().unwrap().is_empty()).count() >= 4, "{limits:?}");
}

#[test]
fn wrong_data_is_a_failure_that_names_the_line() {
    let _alone = alone();
    for line in ["latency/64", "bandwidth/512", "bcast/8", "reduce/8", "allreduce/8", "alltoall/8"] {
        let (result, report) = bench(&["--only", line, "--corrupt"]);
        assert!(result.is_err(), "{line}: spoiled data passed");
        let reason = report["failures"][0]["reason"].as_str().unwrap();
        let spec = line.replace('/', ":");
        assert!(reason.contains(&spec) && reason.contains("wrong"), "{line}: {reason}");
        assert_eq!(report["lines"][0]["results"].as_array().unwrap().len(), 0, "{line}: a figure of wrong data");
    }
}

/// The process that the next test interrupts; by itself it does nothing.
#[test]
fn child_of_the_next_test() {
    if std::env::var_os("WEFT_BENCH_TEST_CHILD").is_some() {
        let (result, _) = bench_for("60", &["--only", "latency/8"]);
        assert_eq!(result.unwrap_err().to_string(), "interrupted");
    }
}

#[test]
fn an_interrupt_leaves_no_process_and_no_file() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let shared_memory = || fs::read_dir("/dev/shm").unwrap().count();
    let before = shared_memory();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_of_the_next_test"])
        .env("WEFT_BENCH_TEST_CHILD", "1")
        .env("TMPDIR", directory.path())
        .spawn()
        .unwrap();
    wait_for_ranks(&mut child);
    // SAFETY: a child of ours that has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    assert!(child.wait().unwrap().success(), "the run did not end in order");
    assert_eq!(processes_of(child.id()), Vec::<String>::new());
    assert!(shared_memory() <= before, "a file is left in /dev/shm");
    // The directory that the child's own test made for its report is dropped too when the run returns.
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Until both ranks of a measuring job run.
fn wait_for_ranks(child: &mut Child) {
    let ranks = |all: &[String]| all.iter().filter(|c| c.starts_with("mpibench")).count();
    while ranks(&processes_of(child.id())) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it measured anything");
        std::thread::yield_now();
    }
}

/// Names of the processes that jobs of the run `pid` started.
fn processes_of(pid: u32) -> Vec<String> {
    let mark = format!("MPIBENCH_JOB={pid}-");
    let marked = |proc: &Path| {
        let environment = fs::read(proc.join("environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|v| v.starts_with(mark.as_bytes()))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|e| e.path());
    processes.filter(|p| marked(p)).map(|p| fs::read_to_string(p.join("comm")).unwrap_or_default()).collect()
}
