//! `pan_pset_*`: sets of platforms.

use super::{assert_open, give, object, platforms};
use crate::failure::platform;
use std::ffi::{c_int, c_void};

/// A bit for each platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformSet(Vec<u32>);

fn words() -> usize {
    platforms().div_ceil(u32::BITS) as usize
}

impl PlatformSet {
    pub fn members(&self) -> impl Iterator<Item = u32> {
        (0..platforms()).filter(|number| self.0[(number / u32::BITS) as usize] >> (number % u32::BITS) & 1 != 0)
    }

    fn put(&mut self, call: &str, number: c_int, is_in: bool) {
        let number = platform(call, number, platforms()).0;
        let (word, bit) = (&mut self.0[(number / u32::BITS) as usize], 1 << (number % u32::BITS));
        *word = if is_in { *word | bit } else { *word & !bit };
    }
}

/// A set that a call of the program is about.
///
/// # Safety
/// It is the program's.
unsafe fn set<'a>(call: &str, set: *mut PlatformSet) -> &'a mut PlatformSet {
    assert_open(call);
    // SAFETY: the caller's promise.
    unsafe { object(call, set) }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_pset_create() -> *mut PlatformSet {
    assert_open("pan_pset_create");
    give(PlatformSet(vec![0; words()]))
}

clears! {
    pan_pset_clear: PlatformSet;
}

on_object! { set:
    pan_pset_isempty(pset: *mut PlatformSet) -> c_int { pset.members().next().is_none().into() }
    pan_pset_add(pset: *mut PlatformSet, number: c_int) { pset.put("pan_pset_add", number, true) }
    pan_pset_del(pset: *mut PlatformSet, number: c_int) { pset.put("pan_pset_del", number, false) }
    pan_pset_fill(pset: *mut PlatformSet) {
        (0..platforms()).for_each(|number| pset.put("pan_pset_fill", number as c_int, true))
    }
    pan_pset_find(pset: *mut PlatformSet, from: c_int) -> c_int {
        pset.members().map(|number| number as c_int).find(|number| *number >= from).unwrap_or(-1)
    }
    pan_pset_empty(pset: *mut PlatformSet) { pset.0.fill(0) }
    pan_pset_ismember(pset: *mut PlatformSet, number: c_int) -> c_int {
        pset.members().any(|member| member as c_int == number).into()
    }
    pan_pset_nr_members(pset: *mut PlatformSet) -> c_int { pset.members().count() as c_int }
}

/// # Safety
/// Both are sets, two, and the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_pset_copy(pset: *mut PlatformSet, copy: *mut PlatformSet) {
    // SAFETY: the caller's promise.
    unsafe { set("pan_pset_copy", copy).clone_from(set("pan_pset_copy", pset)) };
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_pset_size() -> c_int {
    4 * words() as c_int
}

/// # Safety
/// It is a set, and the program's; the buffer has room for [`pan_pset_size`] bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_pset_marshall(pset: *mut PlatformSet, buffer: *mut c_void) {
    // SAFETY: the caller's promise.
    let set = unsafe { set("pan_pset_marshall", pset) };
    // SAFETY: as above.
    unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(set.0.as_ptr().cast(), 4 * set.0.len()) };
}

/// # Safety
/// It is a set, and the program's; the buffer has what [`pan_pset_marshall`] has written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_pset_unmarshall(pset: *mut PlatformSet, buffer: *const c_void) {
    // SAFETY: the caller's promise.
    let set = unsafe { set("pan_pset_unmarshall", pset) };
    // SAFETY: as above.
    unsafe { set.0.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(buffer.cast(), 4 * set.0.len()) };
}
