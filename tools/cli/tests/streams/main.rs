//! Streams between real processes: over loopback, through the rendezvous, with deaths.

mod socket;
mod stage;

use socket::{STREAMS, Socket, pair};
use stage::{Rendezvous, alone, child, collect};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::sync::atomic::Ordering;
use weft_fabric::stream::Offer;

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
                        assert_eq!(socket.offer(), Offer::Sent);
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
        let (gate, opened) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let side = |seeds: [u64; 2], gate: std::os::unix::net::UnixStream| {
            move |mut socket: Socket| {
                use std::io::{Read, Write};
                socket.attach();
                let socket = exchange(socket, seeds, TOTAL / 8, |_, _| {});
                (&gate).write_all(b"1").expect("say so");
                (&gate).read_exact(&mut [0]).expect("hear");
                exchange(socket, seeds, TOTAL / 8, |_, _| {});
                // The connection to the rendezvous has ended: the next one is refused.
                let (here, there) = pair();
                let (here, mut there) = (Socket::new(here), Socket::new(there));
                assert_eq!(here.offer(), Offer::Unreachable);
                assert_eq!(there.offer(), Offer::Unreachable);
                there.send(b"kernel").expect("send");
                assert_eq!((there.sent_by_kernel, there.sent_by_ring), (6, 0));
            }
        };
        let players = play(side([5, 6], gate.try_clone().expect("dup")), side([6, 5], gate.try_clone().expect("dup")));
        use std::io::{Read, Write};
        (&opened).read_exact(&mut [0; 2]).expect("both have talked");
        rendezvous.kill();
        (&opened).write_all(b"22").expect("go on");
        both_succeed(players);
    });
}

#[test]
fn both_ends_may_be_in_one_process() {
    alone(|| {
        let _rendezvous = Rendezvous::start();
        let (one, other) = pair();
        let (mut one, mut other) = (Socket::new(one), Socket::new(other));
        assert_eq!((one.offer(), other.offer()), (Offer::Sent, Offer::Sent));
        while one.stream.is_none() || other.stream.is_none() {
            if let Some((cookie, stream)) = STREAMS.take_mail() {
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
        assert_eq!((one.offer(), other.offer()), (Offer::Sent, Offer::Sent));
        let mut found = weft_agent::rendezvous::survey().expect("a survey");
        while found.connections.is_empty() {
            found = weft_agent::rendezvous::survey().expect("a survey");
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
