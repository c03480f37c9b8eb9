//! What is asked of the kernel: nothing for short messages; and what it may refuse.
//!
//! Each test runs in forked processes of its own under a seccomp filter.

mod common;
use common::*;
use weft_fabric::{Bounds, Endpoint, Segment};

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Lets `listed` system calls meet `listed_action` and all others `other_action`.
fn confine(listed: &[i64], listed_action: u32, other_action: u32) {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut program = vec![statement(load, 0)];
    for (i, call) in listed.iter().enumerate() {
        program.push(libc::sock_filter { jt: (listed.len() - i) as u8, ..statement(equal, *call as u32) });
    }
    program.push(statement(answer, other_action));
    program.push(statement(answer, listed_action));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program lives across the calls; they confine this process alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter), 0);
    }
}

/// From here on any system call but the end of the process kills it.
fn forbid_system_calls() {
    confine(&[libc::SYS_exit_group], libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS);
}

/// Cross-memory attach is refused from here on.
fn forbid_attach() {
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    confine(&[libc::SYS_process_vm_readv, libc::SYS_process_vm_writev], refused, libc::SECCOMP_RET_ALLOW);
}

fn hand_over_awake(at: &mut Endpoint, rounds: u32) {
    let me = at.me().0;
    let mut buffer = [0u8; 8];
    for round in 0..rounds {
        let data = (round as u64).to_le_bytes();
        if me == 0 {
            let request = send(at, 1, 1, &data);
            while at.take_outcome(request).is_none() {
                at.progress();
            }
        }
        let request = receive(at, from(1 - me, 1), &mut buffer);
        while at.take_outcome(request).is_none() {
            at.progress();
        }
        if buffer != data {
            std::process::abort();
        }
        if me == 1 {
            let request = send(at, 0, 1, &data);
            while at.take_outcome(request).is_none() {
                at.progress();
            }
        }
    }
}

fn bind(core: u32) {
    // SAFETY: a set on our stack; a core that does not exist is refused, which does no harm.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

#[test]
fn a_million_short_messages_make_no_system_call() {
    let segment = Segment::create(2).expect("segment");
    let children = [0, 1].map(|me| {
        fork(|| {
            bind(me);
            let mut at = Endpoint::join_segment(segment.clone(), me).expect("join");
            // The first messages make rings and tables.
            hand_over_awake(&mut at, 1000);
            forbid_system_calls();
            hand_over_awake(&mut at, 500_000);
            // SAFETY: ends this process.
            unsafe { libc::syscall(libc::SYS_exit_group, 0) };
        })
    });
    assert_eq!(children.map(reap), [0, 0], "31 is the signal of a system call");
}

#[test]
fn the_filter_of_that_test_kills() {
    let child = fork(|| {
        forbid_system_calls();
        // SAFETY: asks a number.
        unsafe { libc::getppid() };
    });
    assert_eq!(reap(child) & 0x7f, libc::SIGSYS);
}

/// The kernel refuses in the middle, on the receiver's side, the sender's, or both.
#[test]
fn a_refused_copy_falls_back_to_the_stream_and_the_bytes_are_right() {
    for refused in [[true, false], [false, true], [true, true]] {
        let segment = Segment::create(2).expect("segment");
        let children = [0u32, 1].map(|me| {
            fork(|| {
                let mut at =
                    Endpoint::join_segment_with(segment.clone(), me, copying(), Bounds::default()).expect("join");
                for round in 0..12 {
                    if round == 3 && refused[me as usize] {
                        forbid_attach();
                    }
                    let data = bytes(3_000_000 + round, round);
                    let mut buffer = vec![0; data.len()];
                    let receiving = receive(&mut at, from(1 - me, 1), &mut buffer);
                    let sending = send(&mut at, 1 - me, 1, &data);
                    while !(at.is_complete(receiving) && at.is_complete(sending)) {
                        at.progress();
                    }
                    check(at.take_outcome(receiving).expect("complete"), 1 - me, 1, data.len(), None);
                    at.take_outcome(sending);
                    assert!(buffer == data, "round {round}");
                }
                if refused[me as usize] {
                    assert!(refused != [true, true] || at.counters().single_copy_refused == 1);
                }
                // The other side may still wait for bytes of ours.
                at.leave();
            })
        });
        assert_eq!(children.map(reap), [0, 0], "{refused:?}");
    }
}
