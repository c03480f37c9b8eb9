//! Memory that other processes write into and read out of, while its owner does something else.
//!
//! A process opens memory and tells others of it by a [`RemoteMemory`], 32 bytes that travel in a message. On the
//! owner's host the others map it, and a put or get is a copy. Elsewhere they ask handlers of the owner, which then
//! must take part: in pieces of what an active message holds, each of which is answered.
//!
//! What a put has written is there for a message that is sent after it. What a peer says of a place is checked against
//! the memory that it names.

use crate::active::end_of;
use crate::desk::FABRIC;
use crate::error::{ErrorKind, NativeError, Result};
use crate::known;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weft_fabric::active::{ActiveCall, MEDIUM_BYTES};
use weft_fabric::region::{Region, Ticket};
use weft_ports::{Endpoint, Fault, Peer, Waiting};

/// Handlers of the library's own: bytes come for memory of ours, somebody asks for some, and answers to both.
const PUT: u16 = 0;
const GET: u16 = 1;
const DONE: u16 = 2;
const GOT: u16 = 3;

/// How often it is looked whether an owner has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Memory of another process, by what that one tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteMemory {
    token: u64,
    bytes: u64,
    number: u64,
}

impl RemoteMemory {
    /// As it travels.
    pub fn words(self) -> [u64; 4] {
        [self.token, self.bytes, self.number, 0]
    }

    /// Reads what another process has sent; it is looked at where it is used.
    pub fn from_words(words: [u64; 4]) -> Self {
        Self { token: words[0], bytes: words[1], number: words[2] }
    }

    fn check(self, offset: u64, length: usize) -> Result<()> {
        match offset.checked_add(length as u64) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => {
                let text = format!("{length} bytes at {offset}: the memory has {} bytes", self.bytes);
                Err(NativeError::new(ErrorKind::Memory, text))
            }
        }
    }
}

/// What is under way to owners that are asked.
#[derive(Default)]
struct Asking {
    left: usize,
    refused: bool,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Memories {
    /// Of this process, by their tokens.
    mine: HashMap<u64, Arc<Region>>,
    /// Of others, those that could be mapped and those that could not.
    mapped: HashMap<(Peer, RemoteMemory), Option<Arc<Region>>>,
    /// When it was last looked whether an owner of those has ended.
    looked: HashMap<Peer, Instant>,
    asking: HashMap<u64, Asking>,
    given: u64,
}

static MEMORIES: LazyLock<Mutex<Memories>> = LazyLock::new(Mutex::default);

fn memories() -> MutexGuard<'static, Memories> {
    MEMORIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a region has these bytes, if it has them.
fn place(region: &Region, offset: u64, length: usize) -> Option<*mut u8> {
    let end = usize::try_from(offset).ok()?.checked_add(length)?;
    (end <= region.bytes()).then(|| region.at(offset as usize, length))
}

fn write(region: &Region, offset: u64, bytes: &[u8]) -> Result<()> {
    let to = place(region, offset, bytes.len()).ok_or_else(missing)?;
    // SAFETY: inside the mapping; it is memory that others change as well, of which nobody holds a reference.
    unsafe { weft_fabric::copy(bytes.as_ptr(), to, bytes.len()) };
    Ok(())
}

fn read(region: &Region, offset: u64, room: &mut [u8]) -> Result<()> {
    let from = place(region, offset, room.len()).ok_or_else(missing)?;
    // SAFETY: inside the mapping; the room is ours.
    unsafe { weft_fabric::copy(from, room.as_mut_ptr(), room.len()) };
    Ok(())
}

#[cold]
fn missing() -> NativeError {
    NativeError::new(ErrorKind::Memory, "the owner has no such memory, or not any more")
}

/// Registers what answers others; to be called once the process has joined.
pub(crate) fn begin(endpoint: &mut Endpoint) {
    endpoint.register_handler(PUT, |call| {
        let done = on_put(&call).is_some();
        let asked = call.arguments.get(2).copied().unwrap_or_default();
        // Who has sent something else than a request gets no answer.
        let _ = call.reply(DONE, &[asked, u64::from(done)], b"");
    });
    endpoint.register_handler(GET, |call| {
        let asked = call.arguments.get(2).copied().unwrap_or_default();
        let answer = on_get(&call);
        let at = call.bytes.first_chunk().map_or(0, |at| u64::from_le_bytes(*at));
        let (done, bytes) = answer.map_or((0, Vec::new()), |bytes| (1, bytes));
        let _ = call.reply(GOT, &[asked, done, at], &bytes);
    });
    endpoint.register_handler(DONE, |call| on_answer(&call));
    endpoint.register_handler(GOT, |call| on_answer(&call));
}

fn on_put(call: &ActiveCall<'_>) -> Option<()> {
    let [token, offset, _] = *call.arguments.first_chunk::<3>()?;
    let region = memories().mine.get(&token)?.clone();
    write(&region, offset, call.bytes).ok()
}

/// What is asked for: where it goes there, and how many bytes it is, stand in the bytes.
fn on_get(call: &ActiveCall<'_>) -> Option<Vec<u8>> {
    let [token, offset, _] = *call.arguments.first_chunk::<3>()?;
    let length = u64::from_le_bytes(*call.bytes.get(8..)?.first_chunk()?);
    let region = memories().mine.get(&token)?.clone();
    let mut room = vec![0; usize::try_from(length).ok().filter(|length| *length <= MEDIUM_BYTES)?];
    read(&region, offset, &mut room).ok().map(|()| room)
}

fn on_answer(call: &ActiveCall<'_>) {
    let [asked, done] = match *call.arguments {
        [asked, done, ..] => [asked, done],
        _ => return,
    };
    let mut memories = memories();
    let Some(asking) = memories.asking.get_mut(&asked) else { return };
    asking.left = asking.left.saturating_sub(1);
    asking.refused |= done == 0;
    if let Some(&at) = call.arguments.get(2) {
        let end = usize::try_from(at).ok().and_then(|at| at.checked_add(call.bytes.len()));
        match end.and_then(|end| asking.bytes.get_mut(at as usize..end)) {
            Some(to) => to.copy_from_slice(call.bytes),
            None => asking.refused = true,
        }
    }
}

/// Memory that is mapped stays when its owner is killed, so that is looked for now and then: the kernel is asked.
fn owner_lives(owner: Peer) -> Result<()> {
    let now = Instant::now();
    let mut memories = memories();
    let is_time = memories.looked.get(&owner).is_none_or(|looked| now.duration_since(*looked) >= LOOK);
    if is_time {
        memories.looked.insert(owner, now);
    }
    drop(memories);
    let end = FABRIC.with(|endpoint| if is_time { end_of(endpoint, owner) } else { endpoint.loss(owner) });
    end.map_or(Ok(()), |fault| {
        // The next call is told as well.
        self::memories().looked.remove(&owner);
        Err(fault.into())
    })
}

/// The memory, if it is this process's own or can be mapped.
fn near(owner: Peer, memory: RemoteMemory) -> Result<Option<Arc<Region>>> {
    if owner == known::me() {
        return memories().mine.get(&memory.token).cloned().map(Some).ok_or_else(missing);
    }
    owner_lives(owner)?;
    let known = memories().mapped.get(&(owner, memory)).cloned();
    let region = known.unwrap_or_else(|| {
        let ticket = u32::try_from(memory.number).ok().map(|number| Ticket { number, token: memory.token });
        let region = FABRIC.with(|endpoint| {
            let near = endpoint.is_local(owner).then_some(ticket).flatten();
            near.and_then(|ticket| endpoint.open_region(owner, ticket, usize::try_from(memory.bytes).ok()?).ok())
        });
        let region = region.map(Arc::new);
        let mut memories = memories();
        // What its owner has given up is kept alive by nobody.
        memories.mapped.retain(|_, kept| kept.as_ref().is_some_and(|kept| kept.is_in_use()));
        memories.mapped.insert((owner, memory), region.clone());
        region
    });
    if region.as_ref().is_some_and(|region| !region.is_in_use()) {
        memories().mapped.remove(&(owner, memory));
        return Err(missing());
    }
    Ok(region)
}

/// Asks the owner piece by piece: `ask` sends the piece that begins at an offset and has so many bytes, if it can leave
/// now.
fn ask_owner(
    call: &'static str,
    owner: Peer,
    length: usize,
    bytes: Vec<u8>,
    mut ask: impl FnMut(&mut Endpoint, u64, usize, usize) -> Option<bool>,
) -> Result<Vec<u8>> {
    let asked = {
        let mut memories = memories();
        memories.given += 1;
        let asked = memories.given;
        memories.asking.insert(asked, Asking { left: length.div_ceil(MEDIUM_BYTES), refused: false, bytes });
        asked
    };
    let mut next = 0;
    let what = Waiting { call, peer: Some(owner), tag: None, context: 0 };
    let ended = FABRIC.wait_of(what, owner, |endpoint, _| {
        while next < length {
            let piece = (length - next).min(MEDIUM_BYTES);
            match ask(endpoint, asked, next, piece) {
                Some(true) => next += piece,
                Some(false) => break,
                None => return Some(Some(Fault::PeerLost)),
            }
        }
        let is_done = memories().asking.get(&asked).is_none_or(|asking| asking.left == 0);
        if is_done { Some(None) } else { end_of(endpoint, owner).map(Some) }
    });
    let asking = memories().asking.remove(&asked).unwrap_or_default();
    match ended {
        Some(fault) => Err(fault.into()),
        None if asking.refused => Err(missing()),
        None => Ok(asking.bytes),
    }
}

pub(crate) fn put(owner: Peer, memory: RemoteMemory, offset: u64, bytes: &[u8]) -> Result<()> {
    known::known(owner)?;
    memory.check(offset, bytes.len())?;
    if let Some(region) = near(owner, memory)? {
        return write(&region, offset, bytes);
    }
    let ask = |endpoint: &mut Endpoint, asked, from: usize, length| {
        let arguments = [memory.token, offset + from as u64, asked];
        endpoint.try_request(owner, PUT, &arguments, &bytes[from..from + length]).ok()
    };
    ask_owner("weft_put", owner, bytes.len(), Vec::new(), ask).map(drop)
}

pub(crate) fn get(owner: Peer, memory: RemoteMemory, offset: u64, room: &mut [u8]) -> Result<()> {
    known::known(owner)?;
    memory.check(offset, room.len())?;
    if let Some(region) = near(owner, memory)? {
        return read(&region, offset, room);
    }
    let ask = |endpoint: &mut Endpoint, asked, from: usize, length: usize| {
        let arguments = [memory.token, offset + from as u64, asked];
        let which = [(from as u64).to_le_bytes(), (length as u64).to_le_bytes()].concat();
        endpoint.try_request(owner, GET, &arguments, &which).ok()
    };
    let bytes = ask_owner("weft_get", owner, room.len(), vec![0; room.len()], ask)?;
    room.copy_from_slice(&bytes);
    Ok(())
}

/// New memory of this process, zero at the start: where it is, and how others find it.
pub(crate) fn register(bytes: usize) -> Result<(*mut u8, RemoteMemory)> {
    known::allowed()?;
    if bytes == 0 {
        return Err(NativeError::argument("memory of 0 bytes"));
    }
    let region = Region::create(bytes).map_err(|error| NativeError::system("there is no memory", &error))?;
    let ticket = region.ticket();
    let memory = RemoteMemory { token: ticket.token, bytes: bytes as u64, number: ticket.number.into() };
    let at = region.at(0, bytes);
    memories().mine.insert(ticket.token, Arc::new(region));
    Ok((at, memory))
}

/// The same, as a value that gives it up.
pub(crate) fn open(bytes: usize) -> Result<OpenMemory> {
    let (_, memory) = register(bytes)?;
    let region = memories().mine.get(&memory.token).cloned().ok_or_else(missing)?;
    Ok(OpenMemory { region, memory })
}

/// Gives memory of this process up.
pub(crate) fn withdraw(memory: RemoteMemory) -> Result<()> {
    known::allowed()?;
    memories().mine.remove(&memory.token).map(drop).ok_or_else(missing)
}

/// Memory of this process that others write into and read out of.
pub struct OpenMemory {
    region: Arc<Region>,
    memory: RemoteMemory,
}

impl OpenMemory {
    /// What others are to be told.
    pub fn remote(&self) -> RemoteMemory {
        self.memory
    }

    /// Copies bytes out of it, whatever others do meanwhile.
    ///
    /// # Errors
    /// It ends before that.
    pub fn read(&self, offset: usize, room: &mut [u8]) -> Result<()> {
        self.memory.check(offset as u64, room.len())?;
        read(&self.region, offset as u64, room)
    }

    /// Copies bytes into it.
    ///
    /// # Errors
    /// It ends before that.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.memory.check(offset as u64, bytes.len())?;
        write(&self.region, offset as u64, bytes)
    }
}

impl Drop for OpenMemory {
    fn drop(&mut self) {
        memories().mine.remove(&self.memory.token);
    }
}
