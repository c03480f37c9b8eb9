//! The loops that write and read elements.
//!
//! A loop is compiled for each type of number, and for elements that follow each other, so that the compiler makes a
//! vectorised exchange of bytes of it.
//!
//! SAFETY invariant MEMORY, which every unsafe function here relies on: all elements that the arguments describe are
//! valid, for reading where they are written out, else for writing, and lie outside the message.

use std::mem::MaybeUninit;
use std::ptr::copy_nonoverlapping;

use super::encoding::ElementKind;

/// Elements of a program: `count` of them, each so many bytes after the one before.
#[derive(Clone, Copy, Debug)]
pub struct Strided<P> {
    pub first: P,
    pub count: usize,
    pub step: isize,
}

/// What a number is in memory and in the message.
trait Swapped {
    type Memory: Copy;
    type Written: Copy;
    fn write(memory: Self::Memory) -> Self::Written;
    fn read(written: Self::Written) -> Self::Memory;
}

/// A 16-bit number is a unit of four bytes, with its sign or without.
struct Signed16;
struct Unsigned16;
struct Bits32;
struct Bits64;

impl Swapped for Signed16 {
    type Memory = [u8; 2];
    type Written = [u8; 4];

    #[inline(always)]
    fn write(memory: [u8; 2]) -> [u8; 4] {
        i32::from(i16::from_ne_bytes(memory)).to_be_bytes()
    }

    #[inline(always)]
    fn read(written: [u8; 4]) -> [u8; 2] {
        (u32::from_be_bytes(written) as u16).to_ne_bytes()
    }
}

impl Swapped for Unsigned16 {
    type Memory = [u8; 2];
    type Written = [u8; 4];

    #[inline(always)]
    fn write(memory: [u8; 2]) -> [u8; 4] {
        u32::from(u16::from_ne_bytes(memory)).to_be_bytes()
    }

    #[inline(always)]
    fn read(written: [u8; 4]) -> [u8; 2] {
        Signed16::read(written)
    }
}

impl Swapped for Bits32 {
    type Memory = [u8; 4];
    type Written = [u8; 4];

    #[inline(always)]
    fn write(memory: [u8; 4]) -> [u8; 4] {
        u32::from_ne_bytes(memory).to_be_bytes()
    }

    #[inline(always)]
    fn read(written: [u8; 4]) -> [u8; 4] {
        Self::write(written)
    }
}

impl Swapped for Bits64 {
    type Memory = [u8; 8];
    type Written = [u8; 8];

    #[inline(always)]
    fn write(memory: [u8; 8]) -> [u8; 8] {
        u64::from_ne_bytes(memory).to_be_bytes()
    }

    #[inline(always)]
    fn read(written: [u8; 8]) -> [u8; 8] {
        Self::write(written)
    }
}

/// Writes elements of `PARTS` numbers each.
///
/// # Safety
/// MEMORY; `to` has room for all of them.
#[inline(always)]
unsafe fn write<N: Swapped, const PARTS: usize>(from: Strided<*const u8>, to: *mut u8) {
    let numbers = from.count * PARTS;
    // SAFETY: the room that the caller says; arrays of bytes lie anywhere.
    let room = unsafe { std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<N::Written>>(), numbers) };
    if from.step == (size_of::<N::Memory>() * PARTS) as isize {
        // SAFETY: MEMORY.
        let memory = unsafe { std::slice::from_raw_parts(from.first.cast::<N::Memory>(), numbers) };
        for (written, &number) in room.iter_mut().zip(memory) {
            written.write(N::write(number));
        }
        return;
    }
    for (element, room) in room.chunks_exact_mut(PARTS).enumerate() {
        let at = from.first.wrapping_offset(from.step.wrapping_mul(element as isize)).cast::<N::Memory>();
        for (part, written) in room.iter_mut().enumerate() {
            // SAFETY: MEMORY.
            written.write(N::write(unsafe { at.wrapping_add(part).read() }));
        }
    }
}

/// Reads elements of `PARTS` numbers each.
///
/// # Safety
/// MEMORY; all of them stand at `from`.
#[inline(always)]
unsafe fn read<N: Swapped, const PARTS: usize>(from: *const u8, to: Strided<*mut u8>) {
    let numbers = to.count * PARTS;
    // SAFETY: they stand there, as the caller says; arrays of bytes lie anywhere.
    let written = unsafe { std::slice::from_raw_parts(from.cast::<N::Written>(), numbers) };
    if to.step == (size_of::<N::Memory>() * PARTS) as isize {
        // SAFETY: MEMORY.
        let memory = unsafe { std::slice::from_raw_parts_mut(to.first.cast::<MaybeUninit<N::Memory>>(), numbers) };
        for (number, &written) in memory.iter_mut().zip(written) {
            number.write(N::read(written));
        }
        return;
    }
    for (element, written) in written.chunks_exact(PARTS).enumerate() {
        let at = to.first.wrapping_offset(to.step.wrapping_mul(element as isize)).cast::<N::Memory>();
        for (part, &number) in written.iter().enumerate() {
            // SAFETY: MEMORY.
            unsafe { at.wrapping_add(part).write(N::read(number)) };
        }
    }
}

/// ByteString that an element takes in XDR. ByteString that follow each other are one item, which zeros fill to units.
pub const fn size(kind: ElementKind) -> usize {
    match kind {
        ElementKind::Byte => 1,
        ElementKind::Short | ElementKind::UnsignedShort => 4,
        _ => kind.size(),
    }
}

/// Writes elements as XDR has them; bytes without what fills their last unit.
///
/// # Safety
/// MEMORY; `to` has room for all of them.
#[inline]
pub unsafe fn write_all(kind: ElementKind, from: Strided<*const u8>, to: *mut u8) {
    // SAFETY: as the caller says.
    unsafe {
        match kind {
            ElementKind::Byte => copy_out(1, from, to),
            ElementKind::Short => write::<Signed16, 1>(from, to),
            ElementKind::UnsignedShort => write::<Unsigned16, 1>(from, to),
            ElementKind::Int | ElementKind::Float => write::<Bits32, 1>(from, to),
            ElementKind::Long | ElementKind::Double => write::<Bits64, 1>(from, to),
            ElementKind::Complex => write::<Bits32, 2>(from, to),
            ElementKind::DoubleComplex => write::<Bits64, 2>(from, to),
        }
    }
}

/// Reads elements as XDR has them. A number that does not fit loses its highest bytes.
///
/// # Safety
/// MEMORY; all of them stand at `from`.
#[inline]
pub unsafe fn read_all(kind: ElementKind, from: *const u8, to: Strided<*mut u8>) {
    // SAFETY: as the caller says.
    unsafe {
        match kind {
            ElementKind::Byte => copy_in(1, from, to),
            ElementKind::Short => read::<Signed16, 1>(from, to),
            ElementKind::UnsignedShort => read::<Unsigned16, 1>(from, to),
            ElementKind::Int | ElementKind::Float => read::<Bits32, 1>(from, to),
            ElementKind::Long | ElementKind::Double => read::<Bits64, 1>(from, to),
            ElementKind::Complex => read::<Bits32, 2>(from, to),
            ElementKind::DoubleComplex => read::<Bits64, 2>(from, to),
        }
    }
}

/// Copies elements of `size` bytes as they are.
///
/// # Safety
/// MEMORY; `to` has room for all of them.
#[inline]
pub unsafe fn copy_out(size: usize, from: Strided<*const u8>, to: *mut u8) {
    if from.step == size as isize {
        // SAFETY: MEMORY, and the room.
        return unsafe { copy_nonoverlapping(from.first, to, size * from.count) };
    }
    for element in 0..from.count {
        let at = from.first.wrapping_offset(from.step.wrapping_mul(element as isize));
        // SAFETY: MEMORY, and the room.
        unsafe { copy_nonoverlapping(at, to.add(element * size), size) };
    }
}

/// Copies elements of `size` bytes as they are.
///
/// # Safety
/// MEMORY; all of them stand at `from`.
#[inline]
pub unsafe fn copy_in(size: usize, from: *const u8, to: Strided<*mut u8>) {
    if to.step == size as isize {
        // SAFETY: MEMORY, and they stand there.
        return unsafe { copy_nonoverlapping(from, to.first, size * to.count) };
    }
    for element in 0..to.count {
        let at = to.first.wrapping_offset(to.step.wrapping_mul(element as isize));
        // SAFETY: MEMORY, and they stand there.
        unsafe { copy_nonoverlapping(from.add(element * size), at, size) };
    }
}
