//! What the libraries of one process tell each other.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use weft_wire::interface::InterfaceName;
use weft_wire::segment;

/// `weft-pro` as little-endian bytes.
const MAGIC: u64 = u64::from_le_bytes(*b"weft-pro");
/// Changes with every change of what follows the head.
const VERSION: u32 = 1;
const WEFT: &str = env!("CARGO_PKG_VERSION");

/// What every version begins with.
#[repr(C)]
pub(crate) struct TableHead {
    /// Written last.
    magic: AtomicU64,
    version: u32,
    /// Of the whole table.
    bytes: u32,
    /// The version of the segment's layout.
    segment: u32,
    process: u32,
    /// The version of Weft, as text with zeros behind it.
    weft: [u8; 40],
}

/// A table of another version: what it is, and what it should be.
pub(super) struct TableOfOther {
    pub theirs: String,
    pub ours: String,
}

fn version_text(weft: &str, version: u32, segment: u32) -> String {
    format!("{weft} (process table {version}, segment {segment})")
}

impl TableHead {
    fn new() -> Self {
        let mut weft = [0; 40];
        weft.iter_mut().zip(WEFT.bytes()).for_each(|(to, from)| *to = from);
        let (bytes, process) = (size_of::<ProcessTable>() as u32, std::process::id());
        Self { magic: AtomicU64::new(0), version: VERSION, bytes, segment: segment::VERSION, process, weft }
    }

    pub fn is_of_this_process(&self) -> bool {
        self.magic.load(Ordering::Acquire) == MAGIC && self.process == std::process::id()
    }

    /// The table, if it is of this version.
    pub fn check(&'static self) -> Result<&'static ProcessTable, TableOfOther> {
        let ours = (VERSION, size_of::<ProcessTable>() as u32, segment::VERSION);
        if (self.version, self.bytes, self.segment) == ours {
            return Ok(whole(self));
        }
        let weft = String::from_utf8_lossy(&self.weft);
        let theirs = version_text(weft.trim_end_matches('\0'), self.version, self.segment);
        Err(TableOfOther { theirs, ours: version_text(WEFT, VERSION, segment::VERSION) })
    }
}

/// Bytes that stay as long as the process.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SharedText {
    at: *const u8,
    length: usize,
}

impl SharedText {
    /// Of what lives across the call that takes it.
    pub fn passing(bytes: &[u8]) -> Self {
        Self { at: bytes.as_ptr(), length: bytes.len() }
    }

    /// Of what stays.
    pub fn lasting(bytes: Vec<u8>) -> Self {
        Self::passing(bytes.leak())
    }

    /// The bytes, as long as whoever made it says.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: made of a slice that lives as long as this is in use.
        unsafe { std::slice::from_raw_parts(self.at, self.length) }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

/// The place of the process in its job.
#[repr(C)]
pub(crate) struct JobPlace {
    pub rank: u32,
    pub size: u32,
    /// Of the segment.
    pub member: u32,
    /// 1 if a launcher of our own has started the process.
    pub launched: u32,
    /// The segment, and what the number leads to as long as it is ours.
    pub segment: i32,
    pub device: u64,
    pub file: u64,
    pub job: SharedText,
    pub world: SharedText,
    /// The door of those who have spawned the process; empty if nobody has.
    pub parent: SharedText,
    /// The job map; empty where the job is on one host and uses its memory alone.
    pub map: SharedText,
}

/// What the manager answered.
#[repr(C)]
pub(crate) struct ManagerAnswer {
    /// 0, or one of the two below.
    pub outcome: u32,
    pub length: u32,
    pub text: [u8; 1024],
}

impl ManagerAnswer {
    pub const EMPTY: Self = Self { outcome: 0, length: 0, text: [0; 1024] };

    /// Writes an answer where another library has room for one, cut to that.
    pub fn fill(answer: *mut Self, outcome: u32, text: &str) {
        let mut filled = Self { outcome, length: text.len().min(1024) as u32, ..Self::EMPTY };
        filled.text.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        // SAFETY: the caller's place for an answer, which lives across the call.
        unsafe { answer.write(filled) };
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.text[..(self.length as usize).min(1024)]).into_owned()
    }
}

/// Nobody has put what was asked for.
pub(crate) const NO_ANSWER: u32 = 1;
/// Why stands in the text.
pub(crate) const REFUSED: u32 = 2;

/// The conversation with who started the process, by the library that leads it. Empty where nobody is to be told.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ManagerCalls {
    pub ask: Option<extern "C" fn(what: u32, first: SharedText, second: SharedText, answer: *mut ManagerAnswer)>,
    /// The rank that was lost as the so-manieth; all ones if there is none.
    pub lost: Option<extern "C" fn(index: u32) -> u32>,
    pub abort: Option<extern "C" fn(code: i32, message: SharedText, lost: u32) -> !>,
}

pub(super) const ENDLESS: u64 = u64::MAX;

/// Where a thread sleeps until an interface has something to do: on a word of memory, or on a descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SleepPlace {
    /// Null: on the descriptor.
    pub(super) word: *const AtomicU32,
    expected: u32,
    pub(super) descriptor: i32,
    pub(super) limit_ns: u64,
}

impl SleepPlace {
    pub const NONE: Self = Self { word: std::ptr::null(), expected: 0, descriptor: -1, limit_ns: ENDLESS };

    pub fn on_word(word: &AtomicU32, expected: u32) -> Self {
        Self { word, expected, ..Self::NONE }
    }

    pub fn on_descriptor(descriptor: i32) -> Self {
        Self { descriptor, ..Self::NONE }
    }

    /// At most for `limit`.
    pub fn within(self, limit: Option<Duration>) -> Self {
        let limit_ns = limit.map_or(ENDLESS, |limit| u64::try_from(limit.as_nanos()).unwrap_or(ENDLESS));
        Self { limit_ns: self.limit_ns.min(limit_ns), ..self }
    }

    pub(super) fn word(&self) -> Option<(&AtomicU32, u32)> {
        // SAFETY: null, or a doorbell of an endpoint of this process. Where that is gone meanwhile, the kernel finds no
        // memory there, or a word that it does not wait for; nothing here reads it.
        unsafe { self.word.as_ref() }.map(|word| (word, self.expected))
    }
}

/// Nothing is to be done there before a sleep: it cannot be moved by others.
pub(crate) const NOTHING: u32 = 0;
/// It is armed, and the place is where to sleep.
pub(crate) const ON_PLACE: u32 = 1;
/// There is something to do, or a thread is inside: not a moment to sleep.
pub(crate) const LOOK_AGAIN: u32 = 2;

/// Another thread watches it; the place is where to sleep until that one may have ended.
pub(crate) const BESIDE: u32 = 3;

/// How threads of other libraries move an interface.
#[repr(C)]
pub(crate) struct MonitorCalls {
    /// One progress pass, unless a thread is inside; 1 if anything moved.
    pub progress: extern "C" fn(*const c_void) -> u32,
    /// Before a sleep.
    pub arm: extern "C" fn(*const c_void, *mut SleepPlace) -> u32,
    /// After one that was armed for.
    pub disarm: extern "C" fn(*const c_void, u32),
    /// Others are there from now on.
    pub share: extern "C" fn(*const c_void),
}

const ABSENT: u32 = 0;
const OPEN: u32 = 1;
const LEFT: u32 = 2;

/// An interface of the process.
#[repr(C)]
pub(crate) struct InterfaceSlot {
    state: AtomicU32,
    /// Where its library looks whether there are other interfaces.
    company: AtomicPtr<AtomicPtr<ProcessTable>>,
    context: AtomicPtr<c_void>,
    /// Written after the context.
    calls: AtomicPtr<MonitorCalls>,
}

impl InterfaceSlot {
    fn empty() -> Self {
        Self {
            state: AtomicU32::new(ABSENT),
            company: AtomicPtr::new(null_mut()),
            context: AtomicPtr::new(null_mut()),
            calls: AtomicPtr::new(null_mut()),
        }
    }

    /// How the interface is moved by others, if it can be.
    pub fn calls(&self) -> Option<(&'static MonitorCalls, *const c_void)> {
        // SAFETY: null, or a constant of a library that stays loaded.
        let calls = unsafe { self.calls.load(Ordering::Acquire).as_ref() }?;
        Some((calls, self.context.load(Ordering::Relaxed)))
    }
}

#[repr(C)]
pub(crate) struct ProcessTable {
    head: TableHead,
    /// Interfaces that are in the job now.
    inside: AtomicU32,
    place: JobPlace,
    manager: ManagerCalls,
    slots: [InterfaceSlot; InterfaceName::ALL.len()],
}

/// The interface is open in the process already, or was.
pub(crate) struct SlotTaken {
    pub has_left: bool,
}

impl ProcessTable {
    pub fn new(place: JobPlace, manager: ManagerCalls) -> Self {
        let slots = std::array::from_fn(|_| InterfaceSlot::empty());
        Self { head: TableHead::new(), inside: AtomicU32::new(0), place, manager, slots }
    }

    /// What was written is there to be found.
    pub fn open(&self) {
        self.head.magic.store(MAGIC, Ordering::Release);
    }

    pub fn process(&self) -> u32 {
        self.head.process
    }

    pub fn manager(&self) -> &ManagerCalls {
        &self.manager
    }

    pub fn slots(&self) -> &[InterfaceSlot] {
        &self.slots
    }

    /// Takes the place of this interface. From the second one on, all have company.
    pub fn enrol(&'static self, interface: InterfaceName) -> Result<Enrolment, SlotTaken> {
        let slot = &self.slots[interface.number() as usize];
        let taken = slot.state.compare_exchange(ABSENT, OPEN, Ordering::AcqRel, Ordering::Acquire);
        taken.map_err(|state| SlotTaken { has_left: state == LEFT })?;
        slot.company.store((&raw const COMPANY).cast_mut(), Ordering::Release);
        let open = self.slots.iter().filter(|slot| slot.state.load(Ordering::Acquire) != ABSENT);
        if open.clone().count() > 1 {
            open.for_each(|slot| self.tell_of_company(slot));
        }
        Ok(Enrolment { table: self, interface })
    }

    fn tell_of_company(&'static self, slot: &InterfaceSlot) {
        // SAFETY: null, or a static of a library that stays loaded.
        if let Some(company) = unsafe { slot.company.load(Ordering::Acquire).as_ref() } {
            company.store(std::ptr::from_ref(self).cast_mut(), Ordering::Release);
        }
        if let Some((calls, context)) = slot.calls() {
            (calls.share)(context);
        }
    }
}

/// Null while this library's interface is alone in its process.
pub(super) static COMPANY: AtomicPtr<ProcessTable> = AtomicPtr::new(std::ptr::null_mut());

/// The table at an address that is null or is that of a table of this version.
#[inline(always)]
pub(super) fn known(at: *mut ProcessTable) -> Option<&'static ProcessTable> {
    // SAFETY: null, or a table that stays as long as the process, and that is used through atomics and constants only.
    unsafe { at.as_ref() }
}

/// The whole table behind a head that has this version.
pub(super) fn whole(head: &'static TableHead) -> &'static ProcessTable {
    // SAFETY: the version and the length say that a table begins there.
    unsafe { &*std::ptr::from_ref(head).cast() }
}

/// An interface's part in the table.
#[derive(Clone, Copy)]
pub(crate) struct Enrolment {
    table: &'static ProcessTable,
    interface: InterfaceName,
}

// SAFETY: the table is used through atomics, constants and functions that any thread may call.
unsafe impl Send for Enrolment {}

impl Enrolment {
    pub fn interface(&self) -> InterfaceName {
        self.interface
    }

    pub fn place(&self) -> &'static JobPlace {
        &self.table.place
    }

    pub fn manager(&self) -> &'static ManagerCalls {
        &self.table.manager
    }

    /// The interface is in the job; true if it is the only one.
    pub fn come(&self) -> bool {
        self.table.inside.fetch_add(1, Ordering::AcqRel) == 0
    }

    /// The interface has left the job, and may come back; true if it was the last one.
    pub fn go(&self) -> bool {
        self.table.inside.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The interface is over.
    pub fn end(&self) {
        self.slot().state.store(LEFT, Ordering::Release);
    }

    /// The interface could not be opened.
    pub fn withdraw(&self) {
        self.slot().state.store(ABSENT, Ordering::Release);
    }

    fn slot(&self) -> &'static InterfaceSlot {
        &self.table.slots[self.interface.number() as usize]
    }

    /// From now on others may move the interface. Both stay as long as the process.
    pub fn register(&self, context: *const c_void, calls: &'static MonitorCalls) {
        let slot = self.slot();
        slot.context.store(context.cast_mut(), Ordering::Relaxed);
        slot.calls.store(std::ptr::from_ref(calls).cast_mut(), Ordering::Release);
    }
}
