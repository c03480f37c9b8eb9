use super::*;
use proptest::prelude::*;

fn running(size: usize) -> JobState {
    let mut job = JobState::new(vec!["h".to_owned(); size]);
    (0..size).for_each(|rank| job.handle_started(rank, 100 + rank as u32));
    job
}

#[test]
fn first_failure_in_time_gives_the_exit_code() {
    let mut job = running(3);
    assert_eq!(job.handle_exit(2, Exit::Code(0)), Decision::Continue);
    assert_eq!(job.handle_exit(1, Exit::Code(5)), Decision::EndOthers);
    assert_eq!(job.handle_exit(0, Exit::Signal(15)), Decision::Continue);
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 5);
    assert_eq!(job.report(), ["rank 1 (pid 101) on h exited with code 5", "the 1 rank that still ran was ended"]);
}

#[test]
fn signal_is_named_and_counted_from_128() {
    let mut job = running(4);
    let _ = job.handle_exit(3, Exit::Signal(11));
    assert_eq!(job.exit_code(), 139);
    assert_eq!(job.report()[0], "rank 3 (pid 103) on h was killed by signal 11 (segmentation fault)");
}

#[test]
fn code_after_finalize_counts_and_lets_the_others_go_on() {
    let mut job = running(2);
    for rank in 0..2 {
        let _ = job.handle_initialised(rank);
        job.handle_finalised(rank);
    }
    assert_eq!(job.handle_exit(1, Exit::Code(3)), Decision::Continue);
    assert_eq!(job.handle_exit(0, Exit::Code(3)), Decision::Continue);
    assert_eq!(job.exit_code(), 3);
    assert_eq!(job.report(), ["rank 1 (pid 101) on h exited with code 3 after MPI_Finalize (and 1 more rank alike)"]);
}

#[test]
fn leaving_without_finalize_is_a_failure() {
    let mut job = running(2);
    let _ = job.handle_initialised(0);
    assert_eq!(job.handle_exit(0, Exit::Code(0)), Decision::EndOthers);
    assert_eq!(job.exit_code(), 1);
    let line = "rank 0 (pid 100) on h exited after MPI_Init without MPI_Finalize";
    assert_eq!(job.report()[0], format!("{line}; the others, which may wait for it, are ended"));

    let mut alone = running(1);
    let _ = alone.handle_initialised(0);
    assert_eq!(alone.handle_exit(0, Exit::Code(0)), Decision::EndOthers);
    assert_eq!(alone.report(), [line], "there are no others");
}

#[test]
fn other_interfaces_are_spoken_of_by_their_own_calls() {
    let begun = || {
        let mut job = running(3);
        job.handle_interface(1, InterfaceName::Pvm);
        let _ = job.handle_initialised(1);
        job
    };
    let told = |job: JobState| job.report()[0].split(" on h ").nth(1).unwrap_or_default().to_owned();
    let mut job = begun();
    assert_eq!(job.handle_exit(1, Exit::Code(0)), Decision::EndOthers);
    assert_eq!(told(job), "exited after pvm_mytid without pvm_exit; the others, which may wait for it, are ended");
    let mut job = begun();
    assert_eq!(job.handle_exit(0, Exit::Code(0)), Decision::EndOthers);
    let absent = "exited without pvm_mytid while other ranks called it; the others, which may wait for it, are ended";
    assert_eq!(told(job), absent);
    let mut job = begun();
    job.handle_finalised(1);
    assert_eq!(job.handle_exit(1, Exit::Code(3)), Decision::Continue);
    assert_eq!(told(job), "exited with code 3 after pvm_exit");
}

#[test]
fn want_of_memory_is_named_and_counts_as_the_signal() {
    let mut job = running(2);
    assert_eq!(job.handle_exit(1, Exit::OutOfMemory { is_sure: true }), Decision::EndOthers);
    assert_eq!(job.exit_code(), 137);
    let line =
        "rank 1 (pid 101) on h was killed by the kernel (signal 9), because the memory of its control group ran out";
    assert_eq!(job.report()[0], line);
    let mut other = running(2);
    assert_eq!(other.handle_exit(1, Exit::OutOfMemory { is_sure: false }), Decision::EndOthers);
    let line = "rank 1 (pid 101) on h was killed by signal 9 (killed by force), which may have been by the kernel: the memory \
                of its control group ran out";
    assert_eq!((other.exit_code(), other.report()[0].as_str()), (137, line));
}

#[test]
fn rank_without_mpi_is_fine_only_among_its_like() {
    let mut job = running(2);
    assert_eq!(job.handle_exit(0, Exit::Code(0)), Decision::Continue);
    assert_eq!(job.handle_exit(1, Exit::Code(0)), Decision::Continue);
    assert_eq!(job.exit_code(), 0);

    let mut early = running(2);
    assert_eq!(early.handle_exit(0, Exit::Code(0)), Decision::Continue);
    assert_eq!(early.handle_initialised(1), Decision::EndOthers);
    assert!(early.report()[0].starts_with("rank 0 ") && early.report()[0].contains("without MPI_Init"));

    let mut late = running(2);
    assert_eq!(late.handle_initialised(1), Decision::Continue);
    assert_eq!(late.handle_exit(0, Exit::Code(0)), Decision::EndOthers);
}

#[test]
fn who_aborts_is_not_among_those_that_were_ended() {
    let report = |size| {
        let mut job = running(size);
        assert_eq!(job.handle_abort(1, 3, "", None), Decision::EndOthers);
        job.report()[1..].to_vec()
    };
    assert_eq!(report(4), ["the 3 ranks that still ran were ended"]);
    assert_eq!(report(2), ["the 1 rank that still ran was ended"]);
    let mut last = running(2);
    let _ = (last.handle_exit(0, Exit::Code(0)), last.handle_abort(1, 3, "", None));
    assert_eq!(last.report().len(), 1, "nobody else ran");
}

#[test]
fn abort_with_code_zero_is_no_success() {
    let mut job = running(2);
    assert_eq!(job.handle_abort(1, 256, "why", None), Decision::EndOthers);
    assert_eq!(job.exit_code(), 1);
    assert_eq!(job.report()[0], "rank 1 (pid 101) on h called MPI_Abort with code 256: why");
}

#[test]
fn what_an_error_handler_ends_has_not_called_abort() {
    let mut job = running(2);
    assert_eq!(job.handle_abort(0, 6, "MPI_ERRORS_ARE_FATAL", None), Decision::EndOthers);
    assert_eq!(job.exit_code(), 6);
    let line = "rank 0 (pid 100) on h was ended by an MPI error (MPI_ERRORS_ARE_FATAL) with code 6";
    assert_eq!(job.report()[0], line);
}

#[test]
fn timeout_and_insistence_concern_the_whole_job() {
    let mut job = running(1);
    assert_eq!(job.handle_timeout("the time limit of 5 s"), Decision::EndOthers);
    assert_eq!(job.exit_code(), 124);
    assert_eq!(job.report()[0], "the job took longer than the time limit of 5 s");
    let mut job = running(1);
    assert_eq!(job.handle_insistence(2), Decision::EndOthers);
    assert_eq!(job.exit_code(), 130);
}

#[test]
fn program_that_cannot_start_is_126() {
    let mut job = JobState::new(vec!["h".to_owned(); 2]);
    assert_eq!(job.handle_not_started(0, "./p", "no such file"), Decision::EndOthers);
    assert_eq!(job.exit_code(), 126);
    assert_eq!(job.report()[0], "rank 0 on h could not be started from './p': no such file");
}

proptest! {
    /// Whatever order ranks end in: zero exactly when all were zero, and only one decision to end.
    #[test]
    fn exit_code_is_zero_only_when_every_rank_was(exits in proptest::collection::vec(
        prop_oneof![4 => Just(Exit::Code(0)), 1 => (1..256).prop_map(Exit::Code), 1 => (1..32).prop_map(Exit::Signal)], 1..12)
    ) {
        let mut job = running(exits.len());
        let decisions = exits.iter().enumerate().map(|(rank, exit)| job.handle_exit(rank, *exit)).collect::<Vec<_>>();
        let ends = decisions.iter().filter(|decision| **decision == Decision::EndOthers).count();
        let first = exits.iter().find(|exit| **exit != Exit::Code(0));
        prop_assert!(job.is_over());
        prop_assert_eq!(ends, usize::from(first.is_some()));
        prop_assert_eq!(job.exit_code(), match first {
            None => 0,
            Some(Exit::Code(code)) => *code,
            Some(Exit::Signal(signal)) => 128 + signal,
            Some(Exit::OutOfMemory { .. }) => 137,
        });
        prop_assert_eq!(job.report().is_empty(), first.is_none());
    }
}

#[test]
fn where_others_go_on_a_lost_rank_is_told_and_counts_only_if_nobody_ends_well() {
    let mut job = running(3);
    job.keep_going();
    (0..3).for_each(|rank| assert_eq!(job.handle_initialised(rank), Decision::Continue));
    assert_eq!(job.handle_exit(1, Exit::Signal(9)), Decision::TellOthers(1));
    assert_eq!(job.loss().unwrap(), "rank 1 (pid 101) on h was killed by signal 9 (killed by force); the others go on");
    assert_eq!(job.handle_exit(2, Exit::Code(0)), Decision::TellOthers(2), "it left without MPI_Finalize");
    let mut alone = job.clone();
    assert_eq!(alone.handle_exit(0, Exit::Code(3)), Decision::TellOthers(0));
    assert!(alone.is_over());
    assert_eq!(alone.exit_code(), 128 + 9);
    job.handle_finalised(0);
    assert_eq!(job.handle_exit(0, Exit::Code(0)), Decision::Continue);
    assert_eq!((job.exit_code(), job.report().len()), (0, 0));
}

/// Each of the others that uses MPI is a reason anew.
#[test]
fn a_rank_that_never_comes_is_lost_once() {
    let mut job = running(3);
    job.keep_going();
    assert_eq!(job.handle_exit(2, Exit::Code(0)), Decision::Continue);
    assert_eq!(job.handle_initialised(0), Decision::TellOthers(2));
    assert_eq!(job.handle_initialised(1), Decision::Continue);
}

#[test]
fn an_abort_ends_also_a_job_that_goes_on() {
    let mut job = running(2);
    job.keep_going();
    assert_eq!(job.handle_abort(0, 4, "", None), Decision::EndOthers);
    assert_eq!(job.handle_exit(1, Exit::Signal(15)), Decision::Continue);
    assert_eq!(job.exit_code(), 4);
}

#[test]
fn who_aborts_for_want_of_another_waits_for_what_became_of_that_one() {
    let mut job = running(3);
    assert_eq!(job.handle_abort(1, 58, "", Some(Lost::Rank(0))), Decision::AwaitCause);
    assert_eq!(
        job.handle_abort(2, 58, "", Some(Lost::Rank(1))),
        Decision::AwaitCause,
        "a consequence of a consequence"
    );
    assert_eq!(job.handle_exit(1, Exit::Code(58)), Decision::Continue);
    assert_eq!(job.handle_exit(0, Exit::Signal(9)), Decision::EndOthers);
    assert_eq!(job.handle_exit(2, Exit::Code(58)), Decision::Continue);
    assert_eq!((job.exit_code(), job.handle_no_cause()), (137, Decision::Continue));
    assert_eq!(job.report(), ["rank 0 (pid 100) on h was killed by signal 9 (killed by force)"]);
}

/// A child was ended because a parent was lost, and another parent aborts for want of the child.
#[test]
fn who_aborts_for_want_of_another_job_s_process_waits_for_what_became_of_its_own() {
    let mut job = running(3);
    assert_eq!(job.handle_abort(2, 58, "", Some(Lost::Elsewhere)), Decision::AwaitCause);
    assert_eq!(job.handle_exit(2, Exit::Code(58)), Decision::Continue);
    assert_eq!(job.handle_exit(0, Exit::Signal(9)), Decision::EndOthers);
    assert_eq!(job.report()[0], "rank 0 (pid 100) on h was killed by signal 9 (killed by force)");

    let mut nothing_came = running(2);
    assert_eq!(nothing_came.handle_abort(1, 58, "", Some(Lost::Elsewhere)), Decision::AwaitCause);
    assert_eq!(nothing_came.handle_no_cause(), Decision::EndOthers);
    assert_eq!(nothing_came.exit_code(), 58);

    let mut nobody_is_left = running(2);
    assert_eq!(nobody_is_left.handle_abort(0, 58, "", Some(Lost::Elsewhere)), Decision::AwaitCause);
    assert_eq!(nobody_is_left.handle_exit(1, Exit::Code(0)), Decision::EndOthers);
    assert_eq!(running(1).handle_abort(0, 58, "", Some(Lost::Elsewhere)), Decision::EndOthers);
}

#[test]
fn an_abort_counts_where_no_cause_is_found() {
    let aborted = "rank 1 (pid 101) on h called MPI_Abort with code 58";
    let begin = || {
        let mut job = running(2);
        [0, 1].into_iter().for_each(|rank| _ = job.handle_initialised(rank));
        assert_eq!(job.handle_abort(1, 58, "", Some(Lost::Rank(0))), Decision::AwaitCause);
        job
    };
    let mut nothing_came = begin();
    assert_eq!(nothing_came.handle_no_cause(), Decision::EndOthers);
    assert_eq!((nothing_came.exit_code(), nothing_came.report()[0].as_str()), (58, aborted));

    let mut it_ended_well = begin();
    it_ended_well.handle_finalised(0);
    assert_eq!(it_ended_well.handle_exit(0, Exit::Code(0)), Decision::EndOthers);
    assert_eq!((it_ended_well.exit_code(), it_ended_well.report()[0].as_str()), (58, aborted));

    // Each has lost the other: the first to say so.
    let mut both = begin();
    assert_eq!(both.handle_abort(0, 59, "", Some(Lost::Rank(1))), Decision::AwaitCause);
    assert_eq!(both.handle_exit(0, Exit::Code(59)), Decision::Continue);
    assert_eq!(both.handle_exit(1, Exit::Code(58)), Decision::EndOthers);
    assert_eq!((both.exit_code(), both.report()[0].as_str()), (58, aborted));

    let mut known = running(2);
    assert_eq!(known.handle_exit(0, Exit::Signal(9)), Decision::EndOthers);
    assert_eq!(known.handle_abort(1, 58, "", Some(Lost::Rank(0))), Decision::Continue);
}
