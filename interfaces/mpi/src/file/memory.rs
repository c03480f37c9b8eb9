//! The program's memory of one access.

use crate::abi::Described;
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::world::WORLD;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// `count` elements of a datatype at an address. What a process reads from a file or writes to it are their packed
/// bytes.
///
/// SAFETY invariant MEMORY: whoever makes one promises that the elements are the program's and stay valid while it
/// lives, writable where the access reads.
pub struct FileMemory {
    base: *mut u8,
    pub count: i64,
    pub datatype: Datatype,
    /// The handle that the program gave.
    pub handle: usize,
    /// Where the elements lie if they are one run.
    run: Option<*mut u8>,
    pub bytes: u64,
}

impl FileMemory {
    /// What the arguments of a call describe.
    ///
    /// # Errors
    /// A negative count, an unknown or uncommitted datatype, a null buffer with data.
    ///
    /// # Safety
    /// Invariant MEMORY.
    pub unsafe fn find(what: Described) -> Result<Self> {
        let Described { buffer, count, datatype: handle } = what;
        let datatype = WORLD.enter().types.get(handle)?.clone();
        if count < 0 {
            return Err(Error::new(Class::Count, format!("count {count} is negative")));
        }
        datatype.check_communication()?;
        let bytes = datatype.packed_size(count);
        let bytes =
            bytes.ok_or_else(|| Error::new(Class::Count, format!("count {count} makes more than 2^63-1 bytes")))?;
        let base = buffer.cast::<u8>().cast_mut();
        let run = datatype.contiguous_span(count).map(|(first, _)| base.wrapping_offset(first as isize));
        if bytes > 0 && run.is_some_and(<*mut u8>::is_null) {
            let detail = format!("buf is a null pointer, but count {count} of the datatype are {bytes} bytes");
            return Err(Error::new(Class::Buffer, detail));
        }
        Ok(Self { base, count, datatype, handle, run, bytes })
    }

    /// Nothing at all.
    pub fn empty() -> Self {
        // SAFETY: no byte is described.
        unsafe { Self::of_bytes(std::ptr::null_mut(), 0) }
    }

    /// Plain bytes.
    ///
    /// # Safety
    /// Invariant MEMORY.
    pub unsafe fn of_bytes(at: *mut u8, bytes: u64) -> Self {
        let handle = crate::abi::BYTE;
        let datatype = Datatype::predefined(handle).expect("bytes are predefined").clone();
        Self { base: at, count: bytes as i64, datatype, handle, run: Some(at), bytes }
    }

    /// The bytes if they are one run.
    pub fn run(&self) -> Option<*mut u8> {
        self.run
    }

    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// The packed bytes `from .. from + length`: where they lie, or a copy in `scratch`.
    pub fn bytes<'a>(&'a self, from: u64, length: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        debug_assert!(from + length as u64 <= self.bytes);
        match self.run {
            _ if length == 0 => &[],
            // SAFETY: MEMORY; the range lies within the run.
            Some(run) => unsafe { from_raw_parts(run.add(from as usize), length) },
            None => {
                scratch.resize(length, 0);
                self.copy(from, scratch);
                scratch
            }
        }
    }

    /// Copies packed bytes from `from` on.
    pub fn copy(&self, from: u64, out: &mut [u8]) {
        debug_assert!(from + out.len() as u64 <= self.bytes);
        // SAFETY: MEMORY; `out` is no memory of the program.
        unsafe { self.datatype.pack(self.base, self.count, from, out) };
    }

    /// Has the packed bytes `from .. from + length` written where they lie, if that is one run.
    pub fn fill<R>(&self, from: u64, length: usize, write: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        debug_assert!(from + length as u64 <= self.bytes);
        let run = self.run.filter(|_| length > 0)?;
        // SAFETY: MEMORY; the range lies within the run, and one access at a time uses it.
        Some(write(unsafe { from_raw_parts_mut(run.add(from as usize), length) }))
    }

    /// Stores packed bytes from `from` on.
    pub fn store(&self, from: u64, data: &[u8]) {
        debug_assert!(from + data.len() as u64 <= self.bytes);
        // SAFETY: MEMORY; `data` is no memory of the program.
        unsafe { self.datatype.unpack(self.base, self.count, from, data) };
    }
}
