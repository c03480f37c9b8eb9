//! Memory of the program whose content is of this ABI: converted before the call, and back after it where it changed.
//!
//! Every place may be null, which the body then sees. A place is written back when it is dropped.

use crate::handle::{self, PredefinedHandles};
use crate::status::MpichStatus as Theirs;
use std::ffi::{c_char, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use weft_mpi::abi::{self as ours, Status as Ours};
use weft_mpi::world::WORLD;

/// Kinds of handles, which have an integer or a pointer here.
pub trait HeldHandle {
    type Theirs: Copy;
    fn ours(theirs: Self::Theirs) -> usize;
    fn theirs(ours: usize) -> Self::Theirs;
}

impl<K: PredefinedHandles> HeldHandle for K {
    type Theirs = i32;

    #[inline]
    fn ours(theirs: i32) -> usize {
        handle::ours::<K>(theirs)
    }

    #[inline]
    fn theirs(ours: usize) -> i32 {
        handle::theirs::<K>(ours)
    }
}

/// Files are pointers in this ABI, too.
impl HeldHandle for handle::File {
    type Theirs = usize;

    fn ours(theirs: usize) -> usize {
        if theirs == 0 { ours::FILE_NULL } else { theirs }
    }

    fn theirs(file: usize) -> usize {
        if file == ours::FILE_NULL { 0 } else { file }
    }
}

/// How values become those of the other ABI.
pub trait Conversion {
    type Ours: Copy + PartialEq + Default;
    type Theirs: Copy;
    fn ours(&self, theirs: Self::Theirs) -> Self::Ours;
    fn theirs(&self, ours: Self::Ours) -> Self::Theirs;
}

/// Handles.
pub struct HandlePlaces<K>(PhantomData<K>);

/// Handles of kind `K`.
#[inline]
pub fn handles<K: HeldHandle>() -> HandlePlaces<K> {
    HandlePlaces(PhantomData)
}

impl<K: HeldHandle> Conversion for HandlePlaces<K> {
    type Ours = usize;
    type Theirs = K::Theirs;

    #[inline]
    fn ours(&self, theirs: K::Theirs) -> usize {
        K::ours(theirs)
    }

    #[inline]
    fn theirs(&self, ours: usize) -> K::Theirs {
        K::theirs(ours)
    }
}

/// How a number with a meaning becomes ours, or theirs.
pub type Number = fn(i32) -> i32;

impl Conversion for (Number, Number) {
    type Ours = i32;
    type Theirs = i32;

    #[inline]
    fn ours(&self, theirs: i32) -> i32 {
        self.0(theirs)
    }

    #[inline]
    fn theirs(&self, ours: i32) -> i32 {
        self.1(ours)
    }
}

/// One value.
pub struct OnePlace<C: Conversion> {
    at: *mut C::Theirs,
    before: C::Ours,
    value: C::Ours,
    change: C,
}

impl<C: Conversion> OnePlace<C> {
    /// # Safety
    /// `at` is null or the program's place for a value.
    #[inline]
    pub unsafe fn new(at: *mut C::Theirs, change: C) -> Self {
        // SAFETY: as the caller says.
        let before = if at.is_null() { C::Ours::default() } else { change.ours(unsafe { *at }) };
        Self { at, before, value: before, change }
    }

    #[inline]
    pub fn at(&mut self) -> *mut C::Ours {
        if self.at.is_null() { std::ptr::null_mut() } else { &mut self.value }
    }
}

impl<C: Conversion> Drop for OnePlace<C> {
    #[inline]
    fn drop(&mut self) {
        if self.value != self.before {
            // SAFETY: it changed, so it is not null, and it is what `new` was given.
            unsafe { *self.at = self.change.theirs(self.value) };
        }
    }
}

/// As many values as most calls have.
const FEW: usize = 32;

/// Values of our ABI, on the stack where they are few.
struct AbiValues<T> {
    /// The first `len` are set, if there are so few.
    few: [MaybeUninit<T>; FEW],
    many: Vec<T>,
    len: usize,
}

impl<T: Copy> AbiValues<T> {
    #[inline]
    fn new(len: usize, value: impl Fn(usize) -> T) -> Self {
        let mut values = Self { few: [const { MaybeUninit::uninit() }; FEW], many: Vec::new(), len };
        if len <= FEW {
            for (index, place) in values.few[..len].iter_mut().enumerate() {
                place.write(value(index));
            }
        } else {
            values.many = (0..len).map(value).collect();
        }
        values
    }

    #[inline]
    fn slice(&mut self) -> &mut [T] {
        if self.len > FEW {
            return &mut self.many;
        }
        // SAFETY: so many are set.
        unsafe { std::slice::from_raw_parts_mut(self.few.as_mut_ptr().cast(), self.len) }
    }
}

#[inline]
fn elements<T>(at: *const T, len: impl TryInto<usize>) -> usize {
    if at.is_null() { 0 } else { len.try_into().unwrap_or(0) }
}

/// An array of values.
pub struct ManyPlaces<C: Conversion> {
    /// Null where nothing is written back.
    back: *mut C::Theirs,
    from: *const C::Theirs,
    values: AbiValues<C::Ours>,
    change: C,
}

impl<C: Conversion> ManyPlaces<C> {
    /// # Safety
    /// `at` is null or an array of `len` values.
    #[inline]
    pub unsafe fn read(at: *const C::Theirs, len: impl TryInto<usize>, change: C) -> Self {
        // SAFETY: as the caller says.
        unsafe { Self::of(at, std::ptr::null_mut(), len, change) }
    }

    /// # Safety
    /// As [`Self::read`], and the call may change it.
    #[inline]
    pub unsafe fn new(at: *mut C::Theirs, len: impl TryInto<usize>, change: C) -> Self {
        // SAFETY: as the caller says.
        unsafe { Self::of(at, at, len, change) }
    }

    #[inline]
    unsafe fn of(from: *const C::Theirs, back: *mut C::Theirs, len: impl TryInto<usize>, change: C) -> Self {
        // SAFETY: as the caller says.
        let values = AbiValues::new(elements(from, len), |index| change.ours(unsafe { *from.add(index) }));
        Self { back, from, values, change }
    }

    #[inline]
    pub fn at(&mut self) -> *mut C::Ours {
        if self.from.is_null() { std::ptr::null_mut() } else { self.values.slice().as_mut_ptr() }
    }

    fn write_back(&mut self) {
        let (back, change) = (self.back, &self.change);
        for (index, &value) in self.values.slice().iter().enumerate() {
            // SAFETY: within the array that `new` was given.
            unsafe {
                if change.ours(*back.add(index)) != value {
                    *back.add(index) = change.theirs(value);
                }
            }
        }
    }
}

impl<C: Conversion> Drop for ManyPlaces<C> {
    #[inline]
    fn drop(&mut self) {
        if !self.back.is_null() {
            self.write_back();
        }
    }
}

/// One status; the special address for "none" and null are none.
pub struct StatusAt {
    at: *mut Theirs,
    before: Ours,
    value: Ours,
}

fn is_status(at: *const Theirs) -> bool {
    at as usize > crate::values::STATUS_IGNORE
}

impl StatusAt {
    /// # Safety
    /// `at` is no status, or the program's.
    #[inline]
    pub unsafe fn new(at: *mut Theirs) -> Self {
        // SAFETY: as the caller says.
        let before = if is_status(at) { unsafe { (*at).ours() } } else { Ours::EMPTY };
        Self { at, before, value: before }
    }

    /// # Safety
    /// As [`Self::new`]; the call does not change it.
    #[inline]
    pub unsafe fn read(at: *const Theirs) -> Self {
        // SAFETY: as the caller says.
        unsafe { Self::new(at.cast_mut()) }
    }

    #[inline]
    pub fn at(&mut self) -> *mut Ours {
        if is_status(self.at) { &mut self.value } else { std::ptr::null_mut() }
    }
}

impl Drop for StatusAt {
    #[inline]
    fn drop(&mut self) {
        if is_status(self.at) {
            // SAFETY: it is the status that `new` was given.
            unsafe { (*self.at).take_over(&self.before, &self.value) };
        }
    }
}

/// An array of statuses.
pub struct Statuses {
    at: *mut Theirs,
    values: AbiValues<Ours>,
}

impl Statuses {
    /// # Safety
    /// `at` is no status, or the program's array of `len` statuses.
    #[inline]
    pub unsafe fn new(at: *mut Theirs, len: impl TryInto<usize>) -> Self {
        let at = if is_status(at) { at } else { std::ptr::null_mut() };
        // SAFETY: as the caller says.
        Self { at, values: AbiValues::new(elements(at, len), |index| unsafe { (*at.add(index)).ours() }) }
    }

    #[inline]
    pub fn at(&mut self) -> *mut Ours {
        if self.at.is_null() { std::ptr::null_mut() } else { self.values.slice().as_mut_ptr() }
    }
}

impl Drop for Statuses {
    fn drop(&mut self) {
        let at = self.at;
        for (index, value) in self.values.slice().iter().enumerate() {
            // SAFETY: within the array that `new` was given.
            unsafe {
                let before = (*at.add(index)).ours();
                (*at.add(index)).take_over(&before, value);
            }
        }
    }
}

/// A string that the standard ABI may make longer than there is room here.
pub struct Text {
    at: *mut c_char,
    room: usize,
    value: Vec<c_char>,
}

/// More than any string of a fixed length has.
const LONGEST: usize = ours::MAX_PORT_NAME as usize;

impl Text {
    /// # Safety
    /// `at` is null or has `room` bytes.
    pub unsafe fn new(at: *mut c_char, room: i32) -> Self {
        Self { at, room: room as usize, value: vec![0; LONGEST] }
    }

    pub fn at(&mut self) -> *mut c_char {
        if self.at.is_null() { std::ptr::null_mut() } else { self.value.as_mut_ptr() }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let length = self.value.iter().position(|&byte| byte == 0).unwrap_or(0);
        if length == 0 || self.at.is_null() {
            return;
        }
        let kept = length.min(self.room - 1);
        // SAFETY: the program's room, which is longer than what is kept.
        unsafe {
            std::ptr::copy_nonoverlapping(self.value.as_ptr(), self.at, kept);
            *self.at.add(kept) = 0;
        }
    }
}

/// Pointers to data of the program.
pub trait Pointer: Copy {
    fn address(self) -> usize;
    fn special(address: usize) -> Self;
}

impl Pointer for *const c_void {
    #[inline]
    fn address(self) -> usize {
        self as usize
    }

    #[inline]
    fn special(address: usize) -> Self {
        address as Self
    }
}

impl Pointer for *mut c_void {
    #[inline]
    fn address(self) -> usize {
        self as usize
    }

    #[inline]
    fn special(address: usize) -> Self {
        address as Self
    }
}

/// A buffer that may be one of the special ones.
#[inline]
pub fn buffer<P: Pointer>(at: P) -> P {
    match at.address() {
        crate::values::IN_PLACE => P::special(ours::IN_PLACE),
        crate::values::BUFFER_AUTOMATIC => P::special(ours::BUFFER_AUTOMATIC),
        _ => at,
    }
}

/// How many processes a collective call on this communicator exchanges data with.
pub fn peers(comm: usize) -> usize {
    let world = WORLD.enter();
    let comm = world.comm(comm);
    comm.map_or(0, |comm| if comm.is_inter() { comm.remote_size() } else { comm.size() } as usize)
}

/// The same for arrays that nobody looks at where the buffer is `MPI_IN_PLACE`.
pub fn peers_of_buffer(comm: usize, buffer: *const c_void) -> usize {
    if buffer as usize == ours::IN_PLACE { 0 } else { peers(comm) }
}

/// The numbers of neighbours that data comes from and goes to.
pub fn neighbors(comm: usize) -> (usize, usize) {
    let world = WORLD.enter();
    let found = world.comm(comm).ok().and_then(|comm| Some(comm.topology.as_ref()?.neighbors(comm.rank)));
    found.map_or((0, 0), |found| (found.sources.len(), found.destinations.len()))
}

/// The length of an array that means something in the root only.
pub fn in_root(comm: usize, root: i32, count: i32) -> i32 {
    let rank = WORLD.enter().comm(comm).map_or(-1, |comm| comm.rank as i32);
    if rank == root { count } else { 0 }
}

/// The number in a place, 0 if there is none.
///
/// # Safety
/// `at` is null or the program's place for a number.
#[allow(dead_code, reason = "of functions that may have no body yet")]
pub unsafe fn number_at(at: *const i32) -> i32 {
    // SAFETY: as the caller says.
    if at.is_null() { 0 } else { unsafe { *at } }
}

#[cfg(test)]
mod tests;
