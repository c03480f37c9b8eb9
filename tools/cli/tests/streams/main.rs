//! Streams between real processes: over loopback, through the rendezvous, with deaths.

mod socket;
mod stage;

use socket::{STREAMS, Socket, pair};
use stage::{Rendezvous, alone, child, collect};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use weft_agent::rendezvous::survey;
use weft_fabric::stream::{AnchorOffer, Mail, PooledBell, Waiter, sleep_barrier};

/// Numbers that look random and are the same at both ends.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = (self.0 >> 33) ^ self.0;
        x.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 7
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.next() as u8);
    }

    /// A length, mostly short.
    fn length(&mut self, most: usize) -> usize {
        let bits = self.next() % (most.ilog2() as u64 + 1);
        (self.next() as usize & ((1 << bits) - 1)).clamp(1, most)
    }
}

/// Two processes at the ends of a connection, by their process ids.
fn play(here: impl FnOnce(Socket), there: impl FnOnce(Socket)) -> [i32; 2] {
    let ends = pair();
    let fds = [ends.0.into_raw_fd(), ends.1.into_raw_fd()];
    // SAFETY: each process owns one end of the two and closes its copy of the other; the parent closes both.
    let own = |at: usize| unsafe {
        libc::close(fds[1 - at]);
        Socket::new(TcpStream::from_raw_fd(fds[at]))
    };
    let players = [child(|| here(own(0))), child(|| there(own(1)))];
    for fd in fds {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
    players
}

fn both_succeed(players: [i32; 2]) {
    assert_eq!(players.map(collect), [0, 0]);
}

#[test]
fn a_connection_goes_over_the_ring_and_back_and_forth() {
    alone(|| {
        let _rendezvous = Rendezvous::start();
        let ping = |mut socket: Socket| {
            // Before anyone is attached, by the kernel.
            socket.send(b"early").expect("send");
            socket.attach();
            let mut answer = [0; 64];
            for round in 0..20_000u64 {
                let length = 1 + (round % 64) as usize;
                socket.send(&[round as u8; 64][..length]).expect("send");
                socket.receive_exactly(&mut answer[..length]);
                assert!(answer[..length].iter().all(|byte| *byte == !(round as u8)), "round {round}");
            }
            assert!(socket.sent_by_ring > socket.sent_by_kernel * 10, "{} by ring", socket.sent_by_ring);
        };
        let pong = |mut socket: Socket| {
            socket.attach();
            let mut early = [0; 5];
            socket.receive_exactly(&mut early);
            assert_eq!(&early, b"early");
            let mut question = [0; 64];
            for round in 0..20_000u64 {
                let length = 1 + (round % 64) as usize;
                socket.receive_exactly(&mut question[..length]);
                socket.send(&question.map(|byte| !byte)[..length]).expect("send");
            }
            assert_eq!(STREAMS.counters().accelerated.load(Ordering::Relaxed), 1);
            assert_eq!(socket.receive(&mut question).expect("the end"), 0);
        };
        both_succeed(play(ping, pong));
    });
}

/// Sends and receives `total` random bytes each way, in random pieces; `at` is called now and then with what is left.
fn exchange(mut socket: Socket, seeds: [u64; 2], total: usize, mut at: impl FnMut(&mut Socket, usize)) -> Socket {
    let (mut sent, mut expected) = (Noise(seeds[0]), Noise(seeds[1]));
    let (mut out_lengths, mut in_lengths) = (Noise(seeds[0] ^ 77), Noise(seeds[1] ^ 88));
    let (mut to_send, mut to_receive) = (total, total);
    let (mut piece, mut right) = (vec![0; 300_000], vec![0; 300_000]);
    while to_send > 0 || to_receive > 0 {
        at(&mut socket, to_send);
        if to_send > 0 {
            // Less than what ring and kernel hold, so that two who send at once do not wait for each other.
            let length = out_lengths.length(60_000).min(to_send);
            sent.fill(&mut piece[..length]);
            socket.send(&piece[..length]).expect("send");
            to_send -= length;
        }
        // About as much as was sent: neither side runs ahead by a ring.
        while to_receive > 0 && (to_receive > to_send || to_send == 0) {
            let length = in_lengths.length(300_000).min(to_receive);
            let bytes = socket.receive(&mut piece[..length]).expect("bytes");
            assert!(bytes > 0, "the end with {to_receive} bytes missing");
            expected.fill(&mut right[..bytes]);
            assert!(piece[..bytes] == right[..bytes], "other bytes than were sent, {to_receive} before the end");
            to_receive -= bytes;
        }
    }
    socket
}

const TOTAL: usize = 24 * 1024 * 1024;

#[test]
fn a_random_stream_arrives_in_both_directions() {
    alone(|| {
        let _rendezvous = Rendezvous::start();
        let side = |seeds: [u64; 2]| {
            move |mut socket: Socket| {
                // The offer comes in the middle of traffic.
                let mut offered = false;
                socket = exchange(socket, seeds, TOTAL, |socket, left| {
                    if left < TOTAL - 100_000 && !offered {
                        offered = true;
                        assert_eq!(socket.offer(), AnchorOffer::Sent);
                    }
                });
                let (ring, kernel) = (socket.sent_by_ring, socket.sent_by_kernel);
                assert!(ring > kernel * 10, "{ring} by ring, {kernel} by kernel");
            }
        };
        both_succeed(play(side([1, 2]), side([2, 1])));
    });
}

#[test]
fn a_stream_goes_back_to_the_kernel_whoever_wants_it() {
    for receiver_wants in [true, false] {
        alone(move || {
            let _rendezvous = Rendezvous::start();
            let changing = move |mut socket: Socket| {
                socket.attach();
                let mut changed = false;
                let socket = exchange(socket, [3, 4], TOTAL / 4, |socket, left| {
                    if left < TOTAL / 8 && !changed {
                        changed = true;
                        if receiver_wants { socket.want_kernel() } else { socket.send_by_kernel_only() }
                    }
                });
                if receiver_wants {
                    assert!(socket.received_by_kernel > 1_000_000 && socket.received_by_ring > 1_000_000);
                } else {
                    assert!(socket.sent_by_kernel > 1_000_000 && socket.sent_by_ring > 1_000_000);
                }
            };
            let following = |mut socket: Socket| {
                socket.attach();
                exchange(socket, [4, 3], TOTAL / 4, |_, _| {});
            };
            both_succeed(play(changing, following));
        });
    }
}

#[test]
fn what_a_killed_process_had_sent_arrives_and_then_the_kernel_s_end() {
    alone(|| {
        let _rendezvous = Rendezvous::start();
        let dying = |mut socket: Socket| {
            socket.attach();
            while !socket.stream.expect("attached").peer_attached() {
                std::thread::yield_now();
            }
            socket.send(&[7; 100_000]).expect("send");
            assert_eq!(socket.sent_by_ring, 100_000);
            // SAFETY: ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        };
        let surviving = |mut socket: Socket| {
            socket.attach();
            let mut bytes = vec![0; 100_000];
            socket.receive_exactly(&mut bytes);
            assert!(bytes.iter().all(|byte| *byte == 7));
            assert_eq!(socket.received_by_ring, 100_000);
            assert_eq!(socket.receive(&mut bytes).expect("the end"), 0);
            // Some sends may still be taken, as with the kernel; then it is the kernel's error.
            let error = (0..10_000).find_map(|_| socket.send(&[0; 10_000]).err()).expect("an error");
            assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
        };
        let players = play(dying, surviving);
        assert_eq!(players.map(collect), [-libc::SIGKILL, 0]);
    });
}

#[test]
fn streams_outlive_the_rendezvous_and_later_ones_stay_with_the_kernel() {
    alone(|| {
        let mut rendezvous = Rendezvous::start();
        let ([here, one], [there, other]) = (Gate::pair(), Gate::pair());
        let side = |seeds: [u64; 2], gate: Gate| {
            move |mut socket: Socket| {
                socket.attach();
                let socket = exchange(socket, seeds, TOTAL / 8, |_, _| {});
                gate.open();
                gate.wait();
                exchange(socket, seeds, TOTAL / 8, |_, _| {});
                // The connection to the rendezvous has ended: the next one is refused.
                let (here, there) = pair();
                let (here, mut there) = (Socket::new(here), Socket::new(there));
                assert_eq!(here.offer(), AnchorOffer::Unreachable);
                assert_eq!(there.offer(), AnchorOffer::Unreachable);
                there.send(b"kernel").expect("send");
                assert_eq!((there.sent_by_kernel, there.sent_by_ring), (6, 0));
            }
        };
        let players = play(side([5, 6], one), side([6, 5], other));
        here.wait();
        there.wait();
        rendezvous.kill();
        here.open();
        there.open();
        both_succeed(players);
    });
}

/// A line between the two players, to agree on when to go on.
struct Gate(UnixStream);

impl Gate {
    fn pair() -> [Self; 2] {
        let (one, other) = UnixStream::pair().expect("a pair");
        [Self(one), Self(other)]
    }

    fn open(&self) {
        (&self.0).write_all(b"1").expect("the other one listens");
    }

    fn wait(&self) {
        (&self.0).read_exact(&mut [0]).expect("the other one says so");
    }
}

fn is_rung(bell: &PooledBell, limit: i32) -> bool {
    let mut poll = libc::pollfd { fd: bell.fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: a valid entry.
    unsafe { libc::poll(&mut poll, 1, limit) == 1 }
}

fn active() -> Vec<u32> {
    let mut tokens = Vec::new();
    STREAMS.scan_active(|token| tokens.push(token));
    tokens
}

#[test]
fn a_set_is_marked_when_awake_and_rung_once_when_asleep() {
    alone(|| {
        let _rendezvous = Rendezvous::start();
        let [here, there] = Gate::pair();
        let waiting = |mut socket: Socket| {
            socket.attach();
            let (stream, bell) = (socket.stream.expect("attached"), PooledBell::take().expect("a bell"));
            stream.set_token(77);
            assert!(stream.arm_receive(bell.address(), Waiter::Set));
            here.open();
            here.wait();
            assert_eq!((active(), is_rung(&bell, 0)), (vec![77], false), "awake: marked and not rung");
            assert_eq!(active(), Vec::<u32>::new(), "marks are taken once");

            assert!(stream.arm_receive(bell.address(), Waiter::Set));
            STREAMS.lie_down(bell.address());
            sleep_barrier();
            assert_eq!(active(), Vec::<u32>::new());
            here.open();
            assert!(is_rung(&bell, 20_000));
            STREAMS.get_up(bell.address());
            here.wait();
            assert_eq!(active(), [77]);
            bell.drain();
            let mut bytes = [0; 30];
            socket.receive_exactly(&mut bytes);
            assert!(!is_rung(&bell, 0), "once per sleep");
        };
        let sending = |mut socket: Socket| {
            socket.attach();
            while !socket.stream.expect("attached").peer_attached() {
                std::thread::yield_now();
            }
            there.wait();
            let bells = || STREAMS.counters().bells.load(Ordering::Relaxed);
            socket.send(&[1; 10]).expect("send");
            assert_eq!(bells(), 0);
            there.open();
            there.wait();
            socket.send(&[2; 10]).expect("send");
            socket.send(&[3; 10]).expect("send");
            assert_eq!(bells(), 1);
            there.open();
            assert_eq!(socket.receive(&mut [0]).expect("the end"), 0);
        };
        both_succeed(play(waiting, sending));
    });
}

#[test]
fn a_child_by_fork_shares_the_stream_and_may_die_in_the_middle_of_a_send() {
    alone(|| {
        let _rendezvous = Rendezvous::start();
        let sharing = |mut socket: Socket| {
            socket.attach();
            let stream = socket.stream.expect("attached");
            while !stream.peer_attached() {
                std::thread::yield_now();
            }
            socket.send(b"parent ").expect("send");
            stream.add_ref();
            stream.add_ref();
            let good = child(|| {
                STREAMS.forked();
                socket.send(b"child ").expect("send");
                stream.drop_ref();
            });
            assert_eq!(collect(good), 0);
            let [here, there] = Gate::pair();
            let killed = child(|| {
                STREAMS.forked();
                let mut guard = stream.lock_send();
                guard.push(b"never sent");
                there.open();
                // SAFETY: ends this process, with the lock.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            });
            here.wait();
            // Its holder is dead, or about to be, and not collected.
            socket.send(b"parent").expect("send");
            assert_eq!(collect(killed), -libc::SIGKILL);
            socket.send(b" again").expect("send");
            assert_eq!(socket.sent_by_kernel, 0);
        };
        let receiving = |mut socket: Socket| {
            socket.attach();
            let mut bytes = [0; 25];
            socket.receive_exactly(&mut bytes);
            assert_eq!(std::str::from_utf8(&bytes).expect("text"), "parent child parent again");
            assert_eq!(socket.receive(&mut bytes).expect("the end"), 0);
        };
        both_succeed(play(sharing, receiving));
    });
}

#[test]
fn a_rendezvous_is_started_once_and_ends_when_nobody_needs_it() {
    alone(|| {
        assert_eq!(survey().expect_err("nobody serves").kind(), ErrorKind::ConnectionRefused);
        for _ in 0..2 {
            let mut ensure = std::process::Command::new(env!("CARGO_BIN_EXE_weft"));
            assert!(ensure.args(["rendezvous", "--ensure", "--idle", "1"]).status().expect("weft").success());
            survey().expect("it serves");
        }
        // A guest keeps it alive; the guest ends with the process that is one.
        let guest = child(|| {
            let (here, _there) = pair();
            assert_eq!(Socket::new(here).offer(), AnchorOffer::Sent);
            assert_eq!(survey().expect("it serves").processes.len(), 1);
        });
        assert_eq!(collect(guest), 0);
        while survey().is_ok() {
            // Asking keeps it alive, too.
            std::thread::sleep(std::time::Duration::from_millis(1100));
        }
    });
}

#[test]
fn both_ends_may_be_in_one_process() {
    alone(|| {
        let _rendezvous = Rendezvous::start();
        let (one, other) = pair();
        let (mut one, mut other) = (Socket::new(one), Socket::new(other));
        assert_eq!((one.offer(), other.offer()), (AnchorOffer::Sent, AnchorOffer::Sent));
        while one.stream.is_none() || other.stream.is_none() {
            if let Some(Mail::Stream { cookie, stream }) = STREAMS.take_mail() {
                stream.attach(1);
                [&mut one, &mut other]
                    .into_iter()
                    .filter(|s| s.cookie() == cookie)
                    .for_each(|s| s.stream = Some(stream));
            }
        }
        let mut bytes = [0; 3];
        for round in 0..10_000u32 {
            one.send(&round.to_le_bytes()[..3]).expect("send");
            other.receive_exactly(&mut bytes);
            assert_eq!(bytes, round.to_le_bytes()[..3]);
        }
        assert_eq!((one.sent_by_ring, one.sent_by_kernel), (30_000, 0));
    });
}

#[test]
fn the_survey_tells_who_is_connected() {
    alone(|| {
        let _rendezvous = Rendezvous::start();
        let (one, other) = pair();
        let ports = [one.local_addr().expect("bound").port(), other.local_addr().expect("bound").port()];
        let (one, other) = (Socket::new(one), Socket::new(other));
        assert_eq!((one.offer(), other.offer()), (AnchorOffer::Sent, AnchorOffer::Sent));
        let mut found = survey().expect("a survey");
        while found.connections.is_empty() {
            found = survey().expect("a survey");
        }
        let mut told = found.connections[0].ports;
        told.sort();
        let mut right = ports;
        right.sort();
        assert_eq!(told, right);
        assert_eq!(found.connections[0].pids, [std::process::id(); 2]);
        assert_eq!((found.processes.len(), found.processes[0].waiting), (1, 0));
    });
}
