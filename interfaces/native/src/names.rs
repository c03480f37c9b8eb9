//! Opening ports with names, and finding them. What is said meanwhile stands in [`crate::office`].

use crate::desk::{self, FABRIC};
use crate::elsewhere::{self, SearchElsewhere};
use crate::error::{ErrorKind, NativeError, Result};
use crate::known::{self, PortNumber};
use crate::office::{
    ADDRESS_BYTES, ANSWER, ASK, Office, SEPARATOR, adopt, card_in, checked, is_ours, socket_name, with_card,
};
use crate::port;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use weft_fabric::door::{DoorError, Talk};
use weft_kernel::Abstract;
use weft_ports::{Endpoint, Peer, Waiting};

pub(crate) fn open_named(name: &str) -> Result<PortNumber> {
    known::allowed()?;
    checked(name)?;
    let port = port::open_numbered(None)?;
    let opened = FABRIC.with_both(|endpoint, desk| {
        if desk.office.is_none() {
            let office = Office::open(endpoint)?;
            desk.attend_office(&office)?;
            desk.office = Some(office);
        }
        desk.office.as_mut().map_or(Ok(()), |office| office.add(name, port))
    });
    opened.map(|()| elsewhere::add(name, port)).map_err(|error| {
        // It was opened above.
        let _ = port::close(port);
        match error.kind() {
            io::ErrorKind::AddrInUse => NativeError::new(ErrorKind::Name, format!("the name '{name}' is taken")),
            _ => NativeError::system("a port cannot have a name", &error),
        }
    })?;
    port::set_name(port, name);
    Ok(port)
}

/// By what a named port is found on other hosts.
pub(crate) fn address_of(port: PortNumber) -> Result<String> {
    known::allowed()?;
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
    // Nobody who holds the name and takes no connections, which may be another user, keeps us here.
    let socket = weft_kernel::socket(libc::AF_UNIX, libc::SOCK_STREAM);
    let socket = socket.map_err(|error| NativeError::system("a name cannot be looked for", &error))?;
    if weft_kernel::connect(socket.as_raw_fd(), &Abstract::new(socket_name(name).as_bytes())).is_err() {
        return Ok(Search::Nobody);
    }
    let stream = UnixStream::from(OwnedFd::from(socket));
    if !is_ours(&stream) {
        let text = format!("the name '{name}' is held by a process of another user");
        return Err(NativeError::new(ErrorKind::Name, text));
    }
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
    known::allowed()?;
    let mine = FABRIC.with(|endpoint| with_card(ASK, endpoint, &[]));
    let mine = mine.map_err(|error| NativeError::system("other jobs cannot be reached", &error))?;
    let mut search = match name.contains(SEPARATOR) {
        true => Search::call(name, &mine)?,
        false => checked(name).map(|_| Search::Nobody)?,
    };
    let mut elsewhere = matches!(search, Search::Nobody).then(SearchElsewhere::new);
    let begun = Instant::now();
    let what = Waiting { call: "weft_port_find", peer: None, tag: None, context: 0 };
    desk::wait_looking(what, |endpoint, _| {
        match search.advance(endpoint, name, &mine) {
            Ok(Some(found)) => return Some(Ok(found)),
            Err(error) => return Some(Err(error)),
            Ok(None) => {}
        }
        if let (Search::Nobody, Some(elsewhere)) = (&search, &mut elsewhere)
            && let Some(found) = elsewhere.advance(endpoint, name, Instant::now())
        {
            return Some(Ok(found));
        }
        if patience.is_some_and(|patience| begun.elapsed() >= patience) {
            let text = match search {
                Search::Nobody => format!("nobody has opened a port named '{name}'"),
                _ => format!("who has the port '{name}' has not answered: it does so where it waits or polls"),
            };
            return Some(Err(NativeError::new(ErrorKind::Timeout, text)));
        }
        None
    })
}
