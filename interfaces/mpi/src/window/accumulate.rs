//! The accumulate family: what combines, and what fetches what was there before.

use super::elements::{Span, Spans, basic, operation, runs, spans};
use super::epoch::wait_in_window;
use super::message::{Head, Kind, Landing, Reply};
use super::remote;
use super::transfer::{Aim, Described, expect, give_up, packed, pieces, send_when_room};
use super::words::{self, Which};
use super::{Way, Window};
use crate::abi::PROC_NULL;
use crate::datatype::{Datatype, Group};
use crate::error::{Class, Error, Result};
use crate::handle::Table;
use crate::op::{Kernel, Predefined};
use crate::point::Buffer;
use crate::request::SENT;
use crate::world::{WORLD, World};
use std::ffi::c_void;
use weft_fabric::Endpoint;
use weft_fabric::region::Attach;

/// What is copied out of another process's memory, changed and copied back at a time, bytes: it stays in the caches.
const PIECE: usize = 32 * 1024;

/// What is done to each element.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// `MPI_NO_OP`: only what is there is fetched.
    Keep,
    Replace,
    Combine(Kernel),
    /// Stored if what is there equals the first half of the origin's elements.
    Swap,
}

impl Action {
    /// # Errors
    /// The operation is not defined for the type.
    pub fn of(op: Predefined, basic: &Datatype) -> Result<Self> {
        Ok(match op {
            Predefined::NoOp => Self::Keep,
            Predefined::Replace => Self::Replace,
            op => Self::Combine(op.kernel(basic)?),
        })
    }
}

/// A checked operation.
struct Deed {
    rank: usize,
    spans: Spans,
    action: Action,
    op: Predefined,
    basic: &'static Datatype,
    elements: usize,
    /// The origin's elements side by side, each in the extent of its type: the program's, or `held`.
    origin: *const u8,
    /// Of the origin, bytes.
    origin_bytes: usize,
    _held: Vec<u8>,
    /// Where what was there goes; null if nobody asks.
    result: *mut u8,
    landing: Landing,
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
pub struct Call {
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
pub unsafe fn accumulate(call: &Call) -> Result<usize> {
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
unsafe fn plan(window: &mut Window, types: &Table<Datatype>, op: Predefined, call: &Call) -> Result<Option<Deed>> {
    if op == Predefined::NoOp && call.result.is_none() {
        let detail = "op is MPI_NO_OP, which changes nothing and fetches nothing here".to_owned();
        return Err(Error::new(Class::Op, detail));
    }
    let has_target = call.aim.rank != PROC_NULL;
    let describe =
        |name, (at, count, datatype): Described| Buffer::with_partner(types, (at, count), (name, datatype), has_target);
    let origin = if op == Predefined::NoOp { None } else { Some(describe("origin_datatype", call.origin)?) };
    let result = call.result.map(|result| describe("result_datatype", result)).transpose()?;
    let sight = match window.sight(types, &call.aim)? {
        Some(sight) if sight.bytes > 0 => sight,
        _ => return Ok(None),
    };
    let basic = basic(sight.datatype, op)?;
    let sides = [("origin", &origin), ("result", &result)];
    for (name, buffer) in sides {
        if let Some(buffer) = buffer
            && buffer.bytes() != sight.bytes
        {
            let detail = format!("the {name} describes {} bytes, the target {}", buffer.bytes(), sight.bytes);
            return Err(Error::new(Class::Truncate, detail));
        }
    }
    let elements = sight.bytes / basic.size().max(1) as usize;
    let action = Action::of(op, basic)?;
    let is_basic = |datatype: usize| basic.code().is_some_and(|code| usize::from(code) == datatype);
    let (mut held, mut from) = (Vec::new(), std::ptr::null());
    if let Some(origin) = &origin {
        match in_row(origin, elements, basic, is_basic(call.origin.2)) {
            Some(at) => from = at.cast_const(),
            None => {
                // SAFETY: the caller's promise.
                held = unsafe { spread(origin, elements, basic)? };
                from = held.as_ptr();
            }
        }
    }
    let extent = basic.extent() as usize;
    let (result, landing) = match result {
        None => (std::ptr::null_mut(), Landing::There),
        Some(buffer) => match in_row(&buffer, elements, basic, is_basic(call.result.map_or(0, |result| result.2))) {
            Some(at) => (at, Landing::There),
            None => {
                let mut memory = vec![0u8; elements * extent];
                (memory.as_mut_ptr(), Landing::Elements(memory, buffer, basic))
            }
        },
    };
    let origin_bytes = if origin.is_some() { elements * extent } else { 0 };
    let spans = spans(sight.datatype, sight.count, sight.at, basic);
    Ok((elements > 0).then_some(Deed {
        rank: sight.rank,
        spans,
        action,
        op,
        basic,
        elements,
        origin: from,
        origin_bytes,
        _held: held,
        result,
        landing,
    }))
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
    let fetches_only = predefined == Predefined::NoOp;
    let basic = Datatype::predefined(datatype).filter(|basic| basic.size() > 0 && basic.size() == basic.extent());
    let has_places = !result.is_null() && (fetches_only || !origin.is_null());
    let Some(basic) = basic.filter(|_| has_places && rank != PROC_NULL) else {
        drop(guard);
        let described = |at| (at, 1, datatype);
        let (origin, result) = (described(origin), Some(described(result.cast_const())));
        // SAFETY: the caller's promise.
        return unsafe { accumulate(&Call { name, handle, origin, result, aim, op, has_request: false }).map(drop) };
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
        landing: Landing::There,
    };
    // SAFETY: the deed was checked against the window's sizes, and its buffers are the program's.
    let tried = unsafe { try_deed(window, endpoint, &deed)? };
    if let Tried::Done = tried {
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
        let allowed = [Group::CInteger, Group::FortranInteger, Group::Logical, Group::MultiLanguage, Group::Byte];
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
            op: Predefined::Replace,
            basic,
            elements: 1,
            origin: held.as_ptr(),
            origin_bytes: 2 * size,
            _held: Vec::new(),
            result: result.cast(),
            landing: Landing::There,
        };
        // SAFETY: the deed was checked against the window's sizes, and its buffers are the program's.
        let tried = unsafe { try_deed(window, endpoint, &deed)? };
        (deed, tried)
    };
    finish("MPI_Compare_and_swap", handle, deed, tried, false).map(drop)
}

/// Whether an operation could be done.
pub(super) enum Tried {
    Done,
    /// Somebody holds the lock.
    Busy,
    /// The memory cannot be reached from here.
    Elsewhere,
}

/// What is left to be done after the first try.
fn finish(call: &'static str, handle: usize, deed: Deed, mut tried: Tried, has_request: bool) -> Result<usize> {
    let attempt = |world: &mut World| -> Result<Tried> {
        let World { windows, endpoint, .. } = world;
        let window = &mut **windows.table.get_mut(handle)?;
        // SAFETY: the deed was checked against the window's sizes, and its buffers are the program's.
        unsafe { try_deed(window, endpoint, &deed) }
    };
    if let Tried::Busy = tried {
        let rank = deed.rank;
        tried = wait_in_window(call, handle, Some(rank), |world, looks| match attempt(world) {
            Ok(Tried::Busy) if looks => {
                let World { windows, endpoint, .. } = world;
                windows.table.find(handle)?.ended_holder(endpoint, rank, Which::Accumulate).map(Err)
            }
            Ok(Tried::Busy) => None,
            tried => Some(tried),
        })?;
    }
    match tried {
        Tried::Elsewhere => send(call, handle, deed, has_request),
        _ => {
            if let Landing::Elements(memory, buffer, basic) = &deed.landing {
                // SAFETY: the program's buffer for the result.
                unsafe { gather(memory, buffer, basic)? };
            }
            Ok(SENT)
        }
    }
}

/// # Safety
/// The deed fits the window, and its buffers are valid.
unsafe fn try_deed(window: &mut Window, endpoint: &mut Endpoint, deed: &Deed) -> Result<Tried> {
    let target = &window.targets[deed.rank];
    let (Some(place), false) = (target.place, matches!(target.way, Way::Message)) else { return Ok(Tried::Elsewhere) };
    let me = window.comm.rank;
    if !words::try_lock(window.words.word(place, Which::Accumulate), true, me) {
        return Ok(Tried::Busy);
    }
    // SAFETY: the caller's promise, and the lock is held.
    let done = unsafe { apply(target, deed.action, &deed.spans, deed.basic, (deed.origin, deed.result)) };
    window.release_word(endpoint, place, Which::Accumulate, true);
    match done {
        Ok(()) => Ok(Tried::Done),
        Err(error) => window.refused(deed.rank, &error).map_or(Ok(Tried::Elsewhere), Err),
    }
}

/// Does it, with the lock held.
///
/// # Safety
/// The spans lie in the target's memory; the origin has the elements, and the result, if not null, room for them.
pub(super) unsafe fn apply(
    target: &super::Target,
    action: Action,
    spans: &[Span],
    basic: &Datatype,
    (mut origin, mut result): (*const u8, *mut u8),
) -> std::io::Result<()> {
    let extent = basic.extent() as usize;
    if let Way::Attach(attach) = target.way
        && basic.size() == basic.extent()
    {
        // SAFETY: the caller's promise.
        return unsafe { apart(attach, target.base, (action, spans, basic), (origin, result)) };
    }
    for span in spans.iter().filter(|span| span.count > 0) {
        let bytes = span.count * extent;
        // SAFETY: the caller's promise; the kernel was chosen for the type.
        unsafe {
            match target.way {
                Way::Mapped(base) => {
                    let at = base.wrapping_offset(span.at as isize);
                    if !result.is_null() {
                        std::ptr::copy_nonoverlapping(at, result, bytes);
                    }
                    change(action, origin, at, span.count, basic);
                }
                Way::Attach(attach) => {
                    let at = target.base.wrapping_add(span.at as u64);
                    through(attach, at, action, (origin, result), bytes, basic)?;
                }
                Way::Message => return Err(std::io::Error::other("its memory is not reached from here")),
            }
        }
        origin = origin.wrapping_add(bytes);
        if !result.is_null() {
            result = result.wrapping_add(bytes);
        }
    }
    Ok(())
}

/// As [`apply`] for elements without gaps in another process's memory: many spans at once through memory of ours. What
/// replaces all and fetches nothing goes straight there.
///
/// # Safety
/// As [`apply`].
unsafe fn apart(
    attach: Attach,
    base: u64,
    (action, spans, basic): (Action, &[Span], &Datatype),
    (origin, result): (*const u8, *mut u8),
) -> std::io::Result<()> {
    let extent = basic.extent() as usize;
    if matches!(action, Action::Replace) && result.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { remote::scatter(attach, base, spans, extent, origin) };
    }
    let mut aside = Vec::new();
    for piece in pieces(spans, extent, extent as i64) {
        aside.resize(piece.bytes.max(aside.len()), 0u8);
        // SAFETY: `aside` has room for a piece; origin and result have the bytes of all.
        unsafe {
            remote::gather(attach, base, &piece.spans, extent, aside.as_mut_ptr())?;
            if !result.is_null() {
                std::ptr::copy_nonoverlapping(aside.as_ptr(), result.add(piece.from), piece.bytes);
            }
            let from = origin.wrapping_add(piece.from);
            if change(action, from, aside.as_mut_ptr(), piece.bytes / extent, basic) {
                remote::scatter(attach, base, &piece.spans, extent, aside.as_ptr())?;
            }
        }
    }
    Ok(())
}

/// As [`apply`] for one span with gaps in another process's memory, piece by piece through memory of ours.
///
/// # Safety
/// As [`apply`].
unsafe fn through(
    attach: Attach,
    at: u64,
    action: Action,
    (origin, result): (*const u8, *mut u8),
    bytes: usize,
    basic: &Datatype,
) -> std::io::Result<()> {
    let extent = basic.extent() as usize;
    let most = PIECE / extent * extent;
    let mut aside = vec![0u8; bytes.min(most)];
    for done in (0..bytes).step_by(most) {
        let length = most.min(bytes - done);
        // SAFETY: `aside` has room for a piece; origin and result have the bytes of the span.
        unsafe {
            attach.read(at.wrapping_add(done as u64), aside.as_mut_ptr(), length)?;
            if !result.is_null() {
                std::ptr::copy_nonoverlapping(aside.as_ptr(), result.add(done), length);
            }
            if change(action, origin.wrapping_add(done), aside.as_mut_ptr(), length / extent, basic) {
                // Between an element's parts somebody else may have written meanwhile.
                for run in runs(basic, (length / extent) as i64, 0).iter() {
                    let from = &aside[run.at as usize..][..run.count];
                    attach.write(from.as_ptr(), at.wrapping_add(done as u64).wrapping_add(run.at as u64), run.count)?;
                }
            }
        }
    }
    Ok(())
}

/// Changes `count` elements at `at`; whether there was anything to change.
///
/// # Safety
/// As [`apply`].
unsafe fn change(action: Action, origin: *const u8, at: *mut u8, count: usize, basic: &Datatype) -> bool {
    let extent = basic.extent() as usize;
    // SAFETY: the caller's promise.
    unsafe {
        match action {
            Action::Keep => false,
            Action::Replace => {
                // What lies between an element's parts is somebody else's.
                for run in runs(basic, count as i64, 0).iter() {
                    std::ptr::copy(origin.offset(run.at as isize), at.offset(run.at as isize), run.count);
                }
                true
            }
            Action::Combine(kernel) => {
                kernel(origin, at, at, count);
                true
            }
            Action::Swap => {
                let compare = std::slice::from_raw_parts(origin, extent);
                let equal = (0..extent).all(|byte| at.add(byte).read() == compare[byte]);
                if equal {
                    std::ptr::copy_nonoverlapping(origin.add(extent), at, extent);
                }
                equal
            }
        }
    }
}

/// By messages.
#[cold]
fn send(call: &'static str, handle: usize, deed: Deed, has_request: bool) -> Result<usize> {
    let extent = deed.extent();
    let fetches = !deed.result.is_null();
    let bytes = deed.elements * extent;
    let kind = match deed.action {
        Action::Swap => Kind::CompareAndSwap,
        _ if fetches => Kind::FetchAccumulate,
        _ => Kind::Accumulate,
    };
    let origin: &[u8] = match deed.origin_bytes {
        0 => &[],
        // SAFETY: the origin's elements, as long as the deed lives.
        bytes => unsafe { std::slice::from_raw_parts(deed.origin, bytes) },
    };
    let mut head = Head { element: deed.basic.code().map_or(0, u64::from), op: deed.op as u64, ..Head::new(kind) };
    let parts = pieces(&deed.spans, extent, extent as i64);
    let mut request = SENT;
    if fetches {
        let (rank, at, landing) = (deed.rank, deed.result, deed.landing);
        let reply =
            Reply { rank, left: bytes, parts: 0, at, bytes, landing, request: None, fault: None, doubted: false };
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
