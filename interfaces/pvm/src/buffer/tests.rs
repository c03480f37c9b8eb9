//! Known bytes, wrong numbers, and packing against unpacking.

use proptest::prelude::*;

use super::*;

/// Packs with a stride of 1 unless told otherwise.
fn pack<T>(buffers: &mut Buffers, kind: ElementKind, values: &[T], stride: i32) -> Result<(), Code> {
    let count = (size_of_val(values) / kind.size()).div_ceil(stride.unsigned_abs().max(1) as usize);
    // SAFETY: a slice.
    unsafe { buffers.packed()?.pack(kind, values.as_ptr().cast(), count as i32, stride) }
}

fn unpack<T>(buffers: &mut Buffers, kind: ElementKind, values: &mut [T], stride: i32) -> Result<(), Code> {
    let count = (size_of_val(values) / kind.size()).div_ceil(stride.unsigned_abs().max(1) as usize);
    // SAFETY: a slice.
    unsafe { buffers.unpacked()?.unpack(kind, values.as_mut_ptr().cast(), count as i32, stride) }
}

/// Sends what was packed to the process itself.
fn turn_around(buffers: &mut Buffers) -> c_int {
    let id = buffers.active_send();
    let outgoing = buffers.outgoing(id).expect("a message");
    let encoding = Encoding::from_bits(outgoing.encoding as u32);
    let bytes = outgoing.bytes.into_owned();
    let received = buffers.accept(ArrivedMessage { encoding, bytes, source: 0x40001, tag: 7, context: 0 });
    buffers.set_active_receive(received).expect("a message");
    received
}

fn body(buffers: &Buffers) -> Vec<u8> {
    buffers.outgoing(buffers.active_send()).expect("a message").bytes.into_owned()
}

#[test]
fn xdr_has_units_of_four_bytes_the_highest_first() {
    let mut buffers = Buffers::new();
    buffers.begin_sending(Encoding::Default, 1);
    pack(&mut buffers, ElementKind::Byte, b"abcde", 1).expect("packed");
    pack(&mut buffers, ElementKind::Short, &[-2_i16], 1).expect("packed");
    pack(&mut buffers, ElementKind::UnsignedShort, &[0xfffe_u16], 1).expect("packed");
    pack(&mut buffers, ElementKind::Int, &[0x0102_0304, -1], 1).expect("packed");
    pack(&mut buffers, ElementKind::Long, &[0x0102_0304_0506_0708_i64], 1).expect("packed");
    pack(&mut buffers, ElementKind::Float, &[1.0_f32], 1).expect("packed");
    pack(&mut buffers, ElementKind::DoubleComplex, &[1.0_f64, -2.0], 1).expect("packed");
    buffers.packed().expect("a message").pack_text(c"hi").expect("packed");
    let known: &[&[u8]] = &[
        b"abcde\0\0\0",
        &[0xff, 0xff, 0xff, 0xfe],
        &[0, 0, 0xff, 0xfe],
        &[1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff],
        &[1, 2, 3, 4, 5, 6, 7, 8],
        &[0x3f, 0x80, 0, 0],
        &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 3, b'h', b'i', 0, 0],
    ];
    assert_eq!(body(&buffers), known.concat());
}

#[test]
fn raw_is_what_stands_in_memory() {
    let mut buffers = Buffers::new();
    buffers.begin_sending(Encoding::Raw, 1);
    pack(&mut buffers, ElementKind::Byte, b"abc", 1).expect("packed");
    pack(&mut buffers, ElementKind::Int, &[1, 2, 3, 4, 5], 2).expect("packed");
    let known: Vec<u8> = [b"abc".to_vec(), [1_i32, 3, 5].iter().flat_map(|n| n.to_ne_bytes()).collect()].concat();
    assert_eq!(body(&buffers), known);
    assert_eq!(Encoding::Raw.signature(), 0x0040_8c41);
}

#[test]
fn a_stride_may_be_null_or_lead_backwards() {
    for encoding in [Encoding::Default, Encoding::Raw] {
        let mut buffers = Buffers::new();
        buffers.begin_sending(encoding, 1);
        let values = [1_i32, 2, 3, 4, 5];
        let message = buffers.packed().expect("a message");
        // SAFETY: all of them are in the array.
        unsafe {
            message.pack(ElementKind::Int, (&raw const values[4]).cast(), 3, -2).expect("packed");
            message.pack(ElementKind::Int, (&raw const values[1]).cast(), 2, 0).expect("packed");
        }
        turn_around(&mut buffers);
        let mut back = [0; 9];
        unpack(&mut buffers, ElementKind::Int, &mut back, 2).expect("unpacked");
        assert_eq!(back, [5, 0, 3, 0, 1, 0, 2, 0, 2]);
    }
}

#[test]
fn what_is_in_place_is_read_when_it_is_sent() {
    let mut buffers = Buffers::new();
    let id = buffers.begin_sending(Encoding::InPlace, 1);
    let mut values = vec![1_i32, 2, 3];
    let at = values.as_mut_ptr();
    // SAFETY: the vector lives on.
    unsafe {
        buffers.packed().expect("a message").pack(ElementKind::Int, at.cast(), 3, 1).expect("packed");
        at.write(10);
    }
    let outgoing = buffers.outgoing(id).expect("a message");
    assert!(matches!(outgoing.bytes, Cow::Borrowed(bytes) if bytes.as_ptr() == at.cast()));
    pack(&mut buffers, ElementKind::Byte, b"xy", 1).expect("packed");
    assert_eq!(buffers.message(id).expect("a message").length(), 14);
    assert_eq!(pack(&mut buffers, ElementKind::Byte, b"xy", 2), Err(Code::NOT_IMPL));
    assert_eq!(buffers.packed().expect("a message").pack_text(c"x"), Err(Code::NOT_IMPL));
    turn_around(&mut buffers);
    let (mut numbers, mut bytes) = ([0; 3], [0_u8; 2]);
    unpack(&mut buffers, ElementKind::Int, &mut numbers, 1).expect("unpacked");
    unpack(&mut buffers, ElementKind::Byte, &mut bytes, 1).expect("unpacked");
    assert_eq!((numbers, &bytes), ([10, 2, 3], b"xy"));
    buffers.set_active_receive(id).expect("a message");
    assert_eq!(unpack(&mut buffers, ElementKind::Int, &mut numbers, 1), Err(Code::BAD_MSG));
}

#[test]
fn past_the_end_there_is_no_data() {
    for encoding in [Encoding::Default, Encoding::Raw, Encoding::InPlace] {
        for kind in ElementKind::ALL {
            let mut buffers = Buffers::new();
            buffers.begin_sending(encoding, 1);
            let sent = [7_u8; 48];
            pack(&mut buffers, kind, &sent, 1).expect("packed");
            turn_around(&mut buffers);
            let mut room = [0_u8; 64];
            assert_eq!(unpack(&mut buffers, kind, &mut room, 1), Err(Code::NO_DATA), "{encoding:?} {kind:?}");
            assert_eq!((&room[..48], &room[48..]), (&sent[..], &[0; 16][..]), "{encoding:?} {kind:?}");
            assert_eq!(unpack(&mut buffers, kind, &mut room, 1), Err(Code::NO_DATA));
        }
    }
}

#[test]
fn a_text_that_says_more_than_there_is_is_none() {
    for length in [5, -1, i32::MAX] {
        let mut buffers = Buffers::new();
        buffers.begin_sending(Encoding::Default, 1);
        pack(&mut buffers, ElementKind::Int, &[length], 1).expect("packed");
        pack(&mut buffers, ElementKind::Byte, b"abcd", 1).expect("packed");
        turn_around(&mut buffers);
        let mut room = [0; 8];
        // SAFETY: more than there is.
        let done = unsafe { buffers.unpacked().expect("a message").unpack_text(room.as_mut_ptr()) };
        assert_eq!((done, room), (Err(Code::NO_DATA), [0; 8]));
    }
}

#[test]
fn numbers_that_are_nobodys_are_refused() {
    let mut buffers = Buffers::new();
    assert_eq!(buffers.packed().err(), Some(Code::NO_BUF));
    assert_eq!(buffers.unpacked().err(), Some(Code::NO_BUF));
    for wrong in [1, 99, c_int::MAX] {
        assert_eq!(buffers.free(wrong), Err(Code::NO_SUCH_BUF));
        assert_eq!(buffers.message(wrong).err(), Some(Code::NO_SUCH_BUF));
        assert_eq!(buffers.set_active_send(wrong), Err(Code::NO_SUCH_BUF));
        assert_eq!(buffers.set_active_receive(wrong), Err(Code::NO_SUCH_BUF));
        assert_eq!(buffers.pack_nested(wrong, true), Err(Code::NO_SUCH_BUF));
    }
    for wrong in [-1, c_int::MIN] {
        assert_eq!(buffers.free(wrong), Err(Code::BAD_PARAM));
        assert_eq!(buffers.message(wrong).err(), Some(Code::BAD_PARAM));
        assert_eq!(buffers.set_active_send(wrong), Err(Code::BAD_PARAM));
    }
    assert_eq!((buffers.free(0), buffers.message(0).err()), (Ok(()), Some(Code::BAD_PARAM)));
    let id = buffers.begin_sending(Encoding::Raw, 1);
    assert_eq!((buffers.free(id), buffers.active_send()), (Ok(()), 0));
    assert_eq!(buffers.free(id), Err(Code::NO_SUCH_BUF));
    assert_eq!(pack(&mut buffers, ElementKind::Int, &[1], 1), Err(Code::NO_BUF));
}

#[test]
fn a_bad_count_or_address_packs_nothing() {
    let mut buffers = Buffers::new();
    for encoding in [Encoding::Default, Encoding::Raw, Encoding::InPlace] {
        let id = buffers.begin_sending(encoding, 1);
        let message = buffers.packed().expect("a message");
        // SAFETY: nothing is read.
        unsafe {
            assert_eq!(message.pack(ElementKind::Int, [1_i32].as_ptr().cast(), -1, 1), Err(Code::BAD_PARAM));
            assert_eq!(message.pack(ElementKind::Int, std::ptr::null(), 1, 1), Err(Code::BAD_PARAM));
            assert_eq!(message.pack(ElementKind::Int, std::ptr::null(), 0, 1), Ok(()));
        }
        assert_eq!(buffers.message(id).expect("a message").length(), 0);
    }
}

#[test]
fn a_number_that_was_freed_is_not_given_out_soon() {
    let mut buffers = Buffers::new();
    let first = buffers.begin_sending(Encoding::Raw, 1);
    let mut last = first;
    for _ in 0..6 {
        last = buffers.begin_sending(Encoding::Raw, 1);
        assert_eq!(buffers.message(first).err(), Some(Code::NO_SUCH_BUF));
    }
    assert_ne!(last, first);
    let numbers: std::collections::HashSet<_> = (0..1000).map(|_| buffers.begin_sending(Encoding::Raw, 1)).collect();
    assert!(numbers.len() < 20, "{numbers:?}");
}

#[test]
fn an_active_message_changes_sides_and_keeps_its_place() {
    let mut buffers = Buffers::new();
    buffers.begin_sending(Encoding::Default, 1);
    pack(&mut buffers, ElementKind::Int, &[1, 2, 3], 1).expect("packed");
    let received = turn_around(&mut buffers);
    let mut one = [0];
    unpack(&mut buffers, ElementKind::Int, &mut one, 1).expect("unpacked");
    assert_eq!(buffers.set_active_receive(0), Ok(received));
    assert_eq!(unpack(&mut buffers, ElementKind::Int, &mut one, 1), Err(Code::NO_BUF));
    assert_eq!(buffers.set_active_receive(received), Ok(0));
    unpack(&mut buffers, ElementKind::Int, &mut one, 1).expect("unpacked");
    assert_eq!(one, [2]);
    // It is forwarded, with a number more, and is not the one that is unpacked any more.
    let sent = buffers.active_send();
    assert_eq!(buffers.set_active_send(received), Ok(sent));
    assert_eq!(buffers.active_receive(), 0);
    pack(&mut buffers, ElementKind::Int, &[4], 1).expect("packed");
    turn_around(&mut buffers);
    let mut all = [0; 4];
    unpack(&mut buffers, ElementKind::Int, &mut all, 1).expect("unpacked");
    assert_eq!(all, [1, 2, 3, 4]);
}

#[test]
fn messages_nest() {
    let mut buffers = Buffers::new();
    let inner = buffers.make(Encoding::Raw, 0x40002);
    buffers.set_active_send(inner).expect("a message");
    pack(&mut buffers, ElementKind::Byte, b"inner", 1).expect("packed");
    buffers.set_sent(inner, 0x40003, 5, 6);
    buffers.message_mut(inner).expect("a message").heading.wait = 9;
    let heading = buffers.message(inner).expect("a message").heading;
    for encoding in [Encoding::Default, Encoding::Raw] {
        buffers.set_active_send(0).expect("none");
        let outer = buffers.begin_sending(encoding, 1);
        assert_eq!(buffers.pack_nested(outer, true), Err(Code::BAD_PARAM));
        buffers.pack_nested(inner, true).expect("packed");
        pack(&mut buffers, ElementKind::Int, &[77], 1).expect("packed");
        turn_around(&mut buffers);
        let found = buffers.unpack_nested().expect("a message");
        let mut number = [0];
        unpack(&mut buffers, ElementKind::Int, &mut number, 1).expect("unpacked");
        assert_eq!((number, buffers.unpack_nested()), ([77], Err(Code::NO_DATA)));
        assert_eq!(buffers.message(found).expect("a message").heading, heading);
        buffers.set_active_receive(found).expect("a message");
        let mut bytes = [0_u8; 5];
        unpack(&mut buffers, ElementKind::Byte, &mut bytes, 1).expect("unpacked");
        assert_eq!(&bytes, b"inner");
        buffers.free(outer).expect("freed");
    }
    let other = buffers.begin_sending(Encoding::Default, 1);
    assert_eq!(buffers.pack_nested(inner, false), Err(Code::MISMATCH));
    buffers.free(other).expect("freed");
    buffers.begin_sending(Encoding::Raw, 1);
    pack(&mut buffers, ElementKind::Byte, b"<", 1).expect("packed");
    buffers.pack_nested(inner, false).expect("packed");
    assert_eq!(body(&buffers), b"<inner");
}

#[test]
fn a_nested_message_that_says_more_than_there_is_is_none() {
    for (length, encoding, error) in [
        (100, 0x1000_0000, Code::NO_DATA),
        (i32::MAX, 0x1000_0000, Code::NO_DATA),
        (-1, 0x1000_0000, Code::BAD_MSG),
        (0, 0x1234, Code::BAD_MSG),
    ] {
        let mut buffers = Buffers::new();
        buffers.begin_sending(Encoding::Default, 1);
        pack(&mut buffers, ElementKind::Int, &[length, 0, 0, 0, encoding, 0, 0, 0, 0], 1).expect("packed");
        turn_around(&mut buffers);
        assert_eq!(buffers.unpack_nested(), Err(error));
    }
}

#[test]
fn what_was_accepted_is_given_back() {
    let mut buffers = Buffers::new();
    let message = || ArrivedMessage { encoding: Encoding::Raw, bytes: vec![1, 2], source: 3, tag: 4, context: 5 };
    let id = buffers.accept(message());
    assert_eq!(buffers.give_back(id), Some(message()));
    assert_eq!(buffers.give_back(id), None);
}

proptest! {
    #[test]
    fn what_was_packed_is_unpacked(
        raw in any::<bool>(),
        items in prop::collection::vec((0..ElementKind::ALL.len(), 0..40_usize, -3..4_i32), 1..20),
        bytes in prop::collection::vec(any::<u8>(), 40 * 3 * 16),
    ) {
        let mut buffers = Buffers::new();
        buffers.begin_sending(if raw { Encoding::Raw } else { Encoding::Default }, 1);
        // From the middle a stride may lead to either side.
        let element = |kind: ElementKind, stride: i32, at: usize| {
            let begin = if stride < 0 { 40 * 3 - 1 } else { 0 };
            (begin as isize + stride as isize * at as isize) as usize * kind.size()
        };
        for &(kind, count, stride) in &items {
            let kind = ElementKind::ALL[kind];
            let first = bytes[element(kind, stride, 0)..].as_ptr();
            // SAFETY: all of them are in the vector.
            unsafe { buffers.packed().unwrap().pack(kind, first, count as i32, stride).unwrap() };
        }
        turn_around(&mut buffers);
        for &(kind, count, stride) in &items {
            let kind = ElementKind::ALL[kind];
            let mut room = vec![0_u8; bytes.len()];
            let first = room[element(kind, stride, 0)..].as_mut_ptr();
            // SAFETY: all of them are in the vector.
            unsafe { buffers.unpacked().unwrap().unpack(kind, first, count as i32, stride).unwrap() };
            for at in 0..count {
                let place = element(kind, stride, at)..element(kind, stride, at) + kind.size();
                prop_assert_eq!(&room[place.clone()], &bytes[place]);
            }
        }
    }

    #[test]
    fn no_bytes_of_a_peer_make_unpacking_fail_otherwise_than_it_says(
        raw in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kinds in prop::collection::vec((0..ElementKind::ALL.len() + 2, 0..60_i32), 1..20),
    ) {
        let mut buffers = Buffers::new();
        let encoding = if raw { Encoding::Raw } else { Encoding::Default };
        let id = buffers.accept(ArrivedMessage { encoding, bytes, source: 1, tag: 1, context: 0 });
        buffers.set_active_receive(id).unwrap();
        let mut room = [0_u8; 60 * 16];
        for (kind, count) in kinds {
            // SAFETY: there is room for so many, and for any text of the message.
            let done = unsafe {
                match ElementKind::ALL.get(kind) {
                    Some(kind) => buffers.unpacked().unwrap().unpack(*kind, room.as_mut_ptr(), count, 1),
                    None if kind % 2 == 0 => buffers.unpacked().unwrap().unpack_text(room.as_mut_ptr()),
                    None => buffers.unpack_nested().map(drop),
                }
            };
            prop_assert!(matches!(done, Ok(()) | Err(Code::NO_DATA | Code::BAD_MSG)));
        }
    }
}
