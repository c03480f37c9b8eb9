//! Datagrams that arrive: a claim each, until its seal has been checked.

use super::peer::{DatagramWay, LinkPeer, Standing, UNKNOWN};
use super::{Credentials, Links};
use std::net::SocketAddr;
use weft_device::udp::Came;
use weft_device::{Sink, hand_on};
use weft_protocol::reliable::{Dropped, Gone, LinkPacket, Phase, Seal};
use weft_wire::link::header::{Header, Process};
use weft_wire::link::hello::Hello;

/// What becomes of a datagram.
enum Fate {
    /// There is a link for it.
    Linked(Header),
    /// It is the first of a rank without a link.
    First(u32),
    Hello(Hello),
    /// Of nobody whom we believe.
    Stranger,
    /// Of no use, and no offence either.
    Useless,
}

impl Links {
    /// Takes what has arrived.
    pub(super) fn receive<S: Sink>(&mut self, now_ns: u64, look_at_socket: bool, sink: &mut S) -> Came {
        let mut firsts: Vec<(u32, SocketAddr, Vec<u8>)> = Vec::new();
        let Self { own, port, peers, whole, heard, hellos, counters, .. } = self;
        let came = port.receive(now_ns, look_at_socket, |from, datagram| {
            match look_at(peers, own, datagram) {
                Fate::Linked(header) => {
                    let rank = header.from.rank;
                    let peer = &mut peers[rank as usize];
                    let believed = take(peer, header, now_ns, from, datagram, whole, sink);
                    if believed && heard.last() != Some(&rank) {
                        heard.push(rank);
                    }
                    believed
                }
                Fate::First(rank) => {
                    firsts.push((rank, from, datagram.to_vec()));
                    true
                }
                // Anybody may have sent a call that he has heard: where it comes from means nothing. The answer to our
                // own one is new.
                Fate::Hello(hello) => {
                    let is_answer = hello.is_answer;
                    hellos.push((from, hello));
                    is_answer
                }
                Fate::Stranger => {
                    counters.strangers += 1;
                    false
                }
                Fate::Useless => false,
            }
        });
        for (rank, from, datagram) in firsts {
            let Some(header) = Header::parse(&datagram) else { continue };
            if self.peers[rank as usize].link.is_none() {
                self.make_link(header.from, from, now_ns);
            }
            let peer = &mut self.peers[rank as usize];
            take(peer, header, now_ns, from, &datagram, &mut self.whole, sink);
            self.heard.push(rank);
        }
        if !self.hellos.is_empty() {
            self.handle_hellos(now_ns);
        }
        while let Some(rank) = self.heard.pop() {
            self.look_at_heard(rank, now_ns);
        }
        came
    }

    /// What datagrams have made of the link that they were for. Often it need say nothing at once: then what it has to
    /// say goes with the next that is posted.
    #[inline]
    fn look_at_heard(&mut self, rank: u32, now_ns: u64) {
        self.look_at_phase(rank, now_ns);
        let Some(link) = &mut self.peers[rank as usize].link else { return };
        if link.may_transmit(now_ns) {
            self.note_dirty(rank);
        } else {
            self.note_due(rank);
        }
    }

    #[inline]
    fn look_at_phase(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        let Some(link) = &mut peer.link else { return };
        let broken = match link.phase() {
            Phase::Gone(Gone::Nonsense { what }) => Some(what),
            _ => None,
        };
        if let Some(what) = peer.nonsense.take().or(broken) {
            self.lose(rank, &format!("it has sent nonsense: {what}"));
        } else if link.peer_has_closed() && peer.standing == Standing::Open {
            // It wants nothing more; what was kept for it has no use.
            (peer.standing, peer.left_ns) = (Standing::Left, now_ns);
            link.close();
            self.due_ns = 0;
        }
    }
}

/// Whom a datagram is of, as far as can be said without changing anything.
#[inline]
fn look_at(peers: &[LinkPeer], own: &Credentials, datagram: &[u8]) -> Fate {
    let me = &own.me;
    let Some(header) = Header::parse(datagram) else {
        return match Hello::is_one(datagram).then(|| Hello::parse(datagram, &own.hello_key)).flatten() {
            Some(hello) if is_for(&hello, me) && is_known(peers, me, hello.from) => look_at_hello(peers, hello),
            _ => Fate::Stranger,
        };
    };
    if header.to != *me || !is_known(peers, me, header.from) {
        return Fate::Stranger;
    }
    let rank = header.from.rank;
    let peer = &peers[rank as usize];
    if peer.standing == Standing::Lost {
        return Fate::Useless;
    }
    if peer.link.is_some() {
        return Fate::Linked(header);
    }
    let seal = own.seal(header.from);
    let number = 1 << 32 | u64::from(header.number);
    let sealed = seal.open(number, datagram, header.payload_at(), &mut Vec::new()).is_some();
    match peer.standing {
        _ if !sealed => Fate::Stranger,
        // Repeated after our part of the farewell; the link is gone.
        Standing::Left => Fate::Useless,
        _ => Fate::First(rank),
    }
}

/// An answer is to this start of our rank, a call perhaps to whichever there is.
fn is_for(hello: &Hello, me: &Process) -> bool {
    let Process { rank, incarnation } = hello.to;
    rank == me.rank && (incarnation == me.incarnation || !hello.is_answer && incarnation == UNKNOWN)
}

/// A hello that somebody of the job has made, perhaps long ago. What is not new is of no use.
fn look_at_hello(peers: &[LinkPeer], hello: Hello) -> Fate {
    let peer = &peers[hello.from.rank as usize];
    let is_new = match (&peer.way, hello.is_answer) {
        (DatagramWay::Calling(calls) | DatagramWay::Other(calls), true) => calls.is_answered_by(&hello),
        (_, true) => false,
        (_, false) => peer.answered.0 != hello.from.incarnation || hello.count > peer.answered.1,
    };
    if is_new { Fate::Hello(hello) } else { Fate::Useless }
}

fn is_known(peers: &[LinkPeer], me: &Process, from: Process) -> bool {
    from.rank != me.rank && peers.get(from.rank as usize).is_some_and(|peer| peer.may_be(from))
}

/// Gives a datagram to the link of its sender; true if that believes it. What it completes goes to `sink`.
#[inline]
fn take<S: Sink>(
    peer: &mut LinkPeer,
    header: Header,
    now_ns: u64,
    from: SocketAddr,
    datagram: &[u8],
    whole: &mut Vec<u8>,
    sink: &mut S,
) -> bool {
    let Some(link) = &mut peer.link else { return false };
    let nonsense = &mut peer.nonsense;
    let taken = link.handle_parsed(now_ns, header, datagram, |packet| {
        if nonsense.is_none()
            && let Err(what) = deliver(header.from.rank, &packet, whole, sink)
        {
            *nonsense = Some(what);
        }
        true
    });
    match taken {
        Ok(()) => {
            // Who hears a datagram can send it on from elsewhere, and be faster than its sender.
            if peer.route != Some(from) && peer.is_at(&from) {
                peer.route = Some(from);
            }
            peer.trouble = None;
            true
        }
        Err(Dropped::Malformed | Dropped::Stranger | Dropped::Stale | Dropped::Replayed) => false,
        Err(Dropped::Forged | Dropped::BeyondCredit | Dropped::NotAlive) => false,
    }
}

#[inline]
fn deliver<S: Sink>(rank: u32, packet: &LinkPacket<'_>, whole: &mut Vec<u8>, sink: &mut S) -> Result<(), &'static str> {
    let bulk = match packet.bulk {
        [[], []] => None,
        [bulk, []] => Some(bulk),
        [first, second] => {
            whole.clear();
            whole.extend_from_slice(first);
            whole.extend_from_slice(second);
            Some(&whole[..])
        }
    };
    hand_on(sink, rank, packet.head, packet.inline, bulk)
}
