//! Links among each other, and with a process that knows the key and writes its datagrams by hand.

use super::device::BURST_TICKS;
use super::peer::Standing;
use super::*;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use weft_device::{Device, Packet, Posted, Sink};
use weft_protocol::reliable::Keyed;
use weft_wire::cell::{Head, Kind};
use weft_wire::link::hello::Hello;

pub(super) const KEY: [u8; 16] = *b"the key of tests";
/// Longer than any scheduling.
const LOST: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Got {
    packets: usize,
    faults: Vec<PeerFault>,
}

impl Sink for Got {
    fn handle_packet(&mut self, _: Packet<'_>) -> Result<(), &'static str> {
        self.packets += 1;
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.faults.push(fault);
    }
}

pub(super) fn sockets(count: u32) -> (Vec<UdpSocket>, Vec<PeerPlace>) {
    let sockets: Vec<_> = (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    sockets.iter().for_each(|socket| socket.set_nonblocking(true).expect("set"));
    let place = |(rank, socket): (usize, &UdpSocket)| PeerPlace {
        host: format!("host{rank}"),
        addresses: vec![socket.local_addr().expect("bound")],
    };
    let places = sockets.iter().enumerate().map(place).collect();
    (sockets, places)
}

/// A start of the rank; its socket stays with us, too.
pub(super) fn start(me: u32, sockets: &[UdpSocket], places: &[PeerPlace]) -> Links {
    let socket = sockets[me as usize].try_clone().expect("another");
    Links::new(me, &KEY, false, socket.into(), places.to_vec(), true, false).expect("a socket")
}

fn post(links: &mut Links, to: u32) -> bool {
    links.post(to, &Head::control(Kind::Raw), &[7; 8], None) == Posted::Sent(0)
}

fn poll(links: &mut Links, got: &mut Got) {
    links.look_soon();
    links.poll(got);
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < LOST, "{what}");
        std::thread::yield_now();
    }
}

/// Two ranks that have talked to each other.
fn pair() -> (Vec<UdpSocket>, [Links; 2], [Got; 2]) {
    let (sockets, places) = sockets(2);
    let (mut links, mut got) = ([0, 1].map(|me| start(me, &sockets, &places)), [Got::default(), Got::default()]);
    let mut posted = [false; 2];
    wait("the two do not reach each other", || {
        for me in 0..2 {
            posted[me] = posted[me] || post(&mut links[me], 1 - me as u32);
            poll(&mut links[me], &mut got[me]);
        }
        got.iter().all(|got| got.packets == 1)
    });
    (sockets, links, got)
}

/// A process that writes its datagrams by hand.
struct Scribe<'a> {
    socket: &'a UdpSocket,
    there: SocketAddr,
    own: Process,
}

impl Scribe<'_> {
    fn call(&self, to: Process, nonce: u64, count: u32) -> [u8; hello::BYTES] {
        Hello { is_answer: false, to, from: self.own, nonce, count, encrypts: false }.pack(&keys::of_hellos(&KEY))
    }

    fn send(&self, bytes: &[u8]) {
        assert_eq!(self.socket.send_to(bytes, self.there).expect("sent"), bytes.len());
    }

    /// The next hello that comes.
    fn hear(&self, links: &mut Links, got: &mut Got) -> Hello {
        let (mut bytes, mut heard) = ([0; 9000], None);
        wait("nobody answers", || {
            poll(links, got);
            let length = self.socket.recv(&mut bytes).unwrap_or(0);
            heard = Hello::parse(&bytes[..length], &keys::of_hellos(&KEY));
            heard.is_some()
        });
        heard.expect("it was heard")
    }
}

const WHOEVER: Process = Process { rank: 0, incarnation: UNKNOWN };

#[test]
fn messages_of_a_burst_share_datagrams_however_long_it_takes_to_send_one() {
    let (_sockets, [mut links, mut other], [mut got, mut there]) = pair();
    let (bursts, messages) = (200, 2);
    let before = there.packets;
    // This thread may be stopped in the midst of any burst, but not of each.
    let is_shared = |_: &usize| {
        let mut pushes = 0;
        for _ in 0..messages {
            assert!(post(&mut links, 1));
            links.push(1, true);
            pushes += u32::from(!links.peers[1].is_dirty);
        }
        poll(&mut links, &mut got);
        poll(&mut other, &mut there);
        let begin = sys::ticks();
        while sys::ticks().wrapping_sub(begin) < BURST_TICKS {}
        // The first of a burst alone.
        pushes == 1
    };
    let shared = (0..bursts).filter(is_shared).count();
    wait("messages are missing", || {
        poll(&mut links, &mut got);
        poll(&mut other, &mut there);
        there.packets - before == bursts * messages
    });
    assert!(shared > bursts / 20, "{shared} of {bursts} bursts shared datagrams");
}

#[test]
fn a_call_that_was_recorded_is_not_answered_again_and_makes_nobody_known() {
    let (sockets, places) = sockets(2);
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    stranger.set_nonblocking(true).expect("set");
    let (mut links, mut got) = (start(0, &sockets, &places), Got::default());
    let scribe =
        Scribe { socket: &sockets[1], there: places[0].addresses[0], own: Process { rank: 1, incarnation: 9 } };
    let first = scribe.call(WHOEVER, 5, 1);
    scribe.send(&first);
    let answer = scribe.hear(&mut links, &mut got);
    assert_eq!((answer.to, answer.from, answer.nonce, answer.count), (scribe.own, links.own.me, 5, 1));
    // Somebody on the way has heard it, and says it again.
    for _ in 0..10 {
        assert_eq!(stranger.send_to(&first, scribe.there).expect("sent"), first.len());
    }
    // What is said later is heard later.
    scribe.send(&scribe.call(links.own.me, 5, 2));
    assert_eq!(scribe.hear(&mut links, &mut got).count, 2);
    assert!(stranger.recv(&mut [0; 2000]).is_err(), "a stranger is answered");
    let peer = &links.peers[1];
    assert!(peer.link.is_none() && peer.route.is_none() && peer.process.incarnation == UNKNOWN);
    assert!(links.live.is_empty() && links.hellos.is_empty());
}

#[test]
fn an_answer_counts_once_to_its_own_call_and_from_where_the_rank_is() {
    let (sockets, places) = sockets(2);
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (mut links, mut got) = (start(0, &sockets, &places), Got::default());
    let scribe =
        Scribe { socket: &sockets[1], there: places[0].addresses[0], own: Process { rank: 1, incarnation: 9 } };
    assert!(!post(&mut links, 1), "it has to be called first");
    let call = scribe.hear(&mut links, &mut got);
    assert_eq!((call.from, call.to), (links.own.me, Process { rank: 1, incarnation: UNKNOWN }));
    let key = keys::of_hellos(&KEY);
    let old = Hello { nonce: call.nonce ^ 1, ..call.answer(scribe.own, false) };
    scribe.send(&old.pack(&key));
    let passed_on = call.answer(Process { rank: 1, incarnation: 8 }, false).pack(&key);
    assert_eq!(stranger.send_to(&passed_on, scribe.there).expect("sent"), passed_on.len());
    scribe.send(&call.answer(scribe.own, false).pack(&key));
    wait("the answer does not count", || {
        poll(&mut links, &mut got);
        links.peers[1].link.is_some()
    });
    let peer = &links.peers[1];
    assert_eq!((peer.process, peer.route), (scribe.own, Some(places[1].addresses[0])));
}

#[test]
fn what_one_start_of_a_rank_has_believed_the_next_one_does_not() {
    let (sockets, places) = sockets(2);
    let scribe =
        Scribe { socket: &sockets[1], there: places[0].addresses[0], own: Process { rank: 1, incarnation: 9 } };
    let (mut first, mut got) = (start(0, &sockets, &places), Got::default());
    let key = keys::of_link(&KEY, scribe.own, first.own.me);
    let mut link = Link::new(Config::new(scribe.own, first.own.me, 1472), Keyed::new(&key), 1);
    assert_eq!(link.try_send(&Head::control(Kind::Raw), &[7; 8], None), reliable::LinkPosted::Sent(0));
    let mut datagram = [0; 1472];
    let length = link.poll_transmit(2, &mut datagram).expect("there is something to send");
    scribe.send(&datagram[..length]);
    wait("it is not believed", || {
        poll(&mut first, &mut got);
        got.packets == 1
    });
    let was = first.own.me;
    drop(first);
    let mut second = start(0, &sockets, &places);
    assert_ne!(second.own.me.incarnation, was.incarnation);
    scribe.send(&datagram[..length]);
    wait("it is not counted", || {
        poll(&mut second, &mut got);
        second.counters().strangers > 0
    });
    assert!(got.packets == 1 && second.peers[1].link.is_none());
}

#[test]
fn two_programs_one_after_another_in_the_same_ranks_reach_each_other() {
    let (sockets, links, got) = pair();
    let places: Vec<_> = links[0].peers.iter().map(|peer| peer.place.clone()).collect();
    drop((links, got));
    let (mut links, mut got) = ([0, 1].map(|me| start(me, &sockets, &places)), [Got::default(), Got::default()]);
    let mut posted = [false; 2];
    wait("the second two do not reach each other", || {
        for me in 0..2 {
            posted[me] = posted[me] || post(&mut links[me], 1 - me as u32);
            poll(&mut links[me], &mut got[me]);
        }
        got.iter().all(|got| got.packets == 1)
    });
}

/// Says so for longer than any fault is ridden out, at times of our own choice.
fn trouble(links: &mut Links, number: i32, is_own: bool, from_ns: u64) -> u64 {
    let mut now_ns = from_ns;
    for _ in 0..20 {
        now_ns += 1_000_000_000;
        links.handle_trouble(1, io::Error::from_raw_os_error(number), is_own, now_ns);
        links.look_for_end(1, now_ns);
    }
    now_ns
}

#[test]
fn what_anybody_can_say_about_a_silent_rank_ends_nothing_and_is_told_once() {
    let (_sockets, [mut links, _], _) = pair();
    let begin_ns = sys::now_ns();
    let now_ns = trouble(&mut links, libc::ECONNREFUSED, false, begin_ns);
    let now_ns = trouble(&mut links, libc::EHOSTUNREACH, false, now_ns + 60_000_000_000);
    assert!(links.faults.is_empty() && !links.has_ended(1));
    let notice = links.take_notice().expect("the user is told");
    assert!(notice.contains("rank 1 on host host1") && notice.contains("refused"), "{notice}");
    assert_eq!(links.take_notice(), None);
    // Nor does it put off what our own kernel knows.
    trouble(&mut links, libc::ENETUNREACH, true, now_ns);
    assert!(links.has_ended(1) && links.faults.len() == 1);
    assert!(links.faults[0].to_string().contains("Network is unreachable"), "{}", links.faults[0]);
}

/// It has answered a call, and was gone before anything came of that.
#[test]
fn a_rank_of_this_host_whose_port_nobody_has_is_lost_soon() {
    let (_sockets, [mut links, _], _) = pair();
    let begin_ns = sys::now_ns();
    for times in 0..5 {
        assert!(!links.has_ended(1), "{times}: it may be by chance");
        let now_ns = begin_ns + times * 100_000_000;
        links.handle_trouble(1, io::Error::from_raw_os_error(libc::ECONNREFUSED), true, now_ns);
        links.look_for_end(1, now_ns);
        if links.has_ended(1) {
            assert_eq!(times, 3);
            break;
        }
    }
    assert!(links.has_ended(1) && links.faults[0].to_string().contains("its process has ended"));
}

#[test]
fn a_forged_refusal_does_not_cut_a_farewell_short() {
    let (_sockets, [mut links, _], _) = pair();
    assert!(post(&mut links, 1));
    links.say_farewell();
    trouble(&mut links, libc::ECONNREFUSED, false, sys::now_ns());
    assert!(links.has_output() && links.peers[1].link.is_some(), "it may still be there, and want what was posted");
    trouble(&mut links, libc::ECONNREFUSED, true, sys::now_ns());
    assert!(!links.has_output());
}

#[test]
fn who_leaves_and_waits_for_nobody_any_more_may_sleep() {
    let (_sockets, [mut links, mut other], [mut got, mut other_got]) = pair();
    other.say_farewell();
    wait("the farewell does not come", || {
        poll(&mut other, &mut other_got);
        poll(&mut links, &mut got);
        links.has_ended(1)
    });
    // From here on the other one is gone, and never says that it has ours.
    links.say_farewell();
    wait("the other one is waited for", || {
        poll(&mut links, &mut got);
        !links.has_output()
    });
    wait("who waits for a third rank looks all the time", || {
        poll(&mut links, &mut got);
        links.arm()
    });
}

#[test]
fn who_has_something_left_for_one_that_leaves_still_answers_the_farewell() {
    let (_sockets, [mut links, mut leaver], [mut got, mut leaver_got]) = pair();
    leaver.say_farewell();
    wait("the farewell does not come", || {
        poll(&mut leaver, &mut leaver_got);
        // Nothing of ours goes out meanwhile.
        links.receive(sys::now_ns(), true, &mut got);
        links.has_ended(1)
    });
    assert!(!post(&mut links, 1) && !post(&mut links, 1));
    assert_eq!(links.faults.len(), 1, "it is said once");
    links.handle_lost(1);
    wait("who leaves waits for ever", || {
        poll(&mut links, &mut got);
        poll(&mut leaver, &mut leaver_got);
        !leaver.has_output()
    });
}

#[test]
fn who_comes_after_the_farewell_hears_it_and_holds_nobody_up() {
    let (sockets, places) = sockets(2);
    let [mut leaver, mut late] = [0, 1].map(|me| start(me, &sockets, &places));
    let mut got = [Got::default(), Got::default()];
    wait("no answer", || {
        let _ = late.peers[0].link.is_some() || post(&mut late, 0);
        poll(&mut late, &mut got[1]);
        poll(&mut leaver, &mut got[0]);
        late.peers[0].link.is_some()
    });
    assert!(leaver.peers[1].link.is_none(), "nothing has been posted yet");
    leaver.say_farewell();
    assert!(post(&mut late, 0));
    wait("no farewell", || {
        poll(&mut late, &mut got[1]);
        poll(&mut leaver, &mut got[0]);
        late.has_ended(0)
    });
    wait("a link that came late is waited for", || {
        poll(&mut late, &mut got[1]);
        poll(&mut leaver, &mut got[0]);
        !leaver.has_output()
    });
    assert!(got.iter().all(|got| got.faults.is_empty()));
}

#[test]
fn many_links_hold_less_each_and_what_a_link_held_comes_back() {
    let (sockets, mut places) = sockets(1);
    let ranks = 1000;
    places.resize(ranks, places[0].clone());
    let mut links = start(0, &sockets, &places);
    links.window_bytes = MOST_WINDOW;
    let route = places[0].addresses[0];
    let windows = |links: &Links| links.peers.iter().map(|peer| peer.window_bytes).collect::<Vec<_>>();
    for rank in 1..ranks as u32 {
        links.make_link(Process { rank, incarnation: 1 }, route, 0);
    }
    let made = windows(&links);
    assert_eq!((made[1], made[ranks - 1]), (MOST_WINDOW, LEAST_WINDOW));
    let shared: usize = made.iter().filter(|window| **window > LEAST_WINDOW).sum();
    assert!(2 * shared <= MOST_HELD && 2 * links.held_bytes() <= MOST_HELD + 2 * ranks * LEAST_WINDOW, "{shared}");
    (1..ranks as u32).for_each(|rank| links.forget(rank, Standing::Left));
    assert_eq!(links.held_bytes(), 0);
}
