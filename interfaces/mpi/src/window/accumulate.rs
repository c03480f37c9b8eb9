//! The accumulate family: what combines, and what fetches what was there before.

use super::apply::{Action, apply};
use super::elements::{Span, Spans, basic, operation, spans};
use super::epoch::wait_in_window;
use super::message::{AnswerLanding, AnswerPlace, WindowHead, WindowMessageKind};
use super::transfer::{expect, give_up, packed, pieces, send_when_room};
use super::words::{self, WhichLock};
use super::{TargetWay, Window};
use crate::abi::{Aim, Described, PROC_NULL};
use crate::datatype::{Datatype, TypeGroup};
use crate::error::{Class, Error, Result};
use crate::handle::HandleTable;
use crate::op::PredefinedOperation;
use crate::point::Buffer;
use crate::request::SENT;
use crate::world::{WORLD, World};
use std::ffi::c_void;
use weft_fabric::Endpoint;

/// A checked operation.
struct Deed {
    rank: usize,
    spans: Spans,
    action: Action,
    op: PredefinedOperation,
    basic: &'static Datatype,
    elements: usize,
    /// The origin's elements side by side, each in the extent of its type: the program's, or `held`.
    origin: *const u8,
    /// Of the origin, bytes.
    origin_bytes: usize,
    _held: Vec<u8>,
    /// Where what was there goes; null if nobody asks.
    result: *mut u8,
    landing: AnswerLanding,
}

impl Deed {
    fn extent(&self) -> usize {
        self.basic.extent() as usize
    }
}

/// Elements side by side for what a buffer holds: its own memory if it is such.
fn in_row(buffer: &Buffer, elements: usize, basic: &Datatype, is_basic: bool) -> Option<*mut u8> {
    match buffer {
        Buffer::Run(run) if basic.size() == basic.extent() => Some(run.at),
        _ if elements == 0 => Some(std::ptr::null_mut()),
        _ if is_basic => buffer.address(),
        _ => None,
    }
}

/// # Safety
/// The buffer is readable.
unsafe fn spread(buffer: &Buffer, elements: usize, basic: &Datatype) -> Result<Vec<u8>> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { packed(buffer)? };
    let mut row = vec![0u8; elements * basic.extent() as usize];
    // SAFETY: the row has room for the elements.
    unsafe { basic.unpack(row.as_mut_ptr(), elements as i64, 0, bytes.bytes()) };
    Ok(row)
}

/// Brings elements side by side to the program's buffer.
///
/// # Safety
/// The buffer is writable.
pub(super) unsafe fn gather(row: &[u8], buffer: &Buffer, basic: &Datatype) -> Result<()> {
    let elements = row.len() / basic.extent().max(1) as usize;
    let mut bytes = vec![0u8; elements * basic.size() as usize];
    // SAFETY: the row holds the elements; the program's buffer has room for `bytes`, or for fewer.
    unsafe {
        basic.pack(row.as_ptr(), elements as i64, 0, &mut bytes);
        match buffer {
            Buffer::Run(run) => {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), run.at, run.bytes.min(bytes.len()));
            }
            Buffer::Scattered(scattered) => scattered.unpack_from(bytes.as_ptr(), bytes.len()),
        }
    }
    Ok(())
}

/// What the program asks for.
pub struct AccumulateCall {
    pub name: &'static str,
    pub handle: usize,
    /// None where the operation looks at nothing of the origin.
    pub origin: Described,
    pub result: Option<Described>,
    pub aim: Aim,
    pub op: usize,
    pub has_request: bool,
}

/// All of the family but compare-and-swap; answers a request.
///
/// # Safety
/// The buffers are the program's for this purpose, until the operation is complete.
pub unsafe fn accumulate(call: &AccumulateCall) -> Result<usize> {
    let mut guard = WORLD.enter();
    let World { windows, types, ops, endpoint, .. } = &mut *guard;
    let window = &mut **windows.table.get_mut(call.handle)?;
    let op = operation(ops, call.op)?;
    // SAFETY: the caller's promise; the deed was checked against the window's sizes.
    let (deed, tried) = unsafe {
        let Some(deed) = plan(window, types, op, call)? else { return Ok(SENT) };
        let tried = try_deed(window, endpoint, &deed)?;
        (deed, tried)
    };
    drop(guard);
    finish(call.name, call.handle, deed, tried, call.has_request)
}

/// # Safety
/// As [`accumulate`].
unsafe fn plan(
    window: &mut Window,
    types: &HandleTable<Datatype>,
    op: PredefinedOperation,
    call: &AccumulateCall,
) -> Result<Option<Deed>> {
    if op == PredefinedOperation::NoOp && call.result.is_none() {
        let detail = "op is MPI_NO_OP, which changes nothing and fetches nothing here".to_owned();
        return Err(Error::new(Class::Op, detail));
    }
    let has_target = call.aim.rank != PROC_NULL;
    let describe = |what, name| Buffer::with_partner(types, what, name, has_target);
    let origin = if op == PredefinedOperation::NoOp { None } else { Some(describe(call.origin, "origin_datatype")?) };
    let result = call.result.map(|result| describe(result, "result_datatype")).transpose()?;
    let sight = match window.sight(types, &call.aim)? {
        Some(sight) if sight.bytes > 0 => sight,
        _ => return Ok(None),
    };
    let basic = basic(sight.datatype, op)?;
    same_bytes("origin", origin.as_ref(), sight.bytes)?;
    same_bytes("result", result.as_ref(), sight.bytes)?;
    let elements = sight.bytes / basic.size().max(1) as usize;
    let action = Action::of(op, basic)?;
    let is_basic = |datatype: usize| basic.code().is_some_and(|code| usize::from(code) == datatype);
    let mut held = Vec::new();
    let from = match &origin {
        None => std::ptr::null(),
        Some(origin) => match in_row(origin, elements, basic, is_basic(call.origin.datatype)) {
            Some(at) => at.cast_const(),
            None => {
                // SAFETY: the caller's promise.
                held = unsafe { spread(origin, elements, basic)? };
                held.as_ptr()
            }
        },
    };
    let bytes = elements * basic.extent() as usize;
    let (result, landing) = result.map_or((std::ptr::null_mut(), AnswerLanding::There), |buffer| {
        place_of_result(buffer, bytes, elements, basic, is_basic(call.result.map_or(0, |result| result.datatype)))
    });
    let origin_bytes = if origin.is_some() { bytes } else { 0 };
    let spans = spans(sight.datatype, sight.count, sight.at, basic);
    let rank = sight.rank;
    let deed =
        Deed { rank, spans, action, op, basic, elements, origin: from, origin_bytes, _held: held, result, landing };
    Ok((elements > 0).then_some(deed))
}

fn same_bytes(name: &str, buffer: Option<&Buffer>, target: usize) -> Result<()> {
    match buffer.map(Buffer::bytes) {
        Some(bytes) if bytes != target => {
            Err(Error::new(Class::Truncate, format!("the {name} describes {bytes} bytes, the target {target}")))
        }
        _ => Ok(()),
    }
}

/// Where what was there goes: the program's buffer, or `bytes` of memory that are brought there afterwards.
fn place_of_result(
    buffer: Buffer,
    bytes: usize,
    elements: usize,
    basic: &'static Datatype,
    is_basic: bool,
) -> (*mut u8, AnswerLanding) {
    match in_row(&buffer, elements, basic, is_basic) {
        Some(at) => (at, AnswerLanding::There),
        None => {
            let mut memory = vec![0u8; bytes];
            (memory.as_mut_ptr(), AnswerLanding::Elements(memory, buffer, basic))
        }
    }
}

/// `MPI_Fetch_and_op`: as [`accumulate`] of one element, on a short way where its type is predefined and has no gaps.
///
/// # Safety
/// As [`accumulate`].
pub unsafe fn fetch_and_op(
    handle: usize,
    (origin, result): (*const c_void, *mut c_void),
    datatype: usize,
    (rank, disp): (i32, isize),
    op: usize,
) -> Result<()> {
    let name = "MPI_Fetch_and_op";
    let aim = Aim { rank, disp, count: 1, datatype };
    let mut guard = WORLD.enter();
    let World { windows, types, ops, endpoint, .. } = &mut *guard;
    let window = &mut **windows.table.get_mut(handle)?;
    let predefined = operation(ops, op)?;
    let fetches_only = predefined == PredefinedOperation::NoOp;
    let basic = Datatype::predefined(datatype).filter(|basic| basic.size() > 0 && basic.size() == basic.extent());
    let has_places = !result.is_null() && (fetches_only || !origin.is_null());
    let Some(basic) = basic.filter(|_| has_places && rank != PROC_NULL) else {
        drop(guard);
        let described = |buffer| Described { buffer, count: 1, datatype };
        let (origin, result) = (described(origin), Some(described(result.cast_const())));
        // SAFETY: the caller's promise.
        return unsafe {
            accumulate(&AccumulateCall { name, handle, origin, result, aim, op, has_request: false }).map(drop)
        };
    };
    let Some(sight) = window.sight(types, &aim)? else { return Ok(()) };
    let deed = Deed {
        rank: sight.rank,
        spans: Spans::One([Span { at: sight.at, count: 1 }]),
        action: Action::of(predefined, basic)?,
        op: predefined,
        basic,
        elements: 1,
        origin: origin.cast(),
        origin_bytes: if fetches_only { 0 } else { sight.bytes },
        _held: Vec::new(),
        result: result.cast(),
        landing: AnswerLanding::There,
    };
    // SAFETY: the deed was checked against the window's sizes, and its buffers are the program's.
    let tried = unsafe { try_deed(window, endpoint, &deed)? };
    if let TriedOperation::Done = tried {
        return Ok(());
    }
    drop(guard);
    finish(name, handle, deed, tried, false).map(drop)
}

/// `MPI_Compare_and_swap`.
///
/// # Safety
/// As [`accumulate`].
pub unsafe fn compare_and_swap(
    handle: usize,
    (origin, compare, result): (*const c_void, *const c_void, *mut c_void),
    datatype: usize,
    (rank, disp): (i32, isize),
) -> Result<()> {
    // Twice the longest integer.
    let mut held = [0u8; 16];
    let (deed, tried) = {
        let mut guard = WORLD.enter();
        let World { windows, types, endpoint, .. } = &mut *guard;
        let window = &mut **windows.table.get_mut(handle)?;
        let kind = types.get(datatype)?;
        let allowed = [
            TypeGroup::CInteger,
            TypeGroup::FortranInteger,
            TypeGroup::Logical,
            TypeGroup::MultiLanguage,
            TypeGroup::Byte,
        ];
        let basic = Datatype::predefined(datatype).filter(|basic| {
            basic.named().is_some_and(|named| allowed.contains(&named.group) && !named.scalars.is_empty())
        });
        let Some(basic) = basic else {
            let detail = format!("datatype {kind:?} is none of integers, logical values, bytes, addresses and counts");
            return Err(Error::new(Class::Type, detail));
        };
        let places = [("origin_addr", origin), ("compare_addr", compare), ("result_addr", result.cast_const())];
        let Some(sight) = window.sight(types, &Aim { rank, disp, count: 1, datatype })? else { return Ok(()) };
        if let Some((name, _)) = places.iter().find(|(_, place)| place.is_null()) {
            return Err(Error::new(Class::Buffer, format!("{name} is a null pointer")));
        }
        let size = sight.bytes;
        assert!(2 * size <= held.len(), "no integer is longer");
        // SAFETY: the program's elements.
        unsafe {
            std::ptr::copy_nonoverlapping(compare.cast(), held.as_mut_ptr(), size);
            std::ptr::copy_nonoverlapping(origin.cast(), held.as_mut_ptr().add(size), size);
        }
        let deed = Deed {
            rank: sight.rank,
            spans: Spans::One([Span { at: sight.at, count: 1 }]),
            action: Action::Swap,
            op: PredefinedOperation::Replace,
            basic,
            elements: 1,
            origin: held.as_ptr(),
            origin_bytes: 2 * size,
            _held: Vec::new(),
            result: result.cast(),
            landing: AnswerLanding::There,
        };
        // SAFETY: the deed was checked against the window's sizes, and its buffers are the program's.
        let tried = unsafe { try_deed(window, endpoint, &deed)? };
        (deed, tried)
    };
    finish("MPI_Compare_and_swap", handle, deed, tried, false).map(drop)
}

/// Whether an operation could be done.
pub(super) enum TriedOperation {
    Done,
    /// Somebody holds the lock.
    Busy,
    /// The memory cannot be reached from here.
    Elsewhere,
}

/// What is left to be done after the first try.
fn finish(
    call: &'static str,
    handle: usize,
    deed: Deed,
    mut tried: TriedOperation,
    has_request: bool,
) -> Result<usize> {
    let attempt = |world: &mut World| -> Result<TriedOperation> {
        let World { windows, endpoint, .. } = world;
        let window = &mut **windows.table.get_mut(handle)?;
        // SAFETY: the deed was checked against the window's sizes, and its buffers are the program's.
        unsafe { try_deed(window, endpoint, &deed) }
    };
    if let TriedOperation::Busy = tried {
        let rank = deed.rank;
        tried = wait_in_window(call, handle, Some(rank), |world, looks| match attempt(world) {
            Ok(TriedOperation::Busy) if looks => {
                let World { windows, endpoint, .. } = world;
                windows.table.find(handle)?.ended_holder(endpoint, rank, WhichLock::Accumulate).map(Err)
            }
            Ok(TriedOperation::Busy) => None,
            tried => Some(tried),
        })?;
    }
    match tried {
        TriedOperation::Elsewhere => send(call, handle, deed, has_request),
        _ => {
            if let AnswerLanding::Elements(memory, buffer, basic) = &deed.landing {
                // SAFETY: the program's buffer for the result.
                unsafe { gather(memory, buffer, basic)? };
            }
            Ok(SENT)
        }
    }
}

/// # Safety
/// The deed fits the window, and its buffers are valid.
unsafe fn try_deed(window: &mut Window, endpoint: &mut Endpoint, deed: &Deed) -> Result<TriedOperation> {
    let target = &window.targets[deed.rank];
    let (Some(place), false) = (target.place, matches!(target.way, TargetWay::Message)) else {
        return Ok(TriedOperation::Elsewhere);
    };
    let me = window.comm.rank;
    if !words::try_lock(window.words.word(place, WhichLock::Accumulate), true, me) {
        return Ok(TriedOperation::Busy);
    }
    // SAFETY: the caller's promise, and the lock is held.
    let done = unsafe { apply(target, deed.action, &deed.spans, deed.basic, (deed.origin, deed.result)) };
    window.release_word(endpoint, place, WhichLock::Accumulate, true);
    match done {
        Ok(()) => Ok(TriedOperation::Done),
        Err(error) => window.refused(deed.rank, &error).map_or(Ok(TriedOperation::Elsewhere), Err),
    }
}

/// By messages.
#[cold]
fn send(call: &'static str, handle: usize, deed: Deed, has_request: bool) -> Result<usize> {
    let extent = deed.extent();
    let fetches = !deed.result.is_null();
    let bytes = deed.elements * extent;
    let kind = match deed.action {
        Action::Swap => WindowMessageKind::CompareAndSwap,
        _ if fetches => WindowMessageKind::FetchAccumulate,
        _ => WindowMessageKind::Accumulate,
    };
    let origin: &[u8] = match deed.origin_bytes {
        0 => &[],
        // SAFETY: the origin's elements, as long as the deed lives.
        bytes => unsafe { std::slice::from_raw_parts(deed.origin, bytes) },
    };
    let mut head =
        WindowHead { element: deed.basic.code().map_or(0, u64::from), op: deed.op as u64, ..WindowHead::new(kind) };
    let parts = pieces(&deed.spans, extent, extent as i64);
    let mut request = SENT;
    if fetches {
        let (rank, at, landing) = (deed.rank, deed.result, deed.landing);
        let reply =
            AnswerPlace { rank, left: bytes, parts: 0, at, bytes, landing, request: None, fault: None, doubted: false };
        (head.id, request) = expect(call, handle, reply, has_request)?;
    }
    for piece in parts {
        let payload = match deed.action {
            Action::Swap => origin,
            _ if origin.is_empty() => origin,
            _ => &origin[piece.from..piece.from + piece.bytes],
        };
        head.position = piece.from as u64;
        if let Err(error) = send_when_room(call, handle, deed.rank, head, &piece.spans, payload) {
            return Err(give_up(handle, head.id, request, error));
        }
    }
    Ok(request)
}
