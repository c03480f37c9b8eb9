//! Ports with names, which any process of the user on this host finds. (How one of our job on another host finds them:
//! [`crate::elsewhere`].)
//!
//! Who opens one has an *office*: a door of the fabric, where processes of other jobs introduce themselves, and for
//! each name a listening Unix socket of that name, in no file system. It tells who comes where the door is, if it is
//! the same user's. A name ends with its owner, however that ends. On other hosts the port is found by its *address*:
//! what the socket would tell.
//!
//! ```text
//! who looks for "lab"                     the owner of "lab"
//! connects to @weft-port/UID/lab     ->
//!                                    <-   weft/ADDRESSES/PORT/KEY#lab
//! at the door: n, card, "lab"        ->
//!                                    <-   y, card, port
//! ```
//!
//! Both have adopted each other's card by then, and are peers. Either checks that the other one is of the same user.

use crate::error::{ErrorKind, NativeError, Result};
use crate::known::{self, PortNumber};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};
use weft_fabric::door::Door;
use weft_fabric::foreign::{CARD_WORDS, Card};
use weft_kernel::DescriptorSet;
use weft_ports::{Endpoint, Peer};

/// Longest name, so that it fits into that of a socket with the user's number.
pub const NAME_BYTES: usize = 80;
/// Longest address.
pub const ADDRESS_BYTES: usize = 512;
/// What separates the door and the name in an address.
pub const SEPARATOR: char = '#';

/// What the first byte of a piece says: somebody asks for a name, with a card; is answered, with a card and a port; or
/// is told that there is no such name.
pub const ASK: u8 = b'n';
pub const ANSWER: u8 = b'y';
const NO: u8 = b'-';

/// How long nobody is let in after that has failed.
const REST: Duration = Duration::from_millis(100);

const CARD_BYTES: usize = 8 * CARD_WORDS;

/// Where this process is found by the names of its ports.
pub struct Office {
    door: Door,
    names: Vec<NamedPort>,
    /// The door, and the sockets of all names.
    set: DescriptorSet,
    /// Until then nobody is let in, because that has failed: the set stays readable meanwhile.
    rests_until: Option<Instant>,
}

struct NamedPort {
    listener: UnixListener,
    name: String,
    port: PortNumber,
}

impl NamedPort {
    /// Tells all who have come where the door is.
    fn tell_all(&self, door: &Door) -> io::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            if is_ours(&stream) {
                // What does not fit into an empty socket does not exist.
                let _ = write!(stream, "{}{SEPARATOR}{}", door.name(), self.name);
            }
        }
    }
}

pub fn checked(name: &str) -> Result<&str> {
    let fits = (1..=NAME_BYTES).contains(&name.len());
    if fits && !name.contains(SEPARATOR) && !name.contains(char::is_control) && !name.starts_with("weft/") {
        return Ok(name);
    }
    let text = format!(
        "the name '{}': a name has 1 to {NAME_BYTES} bytes, no '#', and does not begin with 'weft/'",
        name.escape_debug()
    );
    Err(NativeError::new(ErrorKind::Name, text))
}

/// The abstract name of the socket of a port's name.
pub fn socket_name(name: &str) -> String {
    format!("weft-port/{}/{name}", weft_kernel::user())
}

/// Whether the process at the other end is of our user.
pub fn is_ours(stream: &impl AsRawFd) -> bool {
    weft_kernel::peer(stream.as_raw_fd()).is_ok_and(|peer| peer.uid == weft_kernel::user())
}

pub fn with_card(kind: u8, endpoint: &mut Endpoint, more: &[u8]) -> io::Result<Vec<u8>> {
    let card = endpoint.card()?.encode();
    let mut piece = vec![kind];
    piece.extend(card.into_iter().flat_map(u64::to_le_bytes));
    piece.extend_from_slice(more);
    Ok(piece)
}

/// The card in a piece of this kind, and what stands behind it.
pub fn card_in(kind: u8, piece: &[u8]) -> Option<(Card, &[u8])> {
    let (card, more) = piece.strip_prefix(&[kind])?.split_at_checked(CARD_BYTES)?;
    let mut words = [0; CARD_WORDS];
    for (word, bytes) in words.iter_mut().zip(card.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some((Card::decode(&words)?, more))
}

pub fn adopt(endpoint: &mut Endpoint, card: &Card) -> io::Result<Peer> {
    let peer = endpoint.adopt(card)?;
    known::add_known(peer);
    Ok(peer)
}

/// What is readable when somebody comes.
impl AsRawFd for Office {
    fn as_raw_fd(&self) -> RawFd {
        self.set.as_raw_fd()
    }
}

impl Office {
    pub fn open(endpoint: &mut Endpoint) -> io::Result<Self> {
        let (door, set) = (endpoint.open_door()?, DescriptorSet::new()?);
        set.watch(door.descriptor(), libc::POLLIN, 0)?;
        Ok(Self { door, names: Vec::new(), set, rests_until: None })
    }

    pub fn add(&mut self, name: &str, port: PortNumber) -> io::Result<()> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(socket_name(name))?)?;
        listener.set_nonblocking(true)?;
        self.set.add(&listener, 0)?;
        self.names.push(NamedPort { listener, name: name.to_owned(), port });
        Ok(())
    }

    pub fn address(&self, port: PortNumber) -> Option<String> {
        let named = self.names.iter().find(|named| named.port == port)?;
        Some(format!("{}{SEPARATOR}{}", self.door.name(), named.name))
    }

    pub fn forget_port(&mut self, port: PortNumber) {
        let Self { names, set, .. } = self;
        names.retain(|named| {
            let stays = named.port != port;
            if !stays {
                set.remove(&named.listener);
            }
            stays
        });
    }

    /// Until when nobody is let in, if that has failed. What can be read at the descriptor is not to be looked at
    /// meanwhile.
    pub fn rests_until(&self) -> Option<Instant> {
        self.rests_until
    }

    /// Looks after all who have come.
    pub fn serve(&mut self, endpoint: &mut Endpoint) {
        let mut has_refused = false;
        for named in &self.names {
            has_refused |= named.tell_all(&self.door).is_err();
        }
        self.serve_door(endpoint);
        // Such as too few descriptors, which lasts.
        has_refused |= self.door.refuses();
        self.rests_until = has_refused.then(|| Instant::now() + REST);
    }

    fn serve_door(&mut self, endpoint: &mut Endpoint) {
        while let Some((mut talk, piece)) = self.door.poll_visitor() {
            let answer = self.answer(endpoint, &piece);
            talk.say(&answer.unwrap_or_else(|| vec![NO]));
        }
    }

    fn answer(&self, endpoint: &mut Endpoint, piece: &[u8]) -> Option<Vec<u8>> {
        let (card, name) = card_in(ASK, piece)?;
        let named = self.names.iter().find(|named| named.name.as_bytes() == name)?;
        let answer = with_card(ANSWER, endpoint, &named.port.0.to_le_bytes()).ok()?;
        adopt(endpoint, &card).ok()?;
        Some(answer)
    }
}
