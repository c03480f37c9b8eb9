//! Bodies of the calls that send and receive in one (MPI 5.0, section 3.11).

use super::{finish, receive_into};
use crate::abi::{Described, Status};
use crate::error::{Class, Error, Result};
use crate::point::buffer::Buffer;
use crate::point::route::{MessageRoute, ReceiveSource, destination, selection, waiting};
use crate::point::transfer::{PointMode, start_packed, start_receive, start_send};
use crate::request::{Ground, OperationEnd, Request, SendReceive};
use crate::world::{WORLD, World};
use weft_fabric::Selector;

/// Both halves of an exchange, checked; `None` for `MPI_PROC_NULL`.
struct Halves {
    route: Option<MessageRoute>,
    from: Option<Selector>,
    send: Buffer,
    receive: Buffer,
    comm: usize,
}

/// Partners: destination and its tag, source and its tag, communicator.
type Partners = (i32, i32, i32, i32, usize);

/// What the standard calls the arguments of one half: both have a rank, a tag and a count, so an error says whose.
struct HalfNames {
    rank: &'static str,
    tag: &'static str,
    buffer: &'static str,
    count: &'static str,
    datatype: &'static str,
}

const SEND: HalfNames =
    HalfNames { rank: "dest", tag: "sendtag", buffer: "sendbuf", count: "sendcount", datatype: "sendtype" };
const RECEIVE: HalfNames =
    HalfNames { rank: "source", tag: "recvtag", buffer: "recvbuf", count: "recvcount", datatype: "recvtype" };
/// Where one buffer serves both.
const SEND_PLACE: HalfNames = HalfNames { buffer: "buf", count: "count", datatype: "datatype", ..SEND };
const RECEIVE_PLACE: HalfNames = HalfNames { buffer: "buf", count: "count", datatype: "datatype", ..RECEIVE };

impl HalfNames {
    #[cold]
    fn blame(&self, error: Error) -> Error {
        let argument = match error.class {
            Class::Rank => self.rank,
            Class::Tag => self.tag,
            Class::Buffer => self.buffer,
            Class::Count => self.count,
            Class::Type => self.datatype,
            _ => return error,
        };
        if error.detail.starts_with(argument) {
            return error;
        }
        Error { detail: format!("{argument}: {}", error.detail), ..error }
    }
}

impl Halves {
    /// Two buffers.
    fn find(world: &World, send: Described, receive: Described, partners: Partners) -> Result<Self> {
        Self::named(world, (send, SEND), (receive, RECEIVE), partners)
    }

    /// One buffer for both.
    fn find_place(world: &World, what: Described, partners: Partners) -> Result<Self> {
        Self::named(world, (what, SEND_PLACE), (what, RECEIVE_PLACE), partners)
    }

    fn named(
        world: &World,
        send: (Described, HalfNames),
        receive: (Described, HalfNames),
        partners: Partners,
    ) -> Result<Self> {
        let (dest, sendtag, source, recvtag, comm) = partners;
        let route = destination(&world.comms, comm, dest, sendtag).map_err(|error| send.1.blame(error))?;
        let from = selection(&world.comms, comm, source, recvtag).map_err(|error| receive.1.blame(error))?;
        let buffer = |(what, names): (Described, HalfNames), has_partner| {
            Buffer::with_partner(&world.types, what, names.datatype, has_partner).map_err(|error| names.blame(error))
        };
        let send = buffer(send, route.is_some())?;
        let receive = buffer(receive, from.is_some())?;
        Ok(Self { route, from, send, receive, comm })
    }

    /// Starts both, the receive first, so that a partner's message finds its buffer.
    ///
    /// # Safety
    /// The buffers are the program's until the exchange is complete, and do not overlap.
    unsafe fn start(self, ground: &mut Ground) -> Result<SendReceive> {
        // SAFETY: the caller's promise.
        unsafe {
            let send = match (&self.send, self.route) {
                // What can fail comes before the receive is there.
                (Buffer::Scattered(scattered), Some(_)) => Some(scattered.pack()?),
                _ => None,
            };
            let receive = start_half(ground, self.from, self.receive, self.comm)?;
            let send = match (self.route, send) {
                (None, _) => Request::Done(OperationEnd::EMPTY),
                (Some(route), Some(packed)) => {
                    start_packed(ground.endpoint, route, PointMode::Standard, packed, self.comm)
                }
                (Some(route), None) => start_send(ground, route, PointMode::Standard, &self.send, self.comm)?,
            };
            Ok(SendReceive::new(send, receive))
        }
    }

    /// Starts both where the buffer is the same: the send first, from a copy if it cannot leave at once.
    ///
    /// # Safety
    /// The buffer is the program's until the exchange is complete.
    unsafe fn start_replacing(self, ground: &mut Ground) -> Result<SendReceive> {
        // SAFETY: the caller's promise; what is still to be sent when the receive starts is a copy.
        unsafe {
            let send = match (self.route, &self.send) {
                (None, _) => Request::Done(OperationEnd::EMPTY),
                (Some(route), Buffer::Run(run))
                    if ground.endpoint.try_send(route.to, route.envelope, run.at, run.bytes) =>
                {
                    Request::Done(OperationEnd::EMPTY)
                }
                (Some(route), buffer) => {
                    start_packed(ground.endpoint, route, PointMode::Standard, buffer.pack()?, self.comm)
                }
            };
            match start_half(ground, self.from, self.receive, self.comm) {
                Ok(receive) => Ok(SendReceive::new(send, receive)),
                Err(error) => {
                    send.abandon(ground);
                    Err(error)
                }
            }
        }
    }
}

/// # Safety
/// As [`start_receive`].
unsafe fn start_half(ground: &mut Ground, from: Option<Selector>, buffer: Buffer, comm: usize) -> Result<Request> {
    match from {
        None => Ok(Request::Done(OperationEnd::NO_PROC)),
        // SAFETY: the caller's promise.
        Some(from) => unsafe { start_receive(ground, ReceiveSource::Matching(from), buffer, comm) },
    }
}

/// Waits for both halves.
///
/// # Safety
/// `status` is null or points to a status.
unsafe fn complete(
    call: &'static str,
    mut exchange: SendReceive,
    from: Option<Selector>,
    status: *mut Status,
) -> Result<()> {
    let with = from.unwrap_or(Selector { context: 0, peer: None, tag: None });
    let end = WORLD.wait(waiting(call, with), |world| {
        exchange.end_stalled(&world.failures, &mut world.endpoint);
        exchange.end(&mut world.split().1)
    });
    // SAFETY: the caller's promise.
    unsafe { finish(end, status) }
}

/// `MPI_Sendrecv`.
#[allow(clippy::too_many_arguments)]
pub unsafe fn sendrecv(
    send: Described,
    dest: i32,
    sendtag: i32,
    receive: Described,
    source: i32,
    recvtag: i32,
    comm: usize,
    status: *mut Status,
) -> Result<()> {
    let mut world = WORLD.enter();
    let halves = Halves::find(&world, send, receive, (dest, sendtag, source, recvtag, comm))?;
    // SAFETY: the program's buffers and status, for the time of the call.
    unsafe {
        if let (Some(route), Some(from), Buffer::Run(send), Buffer::Run(receive)) =
            (halves.route, halves.from, &halves.send, &halves.receive)
            && world.endpoint.try_send(route.to, route.envelope, send.at, send.bytes)
        {
            return receive_into("MPI_Sendrecv", world, from, *receive, comm, status);
        }
        let from = halves.from;
        let exchange = halves.start(&mut world.split().1)?;
        drop(world);
        complete("MPI_Sendrecv", exchange, from, status)
    }
}

/// `MPI_Sendrecv_replace`.
#[allow(clippy::too_many_arguments)]
pub unsafe fn sendrecv_replace(
    what: Described,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: usize,
    status: *mut Status,
) -> Result<()> {
    let mut world = WORLD.enter();
    let halves = Halves::find_place(&world, what, (dest, sendtag, source, recvtag, comm))?;
    let from = halves.from;
    // SAFETY: the program's buffer and status, for the time of the call.
    unsafe {
        let exchange = halves.start_replacing(&mut world.split().1)?;
        drop(world);
        complete("MPI_Sendrecv_replace", exchange, from, status)
    }
}

/// `MPI_Isendrecv`.
#[allow(clippy::too_many_arguments)]
pub unsafe fn isendrecv(
    send: Described,
    dest: i32,
    sendtag: i32,
    receive: Described,
    source: i32,
    recvtag: i32,
    comm: usize,
) -> Result<usize> {
    let mut world = WORLD.enter();
    let halves = Halves::find(&world, send, receive, (dest, sendtag, source, recvtag, comm))?;
    let (requests, mut ground) = world.split();
    // SAFETY: the program's buffers, until the request is complete.
    let exchange = unsafe { halves.start(&mut ground)? };
    Ok(requests.insert(Request::Exchange(Box::new(exchange))))
}

/// `MPI_Isendrecv_replace`.
#[allow(clippy::too_many_arguments)]
pub unsafe fn isendrecv_replace(
    what: Described,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: usize,
) -> Result<usize> {
    let mut world = WORLD.enter();
    let halves = Halves::find_place(&world, what, (dest, sendtag, source, recvtag, comm))?;
    let (requests, mut ground) = world.split();
    // SAFETY: the program's buffer, until the request is complete.
    let exchange = unsafe { halves.start_replacing(&mut ground)? };
    Ok(requests.insert(Request::Exchange(Box::new(exchange))))
}
