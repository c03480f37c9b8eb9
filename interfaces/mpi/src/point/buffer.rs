//! Where the bytes of a message lie.

use crate::abi::{DATATYPE_NULL, Described};
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::handle::HandleTable;

/// A buffer that is one run of memory.
#[derive(Clone, Copy)]
pub struct MemoryRun {
    pub at: *mut u8,
    pub bytes: usize,
}

/// A buffer that is not.
#[derive(Clone)]
pub struct Scattered {
    base: *mut u8,
    count: i64,
    datatype: Datatype,
    pub bytes: usize,
}

// SAFETY: the addresses are the program's; whoever makes a run promises that its memory may be used from any thread
// until the operation is complete (MPI 5.0, section 11.6.2).
unsafe impl Send for MemoryRun {}
// SAFETY: as for `MemoryRun`.
unsafe impl Send for Scattered {}

#[derive(Clone)]
pub enum Buffer {
    Run(MemoryRun),
    Scattered(Scattered),
}

/// Memory for the packed bytes of a scattered buffer; what it holds is never read before it was written.
pub struct Packed {
    memory: Vec<u8>,
    pub bytes: usize,
}

impl Packed {
    /// # Errors
    /// There is not enough memory.
    pub fn new(bytes: usize) -> Result<Self> {
        let mut memory = Vec::new();
        if memory.try_reserve_exact(bytes).is_err() {
            let detail = format!("there is no memory for a packed copy of {bytes} bytes");
            return Err(Error::new(Class::NoMem, detail));
        }
        Ok(Self { memory, bytes })
    }

    pub fn at(&self) -> *mut u8 {
        self.memory.as_ptr().cast_mut()
    }
}

impl Scattered {
    /// Whether so many bytes end inside a basic element.
    pub fn cuts(&self, bytes: u64) -> bool {
        self.datatype.basic_count(bytes).is_none()
    }

    /// The packed bytes.
    ///
    /// # Safety
    /// The buffer is readable.
    pub unsafe fn pack(&self) -> Result<Packed> {
        let packed = Packed::new(self.bytes)?;
        // SAFETY: the caller's promise, and the memory has room for all packed bytes.
        unsafe { self.pack_to(packed.at()) };
        Ok(packed)
    }

    /// # Safety
    /// The buffer is readable, and `out` has room for `self.bytes` and does not overlap it.
    pub unsafe fn pack_to(&self, out: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.datatype.pack_to(self.base, self.count, 0, out, self.bytes) };
    }

    /// The packed bytes `from..from + bytes`.
    ///
    /// # Safety
    /// As [`Self::pack_to`], with room for `bytes`.
    pub unsafe fn pack_part_to(&self, from: usize, out: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.datatype.pack_to(self.base, self.count, from as u64, out, bytes) };
    }

    /// Copies `bytes` at `data`, which are the packed bytes from `from` on, to their places.
    ///
    /// # Safety
    /// As [`Self::unpack_from`].
    pub unsafe fn unpack_part(&self, from: usize, data: *const u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.datatype.unpack_from(self.base, self.count, from as u64, data, bytes) };
    }

    /// Copies the first `arrived` packed bytes to their places; more than there is room for are left.
    ///
    /// # Safety
    /// The buffer is writable, and the bytes in `packed` that arrived were written.
    pub unsafe fn unpack(&self, packed: &Packed, arrived: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.unpack_from(packed.at(), arrived.min(packed.bytes)) };
    }

    /// # Safety
    /// The buffer is writable and `arrived` bytes are readable at `data`, not overlapping.
    pub unsafe fn unpack_from(&self, data: *const u8, arrived: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.datatype.unpack_from(self.base, self.count, 0, data, arrived.min(self.bytes)) };
    }
}

impl Buffer {
    pub fn bytes(&self) -> usize {
        match self {
            Self::Run(run) => run.bytes,
            Self::Scattered(scattered) => scattered.bytes,
        }
    }

    /// The address that the program gave; of one run, where it begins.
    pub fn address(&self) -> Option<*mut u8> {
        match self {
            Self::Run(run) => Some(run.at),
            Self::Scattered(scattered) => Some(scattered.base),
        }
    }

    /// A packed copy.
    ///
    /// # Safety
    /// The buffer is readable.
    pub unsafe fn pack(&self) -> Result<Packed> {
        match self {
            Self::Run(run) => {
                let packed = Packed::new(run.bytes)?;
                // SAFETY: the caller's promise, and the memory has room.
                unsafe { packed.at().copy_from_nonoverlapping(run.at, run.bytes) };
                Ok(packed)
            }
            // SAFETY: the caller's promise.
            Self::Scattered(scattered) => unsafe { scattered.pack() },
        }
    }

    /// The buffer that a program describes, whose datatype is an argument of this name.
    ///
    /// # Errors
    /// As [`run`].
    pub fn named(types: &HandleTable<Datatype>, what: Described, argument: &'static str) -> Result<Self> {
        match run(types, what, argument)? {
            Some(run) => Ok(Self::Run(run)),
            None => Ok(Self::Scattered(scattered(types, what)?)),
        }
    }

    /// Like [`Self::named`]. Without a partner nothing is sent or received, so that the null datatype, which programs
    /// pass with `MPI_PROC_NULL`, describes nothing.
    pub fn with_partner(
        types: &HandleTable<Datatype>,
        what: Described,
        argument: &'static str,
        has_partner: bool,
    ) -> Result<Self> {
        if !has_partner && what.datatype == DATATYPE_NULL {
            return Ok(Self::Run(MemoryRun { at: std::ptr::null_mut(), bytes: 0 }));
        }
        Self::named(types, what, argument)
    }
}

/// The one run of memory that a program describes; `None` if there are several.
///
/// # Errors
/// A negative count, an unknown or uncommitted datatype (the null datatype for no elements is none), a null buffer with
/// data.
#[inline]
pub fn run(types: &HandleTable<Datatype>, what: Described, argument: &'static str) -> Result<Option<MemoryRun>> {
    let Described { buffer, count, datatype } = what;
    let kind = match types.named(argument, datatype) {
        // Programs pass it where there is nothing to say.
        Err(_) if count == 0 && datatype == DATATYPE_NULL => {
            return Ok(Some(MemoryRun { at: std::ptr::null_mut(), bytes: 0 }));
        }
        kind => kind?,
    };
    if count < 0 {
        return Err(negative(count));
    }
    kind.check_communication()?;
    let Some((disp, bytes)) = kind.contiguous_span(count) else { return Ok(None) };
    let at = buffer.cast::<u8>().cast_mut().wrapping_offset(disp as isize);
    if at.is_null() && bytes > 0 {
        return Err(null(bytes));
    }
    Ok(Some(MemoryRun { at, bytes: bytes as usize }))
}

/// The buffer that [`run`] found to be none.
fn scattered(types: &HandleTable<Datatype>, what: Described) -> Result<Scattered> {
    let (count, datatype) = (what.count, types.get(what.datatype)?.clone());
    let bytes = datatype.packed_size(count).and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| too_large(count, &datatype))?;
    Ok(Scattered { base: what.buffer.cast::<u8>().cast_mut(), count, datatype, bytes })
}

#[cold]
fn negative(count: i64) -> Error {
    Error::new(Class::Count, format!("count {count} is negative"))
}

#[cold]
fn null(bytes: u64) -> Error {
    Error::new(Class::Buffer, format!("the buffer is a null pointer, but {bytes} bytes are asked for"))
}

#[cold]
fn too_large(count: i64, datatype: &Datatype) -> Error {
    Error::new(Class::Count, format!("{count} elements of datatype {datatype:?} are more than 2^63-1 bytes"))
}
