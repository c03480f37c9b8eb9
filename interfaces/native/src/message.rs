//! Messages: sent to a process and a port, received by choice.

use crate::desk::FABRIC;
use crate::error::{NativeError, Result};
use crate::known::{self, PortNumber};
use crate::port;
use crate::received::ReceivedMessage;
use weft_ports::{Peer, Selector, Subject, room_of};

/// Which messages a call accepts; `None` is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    pub port: PortNumber,
    pub process: Option<Peer>,
    pub tag: Option<i32>,
}

impl Pick {
    /// Any message at a port.
    pub fn port(port: PortNumber) -> Self {
        Self { port, process: None, tag: None }
    }

    /// Of those, the messages of one process.
    #[must_use]
    pub fn from(self, process: Peer) -> Self {
        Self { process: Some(process), ..self }
    }

    /// Of those, the messages with one tag.
    #[must_use]
    pub fn tagged(self, tag: i32) -> Self {
        Self { tag: Some(tag), ..self }
    }

    /// As the fabric selects.
    ///
    /// # Errors
    /// The port is not open, there is no such process, or the tag is negative.
    #[inline]
    pub(crate) fn selector(self) -> Result<Selector> {
        match self.process {
            Some(process) => known::known(process)?,
            None => known::allowed()?,
        }
        port::open(self.port)?;
        if self.tag.is_some_and(|tag| tag < 0) {
            return Err(bad_tag(self.tag.unwrap_or_default()));
        }
        Ok(Selector { context: self.port.0, peer: self.process, tag: self.tag })
    }
}

#[cold]
fn bad_tag(tag: i32) -> NativeError {
    NativeError::argument(format!("tag {tag}: tags are 0 and more"))
}

#[inline]
pub(crate) fn destination(to: Peer, port: PortNumber, tag: i32) -> Result<Subject> {
    known::known(to)?;
    if tag < 0 {
        return Err(bad_tag(tag));
    }
    if port.0 > i32::MAX as u32 {
        return Err(NativeError::argument(format!("port {}: ports have no negative numbers", port.0 as i32)));
    }
    Ok(Subject { context: port.0, tag })
}

#[inline]
pub(crate) fn send(to: Peer, port: PortNumber, tag: i32, bytes: &[u8]) -> Result<()> {
    let subject = destination(to, port, tag)?;
    Ok(FABRIC.send("weft_send", to, subject, bytes)?)
}

pub(crate) fn send_copy(to: Peer, port: PortNumber, tag: i32, bytes: Box<[u8]>) -> Result<()> {
    let subject = destination(to, port, tag)?;
    FABRIC.send_owned(to, subject, bytes);
    Ok(())
}

#[inline]
pub(crate) fn receive(pick: Pick, room: &mut [u8]) -> Result<ReceivedMessage> {
    let outcome = FABRIC.receive("weft_receive", pick.selector()?, room)?;
    Ok(ReceivedMessage::new(pick.port.0, &outcome))
}

pub(crate) fn selectors(picks: &[Pick]) -> Result<Vec<Selector>> {
    if picks.is_empty() {
        return Err(NativeError::argument("nothing is chosen"));
    }
    picks.iter().map(|pick| pick.selector()).collect()
}

pub(crate) fn receive_first(picks: &[Pick], room: &mut [u8]) -> Result<ReceivedMessage> {
    let from = selectors(picks)?;
    let (which, message, seen) = FABRIC.take_first("weft_receive_first", &from)?;
    let outcome = FABRIC.receive_taken("weft_receive_first", (message, seen.peer), room)?;
    Ok(ReceivedMessage::new(from[which].context, &outcome))
}

pub(crate) fn receive_whole(picks: &[Pick]) -> Result<(ReceivedMessage, Vec<u8>)> {
    let from = selectors(picks)?;
    let (which, message, seen) = FABRIC.take_first("weft_receive", &from)?;
    let mut room = room_of(Vec::new(), seen.length)?;
    let outcome = FABRIC.receive_taken("weft_receive", (message, seen.peer), &mut room)?;
    Ok((ReceivedMessage::new(from[which].context, &outcome), room))
}

/// The first message that one of these would receive, if any has come, and which of them.
pub(crate) fn probe(picks: &[Pick]) -> Result<Option<(usize, ReceivedMessage)>> {
    let from = selectors(picks)?;
    let look = || {
        let mut all = from.iter().enumerate();
        FABRIC.with(|endpoint| {
            all.find_map(|(at, from)| Some((at, ReceivedMessage::new(from.context, &endpoint.probe(*from)?))))
        })
    };
    Ok(look().or_else(|| {
        FABRIC.poll();
        look()
    }))
}
