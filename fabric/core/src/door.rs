//! Doors: where processes of other jobs introduce themselves.
//!
//! A door is a listener with a name that says where it is and holds its key. Who knows the name may come in: both sides
//! prove that they know the key, and then say pieces of bytes to each other, whatever they mean. Nothing here waits;
//! who holds a [`Talk`] asks it again and again.
//!
//! ```text
//! who comes                 who has the door
//! MAGIC, nonce          ->
//!                       <-  nonce, tag
//! tag                   ->
//!       pieces, each with its length, in both directions
//! ```

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};
use weft_device::kernel::{self, true_random};
use weft_device::sys;
use weft_device::tcp::begin;
use weft_wire::siphash::{same, tag};
use weft_wire::tcp::Key;

const MAGIC: [u8; 8] = *b"weftdor2";
const NONCE: usize = 16;
const TAG: usize = 16;
/// Longest name, with the zero that C wants: the shortest that an ABI has room for.
const NAME_BYTES: usize = 255;
/// Longest piece: beyond it is nothing that was said by one of ours.
const PIECE_BYTES: usize = 64 << 20;
/// Guests that have not proven anything, at most, while none of them has been silent for longer than [`PATIENCE`]. More
/// wait with the kernel.
const GUESTS: usize = 64;
/// How long one of several addresses may take, and a proof; and how long the last address.
const PATIENCE: Duration = Duration::from_secs(3);
const LAST_PATIENCE: Duration = Duration::from_secs(30);

/// Why a conversation at a door has ended.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    #[error("'{0}' is no name of a port that Weft has opened")]
    Name(String),
    #[error("nobody answers at the port any more: {0}")]
    Nobody(String),
    #[error("the other side has closed the connection")]
    Closed,
    #[error("{0}")]
    Failed(#[from] io::Error),
    #[error("what the other side says is not understood")]
    Nonsense,
}

/// Whether calls on a descriptor wait.
///
/// # Errors
/// It is not open.
pub fn is_blocking(descriptor: std::os::fd::BorrowedFd<'_>) -> io::Result<bool> {
    sys::is_nonblocking(&descriptor).map(|nonblocking| !nonblocking)
}

fn random() -> io::Result<[u8; 16]> {
    match (true_random(), true_random()) {
        (Some(low), Some(high)) => Ok((u128::from(low) | u128::from(high) << 64).to_le_bytes()),
        _ => Err(io::Error::other("a port needs a key, and the system gives no random numbers")),
    }
}

/// Where others come in.
pub struct Door {
    listener: TcpListener,
    name: String,
    key: Key,
    /// Who has come in, and when.
    guests: Vec<(Instant, Talk)>,
    /// The listener, while there is room, and all guests.
    set: kernel::DescriptorSet,
    listens: bool,
    /// The last one who came could not be let in, such as for want of descriptors.
    refuses: bool,
}

impl Door {
    /// Opens one at the addresses of this process; on this host alone where those are.
    ///
    /// # Errors
    /// Those of making a socket, and where there are no random numbers.
    pub fn open(addresses: &[IpAddr]) -> io::Result<Self> {
        let near = addresses.iter().all(IpAddr::is_loopback);
        let listener = match near {
            true => TcpListener::bind("127.0.0.1:0")?,
            false => TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"))?,
        };
        listener.set_nonblocking(true)?;
        sys::lengthen_queue(&listener)?;
        let key = random()?;
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let port = listener.local_addr()?.port();
        let mut list = String::new();
        for address in addresses {
            let more = format!("{}{address}", if list.is_empty() { "" } else { "," });
            if list.len() + more.len() + digits.len() + 16 < NAME_BYTES {
                list.push_str(&more);
            }
        }
        let name = format!("weft/{list}/{port}/{digits}");
        let set = kernel::DescriptorSet::new()?;
        set.add(&listener, 0)?;
        Ok(Self { listener, name, key, guests: Vec::new(), set, listens: true, refuses: false })
    }

    /// What others come in by. It is a secret as far as who knows it may come in.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is readable when somebody comes, or says something.
    pub fn descriptor(&self) -> RawFd {
        self.set.as_raw_fd()
    }

    /// The next one who has proven to know the name, with the first that it has said.
    pub fn poll_visitor(&mut self) -> Option<(Talk, Vec<u8>)> {
        let mut has_room = self.has_room();
        self.refuses = false;
        while has_room {
            let accepted = self.listener.accept();
            self.refuses = accepted.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock);
            let Ok((stream, _)) = accepted else { break };
            let watched = self.set.add(&stream, 0).and_then(|()| Talk::answering(stream, self.key));
            self.guests.extend(watched.ok().map(|talk| (Instant::now(), talk)));
            has_room = self.has_room();
        }
        self.watch_listener(has_room);
        // All of them, so that nobody's proof waits until others are received.
        for index in (0..self.guests.len()).rev() {
            if self.guests[index].1.advance().is_err() {
                self.take_out(index);
            }
        }
        let mut index = 0;
        while index < self.guests.len() {
            match self.guests[index].1.take_piece() {
                Ok(Some(piece)) => return Some((self.take_out(index), piece)),
                Ok(None) if !self.guests[index].1.ended => index += 1,
                _ => drop(self.take_out(index)),
            }
        }
        None
    }

    /// Whether somebody stands outside who could not be let in when [`Self::poll_visitor`] was last called. The
    /// descriptor is readable all the time then.
    pub fn refuses(&self) -> bool {
        self.refuses
    }

    /// Others that share the socket, such as a forked copy of the process, would keep it in the set.
    fn take_out(&mut self, index: usize) -> Talk {
        let (_, talk) = self.guests.remove(index);
        self.set.remove(&talk.stream);
        talk
    }

    /// Who must wait outside is not told of.
    fn watch_listener(&mut self, has_room: bool) {
        match has_room {
            _ if has_room == self.listens => {}
            true => self.listens = self.set.add(&self.listener, 0).is_ok(),
            false => {
                self.set.remove(&self.listener);
                self.listens = false;
            }
        }
    }

    /// Whether one more may come in, in the place of one who says nothing if need be.
    fn has_room(&mut self) -> bool {
        let is_unproven = |talk: &Talk| !matches!(talk.stage, DoorStage::Open);
        if self.guests.iter().filter(|(_, talk)| is_unproven(talk)).count() < GUESTS {
            return true;
        }
        let silent = self.guests.iter().position(|(came, talk)| is_unproven(talk) && came.elapsed() > PATIENCE);
        silent.map(|index| self.take_out(index)).is_some()
    }
}

enum DoorStage {
    /// To be tried after the one that is being tried, since then.
    Dialling {
        others: Vec<SocketAddr>,
        since: Instant,
    },
    /// We have come, and wait for the proof of the other side.
    Knocked,
    /// Somebody has come to us.
    Silent,
    /// And has our proof.
    Answered,
    Open,
}

/// A conversation.
pub struct Talk {
    stream: TcpStream,
    stage: DoorStage,
    key: Key,
    nonces: [u8; 2 * NONCE],
    heard: Vec<u8>,
    /// What is to be said and has not left.
    unsaid: Vec<u8>,
    ended: bool,
}

impl Talk {
    fn new(stream: TcpStream, stage: DoorStage, key: Key) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // It costs a little time where it fails.
        let _ = stream.set_nodelay(true);
        let (heard, unsaid) = Default::default();
        Ok(Self { stream, stage, key, nonces: [0; 2 * NONCE], heard, unsaid, ended: false })
    }

    fn answering(stream: TcpStream, key: Key) -> io::Result<Self> {
        let mut talk = Self::new(stream, DoorStage::Silent, key)?;
        talk.nonces[NONCE..].copy_from_slice(&random()?);
        Ok(talk)
    }

    /// Begins to go to the door of this name.
    ///
    /// # Errors
    /// It is no name of a door, or no address of it can be tried.
    pub fn call(name: &str) -> Result<Self, DoorError> {
        let no_name = || DoorError::Name(name.chars().take(80).collect());
        let (mut addresses, key) = parse(name).ok_or_else(no_name)?;
        addresses.reverse();
        let stream = next_stream(&mut addresses)?;
        let stage = DoorStage::Dialling { others: addresses, since: Instant::now() };
        let mut talk = Self::new(stream, stage, key)?;
        talk.nonces[..NONCE].copy_from_slice(&random()?);
        Ok(talk)
    }

    /// What is readable when the other side says something; `None` as long as it is not known whether there is one.
    pub fn descriptor(&self) -> Option<RawFd> {
        (!matches!(self.stage, DoorStage::Dialling { .. })).then_some(self.stream.as_raw_fd())
    }

    /// Says a piece; it leaves now or with the next polls.
    pub fn say(&mut self, piece: &[u8]) {
        self.unsaid.extend_from_slice(&(piece.len() as u32).to_le_bytes());
        self.unsaid.extend_from_slice(piece);
        if matches!(self.stage, DoorStage::Open) {
            self.flush();
        }
    }

    /// The next piece that the other side has said.
    ///
    /// # Errors
    /// The other side is gone, or is none of ours.
    pub fn poll(&mut self) -> Result<Option<Vec<u8>>, DoorError> {
        self.advance()?;
        match self.take_piece()? {
            None if self.ended => Err(DoorError::Closed),
            piece => Ok(piece),
        }
    }

    /// Hears what the other side says, answers its greeting, and says what is to be said.
    fn advance(&mut self) -> Result<(), DoorError> {
        if matches!(self.stage, DoorStage::Dialling { .. }) && !self.dial()? {
            return Ok(());
        }
        self.listen();
        self.greet()?;
        self.flush();
        Ok(())
    }

    fn dial(&mut self) -> Result<bool, DoorError> {
        let DoorStage::Dialling { others, since } = &mut self.stage else { return Ok(true) };
        let error = match (self.stream.take_error(), self.stream.peer_addr()) {
            (Ok(None), Ok(_)) => {
                let mut first = MAGIC.to_vec();
                first.extend_from_slice(&self.nonces[..NONCE]);
                self.unsaid.splice(..0, first);
                self.stage = DoorStage::Knocked;
                self.flush_first(MAGIC.len() + NONCE);
                return Ok(true);
            }
            (Ok(None), Err(_)) if since.elapsed() < if others.is_empty() { LAST_PATIENCE } else { PATIENCE } => {
                return Ok(false);
            }
            (Ok(None), Err(error)) => error,
            (Ok(Some(error)) | Err(error), _) => error,
        };
        if others.is_empty() {
            return Err(DoorError::Nobody(error.to_string()));
        }
        self.stream = next_stream(others)?;
        self.stream.set_nonblocking(true)?;
        *since = Instant::now();
        Ok(false)
    }

    fn tag(&self, step: &[u8; 8]) -> [u8; TAG] {
        tag(&self.key, &[&step[..], &self.nonces[..]].concat())
    }

    /// Takes so many bytes of what was heard, once they are there.
    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        (self.heard.len() >= count).then(|| self.heard.drain(..count).collect())
    }

    fn greet(&mut self) -> Result<(), DoorError> {
        let proves = |tag: &[u8; TAG], bytes: &[u8]| bytes.try_into().is_ok_and(|bytes| same(tag, bytes));
        match self.stage {
            DoorStage::Knocked => {
                let Some(answer) = self.take(NONCE + TAG) else { return Ok(()) };
                self.nonces[NONCE..].copy_from_slice(&answer[..NONCE]);
                if !proves(&self.tag(b"answer--"), &answer[NONCE..]) {
                    return Err(DoorError::Nobody("another program listens there".to_owned()));
                }
                let proof = self.tag(b"proof---");
                self.unsaid.splice(..0, proof);
                self.stage = DoorStage::Open;
            }
            DoorStage::Silent => {
                let Some(first) = self.take(MAGIC.len() + NONCE) else { return Ok(()) };
                if first[..MAGIC.len()] != MAGIC {
                    return Err(DoorError::Nonsense);
                }
                self.nonces[..NONCE].copy_from_slice(&first[MAGIC.len()..]);
                let answer = [&self.nonces[NONCE..], &self.tag(b"answer--")].concat();
                self.unsaid.splice(..0, answer);
                self.flush_first(NONCE + TAG);
                self.stage = DoorStage::Answered;
            }
            DoorStage::Answered => {
                let Some(proof) = self.take(TAG) else { return Ok(()) };
                if !proves(&self.tag(b"proof---"), &proof) {
                    return Err(DoorError::Nonsense);
                }
                self.stage = DoorStage::Open;
            }
            DoorStage::Open | DoorStage::Dialling { .. } => {}
        }
        Ok(())
    }

    fn take_piece(&mut self) -> Result<Option<Vec<u8>>, DoorError> {
        let (DoorStage::Open, Some(length)) = (&self.stage, self.heard.first_chunk::<4>()) else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > PIECE_BYTES {
            return Err(DoorError::Nonsense);
        }
        Ok(self.take(4 + length).map(|piece| piece[4..].to_vec()))
    }

    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        // Who has not proven itself says little; who has, a piece at a time. The rest waits with the kernel.
        let most = if matches!(self.stage, DoorStage::Open) { 4 + PIECE_BYTES } else { bytes.len() };
        while self.heard.len() < most {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.heard.extend_from_slice(&bytes[..count]);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.ended = true,
            }
            return;
        }
    }

    /// What was said leaves, as soon as both sides have proven themselves.
    fn flush(&mut self) {
        if matches!(self.stage, DoorStage::Open) {
            self.flush_first(usize::MAX);
        }
    }

    fn flush_first(&mut self, most: usize) {
        let mut left = most.min(self.unsaid.len());
        while left > 0 {
            match self.stream.write(&self.unsaid[..left]) {
                Ok(count) => {
                    self.unsaid.drain(..count);
                    left -= count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An end shows where we listen.
                Err(_) => return,
            }
        }
    }
}

fn next_stream(addresses: &mut Vec<SocketAddr>) -> Result<TcpStream, DoorError> {
    let mut last = DoorError::Nobody("it has no address".to_owned());
    while let Some(address) = addresses.pop() {
        match begin(&address) {
            Ok(socket) => return Ok(TcpStream::from(socket)),
            Err(error) => last = DoorError::Nobody(error.to_string()),
        }
    }
    Err(last)
}

fn parse(name: &str) -> Option<(Vec<SocketAddr>, Key)> {
    let mut parts = name.strip_prefix("weft/")?.split('/');
    let (list, port, digits) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    let address = |text: &str| Some(SocketAddr::new(text.parse().ok()?, port));
    let addresses = list.split(',').map(address).collect::<Option<Vec<_>>>()?;
    let key = u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32)?;
    parts.next().is_none().then_some((addresses, key.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until<T>(mut poll: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = poll() {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "nothing has come");
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_knows_the_name_is_heard_and_answered() {
        let mut door = Door::open(&["127.0.0.1".parse().expect("an address")]).expect("a door");
        assert!(door.name().len() < NAME_BYTES);
        let mut caller = Talk::call(door.name()).expect("a name");
        caller.say(b"hello");
        caller.say(&[7; 100_000]);
        let (mut talk, first) = until(|| {
            assert!(caller.poll().expect("it lives").is_none());
            door.poll_visitor()
        });
        assert_eq!(first, b"hello");
        let second = until(|| {
            let _ = caller.poll();
            talk.poll().expect("it lives")
        });
        assert_eq!(second, [7; 100_000]);
        talk.say(b"good");
        assert_eq!(until(|| caller.poll().expect("it lives")), b"good");
        drop(talk);
        let error = until(|| caller.poll().err());
        assert!(matches!(error, DoorError::Closed));
    }

    #[test]
    fn who_has_another_key_is_not_let_in() {
        let mut door = Door::open(&["127.0.0.1".parse().expect("an address")]).expect("a door");
        let (front, _) = door.name().rsplit_once('/').expect("a key");
        let mut stranger = Talk::call(&format!("{front}/{}", "0".repeat(32))).expect("a name");
        stranger.say(b"hello");
        let error = until(|| {
            assert!(door.poll_visitor().is_none());
            stranger.poll().err()
        });
        assert!(matches!(error, DoorError::Nobody(_)), "{error}");
    }

    #[test]
    fn all_of_a_crowd_come_in_beside_some_that_are_silent() {
        let mut door = Door::open(&["127.0.0.1".parse().expect("an address")]).expect("a door");
        let at = door.listener.local_addr().expect("an address");
        let silent: Vec<_> = (0..GUESTS / 2).map(|_| TcpStream::connect(at).expect("it listens")).collect();
        let mut callers: Vec<_> = (0..4 * GUESTS).map(|_| Talk::call(door.name()).expect("a name")).collect();
        callers.iter_mut().for_each(|caller| caller.say(b"hello"));
        let mut inside = Vec::new();
        until(|| {
            callers.iter_mut().for_each(|caller| assert!(caller.poll().expect("it lives").is_none()));
            inside.extend(door.poll_visitor());
            (inside.len() == callers.len()).then_some(())
        });
        drop(silent);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "myhost:27", "weft/", "weft/127.0.0.1/5/12", "weft/x/5/00000000000000000000000000000000"] {
            assert!(matches!(Talk::call(name), Err(DoorError::Name(_))), "{name}");
        }
    }
}
