//! What the program's functions see when the library calls them: handles, keys, codes and statuses of this ABI.
#![allow(
    non_snake_case,
    clippy::missing_safety_doc,
    reason = "the names are the ABI's, and what they ask is the standard's"
)]

use crate::place::HeldHandle;
use crate::status::MpichStatus;
use crate::{handle, number, values};
use std::ffi::c_void;
use weft_mpi::abi::Status as Ours;
use weft_mpi::handle::HandleKind;
use weft_mpi::program::Speech;

/// Handles are passed where a pointer of the standard ABI goes: the program reads the low half.
fn handle_of(kind: HandleKind, ours: usize) -> usize {
    let theirs = match kind {
        HandleKind::Comm => handle::theirs::<values::Comm>(ours),
        HandleKind::Group => handle::theirs::<values::Group>(ours),
        HandleKind::Datatype => handle::theirs::<values::Datatype>(ours),
        HandleKind::Op => handle::theirs::<values::Op>(ours),
        HandleKind::Request => handle::theirs::<values::Request>(ours),
        HandleKind::Message => handle::theirs::<values::Message>(ours),
        HandleKind::Info => handle::theirs::<values::Info>(ours),
        HandleKind::Errhandler => handle::theirs::<values::Errhandler>(ours),
        HandleKind::Win => handle::theirs::<values::Win>(ours),
        HandleKind::Session => handle::theirs::<values::Session>(ours),
        HandleKind::File => return <handle::File as HeldHandle>::theirs(ours),
        HandleKind::Keyval => number::keyval_theirs(ours as i32),
    };
    theirs as u32 as usize
}

/// Asks for a status with the program's function, which fills one of this ABI.
unsafe fn query(function: usize, extra: *mut c_void, status: &mut Ours) -> i32 {
    let mut theirs = MpichStatus::EMPTY;
    // SAFETY: the program said that this is a function of this type.
    let code = unsafe {
        let function: unsafe extern "C" fn(*mut c_void, *mut MpichStatus) -> i32 = std::mem::transmute(function);
        function(extra, &mut theirs)
    };
    *status = theirs.ours();
    number::code_ours(code)
}

static SPEECH: Speech = Speech {
    handle: handle_of,
    code: number::code_theirs,
    code_back: number::code_ours,
    safety: number::safety_theirs,
    query,
};

extern "C" fn speak() {
    weft_mpi::program::speak(&SPEECH);
}

/// Runs when the library is loaded, before any call.
#[used]
#[unsafe(link_section = ".init_array")]
static SPEAK: extern "C" fn() = speak;

/// The copy function that just copies (`MPI_DUP_FN`); programs know its address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    _object: i32,
    _keyval: i32,
    _extra: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut i32,
) -> i32 {
    // SAFETY: places for the value and the flag, as the standard wants.
    unsafe {
        *copied.cast::<*mut c_void>() = value;
        *flag = 1;
    }
    values::SUCCESS
}

/// The standard ABI's name of a copy function.
pub fn copy_function(function: usize) -> usize {
    const DUP: usize = 1;
    if function == MPIR_Dup_fn as *const () as usize { DUP } else { function }
}
