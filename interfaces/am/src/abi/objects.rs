//! Beginning and end, bundles, endpoints, and what they have.

use super::put;
use crate::failure::{AmFailure, Answer, answer, bad, no_resource};
use crate::inbound::settle;
use crate::life;
use crate::message::EndpointId;
use crate::name::EndpointName;
use crate::stats::Stats;
use crate::tables::{
    AfterHandler, AmEndpoint, AmHandle, BeforeHandler, CFunction, MOST_TRANSLATIONS, SegmentOfUser, TRANSLATIONS,
    Translation,
};
use crate::world::{WORLD, enter};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;
use weft_fabric::Peer;

const NO_BUNDLE: AmFailure = bad("no such bundle");
const NO_ENDPOINT: AmFailure = bad("no such endpoint");
const PARALLEL: c_int = 1;
const EVENT_MASKS: c_int = 2;

/// Does something with an endpoint.
fn with_endpoint<R>(place: AmHandle, what: impl FnOnce(&mut AmEndpoint) -> R) -> Answer<R> {
    let mut world = enter()?;
    let id = place.endpoint().ok_or(NO_ENDPOINT)?;
    Ok(what(world.tables.endpoint(id).ok_or(NO_ENDPOINT)?))
}

/// Does something with an entry of an endpoint's table of translations.
fn with_entry<R>(place: AmHandle, index: c_int, what: impl FnOnce(&mut Option<Translation>) -> Answer<R>) -> Answer<R> {
    let outside = bad("the index is outside the table");
    let index = usize::try_from(index).map_err(|_| outside);
    with_endpoint(place, |endpoint| what(endpoint.translations.get_mut(index?).ok_or(outside)?))?
}

fn mapped(entry: &mut Option<Translation>) -> Answer<&mut Translation> {
    entry.as_mut().ok_or(no_resource("nothing is mapped at this index of the endpoint: see AM_Map"))
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_Init() -> c_int {
    let open = life::open().map_err(|error| {
        eprintln!("weft: AM_Init: {error}");
        no_resource("the process cannot join its job")
    });
    answer("AM_Init", open)
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_Terminate() -> c_int {
    answer("AM_Terminate", life::close())
}

/// # Safety
/// `place` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_AllocateBundle(mode: c_int, place: *mut AmHandle) -> c_int {
    let allocate = || {
        let mut world = enter()?;
        if !(0..=PARALLEL).contains(&mode) || place.is_null() {
            return Err(bad("no such mode, or a pointer that is null"));
        }
        let bundle = world.tables.add_bundle().ok_or(no_resource("there are too many bundles"))?;
        drop(world);
        if mode == PARALLEL {
            WORLD.share(true);
        }
        // SAFETY: the caller's promise.
        unsafe { put(place, AmHandle::of_bundle(bundle)) }
    };
    answer("AM_AllocateBundle", allocate())
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_FreeBundle(place: AmHandle) -> c_int {
    let free = || {
        let mut world = enter()?;
        let id = place.bundle().ok_or(NO_BUNDLE)?;
        let endpoints = world.tables.bundle(id).ok_or(NO_BUNDLE)?.endpoints.clone();
        drop(world);
        settle("AM_FreeBundle", |id| endpoints.contains(&id));
        enter()?.tables.remove_bundle(id).ok_or(NO_BUNDLE)
    };
    answer("AM_FreeBundle", free())
}

/// # Safety
/// The pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_AllocateEndpoint(bundle: AmHandle, place: *mut AmHandle, name: *mut EndpointName) -> c_int {
    let allocate = || {
        let mut world = enter()?;
        let bundle = bundle.bundle().ok_or(NO_BUNDLE)?;
        world.tables.bundle(bundle).ok_or(NO_BUNDLE)?;
        if place.is_null() || name.is_null() {
            return Err(bad("a pointer is null"));
        }
        let id = world.tables.add_endpoint(bundle).ok_or(no_resource("there are too many endpoints"))?;
        let me = world.me();
        let of = EndpointName::new(me, world.endpoint.host_of(Peer(me)), id);
        // SAFETY: the caller's promise.
        unsafe { put(place, AmHandle::of_endpoint(id)).and(put(name, of)) }
    };
    answer("AM_AllocateEndpoint", allocate())
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_FreeEndpoint(place: AmHandle) -> c_int {
    let free = || {
        enter()?;
        let id = place.endpoint().ok_or(NO_ENDPOINT)?;
        settle("AM_FreeEndpoint", |of| of == id);
        enter()?.tables.remove_endpoint(id).ok_or(NO_ENDPOINT)
    };
    answer("AM_FreeEndpoint", free())
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_MoveEndpoint(place: AmHandle, from: AmHandle, to: AmHandle) -> c_int {
    let go = || {
        let mut world = enter()?;
        let id: EndpointId = place.endpoint().ok_or(NO_ENDPOINT)?;
        let (from, to) = (from.bundle().ok_or(NO_BUNDLE)?, to.bundle().ok_or(NO_BUNDLE)?);
        world.tables.move_endpoint(id, from, to).ok_or(no_resource("the endpoint is not in this bundle"))
    };
    answer("AM_MoveEndpoint", go())
}

/// # Safety
/// `length` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_MaxSegLength(length: *mut usize) -> c_int {
    // SAFETY: the caller's promise.
    answer("AM_MaxSegLength", enter().map(drop).and_then(|()| unsafe { put(length, usize::MAX) }))
}

/// # Safety
/// The pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_GetSeg(place: AmHandle, begin: *mut *mut c_void, length: *mut usize) -> c_int {
    let get = || {
        let segment = with_endpoint(place, |endpoint| endpoint.segment)?;
        // SAFETY: the caller's promise.
        unsafe { put(begin, std::ptr::with_exposed_provenance_mut(segment.begin)).and(put(length, segment.length)) }
    };
    answer("AM_GetSeg", get())
}

/// # Safety
/// What of this memory peers name is writable as long as messages come; where that is not so, they are at fault.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_SetSeg(place: AmHandle, begin: *mut c_void, length: usize) -> c_int {
    let segment = SegmentOfUser { begin: begin.expose_provenance(), length };
    let set = || {
        let id = with_endpoint(place, |_| place.endpoint())?;
        settle("AM_SetSeg", |of| Some(of) == id);
        with_endpoint(place, |endpoint| endpoint.segment = segment)
    };
    answer("AM_SetSeg", set())
}

/// What an endpoint has.
macro_rules! gets {
    ($($name:ident($place:ident $(, $index:ident)?; $at:ident: $type:ty) = $value:expr;)*) => { $(
        /// # Safety
        /// The last argument is null or writable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($place: AmHandle $(, $index: c_int)?, $at: *mut $type) -> c_int {
            // SAFETY: the caller's promise.
            answer(stringify!($name), $value.and_then(|value| unsafe { put($at, value) }))
        }
    )* };
}

gets! {
    AM_GetTag(place; tag: u64) = with_endpoint(place, |endpoint| endpoint.tag);
    AM_GetNumTranslations(place; count: c_int) = with_endpoint(place, |endpoint| endpoint.translations.len() as c_int);
    AM_GetTranslationTag(place, index; tag: u64) = with_entry(place, index, |at| Ok(mapped(at)?.tag));
    AM_GetTranslationName(place, index; name: EndpointName) = with_entry(place, index, |at| Ok(mapped(at)?.name));
    AMUDP_GetEndpointStatistics(place; stats: Stats) = with_endpoint(place, |endpoint| endpoint.stats);
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_SetTag(place: AmHandle, tag: u64) -> c_int {
    answer("AM_SetTag", with_endpoint(place, |endpoint| endpoint.tag = tag))
}

fn possible(name: EndpointName) -> Answer<EndpointName> {
    let processes = enter()?.processes();
    if name.is_possible(processes) { Ok(name) } else { Err(bad("the name is of no endpoint of this job")) }
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_Map(place: AmHandle, index: c_int, name: EndpointName, tag: u64) -> c_int {
    let map = || {
        let entry = Translation { name: possible(name)?, tag };
        with_entry(place, index, |at| match at {
            Some(_) => Err(no_resource("something is mapped at this index")),
            None => {
                *at = Some(entry);
                Ok(())
            }
        })
    };
    answer("AM_Map", map())
}

/// # Safety
/// `index` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_MapAny(place: AmHandle, index: *mut c_int, name: EndpointName, tag: u64) -> c_int {
    let map = || {
        let entry = Translation { name: possible(name)?, tag };
        let free = with_endpoint(place, |endpoint| endpoint.translations.iter().position(Option::is_none))?;
        let free = free.ok_or(no_resource("the table is full"))? as c_int;
        // SAFETY: the caller's promise.
        unsafe { put(index, free)? };
        with_entry(place, free, |at| {
            *at = Some(entry);
            Ok(())
        })
    };
    answer("AM_MapAny", map())
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_UnMap(place: AmHandle, index: c_int) -> c_int {
    answer("AM_UnMap", with_entry(place, index, |at| mapped(at).map(drop).map(|()| *at = None)))
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_SetNumTranslations(place: AmHandle, count: c_int) -> c_int {
    let set = || {
        let wrong = no_resource("there may be up to 1048576 translations, and none is cut off");
        let count = usize::try_from(count).ok().filter(|count| *count <= MOST_TRANSLATIONS).ok_or(wrong)?;
        let count = count.max(TRANSLATIONS);
        with_endpoint(place, |endpoint| {
            let cut = endpoint.translations.get(count..).unwrap_or_default();
            if cut.iter().any(Option::is_some) {
                return Err(wrong);
            }
            endpoint.translations.resize(count, None);
            Ok(())
        })?
    };
    answer("AM_SetNumTranslations", set())
}

/// Answers quietly: it is asked to learn whether an entry is free.
#[unsafe(no_mangle)]
pub extern "C" fn AM_GetTranslationInuse(place: AmHandle, index: c_int) -> c_int {
    match with_entry(place, index, |at| mapped(at).map(drop)) {
        Ok(()) => 0,
        Err(failure) => failure.error as c_int,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SetTranslationTag(place: AmHandle, index: c_int, tag: u64) -> c_int {
    let set = |at: &mut Option<Translation>| mapped(at).map(|entry| entry.tag = tag);
    answer("AMUDP_SetTranslationTag", with_entry(place, index, set))
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_SetExpectedResources(place: AmHandle, _endpoints: c_int, requests: c_int) -> c_int {
    const MOST_REQUESTS: c_int = 1024;
    let set = || {
        if !(1..=MOST_REQUESTS).contains(&requests) {
            return Err(bad("there may be 1 to 1024 requests at a time"));
        }
        match with_endpoint(place, |endpoint| std::mem::replace(&mut endpoint.is_sized, true))? {
            true => Err(no_resource("AM_SetExpectedResources was called before")),
            false => Ok(()),
        }
    };
    answer("AM_SetExpectedResources", set())
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SetHandler(place: AmHandle, handler: u8, function: Option<CFunction>) -> c_int {
    let set = || {
        let function = function.ok_or(bad("the function is null"))?;
        with_endpoint(place, |endpoint| endpoint.handlers[usize::from(handler)] = Some(function))
    };
    answer("AM_SetHandler", set())
}

/// # Safety
/// `handler` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_SetHandlerAny(place: AmHandle, handler: *mut u8, function: Option<CFunction>) -> c_int {
    let set = || {
        let function = function.ok_or(bad("the function is null"))?;
        // Handler 0 gets what comes back.
        let is_free = |entry: &(usize, &Option<CFunction>)| entry.0 != 0 && entry.1.is_none();
        let free =
            with_endpoint(place, |endpoint| endpoint.handlers.iter().enumerate().find(is_free).map(|(at, _)| at))?;
        let free = free.ok_or(no_resource("all handlers are in use"))?;
        // SAFETY: the caller's promise.
        unsafe { put(handler, free as u8)? };
        with_endpoint(place, |endpoint| endpoint.handlers[free] = Some(function))
    };
    answer("AM_SetHandlerAny", set())
}

/// # Safety
/// `mask` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_GetEventMask(place: AmHandle, mask: *mut c_int) -> c_int {
    let get = || {
        let mut world = enter()?;
        let id = place.bundle().ok_or(NO_BUNDLE)?;
        let set = world.tables.bundle(id).ok_or(NO_BUNDLE)?.event_mask;
        // SAFETY: the caller's promise.
        unsafe { put(mask, set) }
    };
    answer("AM_GetEventMask", get())
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_SetEventMask(place: AmHandle, mask: c_int) -> c_int {
    let set = || {
        let mut world = enter()?;
        let id = place.bundle().ok_or(NO_BUNDLE)?;
        if !(0..EVENT_MASKS).contains(&mask) {
            return Err(bad("no such event mask"));
        }
        world.tables.bundle(id).ok_or(NO_BUNDLE)?.event_mask = mask;
        Ok(())
    };
    answer("AM_SetEventMask", set())
}

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static AMUDP_initial_stats: Stats = Stats::INITIAL;

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_ResetEndpointStatistics(place: AmHandle) -> c_int {
    answer("AMUDP_ResetEndpointStatistics", with_endpoint(place, |endpoint| endpoint.stats = Stats::INITIAL))
}

/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_AggregateStatistics(sum: *mut Stats, more: *mut Stats) -> c_int {
    // SAFETY: the caller's promise.
    let both = unsafe { (sum.as_mut(), more.as_ref().copied()) };
    let (Some(sum), Some(more)) = both else {
        return answer("AMUDP_AggregateStatistics", Err(bad("a pointer is null")));
    };
    sum.add(&more);
    0
}

/// Writes what was counted to a stream, if there is one, and answers the text, which holds until the next call.
///
/// # Safety
/// `file` is null or a `FILE *`, and `stats` is null or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_DumpStatistics(file: *mut c_void, stats: *mut Stats, _of_all: c_int) -> *const c_char {
    static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    // SAFETY: the caller's promise.
    let stats = unsafe { stats.as_ref() }.copied().unwrap_or(Stats::INITIAL);
    let mut text = TEXT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *text = format!("{}\0", stats.text()).into_bytes();
    if !file.is_null() {
        // SAFETY: the text ends with a zero, and `file` is a stream.
        unsafe { libc::fputs(text.as_ptr().cast(), file.cast()) };
    }
    text.as_ptr().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SetHandlerCallbacks(
    place: AmHandle,
    before: Option<BeforeHandler>,
    after: Option<AfterHandler>,
) -> c_int {
    let set = |endpoint: &mut AmEndpoint| (endpoint.before, endpoint.after) = (before, after);
    answer("AMUDP_SetHandlerCallbacks", with_endpoint(place, set))
}

/// Taken, and without effect: messages do not go by that interface.
#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SetUDPInterface(_address: u32) -> c_int {
    0
}
