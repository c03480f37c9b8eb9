//! Exit codes, reports and refusals.

use super::support::{Running, finish, lines_sorted, on_ranks, wait_for_state, weft_run};

#[test]
fn success_is_silent() {
    let done = finish(&mut weft_run("-n 3 true"));
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""));
}

#[test]
fn code_of_the_failing_rank_is_ours_and_the_report_names_it() {
    let done = finish(&mut on_ranks("-n 3", "test $PMI_RANK = 1 && exit 7; exec sleep 1000"));
    assert_eq!(done.code, 7);
    let lines: Vec<&str> = done.err.lines().collect();
    assert!(lines[0].starts_with("weft run: rank 1 (pid "), "{}", done.err);
    assert!(lines[0].ends_with("exited with code 7"), "{}", done.err);
    assert_eq!(lines[1], "weft run: the 2 ranks that still ran were ended");
}

#[test]
fn signal_counts_from_128_and_is_named() {
    let done = finish(&mut on_ranks("-n 2", "test $PMI_RANK = 1 && kill -SEGV $$; exec sleep 1000"));
    assert_eq!(done.code, 139);
    assert!(done.err.contains("was killed by signal 11 (segmentation fault)"), "{}", done.err);
}

#[test]
fn rank_that_ignores_the_polite_signal_is_ended_by_force() {
    let script = "if test $PMI_RANK = 0; then trap '' TERM; echo up > $FIFO; while :; do sleep 1000; done; fi; read x < $FIFO; exit 3";
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let done = finish(on_ranks("-n 2", script).env("FIFO", &fifo));
    assert_eq!(done.code, 3, "{}", done.err);
}

#[test]
fn timeout_ends_the_job_with_124() {
    let done = finish(&mut weft_run("-n 2 --timeout 200ms sleep 1000"));
    assert_eq!(done.code, 124);
    assert!(done.err.contains("time limit of 0.2 s"), "{}", done.err);
}

#[test]
fn mpiexec_takes_the_time_limit_of_mpich_s_from_the_environment() {
    let mpiexec = |settings: &[(&str, &str)]| {
        let mut command = std::process::Command::new(weft_tests::build::weft());
        finish(command.args(["mpiexec", "-n", "1", "sleep", "1000"]).envs(settings.iter().copied()))
    };
    let done = mpiexec(&[("MPIEXEC_TIMEOUT", "1")]);
    assert_eq!(done.code, 124);
    assert!(done.err.contains("time limit of 1 s"), "{}", done.err);
    let done = mpiexec(&[("MPIEXEC_TIMEOUT", "1000"), ("WEFT_TIMEOUT", "1")]);
    assert!(done.err.contains("time limit of 1 s"), "{}", done.err);
}

#[test]
fn signals_are_passed_on_to_every_rank() {
    for (signal, name) in [(10, "USR1"), (12, "USR2"), (1, "HUP"), (15, "TERM"), (2, "INT"), (3, "QUIT")] {
        let script = format!("trap 'echo {name}; exit 0' {name}; echo up; while :; do read x < /dev/null; done");
        let mut job = Running::start(&mut on_ranks("-n 2", &script));
        assert_eq!([job.line(), job.line()], ["up", "up"]);
        job.signal(signal);
        assert_eq!([job.line(), job.line()], [name, name]);
        assert_eq!(job.code(), 0, "{name}");
    }
}

#[test]
fn second_interrupt_ends_ranks_that_ignore_the_first() {
    let script = "trap 'echo caught' INT; echo up; while :; do read x < /dev/null; done";
    let mut job = Running::start(&mut on_ranks("-n 1", script));
    assert_eq!(job.line(), "up");
    job.signal(libc::SIGINT);
    assert_eq!(job.line(), "caught");
    job.signal(libc::SIGINT);
    assert_eq!(job.code(), 130);
    job.wait_until_nothing_lives();
}

#[test]
fn stop_and_continue_reach_ranks_and_launcher() {
    let mut job = Running::start(&mut on_ranks(
        "-n 1",
        "trap 'echo on; exit 0' CONT; echo $$; while :; do read x < /dev/null; done",
    ));
    let rank: i32 = job.line().parse().unwrap();
    job.signal(libc::SIGTSTP);
    wait_for_state(rank, |state| state == 'T');
    wait_for_state(job.weft.id() as i32, |state| state == 'T');
    job.signal(libc::SIGCONT);
    assert_eq!(job.line(), "on");
    assert_eq!(job.code(), 0);
}

#[test]
fn slips_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    std::fs::write(&plain, "x").unwrap();
    let plain = plain.to_str().unwrap();
    let cases: [(&str, i32, &[&str]); 14] = [
        ("-n 0 true", 2, &["'0'", "1 to 4096"]),
        ("-n -3 true", 2, &["'-3'", "1 to 4096"]),
        ("-n 99999 true", 2, &["'99999'", "1 to 4096"]),
        ("-n x true", 2, &["'x'", "1 to 4096"]),
        ("--frob true", 2, &["--frob"]),
        ("", 2, &["PROGRAM"]),
        ("/no/such/program", 127, &["'/no/such/program'", "does not exist"]),
        ("no-such-program-in-path", 127, &["'no-such-program-in-path'", "PATH"]),
        (plain, 126, &["not executable"]),
        ("/", 126, &["directory"]),
        ("--env =1 true", 2, &["'=1'", "NAME=VALUE"]),
        ("--env PMI_RANK=1 true", 2, &["PMI_RANK"]),
        ("--wdir /no/such true", 1, &["/no/such"]),
        ("-n 2 --stdin 2 true", 2, &["'2'", "0 to 1"]),
    ];
    for (arguments, code, words) in cases {
        let done = finish(&mut weft_run(arguments));
        assert_eq!(done.code, code, "weft run {arguments}: {}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
        for word in words {
            assert!(done.err.contains(word), "weft run {arguments}: '{word}' expected in: {}", done.err);
        }
    }
}

#[test]
fn too_few_descriptors_are_told_before_anything_starts() {
    let script =
        format!("ulimit -n 200; exec {} run --bind none -n 50 echo started", weft_tests::build::weft().display());
    let done = finish(std::process::Command::new("sh").args(["-c", &script]));
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("50 ranks need") && done.err.contains("may open 200"), "{}", done.err);
}

#[test]
fn ranks_have_the_limits_that_the_launcher_was_started_with() {
    let script = format!(
        "ulimit -Sn 100; exec {} run --bind none -n 40 sh -c 'ulimit -Sn'",
        weft_tests::build::weft().display()
    );
    let done = finish(std::process::Command::new("sh").args(["-c", &script]));
    assert_eq!((done.code, done.out.as_str()), (0, "100\n".repeat(40).as_str()), "{}", done.err);
}

#[test]
fn executable_of_an_unknown_format_is_told_and_nothing_is_left_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("nonsense");
    // Another process writes it: what this one has open for writing another test may be starting a program with, and
    // while that lasts the kernel says "text file busy" instead.
    let write = "printf '\\177 neither a program nor a script' > \"$0\" && chmod 755 \"$0\"";
    assert!(std::process::Command::new("sh").args(["-c", write]).arg(&file).status().unwrap().success());
    let done = finish(weft_run("-n 2").arg(&file));
    assert_eq!(done.code, 126);
    assert!(done.err.contains("nonsense': Exec format error"), "{}", done.err);
}

#[test]
fn script_that_names_no_interpreter_is_run_by_the_shell() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script");
    let write = "printf 'echo rank $PMI_RANK $1\\n' > \"$0\" && chmod 755 \"$0\"";
    assert!(std::process::Command::new("sh").args(["-c", write]).arg(&file).status().unwrap().success());
    let done = finish(weft_run("-n 2").arg(&file).arg("word"));
    assert_eq!((done.code, lines_sorted(&done.out)), (0, vec!["rank 0 word", "rank 1 word"]), "{}", done.err);
}

#[test]
fn small_stack_is_enough() {
    let script = format!(
        "ulimit -s 64; exec {} run --bind none -n 2 head -c 300000 /dev/zero : echo second",
        weft_tests::build::weft().display()
    );
    let done = finish(std::process::Command::new("sh").args(["-c", &script]));
    assert_eq!((done.code, done.out.matches('\0').count()), (0, 600_000), "{}", done.err);
    assert!(done.out.contains("second\n"));
}

#[test]
fn a_command_line_is_read_where_no_thread_can_be_made() {
    let program = weft_tests::build::c_program(std::path::Path::new("cc"), "tests/c/launcher/no_threads.c");
    let script = |limit: &str| {
        let weft = weft_tests::build::weft().display();
        let script = format!("{limit}; exec {} {weft} run --bind none -n 2 echo rank", program.display());
        finish(std::process::Command::new("sh").args(["-c", &script]))
    };
    let done = script("ulimit -Ss 8192");
    assert_eq!((done.code, &*done.out, &*done.err), (0, "rank\nrank\n", ""));
    let done = script("ulimit -s 64");
    assert_eq!((done.code, &*done.out, done.err.lines().count()), (1, "", 1), "{}", done.err);
    for words in ["weft: the command line cannot be read", "no thread can be made", "65536 bytes", "(ulimit -s)"] {
        assert!(done.err.contains(words), "{words}: {}", done.err);
    }
}

#[test]
fn what_a_rank_without_input_reads_is_named_where_it_is_missing() {
    let script =
        format!("mount -t tmpfs none /dev && exec {} run --bind none -n 2 true", weft_tests::build::weft().display());
    let done = finish(std::process::Command::new("unshare").args(["-rm", "sh", "-c", &script]));
    assert_eq!((done.code, done.err.lines().count()), (1, 1), "{}", done.err);
    assert!(done.err.starts_with("weft run: /dev/null: No such file"), "{}", done.err);
}

#[test]
fn descriptor_of_the_caller_reaches_every_rank() {
    let done = finish(&mut std::process::Command::new(weft_tests::build::example("inherit")));
    assert_eq!((done.code, done.out.as_str()), (0, "shared\nshared\nshared\n"), "{}", done.err);
}

#[test]
fn ranks_of_a_job_inside_a_job_get_nothing_of_the_outer_one() {
    let links = |command: &mut std::process::Command| {
        let done = finish(command.args(["sh", "-c", "ls -l /proc/self/fd/"]));
        assert_eq!(done.code, 0, "{}", done.err);
        let count = |what| done.out.matches(what).count();
        (count("memfd:weft-segment"), count("socket:["))
    };
    let plain = links(&mut weft_run("-n 1"));
    let mut nested = weft_run("-n 1");
    nested.arg(weft_tests::build::weft()).args(["run", "--bind", "none", "-n", "1"]);
    assert_eq!(links(&mut nested), plain, "shared memory and sockets");
}

#[test]
fn programs_with_their_own_options_form_one_job() {
    let mut command = weft_run("-n 1 --env WHO=first sh -c");
    command.args(["echo $PMI_RANK/$PMI_SIZE $WHO $PWD", ":", "-np", "2", "--env", "WHO=second", "--wdir", "/usr"]);
    command.args(["sh", "-c", "echo $PMI_RANK/$PMI_SIZE $WHO $PWD"]);
    let done = finish(&mut command);
    let here = std::env::current_dir().unwrap();
    let first = format!("0/3 first {}", here.display());
    assert_eq!(super::support::lines_sorted(&done.out), [first.as_str(), "1/3 second /usr", "2/3 second /usr"]);
}

#[test]
fn variables_of_another_process_manager_do_not_reach_the_ranks() {
    let mut command = on_ranks("-n 1", "env");
    command.env("PMIX_RANK", "3").env("PMI_PORT", "host:1").env("WEFT_JOB", "old").env("KEPT", "yes");
    let done = finish(&mut command);
    assert!(done.out.contains("KEPT=yes") && done.out.contains("MPI_LOCALNRANKS=1"), "{}", done.out);
    assert!(!done.out.contains("PMIX_") && !done.out.contains("PMI_PORT") && !done.out.contains("=old"));
}

#[test]
fn mpiexec_front_takes_the_options_of_the_others() {
    let mut command = std::process::Command::new(weft_tests::build::weft());
    command.args(["mpiexec", "-np", "2", "-genv", "A", "1", "-bind-to", "none", "-l", "-host", "localhost"]);
    let done = finish(command.args(["sh", "-c", "echo $A"]));
    assert_eq!(super::support::lines_sorted(&done.out), ["[0] 1", "[1] 1"], "{}", done.err);

    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("mpirun");
    std::os::unix::fs::symlink(weft_tests::build::weft(), &link).unwrap();
    let done = finish(std::process::Command::new(&link).args(["-host", "else where", "true"]));
    assert_eq!(done.code, 2);
    assert!(done.err.starts_with("mpirun: -host: host 'else where'"), "{}", done.err);
    let done = finish(std::process::Command::new(&link).args(["-frob", "true"]));
    assert!(done.code == 2 && done.err.contains("'-frob'"), "{}", done.err);
}
