//! What is asked of the kernel: nothing for short messages; and what it may refuse.
//!
//! Each test runs in forked processes of its own under a seccomp filter.

mod common;
use common::*;
use std::os::fd::AsRawFd;
use weft_device::shm::ShmDevice;
use weft_device::{Device, Packet, PeerFault, Posted, Sink};
use weft_fabric::{Bounds, Endpoint, Fault, Limits, Outcome, RequestId, Segment};
use weft_wire::cell::{Head, Kind};
use weft_wire::segment::MemberState;

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

/// A member's process that joins and waits to be ended, or leaves at once; returns when it has joined.
fn joined_process(segment: &Segment, member: u32, leaves: bool) -> i32 {
    let child = fork(|| {
        let at = Endpoint::join_segment(segment.clone(), member).expect("join");
        if leaves {
            return at.leave();
        }
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    });
    while segment.state(member) == MemberState::Absent {
        std::thread::yield_now();
    }
    child
}

/// More messages are under way than the ring holds, and nobody takes them.
#[test]
fn leaving_does_not_wait_for_those_who_have_ended() {
    for (leaves, collected) in [(true, false), (false, false), (false, true)] {
        let segment = Segment::create(2).expect("segment");
        let peer = joined_process(&segment, 1, leaves);
        // SAFETY: our child.
        unsafe { libc::kill(peer, libc::SIGKILL) };
        if collected {
            reap(peer);
        }
        let child = fork(|| {
            // SAFETY: ends this process if it never leaves.
            unsafe { libc::alarm(30) };
            let mut at = Endpoint::join_segment(segment.clone(), 0).expect("join");
            for _ in 0..1000 {
                let request = send(&mut at, 1, 1, b"nobody reads this");
                at.release(request);
            }
            at.leave();
        });
        assert_eq!(reap(child), 0, "peer leaves: {leaves}, is collected: {collected}; 14 is the signal of the alarm");
        if !collected {
            reap(peer);
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

/// What it says is not lost, and it needs nothing that threads of this process may hold.
#[test]
fn a_child_that_panics_says_so_and_ends() {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let held = std::io::stderr().lock();
    let child = || {
        // SAFETY: both are open.
        unsafe { libc::dup2(ends[1], 2) };
        panic!("as the test wants it");
    };
    let child = std::thread::scope(|scope| scope.spawn(|| fork(child)).join().expect("forked"));
    drop(held);
    assert_eq!(reap(child), 1 << 8);
    let mut said = [0u8; 1000];
    // SAFETY: ours to read; what the child wrote is there, and we hold the other end, so this does not wait for it.
    let length = unsafe {
        libc::fcntl(ends[0], libc::F_SETFL, libc::O_NONBLOCK);
        let length = libc::read(ends[0], said.as_mut_ptr().cast(), said.len());
        libc::close(ends[0]);
        libc::close(ends[1]);
        length
    };
    let said = String::from_utf8_lossy(&said[..length.max(0) as usize]);
    assert!(said.contains("as the test wants it") && said.contains("kernel.rs"), "`{said}`");
}

/// The kernel has no more memory to give from here on.
fn forbid_memory(errno: i32) {
    confine(&[libc::SYS_fallocate, libc::SYS_madvise], libc::SECCOMP_RET_ERRNO | errno as u32, libc::SECCOMP_RET_ALLOW);
}

/// Sends `length` bytes to a peer that takes nothing, without memory for them.
fn send_without_memory(length: usize, before: impl FnOnce(&mut Endpoint)) {
    let segment = Segment::create(2).expect("segment");
    let child = fork(|| {
        let mut at = Endpoint::join_segment(segment.clone(), 0).expect("join");
        before(&mut at);
        forbid_memory(libc::ENOMEM);
        let data = bytes(length, 1);
        for _ in 0..2 {
            let request = send(&mut at, 1, 1, &data);
            assert_eq!(until_done(&mut at, request).fault, Some(Fault::NoMemory));
        }
        // Nobody waits for what cannot be sent.
        at.leave();
    });
    assert_eq!(reap(child), 0);
}

#[test]
fn too_little_memory_for_a_ring_ends_the_send() {
    send_without_memory(8, |_| {});
    send_without_memory(5000, |_| {});
}

#[test]
fn too_little_memory_for_longer_messages_ends_the_send() {
    // The ring exists already, so that short messages go.
    send_without_memory(5000, |at| {
        let request = send(at, 1, 1, b"short");
        assert_eq!(until_done(at, request).fault, None);
    });
}

#[test]
fn too_little_memory_is_told_once_with_how_much_and_what_allows_no_more() {
    let segment = Segment::create(3).expect("segment");
    let child = fork(|| {
        let mut device = ShmDevice::join(segment.clone(), 0).expect("join");
        let head = Head::control(Kind::Raw);
        assert_eq!(device.post_control(1, head, &[1]), Posted::Sent(0));
        forbid_memory(libc::ENOMEM);
        // SAFETY: the bytes are readable.
        assert_eq!(unsafe { device.post_bulk(1, head, &[], [1u8; 100].as_ptr(), 100) }, Posted::Full);
        assert_eq!(device.post_control(2, head, &[1]), Posted::Full);
        assert_eq!(device.post_control(2, head, &[1]), Posted::Full);
        let line = |peer, bytes| {
            format!(
                "no shared memory for messages to rank {peer}: {bytes} bytes were wanted: Cannot allocate memory (os \
                 error 12); no more is allowed by the memory limit of the control group (memory.max) or of the machine \
                 (vm.overcommit_memory)"
            )
        };
        let told: Vec<String> =
            std::iter::from_fn(|| device.take_refusal()).map(|refusal| refusal.to_string()).collect();
        assert_eq!(told, [line(2, 8192), line(1, 16384)]);
    });
    assert_eq!(reap(child), 0);
}

/// What a member has been sent, and who can send it nothing more.
#[derive(Default, Debug, PartialEq)]
struct Heard {
    tags: Vec<i32>,
    cut_off: Vec<(u32, usize)>,
}

impl Sink for Heard {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        self.tags.push(packet.head.tag);
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        assert_eq!(fault, PeerFault::CutOff { peer: fault.peer() });
        self.cut_off.push((fault.peer(), self.tags.len()));
    }
}

/// A receiver cannot see by itself that no more comes.
#[test]
fn who_is_cut_off_from_a_receiver_wakes_it_and_is_heard_behind_what_it_sent() {
    let segment = Segment::create(3).expect("segment");
    let mut device = ShmDevice::join(segment.clone(), 1).expect("join");
    let mut heard = Heard::default();
    for round in 0..2 {
        assert!(device.arm(), "nothing has come");
        assert_eq!(segment.awake(), 2);
        let child = fork(|| {
            // In the first round one that has sent nothing yet, in the second one that has.
            let mut sender = ShmDevice::join(segment.clone(), 2 * round).expect("join");
            for tag in 0..50 * round as i32 {
                assert_eq!(sender.post_control(1, Head { tag, ..Head::control(Kind::Raw) }, &[]), Posted::Sent(0));
            }
            forbid_memory(libc::ENOMEM);
            // SAFETY: the bytes are readable.
            assert_eq!(unsafe { sender.post_bulk(1, Head::control(Kind::Raw), &[], [1].as_ptr(), 1) }, Posted::Full);
        });
        assert_eq!(reap(child), 0);
        assert_eq!(segment.awake(), 3, "it was woken");
        device.disarm();
        while device.poll(&mut heard) {}
    }
    assert!(device.arm() && !device.poll(&mut heard), "it is told once");
    assert_eq!(heard, Heard { tags: (0..50).collect(), cut_off: vec![(0, 0), (2, 50)] });
}

#[test]
fn receives_from_who_is_cut_off_end() {
    let segment = Segment::create(2).expect("segment");
    let mut at = Endpoint::join_segment(segment.clone(), 1).expect("join");
    let mut buffers = [[0u8; 8]; 2];
    let [first, second] = buffers.each_mut().map(|buffer| receive(&mut at, from(0, 1), buffer));
    let child = fork(|| {
        let mut sender = Endpoint::join_segment(segment.clone(), 0).expect("join");
        let request = send(&mut sender, 1, 1, b"arrives.");
        assert_eq!(until_done(&mut sender, request).fault, None);
        forbid_memory(libc::ENOSPC);
        let request = send(&mut sender, 1, 1, &bytes(5000, 1));
        assert_eq!(until_done(&mut sender, request).fault, Some(Fault::NoMemory));
    });
    assert_eq!(reap(child), 0);
    assert_eq!(until_done(&mut at, first).fault, None);
    assert_eq!(until_done(&mut at, second).fault, Some(Fault::NoMemory));
    let later = receive(&mut at, from(0, 1), &mut buffers[1]);
    assert_eq!(until_done(&mut at, later).fault, Some(Fault::NoMemory));
    assert_eq!(&buffers[0], b"arrives.");
}

/// The descriptor is another file's: that does not grow, and the memory is had by its mapping.
#[test]
fn memory_whose_descriptor_was_closed_still_grows() {
    let segment = Segment::create(2).expect("segment");
    let child = fork(|| {
        let mut at = Endpoint::join_segment(segment.clone(), 0).expect("join");
        let number = segment.descriptor().as_raw_fd();
        let other = tempfile::tempfile().expect("a file");
        // SAFETY: both are open. The segment's number is that of a file from now on.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), number) }, number);
        let request = send(&mut at, 1, 1, &bytes(5000, 1));
        assert_eq!(until_done(&mut at, request).fault, None);
        assert!(at.shared_blocks().take(1).is_some());
        assert_eq!(other.metadata().expect("its size").len(), 0);
    });
    assert_eq!(reap(child), 0);
}

#[test]
fn too_little_memory_for_collective_blocks_is_an_answer() {
    let segment = Segment::create(2).expect("segment");
    let child = fork(|| {
        let mut at = Endpoint::join_segment(segment.clone(), 0).expect("join");
        let blocks = at.shared_blocks();
        let before = blocks.take(1).expect("a block");
        forbid_memory(libc::ENOMEM);
        assert_eq!(blocks.take(2), None);
        blocks.give(before, 1);
        assert_eq!(blocks.take(1), Some(before), "what has memory already is still handed out");
    });
    assert_eq!(reap(child), 0);
    assert_eq!(segment.take_blocks(2).ok(), Some(1), "blocks without memory are not lost");
}

/// What a sandbox forbids to ask for is not taken for a lack of memory.
#[test]
fn memory_that_may_not_be_asked_for_is_touched() {
    let segment = Segment::create(2).expect("segment");
    let child = fork(|| {
        let mut at = Endpoint::join_segment(segment.clone(), 0).expect("join");
        forbid_memory(libc::ENOSYS);
        let request = send(&mut at, 1, 1, &bytes(5000, 1));
        assert_eq!(until_done(&mut at, request).fault, None);
        assert!(at.shared_blocks().take(1).is_some());
    });
    assert_eq!(reap(child), 0);
}

fn until_done(at: &mut Endpoint, request: RequestId) -> Outcome {
    for _ in 0..1_000_000 {
        if let Some(outcome) = at.take_outcome(request) {
            return outcome;
        }
        at.progress();
    }
    panic!("the request does not end");
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

/// Keys of an encrypted job are made from random numbers: a clock in their place might go twice through the same ones.
#[test]
fn without_random_numbers_nothing_is_encrypted_and_the_user_is_told() {
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let child = fork(|| {
        let jobs = [false, true].map(|encrypts| (encrypts, job_across(&[0, 1])));
        confine(&[libc::SYS_getrandom], refused, libc::SECCOMP_RET_ALLOW);
        for (encrypts, job) in jobs {
            for (segment, mut across) in job {
                across.encrypts = encrypts;
                let order = order("udp,tcp");
                match Endpoint::join_across(segment, across, order, Limits::default(), Bounds::default()) {
                    Ok(_) => assert!(!encrypts, "it is encrypted with keys that may come again"),
                    Err(error) => assert!(encrypts && error.to_string().contains("getrandom"), "{error}"),
                }
            }
        }
    });
    assert_eq!(reap(child), 0);
}
