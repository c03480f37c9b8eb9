//! Categories (MPI 5.0, section 15.3.9).

use super::{Answer, code, running};
use crate::abi::{T_ERR_INVALID, T_ERR_INVALID_INDEX};
use crate::tool::event::TYPES;
use crate::tool::{element, give, index_of_name, tell, tell_text};
use std::ffi::c_char;
use weft_fabric::CounterReader;
use weft_fabric::settings::DEFINITIONS;

struct Category {
    name: &'static str,
    meaning: &'static str,
    controls: usize,
    counters: usize,
    events: usize,
    /// The indices of those inside it.
    categories: &'static [i32],
}

const CATEGORIES: [Category; 4] = [
    Category { name: "weft", meaning: "all that Weft shows", categories: &[1, 2, 3], ..EMPTY },
    Category { name: "weft_settings", meaning: "the settings, as in weft info", controls: DEFINITIONS.len(), ..EMPTY },
    Category {
        name: "weft_counters",
        meaning: "the counters of the status page, as in weft ps",
        counters: CounterReader::NAMES.len(),
        ..EMPTY
    },
    Category { name: "weft_events", meaning: "what happens inside Weft", events: TYPES.len(), ..EMPTY },
];

const EMPTY: Category = Category { name: "", meaning: "", controls: 0, counters: 0, events: 0, categories: &[] };

fn category(index: i32) -> Answer<&'static Category> {
    running()?;
    element(&CATEGORIES, index, T_ERR_INVALID_INDEX)
}

/// Stores as many indices as there is room for.
unsafe fn list(indices: impl Iterator<Item = i32>, length: i32, out: *mut i32) -> Answer<()> {
    let room = usize::try_from(length).map_err(|_| T_ERR_INVALID)?;
    if room > 0 && out.is_null() {
        return Err(T_ERR_INVALID);
    }
    for (place, index) in indices.take(room).enumerate() {
        // SAFETY: the program's array of `length`.
        unsafe { *out.add(place) = index };
    }
    Ok(())
}

pub unsafe fn category_get_num(number: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(running().and_then(|_| unsafe { give(number, CATEGORIES.len() as i32) }))
}

pub unsafe fn category_get_index(name: *const c_char, index: *mut i32) -> i32 {
    let find = |name: &str| CATEGORIES.iter().position(|category| category.name == name);
    // SAFETY: the program's string and its place for the index.
    code(unsafe { index_of_name(name, index, find) })
}

pub unsafe fn category_get_info(
    index: i32,
    name: *mut c_char,
    name_length: *mut i32,
    meaning: *mut c_char,
    meaning_length: *mut i32,
    controls: *mut i32,
    counters: *mut i32,
    categories: *mut i32,
) -> i32 {
    code(category(index).map(|category| {
        // SAFETY: the program's places.
        unsafe {
            tell_text(category.name, name, name_length);
            tell_text(category.meaning, meaning, meaning_length);
            tell(controls, category.controls as i32);
            tell(counters, category.counters as i32);
            tell(categories, category.categories.len() as i32);
        }
    }))
}

pub unsafe fn category_get_cvars(index: i32, length: i32, indices: *mut i32) -> i32 {
    // SAFETY: the program's array.
    code(category(index).and_then(|category| unsafe { list(0..category.controls as i32, length, indices) }))
}

pub unsafe fn category_get_pvars(index: i32, length: i32, indices: *mut i32) -> i32 {
    // SAFETY: the program's array.
    code(category(index).and_then(|category| unsafe { list(0..category.counters as i32, length, indices) }))
}

pub unsafe fn category_get_categories(index: i32, length: i32, indices: *mut i32) -> i32 {
    // SAFETY: the program's array.
    code(category(index).and_then(|found| unsafe { list(found.categories.iter().copied(), length, indices) }))
}

pub unsafe fn category_get_events(index: i32, length: i32, indices: *mut i32) -> i32 {
    // SAFETY: the program's array.
    code(category(index).and_then(|category| unsafe { list(0..category.events as i32, length, indices) }))
}

pub unsafe fn category_get_num_events(index: i32, number: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(category(index).and_then(|category| unsafe { give(number, category.events as i32) }))
}

/// Categories do not change.
pub unsafe fn category_changed(stamp: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(running().and_then(|_| unsafe { give(stamp, 0) }))
}
