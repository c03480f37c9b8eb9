//! Handles: integers here, and what they are to `weft-mpi`.
//!
//! A handle of the program's own objects is a number of 31 bits there, stable for the life of the object, with a
//! generation that keeps it from being used again too soon. The same number with the top bit set is the handle here.

use std::marker::PhantomData;
use weft_mpi::handle::{FIRST_USER, HandleKind};

/// What marks the program's own objects.
const OWN: u32 = 1 << 31;
/// A code that names nothing of any kind.
pub const UNKNOWN: usize = 0xfff;

/// The kind of handle that is a pointer here.
pub struct File;

/// The predefined handles of a kind.
pub trait PredefinedHandles {
    /// Ours for each of theirs; the null handle comes first.
    const PAIRS: &'static [(u32, u16)];
    const KIND: HandleKind;
}

/// The predefined handles by the low byte of theirs (but the null handle and those with the top bit), and by ours.
struct Tables {
    place: [u8; 256],
    theirs: [u32; 256],
}

struct Of<K>(PhantomData<K>);

impl<K: PredefinedHandles> Of<K> {
    const TABLES: &'static Tables = &Tables::new(K::PAIRS, K::KIND.null());
    /// Whether there are predefined handles with the top bit (the pair types).
    const HAS_HIGH: bool = {
        let (mut index, mut found) = (0, false);
        while index < K::PAIRS.len() {
            found |= K::PAIRS[index].0 >= OWN;
            index += 1;
        }
        found
    };
}

impl Tables {
    const fn new(pairs: &[(u32, u16)], null: usize) -> Self {
        let mut tables = Self { place: [0; 256], theirs: [0; 256] };
        let mut index = 0;
        while index < pairs.len() {
            let (theirs, ours) = pairs[index];
            let place = ours as usize - null;
            tables.theirs[place] = theirs;
            if index > 0 && theirs < OWN {
                tables.place[(theirs & 0xff) as usize] = place as u8;
            }
            index += 1;
        }
        tables
    }
}

/// Our handle for one of the program's.
#[inline]
pub fn ours<K: PredefinedHandles>(handle: i32) -> usize {
    let handle = handle as u32;
    let null = K::KIND.null();
    if handle < OWN {
        let tables = Of::<K>::TABLES;
        let place = usize::from(tables.place[(handle & 0xff) as usize]);
        return match () {
            () if tables.theirs[place] == handle => null + place,
            () if tables.theirs[0] == handle => null,
            () => UNKNOWN,
        };
    }
    if Of::<K>::HAS_HIGH
        && let Some(pair) = K::PAIRS.iter().find(|pair| pair.0 == handle)
    {
        return usize::from(pair.1);
    }
    (handle & !OWN) as usize
}

/// The program's handle for one of ours.
#[inline]
pub fn theirs<K: PredefinedHandles>(handle: usize) -> i32 {
    if handle >= FIRST_USER {
        return (handle as u32 | OWN) as i32;
    }
    Of::<K>::TABLES.theirs[handle.wrapping_sub(K::KIND.null()) & 0xff] as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values;

    fn back_and_forth<K: PredefinedHandles>() {
        for &(theirs, ours) in K::PAIRS {
            assert_eq!(super::ours::<K>(theirs as i32), usize::from(ours), "{theirs:#x}");
            assert_eq!(super::theirs::<K>(usize::from(ours)) as u32, theirs, "{ours:#x}");
        }
        for own in [0x1000, 0x1001, (K::KIND as usize) << 27, (K::KIND as usize) << 27 | 0x7ff_ffff] {
            let theirs = super::theirs::<K>(own);
            assert!(K::PAIRS.iter().all(|pair| pair.0 != theirs as u32), "{own:#x} is predefined");
            assert_eq!(super::ours::<K>(theirs), own);
        }
        for nothing in [0, 1, 0x4c00_0505, 0x1234_5678] {
            assert_eq!(super::ours::<K>(nothing), UNKNOWN, "{nothing:#x}");
        }
    }

    #[test]
    fn every_predefined_handle_and_every_generation_of_own_ones_come_back() {
        back_and_forth::<values::Comm>();
        back_and_forth::<values::Group>();
        back_and_forth::<values::Datatype>();
        back_and_forth::<values::Op>();
        back_and_forth::<values::Request>();
        back_and_forth::<values::Message>();
        back_and_forth::<values::Info>();
        back_and_forth::<values::Errhandler>();
        back_and_forth::<values::Win>();
        back_and_forth::<values::Session>();
    }
}
