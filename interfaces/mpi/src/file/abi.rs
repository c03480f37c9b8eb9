//! Bodies of the file functions that move no data; those that do stand beside.

mod access;

pub use access::*;

use super::call::AccessPlace;
use super::datarep::{self, Datarep};
use super::view::FileView;
use super::{OpenFile, fault, of, open as opening};
use crate::abi::{
    CountCallback, DISPLACEMENT_CURRENT, MAX_DATAREP_STRING, SEEK_CUR, SEEK_END, SEEK_SET, gives, store_string, text_of,
};
use crate::comm::abi::intra;
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::group::abi as groups;
use crate::info;
use crate::world::WORLD;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// A file name as the program gave it.
unsafe fn path_of(filename: *const c_char) -> Result<PathBuf> {
    if filename.is_null() {
        return Err(Error::new(Class::BadFile, "filename is a null pointer"));
    }
    // SAFETY: a C string of the program.
    let name = unsafe { CStr::from_ptr(filename) };
    if name.is_empty() {
        return Err(Error::new(Class::BadFile, "filename is empty"));
    }
    Ok(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// `MPI_File_open`.
pub unsafe fn open(comm: usize, filename: *const c_char, amode: i32, info: usize) -> Result<usize> {
    let comm = intra(comm).map_err(|error| Error { on: None, ..error })?;
    // SAFETY: the program's string.
    opening::open(&comm, unsafe { path_of(filename) }, amode, info::copy_of(info))
}

/// `MPI_File_close`.
pub unsafe fn close(fh: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *fh };
    let closed = opening::close(handle);
    if of(handle).is_err() && closed.as_ref().err().is_none_or(|error| error.class != Class::File) {
        // SAFETY: as above.
        unsafe { *fh = crate::abi::FILE_NULL };
    }
    closed
}

/// `MPI_File_delete`.
pub unsafe fn delete(filename: *const c_char, _info: usize) -> Result<()> {
    // SAFETY: the program's string.
    opening::delete(&unsafe { path_of(filename)? })
}

gives! {
    /// `MPI_File_get_amode`.
    get_amode(fh) -> i32 = of(fh)?.mode.bits();
    /// `MPI_File_get_group`.
    get_group(fh) -> usize = {
        let members = of(fh)?.comm.local.clone();
        groups::insert(&mut WORLD.enter(), members)
    };
    /// `MPI_File_get_info`.
    get_info(fh) -> usize = {
        let told = of(fh)?.state().hints.told();
        info::insert(told)
    };
    /// `MPI_File_get_atomicity`.
    get_atomicity(fh) -> i32 = of(fh)?.state().atomic.into();
    /// `MPI_File_get_size`.
    get_size(fh) -> i64 = of(fh)?.size()? as i64;
    /// `MPI_File_get_position`.
    get_position(fh) -> i64 = {
        let file = of(fh)?;
        file.refuse_sequential()?;
        file.state().position
    };
    /// `MPI_File_get_position_shared`.
    get_position_shared(fh) -> i64 = {
        let file = of(fh)?;
        file.refuse_sequential()?;
        file.add_to_shared("MPI_File_get_position_shared", 0)?
    };
}

/// `MPI_File_set_info`.
pub unsafe fn set_info(fh: usize, info: usize) -> Result<()> {
    let file = of(fh)?;
    let given = info::copy_of(info);
    // Hints may change how the next access of all is done, so they change for all before it.
    const CALL: &str = "MPI_File_set_info";
    file.agree(CALL, given.as_ref().map(drop).map_err(Clone::clone))?;
    file.state().hints.take(&given?);
    file.settle_hints(CALL)
}

/// `MPI_File_set_atomicity`.
pub unsafe fn set_atomicity(fh: usize, flag: i32) -> Result<()> {
    let file = of(fh)?;
    file.same("MPI_File_set_atomicity", "flag", i64::from(flag != 0))?;
    file.state().atomic = flag != 0;
    Ok(())
}

impl OpenFile {
    /// Refuses an argument that is not the same in all processes.
    fn same(&self, call: &'static str, argument: &str, value: i64) -> Result<()> {
        self.refuse_open_split()?;
        let said = self.tell(call, [value as u64, 0, 0, 0])?;
        match said.iter().position(|block| block[0] != said[0][0]) {
            None => Ok(()),
            Some(rank) => {
                let (first, other) = (said[0][0] as i64, said[rank][0] as i64);
                let detail = format!("{argument} is {first} in rank 0 and {other} in rank {rank}");
                Err(self.error(Class::NotSame, detail))
            }
        }
    }

    /// One process does it for all.
    fn once(&self, call: &'static str, job: impl FnOnce() -> Result<()>) -> Result<()> {
        let done = if self.comm.rank == 0 { job() } else { Ok(()) };
        self.agree(call, done)
    }

    fn size(&self) -> Result<u64> {
        self.disk.size().map_err(|error| fault::of("asking for the size", &self.path, &error))
    }

    fn refuse_reading_only(&self) -> Result<()> {
        let detail = "it was opened with MPI_MODE_RDONLY and cannot be changed";
        if self.mode.writes() { Ok(()) } else { Err(self.error(Class::ReadOnly, detail)) }
    }

    /// A size that all processes gave alike.
    fn check_size(&self, call: &'static str, size: i64) -> Result<()> {
        self.refuse_reading_only()?;
        self.same(call, "size", size)?;
        if size < 0 { Err(self.error(Class::Arg, format!("size {size} is negative"))) } else { Ok(()) }
    }
}

/// `MPI_File_set_size`.
pub unsafe fn set_size(fh: usize, size: i64) -> Result<()> {
    const CALL: &str = "MPI_File_set_size";
    let file = of(fh)?;
    file.check_size(CALL, size)?;
    file.once(CALL, || {
        file.disk.set_size(size as u64).map_err(|error| fault::of("setting the size", &file.path, &error))
    })
}

/// `MPI_File_preallocate`.
pub unsafe fn preallocate(fh: usize, size: i64) -> Result<()> {
    const CALL: &str = "MPI_File_preallocate";
    let file = of(fh)?;
    file.check_size(CALL, size)?;
    file.once(CALL, || file.disk.reserve(size).map_err(|error| fault::of("reserving room", &file.path, &error)))
}

/// `MPI_File_sync`.
pub unsafe fn sync(fh: usize) -> Result<()> {
    let file = of(fh)?;
    file.refuse_open_split()?;
    let done = file.disk.sync().map_err(|error| fault::of("handing to the device", &file.path, &error));
    file.agree("MPI_File_sync", done)
}

/// `MPI_File_get_byte_offset`.
pub fn get_byte_offset(fh: usize, offset: i64) -> Result<i64> {
    let file = of(fh)?;
    file.refuse_sequential()?;
    let at = file.byte_offset(offset)?;
    Ok(at)
}

impl OpenFile {
    /// Where in the file an etype of the view begins.
    fn byte_offset(&self, etypes: i64) -> Result<i64> {
        let view = self.view();
        let wrong = |why: &str| self.error(Class::Arg, format!("offset {etypes} {why}"));
        let at = u64::try_from(etypes).map_err(|_| wrong("is negative"))?.checked_mul(view.unit());
        if view.is_empty() {
            return Ok(view.displacement);
        }
        let at = at.ok_or_else(|| wrong("lies beyond 2^63-1 bytes"))?;
        view.offset(at).map(|offset| offset as i64).map_err(|error| self.named(error))
    }

    /// A position after a seek, in etypes.
    fn sought(&self, offset: i64, whence: i32, current: impl FnOnce() -> Result<i64>) -> Result<i64> {
        let base = match whence {
            SEEK_SET => 0,
            SEEK_CUR => current()?,
            SEEK_END => self.view().etypes_in(self.size()?) as i64,
            _ => return Err(self.error(Class::Arg, format!("whence {whence} is no MPI_SEEK"))),
        };
        let sum = base.checked_add(offset).filter(|&sum| sum >= 0);
        sum.ok_or_else(|| self.error(Class::Arg, format!("offset {offset} from {base} is no position in the view")))
    }
}

/// `MPI_File_seek`.
pub unsafe fn seek(fh: usize, offset: i64, whence: i32) -> Result<()> {
    let file = of(fh)?;
    file.refuse_sequential()?;
    let position = file.sought(offset, whence, || Ok(file.state().position))?;
    file.state().position = position;
    Ok(())
}

/// `MPI_File_seek_shared`: the keeper of the pointer moves it while all are here.
pub unsafe fn seek_shared(fh: usize, offset: i64, whence: i32) -> Result<()> {
    const CALL: &str = "MPI_File_seek_shared";
    let file = of(fh)?;
    file.refuse_sequential()?;
    file.same(CALL, "offset", offset)?;
    file.same(CALL, "whence", i64::from(whence))?;
    file.once(CALL, || {
        file.set_kept_pointer(file.sought(offset, whence, || Ok(file.kept_pointer()))?);
        Ok(())
    })
}

/// `MPI_File_get_type_extent`.
pub fn get_type_extent(fh: usize, datatype: usize) -> Result<i64> {
    let file = of(fh)?;
    let datatype = type_of("datatype", datatype)?;
    let there = file.view().datarep.in_file(&datatype).map_err(|error| file.named(error))?;
    Ok(there.extent())
}

fn type_of(argument: &'static str, handle: usize) -> Result<Datatype> {
    WORLD.enter().types.named(argument, handle).cloned()
}

/// A handle of the program's for a type of the view.
fn handle_of(datatype: &Datatype) -> usize {
    let code = datatype.code().map(usize::from);
    code.unwrap_or_else(|| WORLD.enter().types.insert(datatype.clone()))
}

/// `MPI_File_get_view`.
pub unsafe fn get_view(
    fh: usize,
    disp: *mut i64,
    etype: *mut usize,
    filetype: *mut usize,
    datarep: *mut c_char,
) -> Result<()> {
    let view = of(fh)?.view();
    // SAFETY: the program's places; `datarep` has room for MPI_MAX_DATAREP_STRING bytes.
    unsafe {
        *disp = view.displacement;
        *etype = handle_of(&view.etype);
        *filetype = handle_of(&view.filetype);
        store_string(view.datarep.name(), MAX_DATAREP_STRING as usize, datarep, std::ptr::null_mut());
    }
    Ok(())
}

/// `MPI_File_set_view`.
pub unsafe fn set_view(
    fh: usize,
    disp: i64,
    etype: usize,
    filetype: usize,
    datarep: *const c_char,
    info: usize,
) -> Result<()> {
    const CALL: &str = "MPI_File_set_view";
    let file = of(fh)?;
    file.refuse_open_split()?;
    // SAFETY: the program's string.
    let name = unsafe { text_of(datarep, "datarep") };
    let disp = file.displacement(CALL, disp);
    let view = disp.and_then(|disp| new_view(disp, etype, filetype, &name?));
    let view = view.and_then(|view| file.refuse_overlap(view)).map_err(|error| file.named(error));
    let hints = info::copy_of(info);
    // Views may differ, but the length of an etype and the representation may not.
    let says = view.as_ref().map_or([0; 2], |view| [view.unit(), mark(view.datarep.name())]);
    let code = view.as_ref().err().or(hints.as_ref().err());
    let failed = code.map_or(0, |error| error.code as u64);
    let said = file.tell(CALL, [failed, says[0], says[1], 0])?;
    let (view, hints) = (Arc::new(view?), hints?);
    if let Some(rank) = said.iter().position(|block| block[0] != 0) {
        return Err(file.elsewhere(rank, said[rank][0]));
    }
    for (rank, block) in said.iter().enumerate() {
        let what = if block[1] != said[0][1] { "the length of the etype" } else { "datarep" };
        if block[1..3] != said[0][1..3] {
            let detail = format!("{what} of rank {rank} is not that of rank 0");
            return Err(file.error(Class::NotSame, detail));
        }
    }
    {
        let mut state = file.state();
        (state.view, state.position) = (view, 0);
        state.hints.take(&hints);
    }
    file.set_kept_pointer(0);
    // Nobody uses the shared pointer before it is set back.
    file.settle_hints(CALL)
}

/// A number by which names are compared; names that differ have the same only by a rare chance.
fn mark(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |mark, byte| (mark ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn new_view(disp: i64, etype: usize, filetype: usize, datarep: &str) -> Result<FileView> {
    let (etype, filetype) = (type_of("etype", etype)?, type_of("filetype", filetype)?);
    etype.check_communication()?;
    filetype.check_communication()?;
    FileView::new(disp, etype, filetype, Datarep::named(datarep)?)
}

impl OpenFile {
    /// Refuses a view that shows a byte twice, unless the file is only read (MPI 5.0, section 14.3).
    fn refuse_overlap(&self, view: FileView) -> Result<FileView> {
        let detail = "etype or filetype overlaps itself, which only a file with MPI_MODE_RDONLY may have";
        if view.overlaps() && self.mode.writes() { Err(self.error(Class::Io, detail)) } else { Ok(view) }
    }

    /// The displacement of a new view. Of a sequential file it is where the shared pointer is, and nothing else.
    fn displacement(&self, call: &'static str, disp: i64) -> Result<i64> {
        if self.mode.is_sequential() {
            let kept = self.kept_pointer();
            let here = if self.comm.rank == 0 { self.byte_offset(kept) } else { Ok(0) };
            let said = self.tell(call, [here.as_ref().map_or(0, |&at| at as u64), 0, 0, 0])?;
            let why = format!("disp {disp} must be MPI_DISPLACEMENT_CURRENT with MPI_MODE_SEQUENTIAL");
            here?;
            return if disp == DISPLACEMENT_CURRENT { Ok(said[0][0] as i64) } else { Err(self.error(Class::Arg, why)) };
        }
        match disp {
            DISPLACEMENT_CURRENT => {
                Err(self.error(Class::Arg, "disp is MPI_DISPLACEMENT_CURRENT without MPI_MODE_SEQUENTIAL"))
            }
            _ if disp < 0 => Err(self.error(Class::Arg, format!("disp {disp} is negative"))),
            _ => Ok(disp),
        }
    }
}

/// `MPI_Register_datarep`.
pub unsafe fn register_datarep(
    datarep: *const c_char,
    read_conversion_fn: CountCallback,
    write_conversion_fn: CountCallback,
    dtype_file_extent_fn: usize,
    extra_state: *mut c_void,
) -> Result<()> {
    // SAFETY: the program's string.
    let name = unsafe { text_of(datarep, "datarep")? };
    datarep::register(name, read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state)
}
