//! Lanes that processes use by turns: what stands between two uses is in memory that they share.

use super::cable::{Cable, LIMIT, lane, memory, port, v4, v6};
use super::pattern;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weft_device::xdp::{Ends, LaneRoute, LaneState, Lanes, SharedLane};
use weft_wire::settings::XdpMode;
use weft_wire::xdp::{LaneLayout, STATES_AT, THROUGH};

/// Lanes send by a tap device, and by a ring.
const MODES: [XdpMode; 2] = [XdpMode::Auto, XdpMode::Native];

/// Memory that children by fork share.
pub fn shared<T>() -> &'static T {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: new pages of zeros, which stay; callers ask for what consists of atomics, for which zeros are a value.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), size_of::<T>(), protection, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        &*at.cast()
    }
}

/// Memory and sockets of a lane, of which more and more descriptors can be had.
pub struct Made([RawFd; 3]);

impl Made {
    pub fn take(lanes: &mut Lanes, number: usize) -> Self {
        let sockets = lanes.take_sockets(number).expect("not taken yet");
        Self([memory(lanes), sockets.receiver, sockets.sender].map(IntoRawFd::into_raw_fd))
    }

    /// The lane once more. No memory is taken.
    pub fn adopt(&self) -> SharedLane {
        // SAFETY: numbers only.
        let [memory, receiver, sender] = self.0.map(|number| unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) });
        let lane = SharedLane::adopt(memory, receiver, sender, 0);
        assert!(lane.as_ref().is_ok_and(|lane| lane.descriptors().iter().all(|number| *number >= 900)));
        lane.expect("a lane")
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: ours alone.
        self.0.iter().for_each(|number| unsafe { assert_eq!(libc::close(*number), 0) });
    }
}

fn is_pattern(number: u32, payload: &[u8]) -> bool {
    payload.iter().enumerate().all(|(at, byte)| *byte == (number as usize * 31 + at * 7 + (at >> 8)) as u8)
}

pub fn send(lane: &SharedLane, state: &LaneState, route: &LaneRoute, payload: &[u8]) -> bool {
    lane.send(state, route, |place| {
        place[..payload.len()].copy_from_slice(payload);
        payload.len()
    }) && lane.flush(state)
}

pub fn next_of(lane: &SharedLane, state: &LaneState) -> (Ends, Vec<u8>) {
    let begin = Instant::now();
    let mut got = None;
    while got.is_none() {
        let packets = lane.receive(state, |ends, payload| got = Some((*ends, payload.to_vec())));
        assert!(packets < 2 && !lane.is_faulty() && begin.elapsed() < LIMIT, "one comes");
    }
    got.expect("just come")
}

#[test]
fn datagrams_of_every_length_go_both_ways_by_whoever_has_the_state() {
    let cable = Cable::new();
    let sockets = [cable.socket(1), cable.socket(2)];
    let mut attached = [cable.open(1, &[&sockets[0]]), cable.open(2, &[&sockets[1]])];
    let made = attached.each_mut().map(|lanes| Made::take(lanes, 0));
    // Two have each lane, and use it by turns; now and then another one comes.
    let mut lanes = made.each_ref().map(|made| [made.adopt(), made.adopt()]);
    let states: [&LaneState; 2] = [shared(), shared()];
    for address in [v4, v6] {
        let routes = [(1, 0, 1), (0, 1, 2)].map(|(from, to, host): (usize, usize, u8)| {
            sockets[from].send_to(b"hello", address(host, port(&sockets[to]))).expect("sent");
            let (ends, payload) = next_of(&lanes[to][0], states[to]);
            assert_eq!(payload, b"hello");
            LaneRoute::from_words(&LaneRoute::learn(&ends).to_words()).expect("a route")
        });
        let most = lanes[0][0].largest_payload(&routes[0]);
        assert_eq!(most, 1514 - routes[0].header_bytes());
        for number in 0..6000u32 {
            let (from, to) = if number % 2 == 0 { (0, 1) } else { (1, 0) };
            let (sends, looks) = (number as usize / 3 % 2, number as usize / 5 % 2);
            if number % 500 == 0 {
                lanes[from][sends] = made[from].adopt();
            }
            let bytes = pattern(number, 1 + number as usize * 13 % most);
            assert!(send(&lanes[from][sends], states[from], &routes[from], &bytes));
            let (ends, payload) = next_of(&lanes[to][looks], states[to]);
            assert!(payload == bytes && routes[to].is_of(&ends), "datagram {number}");
            assert!(routes[to].to_words() == ends.to_words() && !lanes[to][1 - looks].has_arrived());
        }
    }
}

#[test]
fn a_shared_lane_sends_as_much_as_it_has_frames_and_goes_on() {
    MODES.into_iter().for_each(|mode| sends_as_much_and_goes_on(&Cable::with(mode)));
}

fn sends_as_much_and_goes_on(cable: &Cable) {
    let sockets = [cable.socket(1), cable.socket(2)];
    let mut attached = [cable.open(1, &[&sockets[0]]), cable.open(2, &[&sockets[1]])];
    let made = Made::take(&mut attached[0], 0);
    let (from, state) = (made.adopt(), shared::<LaneState>());
    let mut to = lane(&mut attached[1], 0);
    sockets[1].send_to(b"hello", v4(1, port(&sockets[0]))).expect("sent");
    let route = LaneRoute::learn(&next_of(&from, state).0);
    assert!(from.send(state, &route, |_| 0) && from.flush(state), "nothing is sent");
    let number_of = |payload: &[u8]| u32::from_le_bytes(*payload.first_chunk().expect("a number"));
    let (mut sent, mut last) = (0u32, 0u32);
    let write = |number: u32, place: &mut [u8]| {
        place[..4].copy_from_slice(&number.to_le_bytes());
        place[4..100].copy_from_slice(&pattern(number, 96));
        100
    };
    let begin = Instant::now();
    while last < 20_000 {
        // More than there are frames: where there is no room, packets leave without being asked. The cable has room for
        // fewer at once, and may drop some.
        for _ in 0..600 {
            sent += u32::from(from.send(state, &route, |place| write(sent + 1, place)));
        }
        while !from.flush(state) || last < sent {
            assert!(begin.elapsed() < LIMIT && !from.is_faulty(), "{last} of {sent} came");
            let got = to.receive(|frame| {
                let number = number_of(frame.payload);
                assert!(number > last && number <= sent && is_pattern(number, &frame.payload[4..]), "{number}");
                last = number;
            });
            // The last one may be dropped, too.
            if got == 0 && from.send(state, &route, |place| write(sent + 1, place)) {
                sent += 1;
            }
        }
    }
}

#[test]
fn an_interface_that_goes_down_is_waited_for_and_one_that_vanishes_ends_a_shared_lane() {
    MODES.into_iter().for_each(goes_down_and_vanishes);
}

fn goes_down_and_vanishes(mode: XdpMode) {
    let cable = Cable::with(mode);
    let sockets = [cable.socket(1), cable.socket(2)];
    let mut attached = [cable.open(1, &[&sockets[0]]), cable.open(2, &[&sockets[1]])];
    let made = Made::take(&mut attached[0], 0);
    let (from, state) = (made.adopt(), shared::<LaneState>());
    let mut to = lane(&mut attached[1], 0);
    sockets[1].send_to(b"hello", v4(1, port(&sockets[0]))).expect("sent");
    let route = LaneRoute::learn(&next_of(&from, state).0);
    cable.ip(1, "link set eth0 down");
    // Longer than between two looks whether it is up.
    std::thread::sleep(Duration::from_millis(20));
    assert!(!send(&from, state, &route, b"down") && !from.is_faulty());
    assert_eq!(from.flush(state), mode != XdpMode::Native, "a ring keeps it");
    cable.ip(1, "link set eth0 up");
    let begin = Instant::now();
    while to.receive(|_| {}) == 0 {
        assert!(begin.elapsed() < LIMIT && !from.is_faulty(), "nothing comes after the interface is up");
        send(&from, state, &route, b"up");
    }
    cable.ip(2, "link del eth0");
    while !from.is_faulty() {
        assert!(begin.elapsed() < LIMIT, "no fault");
        send(&from, state, &route, b"anybody?");
    }
    assert!(!send(&from, state, &route, b"anybody?") && from.receive(state, |_, _| {}) == 0);
}

/// What those who use a lane share.
struct Common {
    state: LaneState,
    /// The process that has it.
    lock: AtomicU32,
    /// Microseconds that a child lives on once it has seen them.
    left: AtomicU32,
    spoilt: AtomicBool,
    echoed: AtomicU64,
}

impl Common {
    fn try_lock(&self, me: u32) -> bool {
        self.lock.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Sends everything back that has come. In a child by fork no memory can be had.
    fn echo(&self, lane: &SharedLane) {
        lane.receive(&self.state, |ends, payload| {
            let number = payload.first_chunk().map(|number| u32::from_le_bytes(*number));
            if number.is_some_and(|number| is_pattern(number, &payload[4..])) {
                let written = lane.send(&self.state, &LaneRoute::learn(ends), |place| {
                    place[..payload.len()].copy_from_slice(payload);
                    payload.len()
                });
                self.echoed.fetch_add(u64::from(written), Ordering::Relaxed);
            } else {
                self.spoilt.store(true, Ordering::Relaxed);
            }
        });
        lane.flush(&self.state);
    }

    /// One who does this until he is killed.
    fn child(&self, made: &Made) -> i32 {
        // SAFETY: what follows takes no memory and makes calls of the kernel only.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "a child");
        if child == 0 {
            let lane = made.adopt();
            let me = std::process::id();
            loop {
                let left = self.left.swap(0, Ordering::Relaxed);
                if left > 0 {
                    let nothing = libc::timeval { tv_sec: 0, tv_usec: 0 };
                    let once = libc::itimerval {
                        it_interval: nothing,
                        it_value: libc::timeval { tv_usec: left.into(), ..nothing },
                    };
                    // SAFETY: the times live across the call.
                    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const once, std::ptr::null_mut()) };
                }
                if self.try_lock(me) {
                    (0..8).for_each(|_| self.echo(&lane));
                    self.lock.store(0, Ordering::Release);
                }
                std::thread::yield_now();
            }
        }
        child
    }
}

/// Sends without an end from the other host, and looks at what comes back.
struct Load<'a> {
    lane: SharedLane,
    state: &'static LaneState,
    route: LaneRoute,
    stop: &'a AtomicBool,
}

impl Load<'_> {
    const WINDOW: u32 = 100;

    fn run(&self) -> u64 {
        let (mut sent, mut back, mut last, mut all) = (0u32, 0u32, 0u32, 0u64);
        let mut silent = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            while sent.wrapping_sub(back) < Self::WINDOW
                && self.lane.send(self.state, &self.route, |place| {
                    let length = 4 + sent as usize * 13 % 600;
                    place[..4].copy_from_slice(&sent.to_le_bytes());
                    place[4..length].copy_from_slice(&pattern(sent, length - 4));
                    length
                })
            {
                sent = sent.wrapping_add(1);
            }
            self.lane.flush(self.state);
            let got = self.lane.receive(self.state, |ends, payload| {
                let number = u32::from_le_bytes(*payload.first_chunk().expect("a number"));
                assert!(number < sent && number >= last && self.route.is_of(ends), "{number}, when {last} was next");
                let length = 4 + number as usize * 13 % 600;
                assert!(payload.len() == length && is_pattern(number, &payload[4..]), "{number} came spoilt");
                (last, all) = (number + 1, all + 1);
                back = back.max(last);
            });
            assert!(!self.lane.is_faulty());
            if got > 0 {
                silent = Instant::now();
            } else if silent.elapsed() > Duration::from_millis(2) {
                // A kill may cost what was on its way.
                (back, silent) = (sent, Instant::now());
            }
        }
        all
    }
}

/// Runs `f` with a lane on host 1 that has load, and answers what it does and how many datagrams came back.
fn under_load<T>(mode: XdpMode, f: impl FnOnce(&Made, &'static Common) -> T) -> (T, u64) {
    let cable = Cable::with(mode);
    let sockets = [cable.socket(1), cable.socket(2)];
    let mut attached = [cable.open(1, &[&sockets[0]]), cable.open(2, &[&sockets[1]])];
    let made = attached.each_mut().map(|lanes| Made::take(lanes, 0));
    let (common, state) = (shared::<Common>(), shared());
    let lane = made[1].adopt();
    sockets[0].send_to(b"hello", v4(2, port(&sockets[1]))).expect("sent");
    let route = LaneRoute::learn(&next_of(&lane, state).0);
    let stop = AtomicBool::new(false);
    let load = Load { lane, state, route, stop: &stop };
    let answer = std::thread::scope(|scope| {
        let running = scope.spawn(|| load.run());
        let answer = f(&made[0], common);
        stop.store(true, Ordering::Relaxed);
        (answer, running.join().expect("all was right"))
    });
    assert!(!common.spoilt.load(Ordering::Relaxed), "spoilt on its way there");
    all_frames_are_there(&made[0], &common.state, |number| {
        sockets[1].send_to(&pattern(number, 300), v4(1, port(&sockets[0]))).expect("sent");
    });
    answer
}

/// Frames to send from all of them, and to receive by as many as fill the ring.
fn all_frames_are_there(made: &Made, state: &LaneState, send: impl Fn(u32)) {
    let lane = made.adopt();
    let layout = LaneLayout::new(1, 1500, 1).expect("one lane");
    let begin = Instant::now();
    while lane.receive(state, |_, _| {}) > 0 || !lane.flush(state) {
        assert!(begin.elapsed() < LIMIT && !lane.is_faulty(), "it does not come to an end");
    }
    let mut route = None;
    for heap in 0..3 {
        for number in 0..layout.receive_entries {
            send(number);
        }
        let mut got = 0;
        while got < layout.receive_entries {
            lane.receive(state, |ends, payload| {
                assert!(is_pattern(got, payload), "datagram {got}");
                route = Some(LaneRoute::learn(ends));
                got += 1;
            });
            assert!(begin.elapsed() < LIMIT && !lane.is_faulty(), "heap {heap}: {got} came");
        }
    }
    // Whoever sends next takes back what somebody was killed over.
    assert!(lane.send(state, &route.expect("just come"), |_| 0), "there is room");
    let bytes = STATES_AT + layout.send_frames as usize * 8;
    // SAFETY: the memory has so many bytes; words are looked at as atomics.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, made.0[0], 0);
        assert_ne!(at, libc::MAP_FAILED);
        let words = std::slice::from_raw_parts(at.byte_add(STATES_AT).cast::<AtomicU64>(), layout.send_frames as usize);
        let words = words.iter().map(|word| word.load(Ordering::Relaxed));
        assert_eq!(words.filter(|word| *word & THROUGH == 0 && *word != 0).count(), 0, "frames to send from are lost");
        libc::munmap(at, bytes);
    }
}

#[test]
fn processes_use_a_lane_by_turns() {
    MODES.into_iter().for_each(use_a_lane_by_turns);
}

fn use_a_lane_by_turns(mode: XdpMode) {
    let ((own, echoed), back) = under_load(mode, |made, common| {
        let child = common.child(made);
        let lane = made.adopt();
        let begin = Instant::now();
        let mut own = 0;
        while own < 5_000 || common.echoed.load(Ordering::Relaxed) < 20_000 {
            assert!(begin.elapsed() < LIMIT && !lane.is_faulty());
            if common.try_lock(1) {
                let before = common.echoed.load(Ordering::Relaxed);
                common.echo(&lane);
                own += common.echoed.load(Ordering::Relaxed) - before;
                common.lock.store(0, Ordering::Release);
            }
            std::thread::yield_now();
        }
        kill(child);
        (own, common.echoed.load(Ordering::Relaxed))
    });
    assert!(own > 0 && own < echoed, "{own} of {echoed}");
    assert!(back > echoed / 2, "{back} of {echoed} came back");
}

fn kill(child: i32) {
    // SAFETY: our child.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
    await_killed(child, libc::SIGKILL);
}

fn await_killed(child: i32, signal: i32) {
    let mut status = 0;
    // SAFETY: our child; the status lives across the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == signal, "it ended by itself: {status}");
}

/// `WEFT_TEST_ROUNDS` kills, at moments that `WEFT_TEST_SEED` chooses.
#[test]
fn a_holder_who_is_killed_under_load_is_followed_by_the_next() {
    MODES.into_iter().for_each(is_killed_under_load);
}

fn is_killed_under_load(mode: XdpMode) {
    let setting = |name, other| std::env::var(name).map_or(other, |text| text.parse().expect("a number"));
    let mut random = setting("WEFT_TEST_SEED", u64::from(std::process::id()));
    let rounds = setting("WEFT_TEST_ROUNDS", 300);
    println!("WEFT_TEST_SEED={random}");
    let (inside, back) = under_load(mode, |made, common| {
        let (lane, mut inside) = (made.adopt(), 0);
        for round in 0..rounds {
            let echoed = common.echoed.load(Ordering::Relaxed);
            let child = common.child(made);
            let begin = Instant::now();
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let moment = Duration::from_micros(500 + (random >> 40) % 3000);
            // It works with us looking in between. Its own timer then ends it wherever it is: who kills it from the
            // same core has that only when it has given it up, which it does outside the lock.
            while begin.elapsed() < moment || common.echoed.load(Ordering::Relaxed) == echoed {
                assert!(begin.elapsed() < LIMIT && !lane.is_faulty(), "round {round}: nothing is sent back");
                if common.try_lock(1) {
                    common.echo(&lane);
                    common.lock.store(0, Ordering::Release);
                }
                std::thread::yield_now();
            }
            common.left.store(1 + (random >> 32) as u32 % 256, Ordering::Relaxed);
            await_killed(child, libc::SIGALRM);
            if common.lock.swap(0, Ordering::Acquire) != 0 {
                inside += 1;
            }
        }
        inside
    });
    println!("{inside} of {rounds} were killed inside the lock; {back} datagrams came back");
    assert!(inside > rounds / 20, "{inside} of {rounds} were killed inside the lock");
    assert!(back > rounds, "{back} came back");
}

#[test]
fn what_is_no_lane_is_refused_and_closed() {
    let ends = [(); 3].map(|()| std::io::pipe().expect("a pipe"));
    let (readers, writers): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    let numbers: Vec<RawFd> = writers.into_iter().map(IntoRawFd::into_raw_fd).collect();
    assert!(SharedLane::adopt(numbers[0], numbers[1], numbers[2], 0).is_err());
    for mut reader in readers {
        assert_eq!(std::io::Read::read(&mut reader, &mut [0]).expect("the end"), 0);
        assert!(reader.as_raw_fd() >= 0);
    }
}
