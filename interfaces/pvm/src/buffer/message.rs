//! One message: what was packed, or what has arrived, and where unpacking stands.

use std::borrow::Cow;

use super::encoding::{ElementKind, Encoding};
use super::swap::{self, Strided};
use crate::errors::Code;

/// ByteString of a unit of XDR.
const UNIT: usize = 4;

/// What travels with a message besides its bytes, and what programs read and write of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageHeading {
    pub context: i32,
    pub tag: i32,
    /// A number by which a reply finds its request.
    pub wait: i32,
    pub checksum: i32,
    /// The sending task.
    pub source: i32,
    pub destination: i32,
}

/// ByteString of the program that are read when the message is sent.
#[derive(Clone, Copy, Debug)]
struct InPlacePart {
    at: *const u8,
    length: usize,
}

/// What a message is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Use {
    #[default]
    Nothing,
    Packing,
    Unpacking,
}

/// A message of elements that have types.
#[derive(Debug, Default)]
pub struct TypedMessage {
    pub heading: MessageHeading,
    encoding: Encoding,
    usage: Use,
    bytes: Vec<u8>,
    /// Of a message that is in place: all of it.
    parts: Vec<InPlacePart>,
    /// The next byte that is unpacked.
    at: usize,
}

// SAFETY: parts in place are the program's, which uses a message in one thread at a time.
unsafe impl Send for TypedMessage {}

impl TypedMessage {
    /// Begins anew with these bytes, which are packed on, or unpacked.
    #[inline]
    pub(super) fn begin(&mut self, encoding: Encoding, bytes: Vec<u8>, heading: MessageHeading) {
        self.heading = heading;
        self.encoding = encoding;
        self.usage = Use::Nothing;
        self.bytes = bytes;
        self.parts.clear();
        self.at = 0;
    }

    /// The memory of a message that is no more.
    #[inline]
    pub(super) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// ByteString of the body.
    pub fn length(&self) -> usize {
        self.bytes.len() + self.parts.iter().map(|part| part.length).sum::<usize>()
    }

    /// The body as it is sent. Parts in place are read now; one alone is borrowed where it stands.
    pub fn body(&self) -> Cow<'_, [u8]> {
        // SAFETY: the program leaves the bytes in place until they are sent.
        let slice = |part: &InPlacePart| unsafe { std::slice::from_raw_parts(part.at, part.length) };
        match self.parts.as_slice() {
            [] => Cow::Borrowed(&self.bytes),
            [part] => Cow::Borrowed(slice(part)),
            parts => {
                let mut all = Vec::with_capacity(self.length());
                parts.iter().for_each(|part| all.extend_from_slice(slice(part)));
                Cow::Owned(all)
            }
        }
    }

    /// Packing goes on at the end.
    pub fn pack_on(&mut self) {
        self.usage = Use::Packing;
    }

    /// Unpacking goes on where it stopped, or begins, if the message was used otherwise.
    pub fn unpack_on(&mut self) {
        if self.usage != Use::Unpacking {
            self.usage = Use::Unpacking;
            self.at = 0;
        }
    }

    /// Packs elements, each `stride` elements after the one before.
    ///
    /// # Safety
    /// The elements can be read; those of a message in place, until it is sent or freed.
    ///
    /// # Errors
    /// A count below 0 or a null pointer, no memory, or a stride in place.
    #[inline]
    pub unsafe fn pack(&mut self, kind: ElementKind, first: *const u8, count: i32, stride: i32) -> Result<(), Code> {
        let elements = elements(kind, first, first.is_null(), count, stride)?;
        if elements.count == 0 {
            return Ok(());
        }
        // SAFETY: as the caller says.
        unsafe {
            match self.encoding {
                Encoding::Default => self.append(swap::size(kind), elements.count, |to| {
                    swap::write_all(kind, elements, to);
                })?,
                Encoding::Raw => self.append(kind.size(), elements.count, |to| {
                    swap::copy_out(kind.size(), elements, to);
                })?,
                Encoding::InPlace => return self.place(kind, elements, stride),
            }
        }
        if self.encoding == Encoding::Default && kind == ElementKind::Byte {
            self.fill();
        }
        Ok(())
    }

    /// Makes room at the end, and lets `write` fill it.
    #[inline]
    fn append(&mut self, size: usize, count: usize, write: impl FnOnce(*mut u8)) -> Result<(), Code> {
        let room = size * count;
        if self.bytes.capacity() - self.bytes.len() < room {
            self.grow(room)?;
        }
        write(self.bytes.spare_capacity_mut().as_mut_ptr().cast());
        // SAFETY: so much was written.
        unsafe { self.bytes.set_len(self.bytes.len() + room) };
        Ok(())
    }

    #[cold]
    fn grow(&mut self, room: usize) -> Result<(), Code> {
        self.bytes.try_reserve(room + UNIT).map_err(|_| Code::NO_MEM)
    }

    /// Zeros end the last unit.
    fn fill(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(UNIT), 0);
    }

    fn place(&mut self, kind: ElementKind, elements: Strided<*const u8>, stride: i32) -> Result<(), Code> {
        if stride != 1 {
            return Err(Code::NOT_IMPL);
        }
        self.parts.push(InPlacePart { at: elements.first, length: elements.count * kind.size() });
        Ok(())
    }

    /// Unpacks elements to every `stride`-th place. Where fewer are left, those that there are.
    ///
    /// # Safety
    /// The elements can be written.
    ///
    /// # Errors
    /// A count below 0 or a null pointer, fewer elements, or a message in place, which only its receiver unpacks.
    #[inline]
    pub unsafe fn unpack(&mut self, kind: ElementKind, first: *mut u8, count: i32, stride: i32) -> Result<(), Code> {
        let mut elements = elements(kind, first, first.is_null(), count, stride)?;
        if elements.count == 0 {
            return Ok(());
        }
        let left = &self.bytes[self.at.min(self.bytes.len())..];
        let size = match self.encoding {
            Encoding::Default => swap::size(kind),
            Encoding::Raw => kind.size(),
            Encoding::InPlace => return Err(Code::BAD_MSG),
        };
        let asked = elements.count;
        elements.count = asked.min(left.len() / size);
        // SAFETY: so much is there; the program's memory is as the caller says.
        unsafe {
            match self.encoding {
                Encoding::Default => swap::read_all(kind, left.as_ptr(), elements),
                _ => swap::copy_in(size, left.as_ptr(), elements),
            }
        }
        self.skip_bytes(elements.count * size);
        if elements.count == asked { Ok(()) } else { Err(Code::NO_DATA) }
    }

    /// Packs a text with its zero, and how many bytes that are before it.
    ///
    /// # Errors
    /// As [`Self::pack`]; a message in place has no texts.
    pub fn pack_text(&mut self, text: &std::ffi::CStr) -> Result<(), Code> {
        let bytes = text.to_bytes_with_nul();
        let length = i32::try_from(bytes.len()).map_err(|_| Code::OVERFLOW)?;
        self.pack_ints(&[length])?;
        // SAFETY: a slice.
        unsafe { self.pack(ElementKind::Byte, bytes.as_ptr(), length, 1) }
    }

    /// Unpacks a text with its zero.
    ///
    /// # Safety
    /// There is room for it.
    ///
    /// # Errors
    /// There is none, or less than its length says.
    pub unsafe fn unpack_text(&mut self, to: *mut u8) -> Result<(), Code> {
        let begin = self.at;
        let length = self.unpack_int()?;
        let left = self.bytes.len().saturating_sub(self.at);
        if !usize::try_from(length).is_ok_and(|length| length <= left) {
            self.at = begin;
            return Err(Code::NO_DATA);
        }
        // SAFETY: as the caller says.
        unsafe { self.unpack(ElementKind::Byte, to, length, 1) }
    }

    /// Packs whole numbers that are not the program's to leave in place.
    pub(super) fn pack_ints(&mut self, numbers: &[i32]) -> Result<(), Code> {
        if self.encoding == Encoding::InPlace {
            return Err(Code::NOT_IMPL);
        }
        // SAFETY: a slice.
        unsafe { self.pack(ElementKind::Int, numbers.as_ptr().cast(), numbers.len() as i32, 1) }
    }

    pub(super) fn unpack_int(&mut self) -> Result<i32, Code> {
        let mut number = 0_i32;
        // SAFETY: it is here.
        unsafe { self.unpack(ElementKind::Int, (&raw mut number).cast(), 1, 1)? };
        Ok(number)
    }

    /// The bytes that were not unpacked.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    /// Leaves so many bytes behind that are one item.
    pub(super) fn skip_bytes(&mut self, bytes: usize) {
        self.at += bytes;
        if self.encoding == Encoding::Default {
            self.at = self.at.next_multiple_of(UNIT);
        }
    }

    /// Appends the body of a message of the same encoding; parts in place stay there.
    pub(super) fn append_body(&mut self, other: &Self) -> Result<(), Code> {
        let bytes = &other.bytes;
        self.bytes.try_reserve(bytes.len()).map_err(|_| Code::NO_MEM)?;
        self.bytes.extend_from_slice(bytes);
        self.parts.extend_from_slice(&other.parts);
        Ok(())
    }
}

/// Elements of a program as it describes them.
#[inline]
fn elements<P>(kind: ElementKind, first: P, is_null: bool, count: i32, stride: i32) -> Result<Strided<P>, Code> {
    let count = usize::try_from(count).map_err(|_| Code::BAD_PARAM)?;
    if count != 0 && is_null {
        return Err(Code::BAD_PARAM);
    }
    Ok(Strided { first, count, step: stride as isize * kind.size() as isize })
}
