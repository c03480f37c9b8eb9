//! Output and input of ranks on other hosts.

use super::support::{on_hosts, run, script};
use crate::launcher::{Running, finish, lines_sorted};
use std::io::{Read, Write};
use std::process::Stdio;

#[test]
fn every_line_is_tagged_with_its_rank_on_both_streams() {
    let done = run(2, "--tag-output", "echo one; echo two; echo bad >&2");
    assert_eq!(done.code, 0);
    let expected: Vec<String> =
        (0..4).flat_map(|rank| [format!("[{rank}] one"), format!("[{rank}] two")]).collect();
    assert_eq!(lines_sorted(&done.out), expected);
    assert_eq!(lines_sorted(&done.err), ["[0] bad", "[1] bad", "[2] bad", "[3] bad"]);
}

#[test]
fn much_output_arrives_whole_and_in_lines() {
    let done = run(2, "", "seq -f \"$PMI_RANK %.0f\" 1 30000; printf \"$PMI_RANK last\"");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for rank in 0..4 {
        let prefix = format!("{rank} ");
        let lines: Vec<&str> = done.out.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
        assert_eq!(lines.len(), 30_001, "rank {rank}");
        assert!(lines[..30_000].iter().enumerate().all(|(at, line)| *line == (at + 1).to_string()), "rank {rank}");
        assert_eq!(lines[30_000], "last");
    }
}

#[test]
fn output_goes_into_a_file_for_each_rank() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = script(on_hosts(1, "--output out"), "echo $PMI_RANK; echo bad $PMI_RANK >&2");
    let done = finish(command.current_dir(directory.path()));
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""));
    let read = |name: &str| std::fs::read_to_string(directory.path().join("out").join(name)).unwrap();
    assert_eq!((read("rank-0.out"), read("rank-1.err")), ("0\n".into(), "bad 1\n".into()));
}

/// What `cksum` says of these bytes comes from the ranks that read them.
fn fed(options: &str, slots: usize, bytes: &[u8]) -> Vec<String> {
    let mut command = script(on_hosts(slots, options), "echo $PMI_RANK $(wc -c) $(cksum < /dev/null | wc -l)");
    let mut weft = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    weft.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = weft.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    lines_sorted(&text).into_iter().map(str::to_owned).collect()
}

#[test]
fn input_goes_to_rank_0_to_the_one_that_is_named_or_to_all() {
    let bytes = vec![b'x'; 3_000_000];
    assert_eq!(fed("", 1, &bytes), ["0 3000000 1", "1 0 1"]);
    assert_eq!(fed("--stdin 1", 1, &bytes), ["0 0 1", "1 3000000 1"]);
    assert_eq!(fed("--stdin all", 1, &bytes), ["0 3000000 1", "1 3000000 1"]);
    assert_eq!(fed("--stdin all", 1, b""), ["0 0 1", "1 0 1"]);
}

#[test]
fn input_comes_back_unchanged() {
    let bytes: Vec<u8> = (0..2_000_000u32).map(|at| if at % 61 == 60 { b'\n' } else { b'a' + (at % 23) as u8 }).collect();
    let mut command = script(on_hosts(1, "--stdin 1"), "test $PMI_RANK = 0 || exec cat");
    let mut weft = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = weft.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent));
    let mut seen = Vec::new();
    weft.stdout.take().unwrap().read_to_end(&mut seen).unwrap();
    writer.join().unwrap().unwrap();
    assert!(weft.wait().unwrap().success());
    assert!(seen.starts_with(&bytes), "{} bytes of {}", seen.len(), bytes.len());
}

#[test]
fn rank_that_reads_no_more_does_not_hold_the_job_up() {
    let mut command = script(on_hosts(1, ""), "test $PMI_RANK = 1 || head -c 5");
    let mut weft = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // The launcher takes no more when the rank is gone: that is an error here, and none of the job.
    let _ = weft.stdin.take().unwrap().write_all(&vec![b'y'; 5_000_000]);
    let output = weft.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"yyyyy"[..]));
}

#[test]
fn slow_reader_makes_ranks_wait_instead_of_filling_memory() {
    let text = "head -c 100000000 /dev/zero; echo; echo done >&2";
    let mut job = Running::start(script(on_hosts(1, "-n 1"), text).stderr(Stdio::piped()));
    let mut err = job.weft.stderr.take().unwrap();
    let mut first = [0; 1];
    job.out.read_exact(&mut first).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", job.weft.id())).unwrap();
    let kib = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmHWM")).map(kib).unwrap();
    assert!(resident < 40_000, "{resident} KiB resident while nobody reads");
    let count = std::io::copy(&mut job.out, &mut std::io::sink()).unwrap();
    assert_eq!(count, 100_000_000);
    let mut text = String::new();
    err.read_to_string(&mut text).unwrap();
    assert_eq!((job.code(), text.as_str()), (0, "done\n"));
}

#[test]
fn closed_output_ends_ranks_by_broken_pipe() {
    let mut command = on_hosts(1, "");
    let mut weft = command.arg("yes").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = [0; 2];
    let mut out = weft.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    assert_eq!(weft.wait().unwrap().code(), Some(128 + libc::SIGPIPE));
}
