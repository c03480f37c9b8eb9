//! Who uses a lane is killed behind every single instruction, and the next one goes on. The rings lie in plain memory,
//! and what the kernel and the peer do is done here.
//!
//! A child takes its turn step by step under our eyes (`ptrace`). Whenever a step has changed what is shared, we keep a
//! copy: it is what a kill behind this step would have left. Later each copy is put back, and we go on from there.

use super::*;
use crate::xdp::LAYOUT;
use crate::xdp::socket::KernelRing;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Bytes that tell where they belong.
fn pattern(number: u32) -> Vec<u8> {
    let length = 8 + number as usize * 7 % 90;
    number.to_le_bytes().into_iter().chain((4..length).map(|at| (number as usize * 31 + at * 7) as u8)).collect()
}

fn number_of(payload: &[u8]) -> u32 {
    let number = u32::from_le_bytes(payload[..4].try_into().expect("four bytes"));
    assert!(payload == pattern(number), "spoilt: {payload:?}");
    number
}

fn ends() -> Ends {
    let [from, to]: [SocketAddr; 2] =
        ["10.77.0.2:4660", "10.77.0.1:40001"].map(|text| text.parse().expect("an address"));
    Ends { from, to, source_hardware: [2, 0, 0, 0, 0, 9], own_hardware: [2, 0, 0, 0, 0, 1] }
}

/// A lane, and the world around it.
struct LaneWorld {
    lane: SharedLane,
    state: &'static LaneState,
    /// Of what comes: the way that the peer sends by.
    towards: LaneRoute,
    back: LaneRoute,
    /// What comes next.
    arriving: u32,
    /// What came last, and what left last.
    seen: Option<u32>,
    left: Option<u32>,
    /// What fills the ring, before answers with smaller numbers.
    filling: Option<u32>,
    /// Places on their way that have not completed, oldest first.
    away: Vec<u64>,
}

/// What was shared at a time: all but the frames, and of each frame what packets reach.
struct CopiedArea(Vec<u8>, Vec<u8>);

const REACHED: usize = 448;

impl LaneWorld {
    fn new() -> Self {
        let state = kernel::map_shared(None, size_of::<LaneState>()).expect("memory");
        let there = Ends { from: ends().to, to: ends().from, ..ends() };
        Self {
            lane: SharedLane::of_own_memory(LAYOUT),
            // SAFETY: pages of zeros, which are a new one, aligned; they stay.
            state: unsafe { &*state.cast() },
            towards: LaneRoute::learn(&there),
            back: LaneRoute::learn(&ends()),
            arriving: 0,
            seen: None,
            left: None,
            filling: None,
            away: Vec::new(),
        }
    }

    /// So many packets come, if there are frames.
    fn arrive(&mut self, count: u32) {
        let SharedLane { fill, receive, area, .. } = &self.lane;
        for _ in 0..count {
            let (from, to) = (fill.consumer(), receive.producer());
            if from == fill.producer() || to.wrapping_sub(receive.consumer()) == receive.entries() {
                return;
            }
            let place = fill.address(from) + 256;
            fill.consume(from.wrapping_add(1));
            let payload = pattern(self.arriving);
            let mut packet = vec![0; self.towards.header_bytes()];
            packet.extend(&payload);
            self.towards.complete(&mut packet, payload.len());
            area.copy_in(place, &packet);
            receive.set_packet(to, place, packet.len() as u32);
            receive.produce(to.wrapping_add(1));
            self.arriving += 1;
        }
    }

    /// The kernel sends what stands in the ring, as long as it can say that it has.
    fn leave(&mut self) {
        let (send, SharedLane { completion, area, .. }) = (self.lane.ring(), &self.lane);
        let room = completion.entries() - completion.producer().wrapping_sub(completion.consumer());
        while send.consumer() != send.producer() && self.away.len() < room as usize {
            let (place, length) = send.packet(send.consumer());
            assert!(!self.away.iter().any(|away| area.frame(*away) == area.frame(place)), "two packets in a frame");
            let mut packet = vec![0; length as usize];
            area.copy_out(place, &mut packet);
            let (_, payload) = parse(&packet).expect("a datagram");
            let number = number_of(&packet[payload]);
            if self.filling != Some(number) {
                assert!(self.left.is_none_or(|left| left <= number), "{number} behind {:?}", self.left);
                self.left = Some(number);
            }
            self.away.push(place);
            send.consume(send.consumer().wrapping_add(1));
        }
    }

    /// It is through with it.
    fn complete(&mut self) {
        for place in self.away.drain(..) {
            let at = self.lane.completion.producer();
            self.lane.completion.set_address(at, place);
            self.lane.completion.produce(at.wrapping_add(1));
        }
    }

    /// A turn of who has the lock: each packet is answered so often. No memory is taken, as a child does this.
    fn turn(&self, answers: u32, mut seen: impl FnMut(&[u8])) {
        self.lane.receive(self.state, |_, payload| {
            seen(payload);
            for _ in 0..answers {
                self.lane.send(self.state, &self.back, |place| {
                    place[..payload.len()].copy_from_slice(payload);
                    payload.len()
                });
            }
        });
        self.lane.flush(self.state);
    }

    fn checked_turn(&mut self, answers: u32) {
        let mut last = self.seen;
        self.turn(answers, |payload| {
            let number = number_of(payload);
            assert!(last.is_none_or(|last| last < number), "{number} behind {last:?}");
            last = Some(number);
        });
        self.seen = last;
        assert!(!self.lane.is_faulty());
    }

    /// Memory that is shared, but the frames.
    fn small(&self) -> [(*mut u8, usize); 6] {
        let [receive, send, fill, completion] =
            [&self.lane.receive, self.lane.ring(), &self.lane.fill, &self.lane.completion].map(KernelRing::memory);
        let words = self.lane.area.word_memory();
        let state = (&raw const *self.state).cast_mut().cast();
        [receive, send, fill, completion, words, (state, size_of::<LaneState>())]
    }

    fn copy(&self) -> Vec<u8> {
        // SAFETY: mapped memory, which nobody changes meanwhile.
        self.small()
            .iter()
            .flat_map(|(at, bytes)| unsafe { std::slice::from_raw_parts(*at, *bytes) }.to_vec())
            .collect()
    }

    fn is_changed(&self, before: &[u8]) -> bool {
        let mut rest = before;
        self.small().iter().any(|(at, bytes)| {
            let (was, behind) = rest.split_at(*bytes);
            rest = behind;
            // SAFETY: as above.
            was != unsafe { std::slice::from_raw_parts(*at, *bytes) }
        })
    }

    /// Of each frame what is copied.
    fn frames(&self) -> impl Iterator<Item = *mut u8> {
        let area = &self.lane.area;
        (0..LAYOUT.receive_frames() + LAYOUT.send_frames).map(|frame| area.at(u64::from(frame) * 2048, REACHED))
    }

    fn copy_all(&self) -> CopiedArea {
        // SAFETY: as above.
        let frames = self.frames().flat_map(|at| unsafe { std::slice::from_raw_parts(at, REACHED) }.to_vec());
        CopiedArea(self.copy(), frames.collect())
    }

    fn put_back(&self, copied: &CopiedArea) {
        let mut rest = &copied.0[..];
        for (at, bytes) in self.small() {
            let (was, behind) = rest.split_at(bytes);
            rest = behind;
            // SAFETY: as above, and of the same length.
            unsafe { std::ptr::copy_nonoverlapping(was.as_ptr(), at, bytes) };
        }
        for (was, at) in copied.1.chunks_exact(REACHED).zip(self.frames()) {
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(was.as_ptr(), at, REACHED) };
        }
    }

    /// What each step of a turn leaves.
    fn steps(&self, answers: u32) -> Vec<CopiedArea> {
        // SAFETY: the child makes system calls only and takes no memory; it ends in here.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "a child");
        if child == 0 {
            // SAFETY: calls without memory.
            unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                kernel::call(libc::SYS_kill, [kernel::process() as usize, libc::SIGSTOP as usize, 0, 0, 0, 0]);
                self.turn(answers, |_| {});
                libc::_exit(0);
            }
        }
        let mut found: Vec<CopiedArea> = Vec::new();
        let mut last = self.copy();
        let mut status = 0;
        loop {
            // SAFETY: our child; the status lives across the call.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            if libc::WIFEXITED(status) {
                assert_eq!(libc::WEXITSTATUS(status), 0);
                return found;
            }
            let signal = libc::WSTOPSIG(status);
            assert!(libc::WIFSTOPPED(status) && [libc::SIGSTOP, libc::SIGTRAP].contains(&signal), "signal {signal}");
            if self.is_changed(&last) {
                found.push(self.copy_all());
                last = self.copy();
            }
            // SAFETY: our child, which is stopped.
            assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) }, 0);
        }
    }

    /// The next ones go on. Then all frames are there but those that kills may lose: one of what arrives for each.
    fn go_on(&mut self, first: FirstStep, answers: u32, kills: usize) {
        match first {
            FirstStep::Receive => {}
            FirstStep::GiveBack => self.lane.tend(self.state),
            FirstStep::Send => self.fill(),
        }
        for _ in 0..15 {
            self.leave();
            self.complete();
            self.arrive(5);
            self.checked_turn(answers);
        }
        self.settle_down(kills);
    }

    /// Sends until there is no room, while the kernel is through with nothing. What it has taken out of the ring by
    /// then is on its way all the same.
    fn fill(&mut self) {
        let payload = pattern(self.arriving);
        // Answers to what arrived before come behind, with smaller numbers.
        self.filling = Some(self.arriving);
        let mut sent = 0;
        for _ in 0..2 {
            while self.lane.send(self.state, &self.back, |place| {
                place[..payload.len()].copy_from_slice(&payload);
                payload.len()
            }) {
                sent += 1;
            }
            self.leave();
        }
        assert!(sent <= LAYOUT.send_frames, "more than there are frames");
    }

    fn settle_down(&mut self, kills: usize) {
        let is_empty = |ring: &KernelRing| ring.consumer() == ring.producer();
        let mut looks = 0;
        loop {
            self.leave();
            self.complete();
            self.checked_turn(0);
            // Another test of this process may be inside the lock.
            self.lane.tend(self.state);
            if [&self.lane.receive, self.lane.ring(), &self.lane.completion].into_iter().all(is_empty) {
                break;
            }
            looks += 1;
            assert!(looks < 1_000_000, "nobody gets in");
            std::thread::yield_now();
        }
        self.lane.tend(self.state);
        let SharedLane { fill, area, .. } = &self.lane;
        let waiting = fill.producer().wrapping_sub(fill.consumer());
        let in_ring = (0..waiting).map(|ahead| area.frame(fill.address(fill.consumer().wrapping_add(ahead))));
        let held =
            (0..self.state.held()).map(|at| halves(self.state.held[at as usize].load(Ordering::Relaxed)).1.into());
        let all: Vec<u64> = in_ring.chain(held).collect();
        let once: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(once.len(), all.len(), "a frame is there twice");
        assert!(once.len() + kills >= LAYOUT.receive_frames() as usize, "{} frames are left", once.len());
        let free = (0..LAYOUT.send_frames).filter(|index| area.is_free(*index)).count();
        assert_eq!(free, LAYOUT.send_frames as usize, "frames to send from");
    }
}

/// Worlds in which a turn does something of its own: answers to each packet, and packets before.
const SCENES: [(u32, u32); 4] = [(1, 0), (0, 31), (1, 31), (2, 31)];

fn scene(answers: u32, before: u32, packets: u32) -> LaneWorld {
    let mut world = LaneWorld::new();
    for _ in 0..before {
        world.arrive(1);
        world.checked_turn(answers);
        world.leave();
        world.complete();
    }
    world.arrive(packets);
    world
}

/// What the next one does first.
#[derive(Clone, Copy, Debug)]
enum FirstStep {
    Receive,
    GiveBack,
    Send,
}

const FIRSTS: [FirstStep; 3] = [FirstStep::Receive, FirstStep::GiveBack, FirstStep::Send];

/// What happened outside is as it was when the copy was made.
struct Outside(u32, Option<u32>, Option<u32>, Vec<u64>);

impl LaneWorld {
    fn outside(&self) -> Outside {
        Outside(self.arriving, self.seen, self.left, self.away.clone())
    }

    fn be(&mut self, copied: &CopiedArea, outside: &Outside) {
        self.put_back(copied);
        let Outside(arriving, seen, left, away) = outside;
        (self.arriving, self.seen, self.left, self.away) = (*arriving, *seen, *left, away.clone());
        self.filling = None;
    }
}

#[test]
fn whoever_is_killed_at_any_step_leaves_a_lane_that_goes_on() {
    for (answers, before) in SCENES {
        let mut world = scene(answers, before, 4);
        let outside = world.outside();
        let steps = world.steps(answers);
        assert!(steps.len() > 20, "{} steps change something", steps.len());
        for copied in &steps {
            for first in FIRSTS {
                world.be(copied, &outside);
                world.go_on(first, answers, 1);
            }
        }
    }
}

/// Under the address sanitizer each turn has many times as many steps, of which nearly all the time goes by. There the
/// first one is killed behind one of so many steps only.
fn every() -> usize {
    if cfg!(sanitized) { 9 } else { 1 }
}

/// Behind every third step of the first one, and every fourth of the second, which are others each time.
/// `WEFT_TEST_SEED` chooses the steps of the first one where not all of them have their turn.
#[test]
fn two_who_are_killed_one_after_the_other_leave_a_lane_that_goes_on() {
    let seed: usize =
        std::env::var("WEFT_TEST_SEED").map_or(kernel::process() as usize, |text| text.parse().expect("a number"));
    let every = every();
    println!("WEFT_TEST_SEED={seed}: one of {every} steps");
    for (answers, before) in SCENES {
        let mut world = scene(answers, before, 2);
        let outside = world.outside();
        let thirds = world.steps(answers).into_iter().step_by(3).enumerate();
        for (number, first) in thirds.skip(seed % every).step_by(every) {
            world.be(&first, &outside);
            for (other, second) in world.steps(answers).iter().enumerate().skip(number % 4).step_by(4) {
                world.be(second, &outside);
                world.go_on(FIRSTS[other % 3], answers, 2);
            }
        }
    }
}
