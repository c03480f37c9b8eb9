use super::*;
use crate::total::{HostTotal, JobTotal};
use proptest::prelude::*;

fn rank(number: u32, host: u32) -> RankRecord {
    let spent =
        Spent { wall_us: 1_000_000, user_us: 250_000, system_us: 50_000, peak_bytes: (number as u64 + 1) << 20 };
    RankRecord {
        rank: number,
        host,
        exit: Ending::Code(0),
        finalised: Some(true),
        spent: Some(spent),
        sent: Some(DeviceBytes { shm: 1024, tcp: 2048, udp: 0, copied: 0 }),
        messages: Some(SentMessages { count: 3, bytes: 2900 }),
    }
}

fn record() -> JobRecord {
    let mut second = rank(1, 1);
    (second.exit, second.finalised) = (Ending::Signal(11), None);
    (second.sent, second.messages) = (None, None);
    JobRecord {
        job: "7-f".into(),
        user: "ada".into(),
        programs: vec![ProgramRecord::new("./p", ["-x".to_owned()].into_iter(), 2)],
        started: 1_800_000_000,
        wall_seconds: 1.5,
        hosts: vec!["a".into(), "b".into()],
        ranks: vec![rank(0, 0), second],
        exit_code: 139,
        cause: Some("rank 1 on b was killed by signal 11 (segmentation fault)".into()),
        ..JobRecord::default()
    }
}

#[test]
fn lines_of_a_file_are_read_back_as_they_were() {
    let records = [record(), JobRecord { job: "8-f".into(), ..record() }];
    let text = records.iter().map(JobRecord::line).collect::<String>();
    assert_eq!(text.lines().count(), 2);
    assert_eq!(lines::read(&format!("\n{text}\n")).expect("records"), records);
    assert!(text.contains(r#""exit":{"signal":11}"#), "{text}");
}

#[test]
fn a_line_that_is_no_record_is_named() {
    let error = lines::read(&format!("{}{{\n", record().line())).expect_err("a half line").to_string();
    assert!(error.starts_with("line 2: "), "{error}");
}

#[test]
fn a_record_of_today_is_read_when_there_are_more_fields() {
    let least = r#"{"job":"1","user":"u","programs":[],"started":0,"wall_seconds":0,"hosts":[],"ranks":[],"exit_code":0,
        "what_comes_later":1}"#;
    assert_eq!(lines::read(&least.replace('\n', " ")).expect("a record")[0].job, "1");
}

#[test]
fn a_table_has_a_row_for_each_job() {
    let text = show::table(&[record()], |seconds| seconds.to_string());
    let line = text.lines().nth(1).expect("a row");
    let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let wanted = ["7-f", "ada", "1800000000", "2", "2", "1.50 s", "0.60 s", "2.0 MiB", "3.0 KiB", "139", "./p -x"];
    assert_eq!(cells, wanted, "{text}");
}

#[test]
fn a_page_tells_the_cause_and_each_rank() {
    let mut record = record();
    record.fault =
        Some(FaultRecord { rank: 1, signal: 11, backtrace: vec!["#0 main".into()], ..FaultRecord::default() });
    let text = show::page(&record, |seconds| seconds.to_string(), 16);
    assert!(text.contains("3 messages of 2.8 KiB sent"), "{text}");
    assert!(text.contains("exit code 139: rank 1 on b was killed by signal 11"), "{text}");
    assert!(text.contains("    #0 main\n"), "{text}");
    let second = text.lines().last().expect("ranks");
    assert!(second.starts_with("1     b     signal 11") && second.ends_with("-"), "{text}");
    assert!(!show::page(&record, |_| String::new(), 1).contains("signal 11  "), "no line for each of many");
}

#[test]
fn sums_know_hosts_and_the_largest_rank() {
    let total = JobTotal::of(&[record(), record()]);
    assert_eq!((total.jobs, total.ranks, total.user_us, total.peak_bytes), (2, 4, 1_000_000, 2 << 20));
    let host = HostTotal { ranks: 2, user_us: 500_000, system_us: 100_000, peak_bytes: 2 << 20 };
    assert_eq!(total.hosts["b"], host);
}

#[test]
fn a_command_line_of_megabytes_is_cut() {
    let arguments = std::iter::repeat_n("x".repeat(1000), 5000);
    let program = ProgramRecord::new(&"\u{e9}".repeat(5000), arguments, 1);
    assert!(program.arguments.len() == 4, "{}", program.arguments.len());
    assert_eq!(program.program.len(), PROGRAM_MAX);
    assert_eq!(
        ProgramRecord::new(&format!("a{}", program.program), std::iter::empty(), 1).program.len(),
        PROGRAM_MAX - 1
    );
}

#[test]
fn what_moves_a_cursor_is_not_printed() {
    let mut record = record();
    record.programs[0].arguments = vec!["\x1b[2J".into()];
    assert_eq!(record.command(), "./p ?[2J");
}

proptest! {
    #[test]
    fn whatever_a_file_holds_it_is_read_or_refused(text in ".*") {
        let _ = lines::read(&text);
    }

    #[test]
    fn numbers_of_any_size_are_shown_and_added(user in any::<u64>(), peak in any::<u64>(), wall in 0.0..1e12f64) {
        let mut record = record();
        record.ranks[0].spent = Some(Spent { user_us: user, system_us: user, peak_bytes: peak, wall_us: user });
        record.wall_seconds = wall;
        record.below_launcher_us = [user; 2];
        let _ = show::table(&[record.clone(), record.clone()], |seconds| seconds.to_string());
        let _ = JobTotal::of(&[record.clone(), record]);
    }
}
