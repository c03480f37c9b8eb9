//! Reaching ranks: whether a rank is reached by datagrams, and at which of its addresses.
//!
//! All addresses are called, again and again ([`Calls`]), and whose answer comes first is used. Nothing is posted
//! before, so nothing has to be taken back where no answer comes. A rank that another device reaches and datagrams do
//! not ([`super::fallback`]) is called on, ever more rarely: a way that was closed for a while is used once it is open.

use super::calls::{Calls, NOTICE_NS};
use super::peer::{DatagramWay, Standing};
use super::{Credentials, Links};
use std::net::SocketAddr;
use weft_device::{PeerFault, udp};
use weft_wire::link::hello::Hello;

impl Links {
    /// Reaches a rank, though nothing is posted.
    pub fn reach(&mut self, rank: u32) {
        let peer = &self.peers[rank as usize];
        if let (Standing::Open, DatagramWay::Unknown) = (peer.standing, &peer.way) {
            self.call(rank);
        }
    }

    /// Begins to call a rank.
    pub(super) fn call(&mut self, rank: u32) {
        let now_ns = self.clock.now_ns();
        let calls = Calls::new(&self.peers[rank as usize].place, now_ns);
        self.peers[rank as usize].way = DatagramWay::Calling(Box::new(calls));
        self.note_live(rank);
        self.move_calls(rank, now_ns);
        self.port.flush();
    }

    /// Does for a rank that is being called what is to be done now.
    pub(super) fn move_calls(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        let (DatagramWay::Calling(calls) | DatagramWay::Other(calls)) = &peer.way else { return };
        let (due, deaf) = (calls.next_ns() <= now_ns, calls.is_deaf(now_ns));
        let is_other = matches!(peer.way, DatagramWay::Other(_));
        if peer.standing != Standing::Open || self.leaving && is_other {
            peer.way = DatagramWay::Unknown;
            return;
        }
        if due && deaf && !is_other {
            self.turn_to_other(rank, now_ns);
        } else if due {
            self.repeat_calls(rank, now_ns);
        }
        match &self.peers[rank as usize].way {
            DatagramWay::Calling(calls) => {
                self.due_ns = self.due_ns.min(calls.next_ns());
                self.doubt(rank, now_ns);
            }
            DatagramWay::Other(calls) => self.due_ns = self.due_ns.min(calls.next_ns()),
            DatagramWay::Unknown | DatagramWay::Open => {}
        }
    }

    /// The rank is deaf. From now on it is called rarely.
    fn turn_to_other(&mut self, rank: u32, now_ns: u64) {
        let way = &mut self.peers[rank as usize].way;
        if let DatagramWay::Calling(mut calls) = std::mem::replace(way, DatagramWay::Unknown) {
            calls.make_rare(now_ns);
            *way = DatagramWay::Other(calls);
            self.fallback.iter_mut().for_each(|fallback| fallback.others.push(rank));
        }
    }

    /// Calls all addresses of a rank.
    fn repeat_calls(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        let (DatagramWay::Calling(calls) | DatagramWay::Other(calls)) = &mut peer.way else { return };
        calls.note_called(now_ns);
        let Credentials { me, encrypts, .. } = self.own;
        for address in calls.addresses() {
            peer.calls += 1;
            let (nonce, count) = (calls.nonce(), peer.calls);
            let hello = Hello { is_answer: false, to: peer.process, from: me, nonce, count, encrypts };
            send(&mut self.port, address, now_ns, &hello.pack(&self.own.hello_key));
        }
    }

    /// What is to be done about a rank that has not answered for long.
    fn doubt(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        let DatagramWay::Calling(calls) = &mut peer.way else { return };
        if let Some(fallback) = &mut self.fallback {
            fallback.doubts.extend(calls.has_doubt(now_ns).then_some(rank));
            return;
        }
        let is_refused = calls.is_refused(now_ns);
        if !is_refused && !calls.has_notice(now_ns) {
            return;
        }
        let (story, host) = (calls.story(), &peer.place.host);
        if is_refused || calls.is_hopeless() {
            let story = format!("rank {rank} on host {host} cannot be reached by udp: {story}");
            peer.standing = Standing::Lost;
            self.faults.push(PeerFault::Lost { peer: rank, story });
            self.live.retain(|other| *other != rank);
        } else {
            self.notices.push(format!(
                "rank {rank} on host {host} has not answered by udp for {} s: it computes, or datagrams to it are dropped on \
                 the way ({story})",
                NOTICE_NS / 1_000_000_000
            ));
        }
    }

    /// Answers calls, and takes answers.
    pub(super) fn handle_hellos(&mut self, now_ns: u64) {
        let hellos = std::mem::take(&mut self.hellos);
        for (from, hello) in &hellos {
            if hello.is_answer {
                self.handle_answer(*from, hello, now_ns);
            } else {
                self.handle_call(*from, hello, now_ns);
            }
        }
        self.hellos = hellos;
        self.hellos.clear();
    }

    /// A call makes nobody known: it may be one of long ago. Each is answered once.
    fn handle_call(&mut self, from: SocketAddr, hello: &Hello, now_ns: u64) {
        let peer = &mut self.peers[hello.from.rank as usize];
        let (whose, last) = peer.answered;
        if whose == hello.from.incarnation && hello.count <= last {
            return;
        }
        // Whoever has not talked to us before will talk to who is started here next.
        if self.leaving && peer.link.is_none() {
            return;
        }
        peer.answered = (hello.from.incarnation, hello.count);
        let packed = hello.answer(self.own.me, self.own.encrypts).pack(&self.own.hello_key);
        send(&mut self.port, &from, now_ns, &packed);
    }

    fn handle_answer(&mut self, from: SocketAddr, hello: &Hello, now_ns: u64) {
        let peer = &mut self.peers[hello.from.rank as usize];
        match &peer.way {
            // An answer that another passes on leads to him.
            DatagramWay::Calling(calls) | DatagramWay::Other(calls)
                if calls.is_answered_by(hello) && peer.may_be(hello.from) && peer.is_at(&from) =>
            {
                if hello.encrypts != self.own.encrypts {
                    let rank = hello.from.rank;
                    return self.lose(rank, weft_wire::tcp::differs(self.own.encrypts));
                }
                if let DatagramWay::Other(_) = std::mem::replace(&mut peer.way, DatagramWay::Open) {
                    self.fallback.iter_mut().for_each(|fallback| fallback.returns.push(hello.from.rank));
                }
                self.make_link(hello.from, from, now_ns);
            }
            // Late, or of another address.
            _ => {}
        }
    }
}

/// Sends what is no part of a link. What there is no room for is lost, as it may be on the way.
fn send(port: &mut udp::UdpPort, to: &SocketAddr, now_ns: u64, bytes: &[u8]) {
    port.send(to, now_ns, |place| {
        place[..bytes.len()].copy_from_slice(bytes);
        Some(bytes.len())
    });
}
