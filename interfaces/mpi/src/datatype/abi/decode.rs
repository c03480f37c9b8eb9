//! Bodies of the functions that tell how a datatype was made.

use super::{known_handle, of};
use crate::datatype::{Contents, Datatype};
use crate::error::{Class, Error, Result};
use crate::world::WORLD;

/// The narrow functions cannot report 64-bit counts.
fn narrow(datatype: usize) -> Result<Datatype> {
    let kind = of(datatype)?;
    match kind.envelope().counts {
        0 => Ok(kind),
        counts => {
            let detail =
                format!("datatype ({datatype:#x}) was made with {counts} large counts: use the function with _c");
            Err(Error::new(Class::Type, detail))
        }
    }
}

pub unsafe fn get_envelope(
    datatype: usize,
    integers: *mut i32,
    addresses: *mut i32,
    datatypes: *mut i32,
    combiner: *mut i32,
) -> Result<()> {
    let envelope = narrow(datatype)?.envelope();
    // SAFETY: the program's places for the numbers.
    unsafe {
        *integers = envelope.integers as i32;
        *addresses = envelope.addresses as i32;
        *datatypes = envelope.datatypes as i32;
        *combiner = envelope.combiner as i32;
    }
    Ok(())
}

pub unsafe fn get_envelope_large(
    datatype: usize,
    integers: *mut i64,
    addresses: *mut i64,
    counts: *mut i64,
    datatypes: *mut i64,
    combiner: *mut i32,
) -> Result<()> {
    let envelope = of(datatype)?.envelope();
    // SAFETY: the program's places for the numbers.
    unsafe {
        *integers = envelope.integers as i64;
        *addresses = envelope.addresses as i64;
        *counts = envelope.counts as i64;
        *datatypes = envelope.datatypes as i64;
        *combiner = envelope.combiner as i32;
    }
    Ok(())
}

/// Where the program wants one kind of values, and how many fit.
struct ValuesRoom<T> {
    at: *mut T,
    room: i64,
    name: &'static str,
}

impl<T> ValuesRoom<T> {
    /// # Safety
    /// `at` has that many places.
    unsafe fn fill(&self, values: impl ExactSizeIterator<Item = T>) -> Result<()> {
        if self.room < values.len() as i64 {
            let detail = format!("{} {} is less than the {} there are", self.name, self.room, values.len());
            return Err(Error::new(Class::Arg, detail));
        }
        for (place, value) in values.enumerate() {
            // SAFETY: there is room, as just checked.
            unsafe { *self.at.add(place) = value };
        }
        Ok(())
    }
}

/// # Safety
/// The rooms are the program's arrays.
unsafe fn fill(
    kind: &Datatype,
    integers: ValuesRoom<i32>,
    addresses: ValuesRoom<isize>,
    counts: Option<ValuesRoom<i64>>,
    datatypes: ValuesRoom<usize>,
) -> Result<()> {
    let contents: &Contents = kind.contents()?;
    // SAFETY: as the caller says.
    unsafe {
        integers.fill(contents.integers.iter().map(|&value| value as i32))?;
        addresses.fill(contents.addresses.iter().map(|&value| value as isize))?;
        if let Some(counts) = counts {
            counts.fill(contents.counts.iter().copied())?;
        }
        // The program frees what is not predefined, so each gets a handle of its own.
        let mut world = WORLD.enter();
        let handles = contents.datatypes.iter().map(|member| match member.named() {
            Some(_) => known_handle(&mut world, member),
            None => world.types.insert(member.clone()),
        });
        datatypes.fill(handles)
    }
}

pub unsafe fn get_contents(
    datatype: usize,
    max_integers: i32,
    max_addresses: i32,
    max_datatypes: i32,
    integers: *mut i32,
    addresses: *mut isize,
    datatypes: *mut usize,
) -> Result<()> {
    let kind = narrow(datatype)?;
    let integers = ValuesRoom { at: integers, room: i64::from(max_integers), name: "max_integers" };
    let addresses = ValuesRoom { at: addresses, room: i64::from(max_addresses), name: "max_addresses" };
    let datatypes = ValuesRoom { at: datatypes, room: i64::from(max_datatypes), name: "max_datatypes" };
    // SAFETY: as the caller says.
    unsafe { fill(&kind, integers, addresses, None, datatypes) }
}

#[expect(clippy::too_many_arguments, reason = "these are the arguments that the standard gives it")]
pub unsafe fn get_contents_large(
    datatype: usize,
    max_integers: i64,
    max_addresses: i64,
    max_counts: i64,
    max_datatypes: i64,
    integers: *mut i32,
    addresses: *mut isize,
    counts: *mut i64,
    datatypes: *mut usize,
) -> Result<()> {
    let kind = of(datatype)?;
    let integers = ValuesRoom { at: integers, room: max_integers, name: "max_integers" };
    let addresses = ValuesRoom { at: addresses, room: max_addresses, name: "max_addresses" };
    let counts = ValuesRoom { at: counts, room: max_counts, name: "max_large_counts" };
    let datatypes = ValuesRoom { at: datatypes, room: max_datatypes, name: "max_datatypes" };
    // SAFETY: as the caller says.
    unsafe { fill(&kind, integers, addresses, Some(counts), datatypes) }
}
