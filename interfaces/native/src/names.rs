//! Ports with names, which any process of the user on this host finds.
//!
//! Who opens one has an *office*: a door of the fabric, where processes of other jobs introduce themselves, and for each
//! name a listening Unix socket of that name, in no file system. It tells who comes where the door is, if it is the same
//! user's. A name ends with its owner, however that ends. On other hosts the port is found by its *address*: what the
//! socket would tell.
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
use crate::join::Weft;
use crate::port::{self, PortNumber};
use crate::state::{self, FABRIC};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};
use weft_fabric::door::{Door, DoorError, Talk};
use weft_fabric::foreign::{CARD_WORDS, Card};
use weft_kernel::Set;
use weft_ports::{Endpoint, Peer, Waiting};

/// Longest name, so that it fits into that of a socket with the user's number.
pub const NAME_BYTES: usize = 80;
/// Longest address.
const ADDRESS_BYTES: usize = 512;
/// What separates the door and the name in an address.
const SEPARATOR: char = '#';

/// What the first byte of a piece says: somebody asks for a name, with a card; is answered, with a card and a port; or is
/// told that there is no such name.
const ASK: u8 = b'n';
const ANSWER: u8 = b'y';
const NO: u8 = b'-';

const CARD_BYTES: usize = 8 * CARD_WORDS;

/// How often who looks for a name looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Where this process is found by the names of its ports.
pub struct Office {
    door: Door,
    names: Vec<NamedPort>,
    /// The door, and the sockets of all names.
    set: Set,
}

struct NamedPort {
    listener: UnixListener,
    name: String,
    port: PortNumber,
}

fn checked(name: &str) -> Result<&str> {
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

fn socket_of(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("weft-port/{}/{name}", weft_kernel::user()))
}

/// Whether the process at the other end is of our user.
fn is_ours(stream: &impl AsRawFd) -> bool {
    weft_kernel::peer(stream.as_raw_fd()).is_ok_and(|peer| peer.uid == weft_kernel::user())
}

fn with_card(kind: u8, endpoint: &mut Endpoint, more: &[u8]) -> io::Result<Vec<u8>> {
    let card = endpoint.card()?.encode();
    let mut piece = vec![kind];
    piece.extend(card.into_iter().flat_map(u64::to_le_bytes));
    piece.extend_from_slice(more);
    Ok(piece)
}

/// The card in a piece of this kind, and what stands behind it.
fn card_in(kind: u8, piece: &[u8]) -> Option<(Card, &[u8])> {
    let (card, more) = piece.strip_prefix(&[kind])?.split_at_checked(CARD_BYTES)?;
    let mut words = [0; CARD_WORDS];
    for (word, bytes) in words.iter_mut().zip(card.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some((Card::decode(&words)?, more))
}

fn adopt(endpoint: &mut Endpoint, card: &Card) -> io::Result<Peer> {
    let peer = endpoint.adopt(card)?;
    state::add_known(peer);
    Ok(peer)
}

impl Office {
    fn open(endpoint: &mut Endpoint) -> io::Result<Self> {
        let (door, set) = (endpoint.open_door()?, Set::new()?);
        set.watch(door.descriptor(), libc::POLLIN, 0)?;
        Ok(Self { door, names: Vec::new(), set })
    }

    fn add(&mut self, name: &str, port: PortNumber) -> io::Result<()> {
        let listener = UnixListener::bind_addr(&socket_of(name)?)?;
        listener.set_nonblocking(true)?;
        self.set.add(&listener, 0)?;
        self.names.push(NamedPort { listener, name: name.to_owned(), port });
        Ok(())
    }

    fn address(&self, port: PortNumber) -> Option<String> {
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

    /// Looks after all who have come.
    pub fn serve(&mut self, endpoint: &mut Endpoint) {
        for named in &self.names {
            while let Ok((mut stream, _)) = named.listener.accept() {
                if is_ours(&stream) {
                    // What does not fit into an empty socket does not exist.
                    let _ = write!(stream, "{}{SEPARATOR}{}", self.door.name(), named.name);
                }
            }
        }
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

pub(crate) fn open_named(name: &str) -> Result<PortNumber> {
    state::allowed()?;
    checked(name)?;
    let port = port::open_numbered(None)?;
    let opened = FABRIC.with_both(|endpoint, desk| {
        if desk.office.is_none() {
            let office = Office::open(endpoint)?;
            desk.attend_office(office.set.as_raw_fd())?;
            desk.office = Some(office);
        }
        desk.office.as_mut().map_or(Ok(()), |office| office.add(name, port))
    });
    opened.map_err(|error| {
        // It was opened above.
        let _ = port::close(port);
        match error.kind() {
            io::ErrorKind::AddrInUse => NativeError::new(ErrorKind::Name, format!("the name '{name}' is taken")),
            _ => NativeError::system("a port cannot have a name", &error),
        }
    })?;
    Ok(port)
}

/// By what a named port is found on other hosts.
pub(crate) fn address_of(port: PortNumber) -> Result<String> {
    state::allowed()?;
    let address = FABRIC.with_both(|_, desk| desk.office.as_ref()?.address(port));
    let missing = || NativeError::new(ErrorKind::Port, format!("port {} has no name", port.0 as i32));
    address.ok_or_else(missing)
}

/// How far the search for a name is.
enum Search {
    /// Nobody has the name so far.
    Nobody,
    /// Its owner is to say where its door is.
    Asked(UnixStream, String),
    AtDoor(Talk),
}

impl Search {
    /// Goes to the door of an address.
    fn call(address: &str, mine: &[u8]) -> Result<Self> {
        let nonsense = || NativeError::new(ErrorKind::Name, "this is no name of a port, and no address of one");
        let (door, name) = address.split_once(SEPARATOR).ok_or_else(nonsense)?;
        let mut talk = Talk::call(door).map_err(|error| refused(&error))?;
        talk.say(&[mine, name.as_bytes()].concat());
        Ok(Self::AtDoor(talk))
    }

    /// One step; the port, once it is found.
    fn advance(&mut self, endpoint: &mut Endpoint, name: &str, mine: &[u8]) -> Result<Option<(Peer, PortNumber)>> {
        match self {
            Self::Nobody => *self = ask_owner(name)?,
            Self::Asked(stream, said) => match listen(stream, said) {
                Ok(false) => {}
                Ok(true) => *self = Self::call(said, mine)?,
                // It has ended just now.
                Err(_) => *self = Self::Nobody,
            },
            Self::AtDoor(talk) => match talk.poll() {
                Ok(None) => {}
                Ok(Some(piece)) => return found(endpoint, &piece).map(Some),
                Err(error) => return Err(refused(&error)),
            },
        }
        Ok(None)
    }
}

fn refused(error: &DoorError) -> NativeError {
    NativeError::new(ErrorKind::Name, format!("the owner of the port cannot be talked to: {error}"))
}

/// Asks the owner of a name on this host for its address, if there is one.
fn ask_owner(name: &str) -> Result<Search> {
    let stream = socket_of(name).and_then(|address| UnixStream::connect_addr(&address));
    let Ok(stream) = stream else { return Ok(Search::Nobody) };
    if !is_ours(&stream) {
        let text = format!("the name '{name}' is held by a process of another user");
        return Err(NativeError::new(ErrorKind::Name, text));
    }
    let ready = stream.set_nonblocking(true);
    ready.map_err(|error| NativeError::system("a name cannot be looked for", &error))?;
    Ok(Search::Asked(stream, String::new()))
}

/// Hears what the owner says; true at its end.
fn listen(stream: &mut UnixStream, said: &mut String) -> io::Result<bool> {
    let mut bytes = [0; ADDRESS_BYTES];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) if said.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => return Ok(true),
            Ok(count) if said.len() + count <= ADDRESS_BYTES => {
                said.push_str(std::str::from_utf8(&bytes[..count]).map_err(io::Error::other)?);
            }
            Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn found(endpoint: &mut Endpoint, piece: &[u8]) -> Result<(Peer, PortNumber)> {
    let missing = || NativeError::new(ErrorKind::Name, "its owner has no port of this name any more");
    let (card, port) = card_in(ANSWER, piece).ok_or_else(missing)?;
    let port = port.try_into().map(u32::from_le_bytes).map_err(|_| missing())?;
    let peer = adopt(endpoint, &card).map_err(|error| NativeError::system("its owner cannot be reached", &error))?;
    Ok((peer, PortNumber(port)))
}

/// Finds a port by its name or address, and waits for it to be there, at most for `patience`.
pub(crate) fn find(name: &str, patience: Option<Duration>) -> Result<(Peer, PortNumber)> {
    state::allowed()?;
    let mine = FABRIC.with(|endpoint| with_card(ASK, endpoint, &[]));
    let mine = mine.map_err(|error| NativeError::system("other jobs cannot be reached", &error))?;
    let mut search = match name.contains(SEPARATOR) {
        true => Search::call(name, &mine)?,
        false => checked(name).map(|_| Search::Nobody)?,
    };
    let begun = Instant::now();
    let mut next: Option<(u64, Instant)> = None;
    let what = Waiting { call: "weft_port_find", peer: None, tag: None, context: 0 };
    FABRIC.wait_both(what, |endpoint, desk| {
        let now = Instant::now();
        if next.is_some_and(|(_, time)| now < time) {
            return None;
        }
        next.take().into_iter().for_each(|(number, _)| desk.forget_time(number));
        match search.advance(endpoint, name, &mine) {
            Ok(Some(found)) => return Some(Ok(found)),
            Err(error) => return Some(Err(error)),
            Ok(None) => {}
        }
        if patience.is_some_and(|patience| begun.elapsed() >= patience) {
            let text = format!("nobody has opened a port named '{name}'");
            return Some(Err(NativeError::new(ErrorKind::Timeout, text)));
        }
        next = Some((desk.look_at(now + LOOK_AGAIN), now + LOOK_AGAIN));
        None
    })
}

impl<K> Weft<K> {
    /// Opens a port with a name, by which any process of this user on this host finds it ([`Self::find_port`]).
    ///
    /// # Errors
    /// The name is taken, or none.
    pub fn open_named_port(&self, name: &str) -> Result<PortNumber> {
        open_named(name)
    }

    /// By what a named port is found on other hosts, too. It is a secret as far as who knows it may send messages here.
    ///
    /// # Errors
    /// The port has no name.
    pub fn address_of(&self, port: PortNumber) -> Result<String> {
        address_of(port)
    }

    /// Finds a port by its name or address, and waits for it to be opened, at most for `patience`. Its owner must take part
    /// meanwhile: it answers where it waits or polls.
    ///
    /// # Errors
    /// Nobody has opened it in time, or its owner cannot be reached.
    pub fn find_port(&self, name: &str, patience: Option<Duration>) -> Result<(Peer, PortNumber)> {
        find(name, patience)
    }
}
