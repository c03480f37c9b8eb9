//! From communicators, ranks and tags to the words of the fabric.

use crate::abi::{ANY_SOURCE, ANY_TAG, PROC_NULL};
use crate::comm::Comm;
use crate::error::{Class, Error, Result};
use crate::handle::HandleTable;
use std::sync::Arc;
use weft_fabric::{Envelope, MatchedId, Peer, Selector, Waiting};

/// Where a message goes.
#[derive(Clone, Copy)]
pub struct MessageRoute {
    pub to: Peer,
    pub envelope: Envelope,
}

/// What a receive takes.
#[derive(Clone, Copy)]
pub enum ReceiveSource {
    Matching(Selector),
    /// A message taken by a matched probe, with what is known of it.
    Matched(MatchedId, Selector),
}

impl ReceiveSource {
    pub fn selector(&self) -> Selector {
        match *self {
            Self::Matching(selector) | Self::Matched(_, selector) => selector,
        }
    }
}

/// The route to a destination; `None` for `MPI_PROC_NULL`.
///
/// # Errors
/// An unknown communicator, a rank outside it, a negative tag.
#[inline(always)]
pub fn destination(comms: &HandleTable<Arc<Comm>>, comm: usize, dest: i32, tag: i32) -> Result<Option<MessageRoute>> {
    let comm = comms.get(comm)?;
    if tag < 0 {
        return Err(bad_tag(tag));
    }
    if comm.failure.is_revoked() {
        return Err(crate::failure::revoked(comm));
    }
    let others = comm.others();
    if (dest as u32) < others.size() {
        let envelope = Envelope { context: comm.context, tag, source: comm.rank };
        return Ok(Some(MessageRoute { to: others.peer(dest as u32), envelope }));
    }
    if dest == PROC_NULL { Ok(None) } else { Err(bad_rank(comm, dest)) }
}

/// What a receive or probe selects; `None` for `MPI_PROC_NULL`.
///
/// # Errors
/// As [`destination`], but for the wildcards.
#[inline(always)]
pub fn selection(comms: &HandleTable<Arc<Comm>>, comm: usize, source: i32, tag: i32) -> Result<Option<Selector>> {
    let comm = comms.get(comm)?;
    let tag = if tag >= 0 {
        Some(tag)
    } else if tag == ANY_TAG {
        None
    } else {
        return Err(bad_tag(tag));
    };
    if comm.failure.is_revoked() {
        return Err(crate::failure::revoked(comm));
    }
    let others = comm.others();
    let peer = if (source as u32) < others.size() {
        Some(others.peer(source as u32))
    } else if source == ANY_SOURCE {
        None
    } else if source == PROC_NULL {
        return Ok(None);
    } else {
        return Err(bad_rank(comm, source));
    };
    Ok(Some(Selector { context: comm.context, peer, tag }))
}

#[cold]
fn bad_tag(tag: i32) -> Error {
    Error::new(Class::Tag, format!("tag {tag}, but tags are from 0 to {}", i32::MAX))
}

#[cold]
fn bad_rank(comm: &Comm, rank: i32) -> Error {
    comm.peer(rank).err().unwrap_or_else(|| Error::new(Class::Rank, format!("rank {rank} is not allowed here")))
}

/// What a thread is blocked in, for the status page.
#[inline]
pub fn waiting(call: &'static str, with: Selector) -> Waiting {
    Waiting { call, peer: with.peer, tag: with.tag, context: with.context }
}

impl MessageRoute {
    /// The other end, seen as a selector.
    #[inline]
    pub fn selector(&self) -> Selector {
        Selector { context: self.envelope.context, peer: Some(self.to), tag: Some(self.envelope.tag) }
    }
}
