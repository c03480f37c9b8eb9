//! Put and get.

use super::elements::{Span, Spans, bounds, runs};
use super::epoch::{find, wait_in_window};
use super::message::{AnswerLanding, AnswerPlace, MOST_PAYLOAD, MOST_SPANS, WindowHead, WindowMessageKind};
use super::remote;
use super::{Flavor, TargetWay, Window};
use crate::abi::{Aim, Described, PROC_NULL};
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::handle::HandleTable;
use crate::point::{Buffer, MemoryRun, Packed};
use crate::request::{Request, SENT};
use crate::world::{WORLD, World};
use std::io;
use weft_fabric::region::is_refusal;

/// Spans shorter than that, on average, the target stores faster than the kernel does; bytes. It has to take part,
/// which it does anyway where it ends the epoch with the origin.
const APART: usize = 1024;

/// A part of an operation that one message holds.
pub(super) struct OperationPiece {
    pub spans: Vec<Span>,
    /// Where its payload begins in the whole, and its length, in bytes.
    pub from: usize,
    pub bytes: usize,
}

/// Cuts spans of elements that take `unit` bytes each in a message.
pub(super) fn pieces(spans: &[Span], unit: usize, distance: i64) -> Vec<OperationPiece> {
    let mut pieces: Vec<OperationPiece> = Vec::new();
    let most = MOST_PAYLOAD / unit.max(1);
    let (mut from, mut elements) = (0, 0);
    for span in spans {
        let mut rest = *span;
        while rest.count > 0 {
            let full = pieces.last().is_none_or(|piece| piece.spans.len() == MOST_SPANS || elements == most);
            if full {
                pieces.push(OperationPiece { spans: Vec::new(), from, bytes: 0 });
                elements = 0;
            }
            let Some(piece) = pieces.last_mut() else { return pieces };
            let count = rest.count.min(most - elements);
            piece.spans.push(Span { at: rest.at, count });
            piece.bytes += count * unit;
            from += count * unit;
            elements += count;
            rest = Span { at: rest.at + count as i64 * distance, count: rest.count - count };
        }
    }
    pieces
}

/// What is known of the target side once it was checked.
pub(super) struct Sight<'a> {
    pub rank: usize,
    /// Of the first element, from the target's base.
    pub at: i64,
    pub datatype: &'a Datatype,
    pub count: i64,
    pub bytes: usize,
}

impl Window {
    /// Checks what the program names; `None` if it names nobody.
    #[inline]
    pub(super) fn sight<'a>(&mut self, types: &'a HandleTable<Datatype>, aim: &Aim) -> Result<Option<Sight<'a>>> {
        if aim.rank == PROC_NULL {
            return Ok(None);
        }
        let rank = self.rank(aim.rank)?;
        self.check_access(rank)?;
        let datatype = types.named("target_datatype", aim.datatype)?;
        datatype.check_communication()?;
        if aim.count < 0 {
            return Err(Error::new(Class::Count, format!("target_count {} is negative", aim.count)));
        }
        let bytes = datatype.packed_size(aim.count).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| {
            Error::new(Class::Count, format!("{} elements of {datatype:?} are more than 2^63-1 bytes", aim.count))
        })?;
        let is_address = self.flavor == Flavor::Dynamic;
        if aim.disp < 0 && !is_address {
            return Err(Error::new(Class::Disp, format!("target_disp {} is negative", aim.disp)));
        }
        let at =
            if is_address { aim.disp as usize as i128 } else { aim.disp as i128 * i128::from(self.targets[rank].unit) };
        let (low, high) = bounds(datatype, aim.count, at);
        if let Err(error) = self.check_range(rank, low, high)
            && !self.touches_only_attached(rank, (datatype, aim.count), at as i64)
        {
            return Err(error);
        }
        Ok(Some(Sight { rank, at: at as i64, datatype, count: aim.count, bytes }))
    }

    /// Whether each part of an access to one's own memory is attached, though what lies between them is not.
    #[cold]
    fn touches_only_attached(&self, rank: usize, (datatype, count): (&Datatype, i64), at: i64) -> bool {
        let is_attached =
            |span: &Span| self.check_range(rank, span.at.into(), (span.at + span.count as i64).into()).is_ok();
        self.flavor == Flavor::Dynamic && rank == self.me() && runs(datatype, count, at).iter().all(is_attached)
    }

    /// What an error of the kernel means for an access to a rank; nothing if it is to be tried by messages.
    #[cold]
    pub(super) fn refused(&mut self, rank: usize, error: &io::Error) -> Option<Error> {
        if is_refusal(error) {
            self.targets[rank].way = TargetWay::Message;
            return None;
        }
        let detail = format!("rank {rank} of {} has no memory at the place that was named", self.display_name());
        Some(Error::new(Class::RmaRange, detail))
    }
}

/// Refuses sides of different lengths.
#[inline]
fn check_lengths(origin: usize, target: usize) -> Result<()> {
    let differ = || {
        let detail = format!("the origin describes {origin} bytes, the target {target}: both have to be the same data");
        Error::new(Class::Truncate, detail)
    };
    if origin == target { Ok(()) } else { Err(differ()) }
}

/// What could not be done at once.
struct TransferRest {
    rank: usize,
    spans: Spans,
}

/// Moves between the two sides what can be moved at once; the spans of the target where that is not possible.
type MoveNow = unsafe fn(&mut Window, &Buffer, &Sight<'_>) -> Result<Option<Spans>>;

/// Finds both sides and has them moved by `now`; what is left, with the origin.
///
/// # Safety
/// The origin's buffer may be moved from or to, until the operation is complete; the target's memory is what the window
/// says.
#[inline]
unsafe fn begin(handle: usize, origin: Described, aim: Aim, now: MoveNow) -> Result<Option<(TransferRest, Buffer)>> {
    let mut guard = WORLD.enter();
    let World { windows, types, .. } = &mut *guard;
    let window = &mut **windows.table.get_mut(handle)?;
    let has_target = aim.rank != PROC_NULL;
    let buffer = Buffer::with_partner(types, origin, "origin_datatype", has_target)?;
    let Some(sight) = window.sight(types, &aim)? else { return Ok(None) };
    check_lengths(buffer.bytes(), sight.bytes)?;
    if sight.bytes == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise, and the range was checked.
    let spans = unsafe { now(window, &buffer, &sight)? };
    Ok(spans.map(|spans| (TransferRest { rank: sight.rank, spans }, buffer)))
}

/// `MPI_Put`; answers a request.
///
/// # Safety
/// As [`begin`].
#[inline]
pub unsafe fn put(call: &'static str, handle: usize, origin: Described, aim: Aim) -> Result<usize> {
    // SAFETY: the caller's promise.
    let Some((rest, buffer)) = (unsafe { begin(handle, origin, aim, put_now)? }) else { return Ok(SENT) };
    // SAFETY: as above.
    let packed = unsafe { packed(&buffer)? };
    send_put(call, handle, rest, packed.bytes())
}

#[inline]
unsafe fn put_now(window: &mut Window, buffer: &Buffer, sight: &Sight<'_>) -> Result<Option<Spans>> {
    match window.targets[sight.rank].way {
        TargetWay::Mapped(base) => {
            // SAFETY: the caller's promise.
            unsafe { store(buffer, base.wrapping_offset(sight.at as isize), sight)? };
            Ok(None)
        }
        TargetWay::Attach(attach) => {
            let to = window.targets[sight.rank].base;
            let spans = runs(sight.datatype, sight.count, sight.at);
            if spans.len() > 1 && sight.bytes / spans.len() < APART && window.targets_take_part() {
                return Ok(Some(spans));
            }
            // SAFETY: the caller's promise.
            let packed = unsafe { packed(buffer)? };
            // SAFETY: as many bytes as the spans have: the lengths were compared.
            if let Err(error) = unsafe { remote::scatter(attach, to, &spans, 1, packed.bytes().as_ptr()) } {
                return window.refused(sight.rank, &error).map_or(Ok(Some(spans)), Err);
            }
            Ok(None)
        }
        TargetWay::Message => Ok(Some(runs(sight.datatype, sight.count, sight.at))),
    }
}

/// Stores the origin's data into mapped memory; `at` is the address that the target's datatype counts from.
#[inline]
unsafe fn store(buffer: &Buffer, at: *mut u8, sight: &Sight) -> Result<()> {
    let Sight { datatype, count, bytes, .. } = *sight;
    let whole = datatype.contiguous_span(count).map(|(disp, _)| at.wrapping_offset(disp as isize));
    // SAFETY: the caller's promise: the buffer is readable, the target's memory writable.
    unsafe {
        match (buffer, whole) {
            (Buffer::Run(run), Some(to)) => copy_run(run.at, to, bytes),
            (Buffer::Run(run), None) => _ = datatype.unpack_from(at, count, 0, run.at, bytes),
            (Buffer::Scattered(scattered), Some(to)) => scattered.pack_to(to),
            (Buffer::Scattered(scattered), None) => {
                let packed = scattered.pack()?;
                datatype.unpack_from(at, count, 0, packed.at(), bytes);
            }
        }
    }
    Ok(())
}

/// Copies one run; single numbers in one move, so that nobody sees a half of one.
///
/// # Safety
/// `bytes` bytes are readable at `from` and writable at `to`.
#[inline]
unsafe fn copy_run(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: each arm copies exactly `bytes` bytes; `copy` allows both to overlap, where a process puts to itself.
    unsafe {
        match bytes {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => std::ptr::copy(from, to, bytes),
        }
    }
}

/// The packed bytes of a buffer: where it lies, if it is one run.
pub(super) enum PackedBytes<'a> {
    There(&'a [u8]),
    Copied(Packed),
}

impl PackedBytes<'_> {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::There(bytes) => bytes,
            // SAFETY: packing has written all of them.
            Self::Copied(packed) => unsafe { std::slice::from_raw_parts(packed.at(), packed.bytes) },
        }
    }
}

/// # Safety
/// The buffer is readable, and nobody writes it while the bytes are used.
pub(super) unsafe fn packed(buffer: &Buffer) -> Result<PackedBytes<'_>> {
    Ok(match buffer {
        Buffer::Run(MemoryRun { bytes: 0, .. }) => PackedBytes::There(&[]),
        // SAFETY: the caller's promise.
        Buffer::Run(run) => PackedBytes::There(unsafe { std::slice::from_raw_parts(run.at, run.bytes) }),
        // SAFETY: the caller's promise.
        Buffer::Scattered(scattered) => PackedBytes::Copied(unsafe { scattered.pack()? }),
    })
}

/// Waits until more may be sent, then sends it.
pub(super) fn send_when_room(
    call: &'static str,
    handle: usize,
    rank: usize,
    head: WindowHead,
    spans: &[Span],
    payload: &[u8],
) -> Result<()> {
    let mut sent = false;
    let mut attempt = |world: &mut World| -> Result<()> {
        let (window, endpoint) = find(world, handle)?;
        window.service.reap(endpoint);
        if window.service.has_room() {
            window.request(endpoint, rank, head, spans, payload);
            sent = true;
        }
        Ok(())
    };
    attempt(&mut WORLD.enter())?;
    if sent {
        return Ok(());
    }
    wait_for_room(call, handle, rank)?;
    let mut guard = WORLD.enter();
    let (window, endpoint) = find(&mut guard, handle)?;
    window.request(endpoint, rank, head, spans, payload);
    Ok(())
}

fn wait_for_room(call: &'static str, handle: usize, rank: usize) -> Result<()> {
    wait_in_window(call, handle, Some(rank), |world, looks| {
        let (window, endpoint) = find(world, handle).ok()?;
        window.service.reap(endpoint);
        if window.service.has_room() {
            return Some(Ok(()));
        }
        let ended = looks && endpoint.has_ended(window.targets[rank].peer);
        ended.then(|| Err(window.ended(rank)))
    })
}

#[cold]
fn send_put(call: &'static str, handle: usize, rest: TransferRest, bytes: &[u8]) -> Result<usize> {
    for piece in pieces(&rest.spans, 1, 1) {
        let payload = &bytes[piece.from..piece.from + piece.bytes];
        send_when_room(call, handle, rest.rank, WindowHead::new(WindowMessageKind::Put), &piece.spans, payload)?;
    }
    Ok(SENT)
}

/// `MPI_Get`; answers a request, which is one of its own if `has_request` and the data is not there yet.
///
/// # Safety
/// As [`begin`].
#[inline]
pub unsafe fn get(call: &'static str, handle: usize, origin: Described, aim: Aim, has_request: bool) -> Result<usize> {
    // SAFETY: the caller's promise.
    match unsafe { begin(handle, origin, aim, get_now)? } {
        Some((rest, buffer)) => ask_for(call, handle, rest, buffer, has_request),
        None => Ok(SENT),
    }
}

#[inline]
unsafe fn get_now(window: &mut Window, buffer: &Buffer, sight: &Sight<'_>) -> Result<Option<Spans>> {
    match window.targets[sight.rank].way {
        TargetWay::Mapped(base) => {
            // SAFETY: the caller's promise.
            unsafe { load(buffer, base.wrapping_offset(sight.at as isize), sight)? };
            Ok(None)
        }
        TargetWay::Attach(attach) => {
            let from = window.targets[sight.rank].base;
            let spans = runs(sight.datatype, sight.count, sight.at);
            let aside = match buffer {
                Buffer::Run(_) => None,
                Buffer::Scattered(_) => Some(Packed::new(sight.bytes)?),
            };
            let to = match (buffer, &aside) {
                (Buffer::Run(run), _) => run.at,
                (_, Some(aside)) => aside.at(),
                _ => return Ok(None),
            };
            // SAFETY: the place has room for the bytes of all spans.
            if let Err(error) = unsafe { remote::gather(attach, from, &spans, 1, to) } {
                return window.refused(sight.rank, &error).map_or(Ok(Some(spans)), Err);
            }
            if let (Buffer::Scattered(scattered), Some(aside)) = (buffer, &aside) {
                // SAFETY: the caller's promise; all bytes were read.
                unsafe { scattered.unpack(aside, sight.bytes) };
            }
            Ok(None)
        }
        TargetWay::Message => Ok(Some(runs(sight.datatype, sight.count, sight.at))),
    }
}

#[inline]
unsafe fn load(buffer: &Buffer, at: *mut u8, sight: &Sight) -> Result<()> {
    let Sight { datatype, count, bytes, .. } = *sight;
    let whole = datatype.contiguous_span(count).map(|(disp, _)| at.wrapping_offset(disp as isize));
    // SAFETY: the caller's promise: the buffer is writable, the target's memory readable.
    unsafe {
        match (buffer, whole) {
            (Buffer::Run(run), Some(from)) => copy_run(from, run.at, bytes),
            (Buffer::Run(run), None) => _ = datatype.pack_to(at, count, 0, run.at, bytes),
            (Buffer::Scattered(scattered), Some(from)) => scattered.unpack_from(from, bytes),
            (Buffer::Scattered(scattered), None) => {
                let packed = Packed::new(bytes)?;
                datatype.pack_to(at, count, 0, packed.at(), bytes);
                scattered.unpack(&packed, bytes);
            }
        }
    }
    Ok(())
}

#[cold]
fn ask_for(call: &'static str, handle: usize, rest: TransferRest, buffer: Buffer, has_request: bool) -> Result<usize> {
    let bytes = buffer.bytes();
    let (at, landing) = match &buffer {
        Buffer::Run(run) => (run.at, AnswerLanding::There),
        Buffer::Scattered(_) => {
            let mut memory = vec![0u8; bytes];
            (memory.as_mut_ptr(), AnswerLanding::Packed(memory, buffer))
        }
    };
    let reply = AnswerPlace {
        rank: rest.rank,
        left: bytes,
        parts: 0,
        at,
        bytes,
        landing,
        request: None,
        fault: None,
        doubted: false,
    };
    let (id, request) = expect(call, handle, reply, has_request)?;
    for piece in pieces(&rest.spans, 1, 1) {
        let head = WindowHead { id, position: piece.from as u64, ..WindowHead::new(WindowMessageKind::Get) };
        if let Err(error) = send_when_room(call, handle, rest.rank, head, &piece.spans, &[]) {
            return Err(give_up(handle, id, request, error));
        }
    }
    Ok(request)
}

/// An answer is not wanted any more, for this error: the program does with its buffer what it likes.
#[cold]
pub(super) fn give_up(handle: usize, id: u64, request: usize, error: Error) -> Error {
    let mut guard = WORLD.enter();
    let World { windows, requests, .. } = &mut *guard;
    if let Ok(window) = windows.table.get_mut(handle) {
        window.service.forget(id);
    }
    if request != SENT {
        let _ = requests.remove(request);
    }
    error
}

/// Makes ready for an answer; its number, and the program's request if it wants one.
pub(super) fn expect(
    call: &'static str,
    handle: usize,
    mut reply: AnswerPlace,
    has_request: bool,
) -> Result<(u64, usize)> {
    wait_for_room(call, handle, reply.rank)?;
    let mut guard = WORLD.enter();
    let World { windows, requests, .. } = &mut *guard;
    let window = windows.table.get_mut(handle)?;
    let request = if has_request { requests.insert(Request::pending()) } else { SENT };
    reply.request = has_request.then_some(request);
    Ok((window.service.expect(reply), request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_spans_are_cut_and_many_are_dealt_out() {
        let cut = pieces(&[Span { at: 100, count: 5000 }], 16, 16);
        let sizes: Vec<_> = cut.iter().map(|p| (p.spans.clone(), p.from, p.bytes)).collect();
        let most = MOST_PAYLOAD / 16;
        assert_eq!(sizes[0], (vec![Span { at: 100, count: most }], 0, MOST_PAYLOAD));
        assert_eq!(sizes[1].0[0].at, 100 + MOST_PAYLOAD as i64);
        assert_eq!(cut.iter().map(|p| p.bytes).sum::<usize>(), 5000 * 16);
        let many: Vec<Span> = (0..MOST_SPANS as i64 + 1).map(|i| Span { at: i * 10, count: 1 }).collect();
        let dealt = pieces(&many, 4, 4);
        assert_eq!((dealt.len(), dealt[1].from, dealt[1].spans[0].at), (2, MOST_SPANS * 4, MOST_SPANS as i64 * 10));
        assert!(pieces(&[], 1, 1).is_empty());
    }
}
