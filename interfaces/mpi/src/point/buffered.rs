//! The buffered mode and its buffers (MPI 5.0, section 3.6).
//!
//! A buffered send leaves at once if it can; otherwise the message is copied into the attached buffer and sent from
//! there. The book-keeping stands beside the buffer, so that a message takes no more of it than its bytes.

use super::buffer::{Buffer, MemoryRun, Packed};
use super::transfer::{PointMode, post};
use super::{MessageRoute, PointState};
use crate::abi::BUFFER_AUTOMATIC;
use crate::error::{Class, Error, Result};
use weft_fabric::{Endpoint, RequestId};

/// Whose buffer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Process,
    Comm(usize),
    Session(usize),
}

/// The buffered messages of one buffer up to a moment.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    owner: Owner,
    upto: u64,
}

/// A buffer for messages that cannot leave at once.
pub(super) struct Attached {
    owner: Owner,
    memory: SendMemory,
    messages: Vec<BufferedMessage<RequestId>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendMemory {
    /// The program's.
    Given { at: *mut u8, size: usize },
    /// Ours, as much as is needed (`MPI_BUFFER_AUTOMATIC`).
    Automatic,
}

// SAFETY: the attached buffer is ours until it is detached, from any thread.
unsafe impl Send for SendMemory {}

/// A message that was copied and has not left.
struct BufferedMessage<I> {
    id: I,
    /// Its place in the program's buffer.
    from: usize,
    to: usize,
    /// Its place elsewhere, kept until it has left.
    _own: Option<Packed>,
    number: u64,
    context: u32,
}

/// The lowest place with room for `bytes` among messages sorted by place.
fn gap<I>(messages: &[BufferedMessage<I>], size: usize, bytes: usize) -> Option<usize> {
    let mut start = 0;
    for message in messages {
        if message.from - start >= bytes {
            return Some(start);
        }
        start = message.to;
    }
    (size - start >= bytes).then_some(start)
}

impl Attached {
    /// Forgets what has left.
    fn sweep(&mut self, endpoint: &mut Endpoint) {
        self.messages.retain(|message| endpoint.take_outcome(message.id).is_none());
    }

    /// Copies a message and starts to send it.
    fn store(&mut self, endpoint: &mut Endpoint, route: MessageRoute, packed: MemoryRun, number: u64) -> Result<()> {
        let (at, from, own) = match self.memory {
            SendMemory::Given { at, size } => {
                let mut place = gap(&self.messages, size, packed.bytes);
                // That a message was taken may lie unread in a ring, also after a barrier, which goes through memory.
                while place.is_none() && endpoint.progress() {
                    self.sweep(endpoint);
                    place = gap(&self.messages, size, packed.bytes);
                }
                let from = place.ok_or_else(|| no_room(packed.bytes, size, &self.messages))?;
                (at.wrapping_add(from), from, None)
            }
            SendMemory::Automatic => {
                let own = Packed::new(packed.bytes)?;
                (own.at(), 0, Some(own))
            }
        };
        let to = from + if own.is_none() { packed.bytes } else { 0 };
        // SAFETY: the place lies in the attached buffer, which the program leaves to us until it is detached, or in
        // our own memory; no other message has it. It stays so until the send is complete.
        let id = unsafe {
            at.copy_from_nonoverlapping(packed.at, packed.bytes);
            post(endpoint, route, PointMode::Standard, MemoryRun { at, bytes: packed.bytes })
        };
        let before = self.messages.partition_point(|message| (message.from, message.to) <= (from, to));
        self.messages
            .insert(before, BufferedMessage { id, from, to, _own: own, number, context: route.envelope.context });
        Ok(())
    }
}

#[cold]
fn no_room(bytes: usize, size: usize, messages: &[BufferedMessage<RequestId>]) -> Error {
    let held: usize = messages.iter().map(|message| message.to - message.from).sum();
    let detail = format!(
        "the message of {bytes} bytes finds no room in the attached buffer of {size} bytes, where {} messages with \
         {held} bytes wait to leave",
        messages.len()
    );
    Error::new(Class::Buffer, detail)
}

impl PointState {
    fn position(&self, owner: Owner) -> Option<usize> {
        self.attached.iter().position(|attached| attached.owner == owner)
    }

    /// The buffer that sends on a communicator use: its own, its session's, or the process's.
    fn buffer_of(&self, comm: usize) -> Result<usize> {
        let of_session = || self.position(Owner::Session(self.session_of(comm)?));
        let place = self.position(Owner::Comm(comm)).or_else(of_session).or_else(|| self.position(Owner::Process));
        place.ok_or_else(|| Error::new(Class::Buffer, "no buffer is attached; a buffered send needs one"))
    }

    /// Sends a message in buffered mode.
    ///
    /// # Safety
    /// The buffer is readable.
    ///
    /// # Errors
    /// No buffer is attached, or it has no room.
    pub unsafe fn send_buffered(
        &mut self,
        endpoint: &mut Endpoint,
        route: MessageRoute,
        buffer: &Buffer,
        comm: usize,
    ) -> Result<()> {
        let place = self.buffer_of(comm)?;
        let attached = &mut self.attached[place];
        if let SendMemory::Given { size, .. } = attached.memory
            && buffer.bytes() > size
        {
            return Err(no_room(buffer.bytes(), size, &[]));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let packed = match buffer {
                Buffer::Scattered(scattered) => Some(scattered.pack()?),
                Buffer::Run(_) => None,
            };
            let run = match (buffer, &packed) {
                (Buffer::Run(run), None) => *run,
                (_, packed) => {
                    MemoryRun { at: packed.as_ref().map_or(std::ptr::null_mut(), Packed::at), bytes: buffer.bytes() }
                }
            };
            attached.sweep(endpoint);
            if endpoint.try_send(route.to, route.envelope, run.at, run.bytes) {
                return Ok(());
            }
            self.buffered += 1;
            attached.store(endpoint, route, run, self.buffered)
        }
    }

    pub(super) fn attach(&mut self, owner: Owner, at: usize, size: i64) -> Result<()> {
        if self.position(owner).is_some() {
            let detail = format!("{owner} has a buffer attached already; detach it first");
            return Err(Error::new(Class::Buffer, detail));
        }
        let memory = match at {
            BUFFER_AUTOMATIC => SendMemory::Automatic,
            _ => {
                let wrong = || Error::new(Class::Arg, format!("size {size} of the buffer is negative"));
                let size = usize::try_from(size).map_err(|_| wrong())?;
                if at == 0 && size > 0 {
                    return Err(Error::new(Class::Buffer, format!("buffer is a null pointer with size {size}")));
                }
                SendMemory::Given { at: at as *mut u8, size }
            }
        };
        self.attached.push(Attached { owner, memory, messages: Vec::new() });
        Ok(())
    }

    /// The owner is freed: its buffer serves no more sends, and messages that are in it leave on their own.
    pub fn abandon(&mut self, owner: Owner, endpoint: &mut Endpoint) {
        if let Owner::Comm(comm) = owner {
            self.sessions.retain(|entry| entry.0 != comm);
        }
        if let Some(place) = self.position(owner) {
            let attached = self.attached.swap_remove(place);
            self.abandoned.push(attached);
        }
        self.abandoned.iter_mut().for_each(|attached| attached.sweep(endpoint));
        self.abandoned.retain(|attached| !attached.messages.is_empty());
    }

    /// Takes a buffer back if everything in it has left: its address and size.
    pub(super) fn try_detach(&mut self, owner: Owner, endpoint: &mut Endpoint) -> Option<(usize, i64)> {
        let Some(place) = self.position(owner) else { return Some((0, 0)) };
        self.attached[place].sweep(endpoint);
        if !self.attached[place].messages.is_empty() {
            return None;
        }
        Some(match self.attached.swap_remove(place).memory {
            SendMemory::Given { at, size } => (at as usize, size as i64),
            SendMemory::Automatic => (BUFFER_AUTOMATIC, 0),
        })
    }

    pub(super) fn drain(&self, owner: Owner) -> Drain {
        Drain { owner, upto: self.buffered }
    }

    /// Whether the messages meant by `drain` have left.
    pub fn is_drained(&self, drain: &Drain, endpoint: &Endpoint) -> bool {
        let Some(place) = self.position(drain.owner) else { return true };
        let mut meant = self.attached[place].messages.iter().filter(|message| message.number <= drain.upto);
        meant.all(|message| endpoint.is_complete(message.id))
    }

    /// Whether all messages on this context have left, whichever buffer they are in.
    pub(super) fn buffers_are_quiet(&self, context: u32, endpoint: &Endpoint) -> bool {
        let mut messages = self.attached.iter().chain(&self.abandoned).flat_map(|attached| &attached.messages);
        messages.all(|message| message.context != context || endpoint.is_complete(message.id))
    }

    /// Forgets what has left; true if nothing is left in any buffer.
    pub(super) fn is_empty_after_sweep(&mut self, endpoint: &mut Endpoint) -> bool {
        let mut all = self.attached.iter_mut().chain(&mut self.abandoned);
        all.all(|attached| {
            attached.sweep(endpoint);
            attached.messages.is_empty()
        })
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process => write!(f, "the process"),
            Self::Comm(handle) => write!(f, "communicator {handle:#x}"),
            Self::Session(handle) => write!(f, "session {handle:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(places: &[(usize, usize)]) -> Vec<BufferedMessage<()>> {
        let stored =
            |&(from, to): &(usize, usize)| BufferedMessage { id: (), from, to, _own: None, number: 0, context: 0 };
        places.iter().map(stored).collect()
    }

    #[test]
    fn the_lowest_gap_with_room_is_taken() {
        assert_eq!(gap(&stored(&[]), 100, 100), Some(0));
        assert_eq!(gap(&stored(&[]), 100, 101), None);
        assert_eq!(gap(&stored(&[(0, 40), (50, 60)]), 100, 10), Some(40));
        assert_eq!(gap(&stored(&[(0, 40), (50, 60)]), 100, 11), Some(60));
        assert_eq!(gap(&stored(&[(10, 40), (50, 60)]), 100, 10), Some(0));
        assert_eq!(gap(&stored(&[(0, 40), (50, 60)]), 100, 41), None);
    }

    #[test]
    fn empty_messages_take_no_room() {
        assert_eq!(gap(&stored(&[(0, 100)]), 100, 0), Some(0));
        assert_eq!(gap(&stored(&[(0, 0), (0, 100)]), 100, 0), Some(0));
    }

    #[test]
    fn a_second_buffer_for_the_same_owner_is_refused_and_another_owner_is_not() {
        let mut state = PointState::default();
        let mut memory = [0u8; 16];
        let at = memory.as_mut_ptr() as usize;
        state.attach(Owner::Process, at, 16).unwrap();
        assert_eq!(state.attach(Owner::Process, at, 16).unwrap_err().class, Class::Buffer);
        state.attach(Owner::Comm(0x101), BUFFER_AUTOMATIC, 0).unwrap();
        assert_eq!(state.buffer_of(0x101).unwrap(), 1);
        assert_eq!(state.buffer_of(0x102).unwrap(), 0);
    }

    #[test]
    fn a_buffer_needs_memory_and_a_size() {
        let mut state = PointState::default();
        assert_eq!(state.attach(Owner::Process, 0, 8).unwrap_err().class, Class::Buffer);
        assert_eq!(state.attach(Owner::Process, 0x1000, -8).unwrap_err().class, Class::Arg);
        assert_eq!(state.buffer_of(0x101).unwrap_err().class, Class::Buffer);
    }
}
