//! Output and input of ranks.

use super::support::{Running, finish, lines_sorted, on_ranks, weft_run};
use std::io::Write;
use std::process::Stdio;

#[test]
fn lines_of_many_ranks_are_not_torn() {
    // Each line is written in two pieces, so that only a launcher that waits for line ends gets them whole.
    let script = "i=0; while [ $i -lt 500 ]; do printf 'begin-%s' $PMI_RANK; echo -end-$PMI_RANK; i=$((i+1)); done";
    let done = finish(&mut on_ranks("-n 4", script));
    assert_eq!(done.out.lines().count(), 2000);
    for line in done.out.lines() {
        let rank = line.rsplit('-').next().unwrap();
        assert_eq!(line, format!("begin-{rank}-end-{rank}"));
    }
}

#[test]
fn line_longer_than_any_buffer_is_not_torn() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' $PMI_RANK; echo";
    let done = finish(&mut on_ranks("-n 3", script));
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!(line.len(), 3_000_000);
        assert!(line.bytes().all(|byte| byte == line.as_bytes()[0]));
    }
}

#[test]
fn last_line_without_end_is_delivered_as_it_is() {
    assert_eq!(finish(&mut on_ranks("-n 1", "printf abc")).out, "abc");
    let done = finish(&mut on_ranks("-n 2", "printf $PMI_RANK; printf e >&2"));
    assert_eq!(lines_sorted(&done.out), ["0", "1"]);
    assert_eq!(lines_sorted(&done.err), ["e", "e"]);
}

#[test]
fn tags_begin_every_line_of_both_streams() {
    let done = finish(&mut on_ranks("-n 2 --tag-output", "echo a; echo; echo err >&2"));
    assert_eq!(lines_sorted(&done.out), ["[0] ", "[0] a", "[1] ", "[1] a"]);
    assert_eq!(lines_sorted(&done.err), ["[0] err", "[1] err"]);
}

#[test]
fn output_goes_to_one_file_per_rank_and_stream() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("deep/er");
    let mut command = weft_run("-n 2 --output");
    let done = finish(command.arg(&place).args(["sh", "-c", "echo out $PMI_RANK; echo err $PMI_RANK >&2"]));
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{}", done.err);
    for rank in 0..2 {
        for ending in ["out", "err"] {
            let text = std::fs::read_to_string(place.join(format!("rank-{rank}.{ending}"))).unwrap();
            assert_eq!(text, format!("{ending} {rank}\n"));
        }
    }
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 4);
}

fn with_input(options: &str, input: &[u8]) -> String {
    let mut command = on_ranks(options, "printf '%s:' $PMI_RANK; tr '\\n' ,; echo");
    let mut weft = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = weft.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    drop(stdin);
    let output = weft.wait_with_output().unwrap();
    lines_sorted(&String::from_utf8(output.stdout).unwrap()).join(" ")
}

#[test]
fn input_goes_to_whom_it_is_meant_for() {
    assert_eq!(with_input("-n 3", b"a\nb\n"), "0:a,b, 1: 2:");
    assert_eq!(with_input("-n 3 --stdin 2", b"a\nb\n"), "0: 1: 2:a,b,");
    assert_eq!(with_input("-n 3 --stdin none", b"a\n"), "0: 1: 2:");
    assert_eq!(with_input("-n 3 --stdin all", b"a\nb\n"), "0:a,b, 1:a,b, 2:a,b,");
}

#[test]
fn large_input_reaches_all_ranks_whole() {
    let mut command = weft_run("-n 3 --stdin all md5sum");
    let mut weft = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = weft.stdin.take().unwrap();
    let bytes: Vec<u8> = (0..2_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
    let output = weft.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = lines_sorted(&text);
    assert!(lines.len() == 3 && lines[0] == lines[1] && lines[1] == lines[2], "{text}");
}

#[test]
fn input_that_no_rank_reads_stays_for_the_next_program() {
    let script = format!("{} run --bind none -n 2 true; cat", weft_tests::build::weft().display());
    let mut shell = std::process::Command::new("sh");
    let mut shell = shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"mine\n").unwrap();
    assert_eq!(shell.wait_with_output().unwrap().stdout, b"mine\n");
}

#[test]
fn slow_reader_makes_ranks_wait_instead_of_filling_memory() {
    let script = "head -c 200000000 /dev/zero; echo; echo done >&2";
    let mut job = Running::start(on_ranks("-n 1", script).stderr(Stdio::piped()));
    let mut err = job.weft.stderr.take().unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut job.out, &mut first).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", job.weft.id())).unwrap();
    let kib = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmHWM")).map(kib).unwrap();
    assert!(resident < 40_000, "{resident} KiB resident while nobody reads");
    let count = std::io::copy(&mut job.out, &mut std::io::sink()).unwrap();
    assert_eq!(count, 200_000_000);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut err, &mut text).unwrap();
    assert_eq!((job.code(), text.as_str()), (0, "done\n"));
}

#[test]
fn closed_output_ends_ranks_by_broken_pipe() {
    let mut job = Running::start(weft_run("-n 2 yes").stderr(Stdio::null()));
    assert_eq!(job.line(), "y");
    drop(std::mem::replace(&mut job.out, std::io::BufReader::new(empty_stdout())));
    assert_eq!(job.code(), 128 + libc::SIGPIPE);
    job.wait_until_nothing_lives();
}

/// A stream that has ended, to put in the place of one that is to be closed.
fn empty_stdout() -> std::process::ChildStdout {
    let mut child = std::process::Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    child.wait().unwrap();
    child.stdout.take().unwrap()
}
