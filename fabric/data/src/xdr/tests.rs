//! XDR against the standard's own definition: every element written byte by byte from its value, whatever its layout.

use super::XdrError;
use crate::{Form, Scalar};
use proptest::prelude::*;

/// An element with a value that it can have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum AnyElement {
    Byte(u8),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    Bool(bool),
    F32(u32),
    F64(u64),
    Complex(u32, u32),
}

impl AnyElement {
    fn scalar(self) -> Scalar {
        match self {
            Self::Byte(_) => Scalar::Byte,
            Self::I8(_) => Scalar::I8,
            Self::U8(_) => Scalar::U8,
            Self::I16(_) => Scalar::I16,
            Self::U16(_) => Scalar::U16,
            Self::I32(_) => Scalar::I32,
            Self::U32(_) => Scalar::U32,
            Self::I64(_) => Scalar::Long,
            Self::U64(_) => Scalar::U64,
            Self::Bool(_) => Scalar::Bool,
            Self::F32(_) => Scalar::F32,
            Self::F64(_) => Scalar::F64,
            Self::Complex(..) => Scalar::C32,
        }
    }

    fn native(self) -> Vec<u8> {
        match self {
            Self::Byte(value) | Self::U8(value) => vec![value],
            Self::I8(value) => value.to_ne_bytes().to_vec(),
            Self::I16(value) => value.to_ne_bytes().to_vec(),
            Self::U16(value) => value.to_ne_bytes().to_vec(),
            Self::I32(value) => value.to_ne_bytes().to_vec(),
            Self::U32(value) | Self::F32(value) => value.to_ne_bytes().to_vec(),
            Self::I64(value) => value.to_ne_bytes().to_vec(),
            Self::U64(value) | Self::F64(value) => value.to_ne_bytes().to_vec(),
            Self::Bool(value) => vec![u8::from(value)],
            Self::Complex(re, im) => [re.to_ne_bytes(), im.to_ne_bytes()].concat(),
        }
    }

    /// What RFC 4506 says, without the zeros that fill opaque data.
    fn written(self) -> Vec<u8> {
        match self {
            Self::Byte(value) => vec![value],
            Self::I8(value) => i32::from(value).to_be_bytes().to_vec(),
            Self::U8(value) => u32::from(value).to_be_bytes().to_vec(),
            Self::I16(value) => i32::from(value).to_be_bytes().to_vec(),
            Self::U16(value) => u32::from(value).to_be_bytes().to_vec(),
            Self::I32(value) => value.to_be_bytes().to_vec(),
            Self::U32(value) | Self::F32(value) => value.to_be_bytes().to_vec(),
            Self::I64(value) => value.to_be_bytes().to_vec(),
            Self::U64(value) | Self::F64(value) => value.to_be_bytes().to_vec(),
            Self::Bool(value) => u32::from(value).to_be_bytes().to_vec(),
            Self::Complex(re, im) => [re.to_be_bytes(), im.to_be_bytes()].concat(),
        }
    }
}

fn any_value() -> impl Strategy<Value = AnyElement> {
    prop_oneof![
        4 => any::<u8>().prop_map(AnyElement::Byte),
        1 => any::<i8>().prop_map(AnyElement::I8),
        1 => any::<u8>().prop_map(AnyElement::U8),
        1 => any::<i16>().prop_map(AnyElement::I16),
        1 => any::<u16>().prop_map(AnyElement::U16),
        1 => any::<i32>().prop_map(AnyElement::I32),
        1 => any::<u32>().prop_map(AnyElement::U32),
        1 => any::<i64>().prop_map(AnyElement::I64),
        1 => any::<u64>().prop_map(AnyElement::U64),
        1 => any::<bool>().prop_map(AnyElement::Bool),
        1 => any::<u32>().prop_map(AnyElement::F32),
        1 => any::<u64>().prop_map(AnyElement::F64),
        1 => any::<(u32, u32)>().prop_map(|(re, im)| AnyElement::Complex(re, im)),
    ]
}

fn written(values: &[AnyElement]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        if !matches!(value, AnyElement::Byte(_)) {
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out.extend(value.written());
    }
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A form of these elements with `gaps` between them, some in front of others in memory; with the place of each.
fn layout(values: &[AnyElement], gaps: &[usize]) -> (Form, Vec<usize>, usize) {
    let mut places = vec![0; values.len()];
    let mut end = 0;
    // Every other element from the front, the rest from the back.
    let order = (0..values.len()).step_by(2).chain((0..values.len()).skip(1).step_by(2).rev());
    for (at, gap) in order.zip(gaps.iter().cycle()) {
        places[at] = end + gap;
        end = places[at] + values[at].scalar().size() as usize;
    }
    let member = |(value, place): (&AnyElement, &usize)| {
        Form::scalar(value.scalar()).shifted(*place as i64).expect("it is near")
    };
    let members: Vec<Form> = values.iter().zip(&places).map(member).collect();
    (Form::sequence(&members).expect("it is small").resized(0, end as i64).expect("it is small"), places, end)
}

proptest! {
    #[test]
    fn elements_are_written_as_the_standard_says_and_read_back_in_any_layout(
        values in prop::collection::vec(any_value(), 0..40),
        gaps in prop::collection::vec(0usize..5, 1..4),
        other in prop::collection::vec(0usize..5, 1..4),
        count in 1i64..4,
    ) {
        let (form, places, bytes) = layout(&values, &gaps);
        let mut memory = vec![0xa5u8; bytes * count as usize];
        for element in 0..count as usize {
            for (value, place) in values.iter().zip(&places) {
                let native = value.native();
                memory[element * bytes + place..][..native.len()].copy_from_slice(&native);
            }
        }
        let wanted = written(&values.repeat(count as usize));
        prop_assert_eq!(form.xdr_size(count), Some(wanted.len() as u64));
        let mut out = vec![0x77; wanted.len() + 3];
        // SAFETY: the memory holds so many elements.
        let size = unsafe { form.pack_xdr(memory.as_ptr(), count, &mut out) };
        prop_assert_eq!(size, Ok(wanted.len()));
        prop_assert_eq!(&out[..wanted.len()], &wanted[..]);
        prop_assert!(out[wanted.len()..].iter().all(|byte| *byte == 0x77));

        let (form, places, bytes) = layout(&values, &other);
        let mut back = vec![0x5au8; bytes * count as usize];
        let mut expected = back.clone();
        for element in 0..count as usize {
            for (value, place) in values.iter().zip(&places) {
                let native = value.native();
                expected[element * bytes + place..][..native.len()].copy_from_slice(&native);
            }
        }
        // SAFETY: as above.
        let size = unsafe { form.unpack_xdr(back.as_mut_ptr(), count, &out) };
        prop_assert_eq!(size, Ok(wanted.len()));
        prop_assert_eq!(back, expected);
    }

    #[test]
    fn data_and_room_that_are_too_short_are_refused_and_nothing_is_changed(
        values in prop::collection::vec(any_value(), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let (form, _, bytes) = layout(&values, &[0]);
        let whole = written(&values);
        let short = cut.index(whole.len());
        let mut memory = vec![0x5au8; bytes];
        let mut out = vec![0x77; short];
        // SAFETY: the memory holds the elements.
        unsafe {
            prop_assert_eq!(form.unpack_xdr(memory.as_mut_ptr(), 1, &whole[..short]), Err(XdrError::Short));
            prop_assert_eq!(form.pack_xdr(memory.as_ptr(), 1, &mut out), Err(XdrError::Short));
        }
        prop_assert!(memory.iter().all(|byte| *byte == 0x5a) && out.iter().all(|byte| *byte == 0x77));
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused(unit in any::<u32>()) {
        let data = unit.to_be_bytes();
        let read = |scalar: Scalar| {
            let mut memory = [0u8; 8];
            // SAFETY: the memory has room for each of these.
            unsafe { Form::scalar(scalar).unpack_xdr(memory.as_mut_ptr(), 1, &data) }.map(|_| memory[0])
        };
        let fits = |scalar, fits: bool| match fits {
            true => Ok(unit as u8),
            false => Err(XdrError::Range(scalar)),
        };
        prop_assert_eq!(read(Scalar::I8), fits(Scalar::I8, i8::try_from(unit as i32).is_ok()));
        prop_assert_eq!(read(Scalar::U8), fits(Scalar::U8, u8::try_from(unit).is_ok()));
        prop_assert_eq!(read(Scalar::I16), fits(Scalar::I16, i16::try_from(unit as i32).is_ok()));
        prop_assert_eq!(read(Scalar::U16), fits(Scalar::U16, u16::try_from(unit).is_ok()));
        prop_assert_eq!(read(Scalar::I32), Ok(unit as u8));
        prop_assert_eq!(read(Scalar::Bool), fits(Scalar::Bool, unit <= 1));
    }
}

/// One element, written.
fn one(scalar: Scalar, native: &[u8]) -> Vec<u8> {
    let form = Form::scalar(scalar);
    let mut out = vec![0; form.xdr_size(1).expect("it is in XDR") as usize];
    assert_eq!(native.len() as i64, scalar.size());
    // SAFETY: the bytes of one element.
    let size = unsafe { form.pack_xdr(native.as_ptr(), 1, &mut out) };
    assert_eq!(size, Ok(out.len()));
    let mut back = vec![0; native.len()];
    // SAFETY: room for one element.
    let size = unsafe { form.unpack_xdr(back.as_mut_ptr(), 1, &out) };
    assert_eq!((size, &back[..]), (Ok(out.len()), native));
    out
}

#[test]
fn known_values_are_written_as_the_standard_shows_them() {
    assert_eq!(one(Scalar::I8, &(-2i8).to_ne_bytes()), [0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(one(Scalar::U16, &0xfedcu16.to_ne_bytes()), [0, 0, 0xfe, 0xdc]);
    assert_eq!(one(Scalar::Long, &(-3i64).to_ne_bytes()), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd]);
    assert_eq!(one(Scalar::F32, &1f32.to_ne_bytes()), [0x3f, 0x80, 0, 0]);
    assert_eq!(one(Scalar::F64, &(-2f64).to_ne_bytes()), [0xc0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(one(Scalar::Bool, &[1]), [0, 0, 0, 1]);
    assert_eq!(one(Scalar::Wchar, &0x20acu32.to_ne_bytes()), [0, 0, 0x20, 0xac]);
    // 1.0 as an 80-bit float, in 16 bytes.
    let extended = [0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f, 0, 0, 0, 0, 0, 0];
    assert_eq!(one(Scalar::F80, &extended), [0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn bytes_that_follow_each_other_are_one_item() {
    let five = Form::scalar(Scalar::Char).block(5).expect("it is small");
    let mut out = [0xff; 8];
    // SAFETY: five bytes.
    let size = unsafe { five.pack_xdr(b"hello".as_ptr(), 1, &mut out) };
    assert_eq!((size, &out), (Ok(8), b"hello\0\0\0"));
    // Ten of them are no two items.
    assert_eq!(five.xdr_size(2), Some(12));
    // What fills an item means nothing.
    let mut back = [0; 5];
    // SAFETY: room for five bytes.
    let size = unsafe { five.unpack_xdr(back.as_mut_ptr(), 1, b"worldxyz") };
    assert_eq!((size, &back), (Ok(8), b"world"));
}

#[test]
fn what_is_not_in_xdr_or_too_long_has_no_size() {
    let half = Form::scalar(Scalar::F16);
    assert_eq!(half.xdr_size(1), None);
    // SAFETY: it is refused before anything is touched.
    let refused = unsafe { half.pack_xdr(std::ptr::null(), 1, &mut [0; 8]) };
    assert_eq!(refused, Err(XdrError::Unknown(Scalar::F16)));
    let byte = Form::scalar(Scalar::I8);
    assert_eq!(byte.xdr_size(i64::MAX / 4), Some(i64::MAX as u64 / 4 * 4));
    assert_eq!((byte.xdr_size(i64::MAX / 2), byte.xdr_size(-1)), (None, None));
    assert_eq!((byte.xdr_size(0), Form::empty().xdr_size(7)), (Some(0), Some(0)));
}
