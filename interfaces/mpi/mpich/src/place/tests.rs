use super::*;
use crate::handle::UNKNOWN;
use crate::values::{Datatype, Request};

const INT: (i32, usize) = (0x4c00_0405, 0x209);

#[test]
fn what_the_call_leaves_alone_stays_to_the_bit() {
    let mut there = 0x1234_5678;
    // SAFETY: a place for a handle; so below.
    let mut place = unsafe { OnePlace::new(&mut there, handles::<Datatype>()) };
    // SAFETY: the place is not null; so below.
    assert_eq!(unsafe { *place.at() }, UNKNOWN);
    drop(place);
    assert_eq!(there, 0x1234_5678);
    // SAFETY: as above.
    let mut place = unsafe { OnePlace::new(&mut there, handles::<Datatype>()) };
    // SAFETY: as above.
    unsafe { *place.at() = INT.1 };
    drop(place);
    assert_eq!(there, INT.0);
    // SAFETY: null is a place, too.
    assert!(unsafe { OnePlace::new(std::ptr::null_mut(), handles::<Datatype>()) }.at().is_null());
}

#[test]
fn arrays_of_any_length_are_read_and_written_where_they_changed() {
    for len in [0, 1, FEW, FEW + 1, 3 * FEW] {
        let own: Vec<usize> = (0..len).map(|index| (Request::KIND as usize) << 27 | index).collect();
        let mut there: Vec<i32> = own.iter().map(|&handle| handle::theirs::<Request>(handle)).collect();
        let before = there.clone();
        // SAFETY: an array of so many handles.
        let mut place = unsafe { ManyPlaces::new(there.as_mut_ptr(), len, handles::<Request>()) };
        // SAFETY: it has as many elements.
        let seen = unsafe { std::slice::from_raw_parts_mut(place.at(), len) };
        assert_eq!(seen, own);
        seen.iter_mut().step_by(2).for_each(|handle| *handle = ours::REQUEST_NULL);
        drop(place);
        for (index, handle) in there.iter().enumerate() {
            let wanted = if index % 2 == 0 { 0x2c00_0000 } else { before[index] };
            assert_eq!(*handle, wanted, "{index} of {len}");
        }
    }
}

#[test]
fn a_text_that_is_too_long_is_cut_to_the_program_s_room() {
    let mut room = [1 as c_char; 6];
    // SAFETY: it has five bytes and one to spare.
    let mut place = unsafe { Text::new(room.as_mut_ptr(), 5) };
    // SAFETY: the place has room for the longest text.
    unsafe { std::ptr::copy_nonoverlapping(c"abcdefgh".as_ptr(), place.at(), 9) };
    drop(place);
    assert_eq!(room.map(|byte| byte as u8), *b"abcd\0\x01");
}
