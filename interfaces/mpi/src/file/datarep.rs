//! Data representations: what the numbers of a program are in a file (MPI 5.0, section 14.5).
//!
//! "native" is what stands in memory. "internal" is the same here, since all processes of a job run on machines of one
//! kind. "external32" is that of `weft_data::Form`. Others are the program's: it says how long each predefined
//! type is in the file, and converts.
//!
//! A datatype has another form in a file where its numbers have another length: the same constructors over elements of
//! that length ([`Datarep::in_file`]). Displacements in elements are scaled by that, and those in bytes stay, as the
//! standard wants it (section 14.5.1).

use super::memory::FileMemory;
use crate::abi::{BYTE, CountCallback, MAX_DATAREP_STRING};
use crate::datatype::{ArrayOrder, Combiner, ConstructorForm, Contents, Datatype, Distribution};
use crate::error::{Class, Error, Result};
use crate::handle::HandleKind;
use crate::program;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A representation that can be asked for.
#[derive(Clone, Debug)]
pub enum Datarep {
    Native,
    Internal,
    External32,
    Registered(Arc<Registered>),
}

/// A representation of the program's.
#[derive(Debug)]
pub struct Registered {
    name: String,
    /// Address 0: what is in the file is what is in memory.
    read: CountCallback,
    write: CountCallback,
    extent: usize,
    extra: usize,
}

/// Those that were registered; they stay, as the standard has no way to take one back.
static REGISTERED: Mutex<Vec<Arc<Registered>>> = Mutex::new(Vec::new());

fn registered() -> MutexGuard<'static, Vec<Arc<Registered>>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

type ExtentFn = unsafe extern "C" fn(usize, *mut isize, *mut c_void) -> i32;
type ConvertFn = unsafe extern "C" fn(*mut c_void, usize, i32, *mut c_void, i64, *mut c_void) -> i32;
type ConvertWideFn = unsafe extern "C" fn(*mut c_void, usize, i64, *mut c_void, i64, *mut c_void) -> i32;

/// Adds a representation.
pub fn register(
    name: String,
    read: CountCallback,
    write: CountCallback,
    extent: usize,
    extra: *mut c_void,
) -> Result<()> {
    if name.is_empty() || name.len() >= MAX_DATAREP_STRING as usize {
        let detail = format!("datarep has {} bytes, allowed are 1 to {}", name.len(), MAX_DATAREP_STRING - 1);
        return Err(Error::new(Class::Arg, detail));
    }
    if extent == 0 {
        return Err(Error::new(Class::Arg, format!("dtype_file_extent_fn of datarep `{name}` is a null pointer")));
    }
    let mut all = registered();
    let known = all.iter().any(|other| other.name == name);
    if known || ["native", "internal", "external32"].contains(&name.as_str()) {
        return Err(Error::new(Class::DupDatarep, format!("datarep `{name}` exists already")));
    }
    all.push(Arc::new(Registered { name, read, write, extent, extra: extra as usize }));
    Ok(())
}

impl Datarep {
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "native" => return Ok(Self::Native),
            "internal" => return Ok(Self::Internal),
            "external32" => return Ok(Self::External32),
            _ => {}
        }
        let found = registered().iter().find(|other| other.name == name).cloned();
        found.map(Self::Registered).ok_or_else(|| {
            let detail = format!("datarep `{name}` is neither native, internal, external32 nor registered");
            Error::new(Class::UnsupportedDatarep, detail)
        })
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Native => "native",
            Self::Internal => "internal",
            Self::External32 => "external32",
            Self::Registered(own) => &own.name,
        }
    }

    /// Whether the file holds what stands in memory.
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Native | Self::Internal)
    }

    /// The form of a datatype in the file.
    pub fn in_file(&self, datatype: &Datatype) -> Result<Datatype> {
        match self {
            Self::Native | Self::Internal => Ok(datatype.clone()),
            // No number is longer in external32 than in memory, so where the sum is equal all lengths are.
            Self::External32 if datatype.external_size(1) == datatype.packed_size(1) => Ok(datatype.clone()),
            _ => rebuilt(datatype, &|leaf| self.length(leaf)),
        }
    }

    /// Bytes of a predefined type in the file.
    fn length(&self, leaf: &Datatype) -> Result<i64> {
        match self {
            Self::Native | Self::Internal => Ok(leaf.size()),
            Self::External32 => Ok(leaf.external_size(1).unwrap_or(0) as i64),
            Self::Registered(own) => own.length(leaf),
        }
    }

    /// Bytes that `memory` makes in the file.
    pub fn bytes_of(&self, memory: &FileMemory) -> Result<u64> {
        if self.is_plain() {
            return Ok(memory.bytes);
        }
        let bytes = self.in_file(&memory.datatype)?.packed_size(memory.count);
        let too_large = || Error::new(Class::Count, format!("count {} makes more than 2^63-1 bytes", memory.count));
        bytes.ok_or_else(too_large)
    }

    /// What stands in the file for `memory`.
    ///
    /// # Safety
    /// The functions of a registered representation do what the standard says.
    pub unsafe fn encode(&self, memory: &FileMemory) -> Result<Vec<u8>> {
        let bytes = self.bytes_of(memory)?;
        let mut data = zeroed(bytes)?;
        // SAFETY: the buffer of the memory, and the caller's promise.
        unsafe {
            match self {
                Self::Registered(own) if own.write.at != 0 => {
                    own.convert(own.write, "write_conversion_fn", memory, memory.count, &mut data)?;
                }
                Self::External32 => {
                    memory.datatype.pack_external(memory.base(), memory.count, &mut data);
                }
                _ => self.copied(memory, |from, length| {
                    memory.datatype.pack(memory.base(), memory.count, from, &mut data[..length]);
                })?,
            }
        }
        Ok(data)
    }

    /// Stores in `memory` what was read; answers how many bytes of memory that makes.
    ///
    /// # Safety
    /// As [`Self::encode`].
    pub unsafe fn decode(&self, memory: &FileMemory, data: &mut [u8]) -> Result<u64> {
        // SAFETY: the buffer of the memory, and the caller's promise.
        unsafe {
            match self {
                Self::Registered(own) if own.read.at != 0 => {
                    let each = self.in_file(&memory.datatype)?.size().max(1);
                    let count = data.len() as i64 / each;
                    own.convert(own.read, "read_conversion_fn", memory, count, data)?;
                    Ok(count as u64 * memory.datatype.size() as u64)
                }
                Self::External32 => Ok(memory.datatype.unpack_external_part(memory.base(), memory.count, data)),
                _ => {
                    self.copied(memory, |_, _| memory.store(0, data))?;
                    Ok(data.len() as u64)
                }
            }
        }
    }

    /// Copies as is where the program gave no function for it, which is possible if lengths are equal.
    fn copied(&self, memory: &FileMemory, copy: impl FnOnce(u64, usize)) -> Result<()> {
        if self.bytes_of(memory)? != memory.bytes {
            let detail =
                format!("datarep `{}` has other lengths than memory, but no function that converts", self.name());
            return Err(Error::new(Class::Conversion, detail));
        }
        copy(0, memory.bytes as usize);
        Ok(())
    }
}

/// Memory for a converted copy.
pub fn zeroed(bytes: u64) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    if data.try_reserve_exact(bytes as usize).is_err() {
        return Err(Error::new(Class::NoMem, format!("there is no memory for a converted copy of {bytes} bytes")));
    }
    data.resize(bytes as usize, 0);
    Ok(data)
}

impl Registered {
    fn length(&self, leaf: &Datatype) -> Result<i64> {
        let handle = leaf.named().map_or(BYTE, |named| usize::from(named.code));
        let mut extent = 0isize;
        // SAFETY: the program said that this is a function of this type (MPI 5.0, section 14.5.3).
        let code = unsafe {
            let function: ExtentFn = std::mem::transmute(self.extent);
            function(program::handle(HandleKind::Datatype, handle), &mut extent, self.extra as *mut c_void)
        };
        if code != 0 || extent < 0 {
            let detail = format!(
                "dtype_file_extent_fn of datarep `{}` answered {code} and the extent {extent} for {leaf:?}",
                self.name
            );
            return Err(Error::new(Class::Conversion, detail));
        }
        Ok(extent as i64)
    }

    /// # Safety
    /// The function is the program's and does what the standard says.
    unsafe fn convert(
        &self,
        by: CountCallback,
        which: &str,
        memory: &FileMemory,
        count: i64,
        data: &mut [u8],
    ) -> Result<()> {
        let (user, extra) = (memory.base().cast::<c_void>(), self.extra as *mut c_void);
        let each = if count == 0 { 0 } else { data.len() / count as usize };
        let handle = program::handle(HandleKind::Datatype, memory.handle);
        let mut position = 0;
        while position < count {
            let now = if by.wide { count } else { (count - position).min(i64::from(i32::MAX)) };
            let at = data[position as usize * each..].as_mut_ptr().cast::<c_void>();
            // SAFETY: the caller's promise; the file's buffer holds as many elements.
            let code = unsafe {
                if by.wide {
                    let function: ConvertWideFn = std::mem::transmute(by.at);
                    function(user, handle, now, at, position, extra)
                } else {
                    let function: ConvertFn = std::mem::transmute(by.at);
                    function(user, handle, now as i32, at, position, extra)
                }
            };
            if code != 0 {
                let detail = format!("{which} of datarep `{}` answered {code}", self.name);
                return Err(Error::new(Class::Conversion, detail));
            }
            position += now;
        }
        Ok(())
    }
}

/// The same constructors over predefined types of other lengths.
fn rebuilt(datatype: &Datatype, length: &dyn Fn(&Datatype) -> Result<i64>) -> Result<Datatype> {
    use ConstructorForm::Count;
    if datatype.named().is_some() {
        let byte = Datatype::predefined(BYTE).expect("bytes are predefined");
        return Datatype::contiguous(length(datatype)?, byte, Count);
    }
    let contents = datatype.contents()?;
    let types = contents.datatypes.iter().map(|old| rebuilt(old, length)).collect::<Result<Vec<_>>>()?;
    let old = types.first();
    let old = || old.expect("every other constructor has a datatype");
    let n = numbers(contents);
    let list = |from: usize, count: i64| &n[from..from + count as usize];
    match datatype.combiner() {
        Combiner::Dup => Ok(old().dup()),
        Combiner::Contiguous => Datatype::contiguous(n[0], old(), Count),
        Combiner::Vector => Datatype::vector(n[0], n[1], n[2], old(), Count),
        Combiner::Hvector => Datatype::hvector(n[0], n[1], n[2], old(), Count),
        Combiner::Indexed => Datatype::indexed(list(1, n[0]), list(1 + n[0] as usize, n[0]), old(), Count),
        Combiner::Hindexed => Datatype::hindexed(list(1, n[0]), list(1 + n[0] as usize, n[0]), old(), Count),
        Combiner::IndexedBlock => Datatype::indexed_block(n[1], list(2, n[0]), old(), Count),
        Combiner::HindexedBlock => Datatype::hindexed_block(n[1], list(2, n[0]), old(), Count),
        Combiner::Struct => Datatype::structure(list(1, n[0]), list(1 + n[0] as usize, n[0]), &types, Count),
        Combiner::Resized => Datatype::resized(old(), n[0], n[1], Count),
        Combiner::Subarray => {
            let dims = n[0] as usize;
            let part = |which: usize| list(1 + which * dims, n[0]);
            Datatype::subarray(part(0), part(1), part(2), ArrayOrder::from_code(n[1 + 3 * dims])?, old(), Count)
        }
        Combiner::Darray => {
            let dims = n[2] as usize;
            let part = |which: usize| list(3 + which * dims, n[2]);
            let codes = part(1).iter().map(|&code| Distribution::from_code(code));
            let spread = codes.collect::<Result<Vec<_>>>()?;
            let order = ArrayOrder::from_code(n[3 + 4 * dims])?;
            Datatype::darray(n[0], n[1], part(0), &spread, part(2), part(3), order, old(), Count)
        }
        other => Err(Error::new(Class::Type, format!("a datatype made as {other} has no form in a file"))),
    }
}

/// The numbers of a constructor call in the order of the call, whichever form of it was used.
fn numbers(contents: &Contents) -> Vec<i64> {
    let Contents { combiner, integers, addresses, counts, .. } = contents;
    // Of the large forms of these two, the sizes stand apart from what are integers in both forms.
    let before = match combiner {
        Combiner::Subarray if !counts.is_empty() => 1,
        Combiner::Darray if !counts.is_empty() => 3,
        _ => integers.len(),
    };
    let (first, last) = integers.split_at(before);
    [first, addresses, counts, last].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{INT, LONG};

    fn named(handle: usize) -> Datatype {
        Datatype::predefined(handle).unwrap().clone()
    }

    #[test]
    fn a_long_is_shorter_in_external32_and_displacements_in_elements_follow() {
        let rep = Datarep::External32;
        let vector = Datatype::vector(3, 2, 5, &named(LONG), ConstructorForm::Int).unwrap();
        let there = rep.in_file(&vector).unwrap();
        assert_eq!((vector.extent(), there.size(), there.extent()), (96, 24, 48));
        let same = Datatype::vector(3, 2, 5, &named(INT), ConstructorForm::Int).unwrap();
        assert!(rep.in_file(&same).unwrap().same(&same));
    }

    #[test]
    fn both_forms_of_every_constructor_are_rebuilt_alike() {
        let long = named(LONG);
        for width in [ConstructorForm::Int, ConstructorForm::Count] {
            let order = ArrayOrder::C;
            let sub = Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], order, &long, width).unwrap();
            let spread = [Distribution::Block, Distribution::Cyclic];
            let dist = Datatype::darray(4, 3, &[8, 8], &spread, &[19, 2], &[2, 2], order, &long, width).unwrap();
            let (a, b) = (Datarep::External32.in_file(&sub).unwrap(), Datarep::External32.in_file(&dist).unwrap());
            assert_eq!((a.size(), a.extent(), a.true_lower_bound()), (24, 96, (6 + 2) * 4));
            assert_eq!((b.size(), b.extent() * 2), (dist.size() / 2, dist.extent()));
            let listed = Datatype::hindexed(&[1, 2], &[0, 40], &long, width).unwrap();
            let there = Datarep::External32.in_file(&listed).unwrap();
            assert_eq!((there.size(), there.true_extent()), (12, 48), "displacements in bytes stay");
            let padded = Datatype::resized(&long, -8, 32, width).unwrap();
            let there = Datarep::External32.in_file(&padded).unwrap();
            assert_eq!((there.size(), there.lower_bound(), there.extent()), (4, -8, 32));
        }
    }

    #[test]
    fn a_name_is_registered_once() {
        let nothing = CountCallback { at: 0, wide: false };
        let add = |name: &str| register(name.to_owned(), nothing, nothing, 1, std::ptr::null_mut());
        assert_eq!(add("external32").unwrap_err().class, Class::DupDatarep);
        assert_eq!(add(&"x".repeat(128)).unwrap_err().class, Class::Arg);
        add("of the test").unwrap();
        assert_eq!(add("of the test").unwrap_err().class, Class::DupDatarep);
        assert_eq!(Datarep::named("of a test").unwrap_err().class, Class::UnsupportedDatarep);
    }
}
