//! Guests in bad faith, guests too many, and ends at bad moments.

use super::*;
use crate::kernel;

fn device_at(rank: u32, listeners: &mut Vec<TcpListener>, places: &[PeerPlace]) -> TcpDevice {
    let listener = OwnedFd::from(listeners.remove(0));
    TcpDevice::new(rank, KEY, listener, places.to_vec(), true).expect("a device")
}

/// Polls until `done`.
fn poll_until(device: &mut TcpDevice, got: &mut Got, done: impl Fn(&mut TcpDevice) -> bool) {
    let start = Instant::now();
    while !done(device) {
        device.look_soon();
        device.poll(got);
        assert!(start.elapsed() < LOST, "what was waited for does not come");
        std::thread::yield_now();
    }
}

/// Whoever has recorded what a rank says when it dials, and says it again and again.
#[test]
fn who_repeats_a_rank_s_calls_does_not_keep_the_rank_out() {
    let (listeners, places) = listeners(2);
    let at = places[0].addresses[0];
    let mut net: Vec<_> = {
        let mut listeners = listeners;
        (0..2).map(|rank| device_at(rank, &mut listeners, &places)).collect()
    };
    let mut got = sinks(2);
    let call = Dialling { from: 1, to: 0, nonce: [1; 16], encrypts: false };
    let repeated: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(at).expect("connected");
            stream.write_all(&call.hello(&KEY)).expect("sent");
            stream
        })
        .collect();
    // All but the first, which could have been the rank's own.
    poll_until(&mut net[0], &mut got[0], |device| device.counters().strangers == 39);
    send(&mut net[1], 0, 7);
    until(&mut net, &mut got, |got| got[0].tags == [(1, 7)] || !got[1].faults.is_empty());
    assert_eq!((got[0].tags.as_slice(), got[1].faults.len()), (&[(1, 7)][..], 0), "{:?}", got[1].faults);
    drop(repeated);
}

#[test]
fn guests_too_many_are_closed_from_the_oldest_on_counted_and_told() {
    let (mut listeners, places) = listeners(2);
    let at = places[0].addresses[0];
    let mut device = device_at(0, &mut listeners, &places);
    let mut got = Got::default();
    let silent: Vec<_> = (0..70)
        .map(|number| {
            let stream = TcpStream::connect(at).expect("connected");
            // One after the other, so that it is known which are the oldest.
            poll_until(&mut device, &mut got, |device| device.reception.guests.len() > number.min(63));
            poll_until(&mut device, &mut got, |device| {
                device.counters().strangers == (number as u64).saturating_sub(63)
            });
            stream
        })
        .collect();
    assert_eq!(device.counters().strangers, 6);
    for (number, mut stream) in silent.into_iter().enumerate() {
        stream.set_nonblocking(true).expect("set");
        match stream.read(&mut [0; 8]) {
            Err(error) => assert!(number >= 6, "{number}: {error}"),
            Ok(count) => assert!(number < 6 && count == 0, "{number}"),
        }
    }
    let notice = device.take_notice().expect("told");
    assert!(notice.contains("64 connections that say nothing"), "{notice}");
    assert_eq!(device.take_notice(), None, "told once");
}

/// A listener that is ready and takes nothing: here one that is none, otherwise one without a free descriptor.
#[test]
fn connections_that_cannot_be_taken_let_who_waits_sleep() {
    let places = listeners(1).1;
    let broken = OwnedFd::from(kernel::socket(libc::AF_INET, libc::SOCK_STREAM).expect("a socket"));
    let mut device = TcpDevice::new(0, KEY, broken, places, true).expect("a device");
    let mut got = Got::default();
    poll_until(&mut device, &mut got, |device| device.reception.deaf_until_ns.is_some());
    let mut ready = Vec::new();
    device.epoll.wait(&mut ready, Some(Duration::ZERO));
    assert_eq!(ready, [], "a sleep would end at once");
    let notice = device.take_notice().expect("told");
    assert!(notice.contains("cannot be taken"), "{notice}");
    let first = device.reception.deaf_until_ns;
    assert!(device.arm());
    device.sleeper().sleep(Some(LOST));
    poll_until(&mut device, &mut got, |device| device.reception.deaf_until_ns > first);
    assert_eq!(device.take_notice(), None, "told once");
}

#[test]
fn a_connection_that_is_closed_is_watched_no_more_though_a_fork_holds_it() {
    let (mut net, mut got) = (network(2), sinks(2));
    send(&mut net[0], 1, 1);
    until(&mut net, &mut got, |got| got[1].tags.len() == 1);
    let raw = net[0].peers[1].link.as_ref().expect("a link").socket.raw();
    // SAFETY: the number of a descriptor that is open.
    let held = unsafe { std::os::fd::BorrowedFd::borrow_raw(raw) }.try_clone_to_owned().expect("as a fork does");
    drop(net.pop());
    let mut left = [got.remove(0)];
    until(&mut net, &mut left, |got| got[0].faults.len() == 1);
    let mut ready = Vec::new();
    net[0].epoll.wait(&mut ready, Some(Duration::ZERO));
    assert_eq!(ready, []);
    drop(held);
}

/// Closing a connection on which something has come that nobody has read takes back what has not arrived.
#[test]
fn who_leaves_with_unread_packets_takes_nothing_back() {
    let (mut net, mut got) = (network(2), sinks(2));
    // Much is on its way when all has been handed to the kernel.
    (net[0].kernel_bytes, net[1].kernel_bytes) = (Some(64 << 10), Some(16 << 10));
    send(&mut net[0], 1, 1);
    until(&mut net, &mut got, |got| got[1].tags.len() == 1);
    let data = vec![7; 60_000];
    let (mut sent, mut quiet) = (0, 0);
    // Until nothing goes any more.
    while quiet < 100 {
        // SAFETY: the data is readable.
        match unsafe { net[0].post_bulk(1, head(2), &[], data.as_ptr(), data.len()) } {
            Posted::Sent(bytes) => sent += bytes,
            _ => quiet += 1,
        }
        net[0].look_soon();
        net[0].poll(&mut got[0]);
    }
    net[0].say_farewell();
    let start = Instant::now();
    while net[0].has_output() {
        net[0].poll(&mut got[0]);
        if net[0].has_output() {
            net[1].poll(&mut got[1]);
        }
        assert!(start.elapsed() < LOST, "it does not leave");
    }
    if net[1].has_ended(0) {
        return;
    }
    send(&mut net[1], 0, 5);
    // It has come when there is something to read.
    net[0].epoll.wait(&mut Vec::new(), Some(LOST));
    drop(net.remove(0));
    let start = Instant::now();
    while !net[0].has_ended(0) {
        net[0].poll(&mut got[1]);
        assert!(start.elapsed() < LOST, "no farewell");
    }
    assert_eq!((got[1].bytes, got[1].faults.len()), (sent, 0), "{:?}", got[1].faults);
}

/// A program that takes connections and says nothing. Time is an argument.
struct Silent {
    listener: TcpListener,
    taken: Vec<TcpStream>,
    dial: Dial,
    epoll: Arc<Epoll>,
}

impl Silent {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let refused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
        let addresses = [listener.local_addr().expect("bound"), refused];
        let dial = Dial::new(0, 1, false, &addresses, 0);
        Self { listener, taken: Vec::new(), dial, epoll: Arc::new(Epoll::new().expect("a set")) }
    }

    /// Begins what is due, and moves all attempts that the kernel has an answer for.
    fn look(&mut self, now_ns: u64) -> Due {
        let due = self.dial.handle_time(now_ns, &self.epoll, |index| index as u64);
        while self.dial.is_connecting() {
            let mut ready = Vec::new();
            self.epoll.wait(&mut ready, Some(LOST));
            assert!(!ready.is_empty(), "the kernel answers");
            for token in ready {
                assert!(self.dial.handle_ready(token as usize, &KEY, now_ns, &self.epoll, token).is_none());
            }
        }
        due
    }

    /// Closes what was taken, which the dialling side notices at that time.
    fn close(&mut self, now_ns: u64) {
        drop(self.listener.accept().expect("one waits"));
        self.taken.clear();
        let before = self.dial.tries();
        while self.dial.tries() == before {
            assert!(self.dial.handle_ready(0, &KEY, now_ns, &self.epoll, 0).is_none());
            std::thread::yield_now();
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn who_takes_connections_and_never_answers_is_told_of_in_the_end() {
    let mut silent = Silent::new();
    assert!(matches!(silent.look(0), Due::Nothing));
    let mut notices = 0;
    for second in 1..=100 {
        match silent.look(second * SECOND_NS) {
            Due::Nothing => {}
            Due::Quiet(story) => {
                assert_eq!(second, 30);
                assert!(story.contains("nobody has answered our greeting") && story.contains("refused"), "{story}");
                notices += 1;
            }
            Due::Notice(story) | Due::Unreachable(story) => panic!("{second} s: {story}"),
        }
    }
    assert_eq!(notices, 1);
}

/// Where nobody listens: when it is given up, after how many tries, and what is told then.
fn refused(with: impl FnOnce(Dial) -> Dial) -> (u64, u32, String) {
    let refused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let mut dial = with(Dial::new(0, 1, false, &[refused], 0));
    let epoll = Arc::new(Epoll::new().expect("a set"));
    let mut now_ns = 0;
    let story = loop {
        let due = dial.handle_time(now_ns, &epoll, |index| index as u64);
        while dial.is_connecting() {
            let mut ready = Vec::new();
            epoll.wait(&mut ready, Some(LOST));
            for token in ready {
                assert!(dial.handle_ready(token as usize, &KEY, now_ns, &epoll, token).is_none());
            }
        }
        match due {
            Due::Unreachable(story) => break story,
            _ => assert!(now_ns < 15 * SECOND_NS, "not given up"),
        }
        now_ns = dial.next_ns().max(now_ns + 1);
    };
    (now_ns, dial.tries(), story)
}

/// A host may refuse connections for a moment, such as one whose firewall is being loaded.
#[test]
fn a_process_of_another_job_has_ended_where_it_was_refused_for_seconds_and_not_before() {
    let (now_ns, tries, story) = refused(|dial| dial.for_another_job(true).elsewhere());
    assert!((3 * SECOND_NS..5 * SECOND_NS).contains(&now_ns), "{now_ns} ns");
    assert!(tries >= 4 && story.contains("refused"), "{story}");
}

/// No network is between.
#[test]
fn a_process_of_this_host_has_ended_where_it_was_refused_twice() {
    for kin in [false, true] {
        let (now_ns, tries, story) = refused(|dial| if kin { dial } else { dial.for_another_job(true) });
        assert!((SECOND_NS / 5..SECOND_NS / 2).contains(&now_ns), "{now_ns} ns");
        assert!(tries == 2 && story.contains("refused"), "{story}");
    }
    let (now_ns, ..) = refused(Dial::elsewhere);
    assert!(now_ns >= 12 * SECOND_NS, "{now_ns} ns: faults of a network are ridden out within a job");
}

/// A rank may have computed for an hour before its network fails for a moment.
#[test]
fn the_time_in_which_a_connection_was_taken_does_not_count() {
    let mut silent = Silent::new();
    silent.look(0);
    let mut now_ns = SECOND_NS;
    // As often as makes an address hopeless, if its time is up.
    for _ in 0..4 {
        now_ns += 100 * SECOND_NS;
        silent.close(now_ns);
        assert!(!matches!(silent.look(now_ns), Due::Unreachable(_)), "nothing is wrong before that moment");
        now_ns += 2 * SECOND_NS;
        assert!(!matches!(silent.look(now_ns), Due::Unreachable(_)), "eight seconds in all");
    }
    // One that closes everything at once is given up by and by.
    let mut closed = 0;
    while !matches!(silent.look(now_ns), Due::Unreachable(_)) {
        silent.close(now_ns);
        now_ns += 2 * SECOND_NS;
        closed += 1;
        assert!(closed < 20, "not given up");
    }
}

#[test]
fn short_packets_that_wait_for_company_keep_their_order_and_a_lone_one_leaves_at_once() {
    let (mut net, mut got) = (network(2), sinks(2));
    send(&mut net[0], 1, 0);
    until(&mut net, &mut got, |got| got[1].tags.len() == 1);
    let receive = |net: &mut [TcpDevice], got: &mut Got, count: usize| {
        poll_until(&mut net[1], got, |_| true);
        let start = Instant::now();
        while got.tags.len() < count {
            net[1].look_soon();
            net[1].poll(got);
            assert!(start.elapsed() < LOST, "{} of {count}", got.tags.len());
        }
    };
    net[0].gather(true);
    send(&mut net[0], 1, 1);
    // Its sender does nothing more.
    receive(&mut net, &mut got[1], 2);
    (2..64).for_each(|tag| assert_ne!(send(&mut net[0], 1, tag), Posted::Full));
    net[0].gather(false);
    net[0].push_all();
    receive(&mut net, &mut got[1], 64);
    net[0].gather(true);
    (64..70).for_each(|tag| assert_ne!(send(&mut net[0], 1, tag), Posted::Full));
    // Longer ones do not wait, nor does what comes before them.
    let data = vec![1; 4000];
    // SAFETY: the data is readable.
    unsafe { net[0].post_bulk(1, head(70), &[], data.as_ptr(), data.len()) };
    receive(&mut net, &mut got[1], 71);
    assert!(got[1].tags.iter().map(|(_, tag)| *tag).eq(0..71));
}
