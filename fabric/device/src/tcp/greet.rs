//! How connections come about: guests at the listener, and peers that we dial.

use super::book::Book;
use super::device::{TcpDevice, token};
use super::dial::{Due, send};
use super::epoll::SocketWatch;
use super::everywhere;
use super::guest::{Guest, GuestStep};
use super::link::TcpLink;
use super::peer::TcpStanding;
use super::reception::SILENT_GUESTS;
use super::socket::TcpSocket;
use crate::sys;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use weft_wire::tcp::record::RecordKeys;
use weft_wire::tcp::{Dialling, FAREWELL_BYTES, USE};

/// Connections that are taken in one look.
const ACCEPTS: usize = 16;
/// Where connections cannot be taken, as without a free descriptor, it is tried again after so long.
const DEAF_NS: u64 = 100_000_000;
/// Between two looks at whether peers' hosts still answer.
pub(super) const CHECK_NS: u64 = 2_000_000_000;

impl TcpDevice {
    /// Begins to reach a peer.
    #[cold]
    pub(super) fn dial(&mut self, to: u32) {
        let now_ns = sys::now_ns();
        self.peers[to as usize].dial = Some(Box::new(self.new_dial(to, now_ns)));
        self.dialing.push(to);
        self.move_dial(to, now_ns);
    }

    /// What is to be done without anything having come.
    pub(super) fn on_time(&mut self) {
        let now_ns = sys::now_ns();
        for rank in self.dialing.clone() {
            self.move_dial(rank, now_ns);
        }
        if self.reception.deaf_until_ns.is_some_and(|until| until <= now_ns) {
            self.reception.deaf_until_ns = None;
            self.listen();
        }
        if self.next_check_ns <= now_ns {
            self.next_check_ns = now_ns + CHECK_NS;
            self.check_links();
        }
        self.reception.close_up();
    }

    fn move_dial(&mut self, rank: u32, now_ns: u64) {
        let Some(dial) = &mut self.peers[rank as usize].dial else { return };
        let due = match dial.next_ns() <= now_ns {
            true => dial.handle_time(now_ns, &self.epoll, |attempt| token::new(token::DIAL, attempt, rank)),
            false => Due::Nothing,
        };
        let peer = &mut self.peers[rank as usize];
        match due {
            Due::Nothing => {}
            // Nobody waits for it.
            Due::Notice(_) if peer.output.is_empty() => {}
            Due::Unreachable(story) if peer.output.is_empty() => {
                (peer.dial, peer.unreached) = (None, true);
                self.dialing.retain(|other| *other != rank);
                self.told.unreached.push((rank, story));
            }
            Due::Notice(story) => {
                self.told
                    .notices
                    .push(format!("no connection to {} yet: {story}; it is tried again", peer.title(rank)));
            }
            Due::Quiet(story) => {
                self.told.notices.push(format!(
                    "{} has not answered yet, which is no error while it computes: {story}",
                    peer.title(rank)
                ));
            }
            Due::Unreachable(story) => self.lose(rank, &format!("no address of its host leads to it: {story}")),
        }
    }

    pub(super) fn on_attempt(&mut self, rank: u32, attempt: usize) -> bool {
        let key = self.calling_key(rank);
        let Some(dial) = self.peers.get_mut(rank as usize).and_then(|peer| peer.dial.as_mut()) else { return false };
        let token = token::new(token::DIAL, attempt, rank);
        if let Some((socket, address, session)) = dial.handle_ready(attempt, &key, sys::now_ns(), &self.epoll, token) {
            self.establish(rank, socket, Some(address), session);
        }
        self.stop_idle_dial(rank);
        true
    }

    pub(super) fn on_listener(&mut self) -> bool {
        let mut at = 0;
        for _ in 0..ACCEPTS {
            let Some(listener) = self.reception.listeners.get(at) else { break };
            match TcpSocket::accept(listener) {
                Ok(Some(socket)) => self.admit(socket),
                Ok(None) => at += 1,
                Err(error) => {
                    // Such as too few descriptors, which lasts. The listener stays ready meanwhile, and would let
                    // nobody sleep.
                    self.reception.listeners.iter().for_each(|listener| self.epoll.forget(listener.as_raw_fd()));
                    self.reception.deaf_until_ns = Some(sys::now_ns() + DEAF_NS);
                    if !std::mem::replace(&mut self.reception.said_deaf, true) {
                        self.told.notices.push(format!("a connection of another rank cannot be taken: {error}"));
                    }
                    return false;
                }
            }
        }
        true
    }

    /// Watches the listeners again.
    fn listen(&mut self) {
        let token = token::new(token::LISTENER, 0, 0);
        for listener in &self.reception.listeners {
            if self.epoll.add(listener.as_raw_fd(), SocketWatch::Input, token).is_err() {
                self.reception.deaf_until_ns = Some(sys::now_ns() + DEAF_NS);
            }
        }
    }

    /// Listens on all addresses of this host, too; the port there.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn open_widely(&mut self) -> io::Result<u16> {
        let (listener, port) = everywhere::listener()?;
        sys::set_nonblocking(&listener)?;
        self.epoll.add(listener.as_raw_fd(), SocketWatch::Input, token::new(token::LISTENER, 0, 0))?;
        self.reception.listeners.push(listener);
        Ok(port)
    }

    /// Looks for peers whose host is gone without a word, and at paths that have shown themselves shorter than they
    /// seemed.
    fn check_links(&mut self) {
        for rank in 0..self.peers.len() as u32 {
            let Some(link) = &self.peers[rank as usize].link else { continue };
            let silence = link.socket.check_path();
            if silence.is_final() {
                let seconds = silence.since_ms / 1000;
                self.lose(rank, &format!("nothing has been heard of its host for {seconds} s"));
            }
        }
    }

    fn admit(&mut self, mut socket: TcpSocket) {
        if let Some(oldest) = self.reception.oldest_of_many() {
            self.turn_away(oldest);
            if !std::mem::replace(&mut self.reception.said_crowded, true) {
                self.told.notices.push(format!(
                    "{SILENT_GUESTS} connections that say nothing wait here, and the oldest ones are closed; a rank among \
                     them tries again"
                ));
            }
        }
        let index = self.reception.free_place();
        if socket.watch(&self.epoll, SocketWatch::Input, token::new(token::GUEST, 0, index as u32)).is_ok() {
            self.reception.guests[index] = Some(Guest::new(socket, sys::now_ns()));
        }
    }

    fn turn_away(&mut self, index: usize) {
        self.reception.guests[index] = None;
        self.counters.strangers += 1;
    }

    pub(super) fn on_guest(&mut self, index: usize) -> bool {
        self.hear(index, |guest, book, is_new| guest.handle_ready(book, is_new))
    }

    /// Looks at a guest again, of whom we may have heard meanwhile.
    pub(super) fn reconsider(&mut self, index: usize) {
        self.hear(index, |guest, book, is_new| guest.reconsider(book, is_new));
    }

    fn hear(
        &mut self,
        index: usize,
        hear: impl FnOnce(&mut Guest, &Book, &mut dyn FnMut(&Dialling) -> bool) -> GuestStep,
    ) -> bool {
        let Some(guest) = self.reception.guests.get_mut(index).and_then(Option::as_mut) else { return false };
        let heard = &mut self.reception.heard_calls;
        let book = Book { badge: &self.badge, peers: &self.peers };
        match hear(guest, &book, &mut |call| heard.insert((call.from, call.nonce))) {
            GuestStep::Waiting => {}
            GuestStep::Gone => self.reception.guests[index] = None,
            GuestStep::Stranger => self.turn_away(index),
            GuestStep::Rank(rank, session) => {
                let socket = self.reception.guests[index].take().map(Guest::into_socket);
                if let Some(socket) = socket.filter(|socket| !self.leads(rank) || self.choose(rank, socket)) {
                    self.establish(rank, socket, None, session);
                }
            }
        }
        true
    }

    /// As the lower rank of a pair: whether this connection is to be the pair's, which the other side is then told.
    fn choose(&mut self, rank: u32, socket: &TcpSocket) -> bool {
        let peer = &self.peers[rank as usize];
        peer.link.is_none() && peer.standing == TcpStanding::Open && send(socket, &USE).is_ok()
    }

    /// Both sides know that this is the connection of the pair.
    fn establish(&mut self, rank: u32, socket: TcpSocket, address: Option<SocketAddr>, session: Option<RecordKeys>) {
        let peer = &mut self.peers[rank as usize];
        let watched = self.epoll.change(socket.raw(), SocketWatch::Input, token::new(token::LINK, 0, rank));
        if peer.link.is_some() || peer.standing != TcpStanding::Open || watched.is_err() {
            return;
        }
        peer.address = address.or_else(|| socket.peer());
        #[cfg(test)]
        self.kernel_bytes.iter().for_each(|bytes| socket.keep_little(*bytes));
        socket.check_path();
        let mut link = Box::new(TcpLink::new(socket, session));
        if let Some(sealed) = &mut link.sealed {
            // What waits was posted before there was a key.
            peer.output = sealed.records_of(&peer.output);
        }
        peer.link = Some(link);
        self.linked.push(rank);
        peer.dial = None;
        self.dialing.retain(|other| *other != rank);
        if self.leaving && peer.output.is_empty() {
            // It is no sign of life: we have taken leave, and the other side has not heard it.
            peer.add(&FAREWELL_BYTES, &[]);
        }
        if !peer.output.is_empty() {
            self.waiting.push(rank);
            self.flush();
        }
        self.reception.forget(rank);
    }
}
