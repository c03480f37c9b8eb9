//! Groups of tasks. Who is in one, the machine knows; data goes from task to task, in a context of its own.

use crate::buffer::{Encoding, IncomingMessage};
use crate::errors::Error;
use crate::library::{PvmLibrary, code_of, enrolled, library, my_tid};
use crate::meet::meet;
use crate::receive::{WaitPatience, receive};
use crate::source::source_word;
use crate::waiting::{FABRIC, wait_for_machine};
use crate::wanted::WantedMessage;
use std::ffi::c_int;
use std::time::{Duration, Instant};
use weft_ports::Envelope;
use weft_pvm_machine::code;
use weft_pvm_machine::frame::{Answer, ByteString, Request};

/// Messages of groups have this context, and the tags that programs give.
const CONTEXT: c_int = 0x7fffc;
/// Barriers of frozen groups.
const BARRIER_CONTEXT: c_int = 0x7fffb;

/// Between two looks at whether the machine has answered, which are system calls. A pass that hands the core over takes
/// longer.
const BETWEEN_LOOKS: Duration = Duration::from_micros(2);

pub fn join(name: &ByteString) -> Result<c_int, Error> {
    let mut library = enrolled()?;
    let instance = library.ask_code(&Request::JoinGroup { name: name.clone() })?;
    if instance == 0 {
        library.offer_block();
    }
    Ok(instance)
}

/// By instance; 0 where there is none.
///
/// # Errors
/// There is no such group.
pub fn members(name: &ByteString) -> Result<Vec<c_int>, Error> {
    let mut library = enrolled()?;
    if let Some(members) = library.frozen.0.get(name) {
        return Ok(members.clone());
    }
    match library.ask(&Request::Members { name: name.clone() })? {
        Answer::Members { code: 0, tids, is_frozen } => {
            if is_frozen {
                // Where it meets was told before.
                FABRIC.with(|endpoint| library.listen(endpoint))?;
                library.frozen.0.insert(name.clone(), tids.clone());
            }
            Ok(tids)
        }
        Answer::Members { code, .. } => Err(Error(code)),
        _ => Err(Error::SYS_ERR),
    }
}

/// Members of a group without holes.
///
/// # Errors
/// There is no such group, or an instance is missing.
fn all_members(name: &ByteString) -> Result<Vec<c_int>, Error> {
    let members = members(name)?;
    if members.contains(&0) { Err(Error::NO_INST) } else { Ok(members) }
}

pub fn leave(name: &ByteString) -> Result<c_int, Error> {
    let mut library = enrolled()?;
    library.frozen.0.remove(name);
    library.meetings.forget(name);
    library.ask_code(&Request::LeaveGroup { name: name.clone() })
}

pub fn freeze(name: &ByteString, size: c_int) -> Result<c_int, Error> {
    ask_patiently("pvm_freezegroup", &Request::Freeze { name: name.clone(), size })?;
    members(name).map(|_| 0)
}

/// Waits until so many members, or all with -1, have come here.
pub fn barrier(name: &ByteString, count: c_int) -> Result<c_int, Error> {
    let frozen = { enrolled()?.members_apart(name) };
    if let Some(members) = frozen
        && (count == -1 || usize::try_from(count) == Ok(members.len()))
        && let Some(me) = members.iter().position(|tid| *tid == my_tid())
    {
        return among(name, &members, me).map(|()| 0);
    }
    loop {
        if meet(name, count)? {
            return Ok(0);
        }
        match ask_patiently("pvm_barrier", &Request::Barrier { name: name.clone(), count })? {
            code::ELSEWHERE => {}
            code => return Ok(code),
        }
    }
}

impl PvmLibrary {
    /// The members of a frozen group that meet by messages.
    fn members_apart(&self, name: &ByteString) -> Option<Vec<c_int>> {
        self.frozen.0.get(name).filter(|_| !self.meetings.has(name)).cloned()
    }
}

/// The barrier of a frozen group: in each round everybody tells the one who is twice as far away as in the one before.
fn among(name: &ByteString, members: &[c_int], me: usize) -> Result<(), Error> {
    // Barriers of different groups with the same members do not meet.
    let sum = name.0.iter().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    let tag = (sum & 0x7fff_ffc0) as c_int;
    let (mut far, mut round) = (1, 0);
    while far < members.len() {
        let to = members[(me + far) % members.len()];
        let from = members[(me + members.len() - far) % members.len()];
        send_in(to, BARRIER_CONTEXT, tag | round, &[])?;
        receive_in("pvm_barrier", from, BARRIER_CONTEXT, tag | round)?;
        (far, round) = (2 * far, round + 1);
    }
    Ok(())
}

/// Asks the machine for what may take long. Messages are moved meanwhile.
///
/// # Errors
/// A code below 0; the machine is gone.
pub fn ask_patiently(call: &'static str, request: &Request) -> Result<c_int, Error> {
    code_of(ask_long(call, request)?)
}

/// As [`ask_patiently`], of any answer.
///
/// # Errors
/// The machine is gone.
pub fn ask_long(call: &'static str, request: &Request) -> Result<Answer, Error> {
    let mut library = enrolled()?;
    if library.task()?.client.send(request).is_err() {
        return Err(library.lose_machine());
    }
    loop {
        let mut looked: Option<Instant> = None;
        let answer = wait_for_machine(call, |endpoint, is_time| {
            if !is_time && looked.is_some_and(|looked| looked.elapsed() < BETWEEN_LOOKS) {
                return None;
            }
            looked = Some(Instant::now());
            match library.task.as_mut()?.client.poll_answer() {
                Ok(Some(answer)) => return Some(Ok(Some(answer))),
                Ok(None) => {}
                Err(_) => return Some(Err(library.lose_machine())),
            }
            match library.listen(endpoint) {
                Ok(true) => Some(Ok(None)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            }
        })?;
        match answer {
            Some(answer) => return Ok(answer),
            None => library.task()?.flush(),
        }
    }
}

fn send_in(to: c_int, context: c_int, tag: c_int, bytes: &[u8]) -> Result<(), Error> {
    let mut library = enrolled()?;
    let envelope = Envelope { context: context as u32, tag, source: source_word(my_tid(), Encoding::Raw) };
    let sent = library.task()?.send(to, envelope, bytes);
    sent.map_err(|_| library.lose_machine())
}

fn receive_in(call: &'static str, from: c_int, context: c_int, tag: c_int) -> Result<Vec<u8>, Error> {
    let buffer =
        receive(call, WantedMessage { tid: from, tag, context }, WaitPatience::Forever)?.ok_or(Error::SYS_ERR)?;
    let message: IncomingMessage = library().buffers.give_back(buffer).ok_or(Error::SYS_ERR)?;
    Ok(message.bytes)
}

/// A collective call of the members of a group.
pub struct GroupCall {
    call: &'static str,
    members: Vec<c_int>,
    me: usize,
    root: usize,
    tag: c_int,
}

impl GroupCall {
    /// # Errors
    /// There is no such group; this task or the root is not in it.
    pub fn new(call: &'static str, name: &ByteString, root: c_int, tag: c_int) -> Result<Self, Error> {
        let members = all_members(name)?;
        if tag < 0 {
            return Err(Error::BAD_PARAM);
        }
        let root = usize::try_from(root).ok().filter(|root| *root < members.len()).ok_or(Error::NO_INST)?;
        let me = members.iter().position(|tid| *tid == my_tid()).ok_or(Error::NOT_IN_GROUP)?;
        Ok(Self { call, members, me, root, tag })
    }

    pub fn is_root(&self) -> bool {
        self.me == self.root
    }

    /// The members' places beginning at the root's, by which trees are made.
    fn at(&self, place: usize) -> c_int {
        self.members[(self.root + place) % self.members.len()]
    }

    fn send(&self, to: c_int, bytes: &[u8]) -> Result<(), Error> {
        send_in(to, CONTEXT, self.tag, bytes)
    }

    fn receive(&self, from: c_int, length: usize) -> Result<Vec<u8>, Error> {
        let bytes = receive_in(self.call, from, CONTEXT, self.tag)?;
        if bytes.len() == length { Ok(bytes) } else { Err(Error::MISMATCH) }
    }

    /// Folds all members' bytes, always in the same order; the root has the result in `own`. `fold(one, other)` is a
    /// function of the program, and leaves its result in the first.
    ///
    /// # Errors
    /// A member has ended, or sends something else.
    pub fn reduce(&self, own: &mut [u8], mut fold: impl FnMut(&mut [u8], &mut [u8])) -> Result<(), Error> {
        let size = self.members.len();
        let place = (self.me + size - self.root) % size;
        let mut step = 1;
        while step < size {
            if place & step != 0 {
                return self.send(self.at(place - step), own);
            }
            if place + step < size {
                let mut theirs = self.receive(self.at(place + step), own.len())?;
                fold(own, &mut theirs);
            }
            step *= 2;
        }
        Ok(())
    }

    /// Brings all members' bytes to the root, in the order of instances.
    ///
    /// # Errors
    /// As [`Self::reduce`].
    pub fn gather(&self, own: &[u8], result: &mut [u8]) -> Result<(), Error> {
        if !self.is_root() {
            return self.send(self.members[self.root], own);
        }
        for (at, from) in self.members.iter().enumerate() {
            let part = &mut result[at * own.len()..][..own.len()];
            if at == self.me {
                part.copy_from_slice(own);
            } else {
                part.copy_from_slice(&self.receive(*from, own.len())?);
            }
        }
        Ok(())
    }

    /// Brings each member its part of the root's bytes.
    ///
    /// # Errors
    /// As [`Self::reduce`].
    pub fn scatter(&self, result: &mut [u8], all: &[u8]) -> Result<(), Error> {
        let length = result.len();
        if !self.is_root() {
            result.copy_from_slice(&self.receive(self.members[self.root], length)?);
            return Ok(());
        }
        for (at, to) in self.members.iter().enumerate() {
            let part = &all[at * length..][..length];
            if at == self.me {
                result.copy_from_slice(part);
            } else {
                self.send(*to, part)?;
            }
        }
        Ok(())
    }

    pub fn size(&self) -> usize {
        self.members.len()
    }
}
