//! A rendezvous with a guardian that only writes down what it hears.

use super::*;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::RawFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use weft_lanes::FarConnection;
use weft_wire::stream::datagram::DatagramPeer;
use weft_wire::stream::packet::SlotSide;

const PLACE: SlotSide = SlotSide { arena: 77, slot: 3, side: 0, generation: 5 };
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq)]
enum Said {
    Offer { cookie: u64, ends: [SocketAddr; 2] },
    Withdraw { cookie: u64 },
    Release(SlotSide),
    Silent,
    Leave,
    Untold(SlotSide),
}

/// Connections to this port are to another host, for it. It answers every offer with a gateway.
struct Scribe {
    far_port: u16,
    said: Sender<Said>,
    /// What makes the descriptor readable.
    bell: [OwnedFd; 2],
    mails: Vec<ProcessMail>,
    /// Who has withdrawn something is called.
    calls: Vec<Client>,
    kept: Vec<OwnedFd>,
    connections: Vec<FarConnection>,
    /// Of its own, that mails bring.
    memory: std::fs::File,
}

impl Scribe {
    fn new(far_port: u16) -> (Self, Receiver<Said>) {
        let (said, hears) = mpsc::channel();
        let (one, other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let bell = [one, other].map(OwnedFd::from);
        let memory = std::fs::File::open("/dev/null").expect("nothing");
        (Self { far_port, said, bell, mails: vec![], calls: vec![], kept: vec![], connections: vec![], memory }, hears)
    }

    fn say(&self, said: Said) {
        self.said.send(said).expect("the test goes on");
    }
}

impl AsRawFd for Scribe {
    fn as_raw_fd(&self) -> RawFd {
        self.bell[0].as_raw_fd()
    }
}

impl Guardian for Scribe {
    fn leads(&self, _: SocketAddr, remote: SocketAddr) -> bool {
        remote.port() == self.far_port
    }

    fn offer(&mut self, client: Client, cookie: u64, anchor: OwnedFd, ends: [SocketAddr; 2]) {
        self.say(Said::Offer { cookie, ends });
        self.kept.push(anchor);
        let memory = self.memory.as_raw_fd();
        let mut packets: Vec<_> =
            (0..4).map(|part| (Answer::Gateway { arena: PLACE.arena, lane: 1, part }, Some(memory))).collect();
        packets.push((Answer::Mail { cookie, place: PLACE }, Some(memory)));
        self.mails.push(ProcessMail { client, place: PLACE, packets });
        let peer = DatagramPeer::of(ends[1]);
        self.connections.push(FarConnection { client, port: ends[0].port(), peer, bytes: [6, 7] });
        sys::send(&self.bell[1], b"!", None).expect("rung");
    }

    fn withdraw(&mut self, client: Client, cookie: u64) {
        self.say(Said::Withdraw { cookie });
        self.calls.push(client);
        sys::send(&self.bell[1], b"!", None).expect("rung");
    }

    fn release(&mut self, _: Client, place: &SlotSide) -> bool {
        if place.arena == PLACE.arena {
            self.say(Said::Release(*place));
        }
        place.arena == PLACE.arena
    }

    fn fall_silent(&mut self, _: Client) -> bool {
        self.say(Said::Silent);
        true
    }

    fn leave(&mut self, _: Client) {
        self.say(Said::Leave);
    }

    fn until_turn(&self) -> Option<Duration> {
        None
    }

    fn turn(&mut self) -> FarTurn {
        let mut place = [0; 64];
        while sys::receive(&self.bell[0], &mut place).is_ok_and(|(bytes, _)| bytes > 0) {}
        FarTurn { mails: std::mem::take(&mut self.mails), calls: std::mem::take(&mut self.calls) }
    }

    fn untold(&mut self, _: Client, place: &SlotSide) {
        self.say(Said::Untold(*place));
    }

    fn connections(&self) -> Vec<FarConnection> {
        self.connections.clone()
    }
}

/// A rendezvous of this test alone, which ends with it.
fn serve(far_port: u16) -> (OwnedFd, Receiver<Said>) {
    let name = format!("weft-test-rendezvous-{}", sys::random().expect("a number"));
    let listener = RendezvousListener::bind(name.as_bytes()).expect("a name");
    let (scribe, hears) = Scribe::new(far_port);
    let (made, scribe) = (Duration::from_millis(200), Box::new(scribe));
    std::thread::spawn(move || run(vec![listener], Some(scribe), made).expect("it serves"));
    let socket = sys::connect_for_test(name.as_bytes()).expect("it answers");
    (socket, hears)
}

fn greet(socket: &OwnedFd) -> File {
    let page = weft_kernel::sealable_memory(c"weft-page", page::BYTES).expect("memory");
    let page = File::from(OwnedFd::from(page));
    let hello = StreamRequest::Hello { version: VERSION }.pack();
    sys::send(socket, &hello, Some(page.as_raw_fd())).expect("sent");
    page
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    (near, listener.accept().expect("accepted").0)
}

fn offer(socket: &OwnedFd, shown: &TcpStream) -> u64 {
    let shown: OwnedFd = shown.try_clone().expect("a copy").into();
    let cookie = sys::look_at(&shown).expect("established").cookie;
    sys::send(socket, &StreamRequest::Offer { cookie }.pack(), Some(shown.as_raw_fd())).expect("sent");
    cookie
}

/// The next packet, and whether a descriptor came with it.
fn next(socket: &OwnedFd) -> (Option<Answer>, bool) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let mut packet = [0; BYTES + 512];
        if let Ok((_, descriptor)) = sys::receive(socket, &mut packet) {
            let head = packet.first_chunk().expect("long enough");
            return (Answer::parse(head), descriptor.is_some());
        }
        let limit = Some(Duration::from_millis(100));
        weft_kernel::await_events(socket.as_raw_fd(), libc::POLLIN, limit).expect("waited");
    }
    panic!("nothing came");
}

fn hear(hears: &Receiver<Said>) -> Said {
    hears.recv_timeout(PATIENCE).expect("it was said")
}

#[test]
fn a_far_end_goes_to_the_guardian_whose_mail_brings_a_gateway() {
    let (near, far) = connection();
    let far_port = far.local_addr().expect("bound").port();
    let (socket, hears) = serve(far_port);
    let page = greet(&socket);
    let cookie = offer(&socket, &near);
    let ends = [near.local_addr().expect("bound"), far.local_addr().expect("bound")];
    assert_eq!(hear(&hears), Said::Offer { cookie, ends });
    for part in 0..4 {
        assert_eq!(next(&socket), (Some(Answer::Gateway { arena: PLACE.arena, lane: 1, part }), true));
    }
    assert_eq!(next(&socket), (Some(Answer::Mail { cookie, place: PLACE }), true));
    sys::send(&socket, &StreamRequest::Release(PLACE).pack(), None).expect("sent");
    assert_eq!(hear(&hears), Said::Release(PLACE));
    // A packet is counted after it was sent, and before anything else is heard.
    let mut mails = [0; 4];
    page.read_exact_at(&mut mails, page::MAILS_AT as u64).expect("read");
    assert_eq!(u32::from_le_bytes(mails), 5, "each packet is counted");
    sys::send(&socket, &StreamRequest::Withdraw { cookie }.pack(), None).expect("sent");
    assert_eq!(hear(&hears), Said::Withdraw { cookie });
    drop(socket);
    assert_eq!(hear(&hears), Said::Leave);
}

#[test]
fn ends_inside_the_host_are_not_the_guardian_s() {
    let (near, far) = connection();
    let (socket, hears) = serve(1);
    let _page = greet(&socket);
    let cookies = [offer(&socket, &near), offer(&socket, &far)];
    // One process has both ends: an arena of its own, as ever.
    for _ in 0..2 {
        let (Some(Answer::Mail { cookie, .. }), _) = next(&socket) else { panic!("no mail") };
        assert!(cookies.contains(&cookie));
    }
    drop(socket);
    assert_eq!(hear(&hears), Said::Leave);
}

#[test]
fn mail_that_nobody_takes_is_said_to_be_untold() {
    let (near, far) = connection();
    let (socket, hears) = serve(far.local_addr().expect("bound").port());
    // Without a page nobody is told anything.
    let cookie = offer(&socket, &near);
    assert!(matches!(hear(&hears), Said::Offer { cookie: shown, .. } if shown == cookie));
    assert_eq!(hear(&hears), Said::Untold(PLACE));
}

#[test]
fn far_connections_are_listed() {
    let (near, far) = connection();
    let (socket, hears) = serve(far.local_addr().expect("bound").port());
    let _page = greet(&socket);
    offer(&socket, &near);
    hear(&hears);
    for _ in 0..5 {
        next(&socket);
    }
    sys::send(&socket, &StreamRequest::Survey.pack(), None).expect("sent");
    let listed = std::iter::from_fn(|| match next(&socket).0 {
        Some(Answer::End) => None,
        other => Some(other),
    });
    let (port, peer) = (near.local_addr().expect("bound").port(), DatagramPeer::of(far.local_addr().expect("bound")));
    let expected = Answer::Far { pid: std::process::id(), port, peer, bytes: [6, 7] };
    assert!(listed.collect::<Vec<_>>().contains(&Some(expected)));
}

#[test]
fn an_offer_whose_descriptor_was_lost_ends_nobody() {
    let (near, far) = connection();
    let (socket, hears) = serve(far.local_addr().expect("bound").port());
    let _page = greet(&socket);
    sys::send(&socket, &StreamRequest::Offer { cookie: 5 }.pack(), None).expect("sent");
    let cookie = offer(&socket, &near);
    assert!(matches!(hear(&hears), Said::Offer { cookie: shown, .. } if shown == cookie));
}

mod hostile;
