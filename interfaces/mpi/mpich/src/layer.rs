//! What MPICH's own Fortran library calls besides the functions of MPI: attributes with the language that sets or reads
//! them, and procedures of Fortran in the place of functions of C.
//!
//! Its key functions come with *proxies*, functions of C that call the procedure; we put our own function in front,
//! whose extra state holds both. Values that Fortran sets are cells, so that C finds pointers to them.
#![allow(
    non_snake_case,
    clippy::missing_safety_doc,
    reason = "the names are the library's, and what they ask is what it keeps"
)]

use crate::cell::{self, CellWidth};
use crate::{entries, number, values};
use std::ffi::c_void;
use std::mem::transmute;
use weft_mpi::abi as ours;
use weft_mpi::request::Functions;

/// How a value is passed: as a pointer, as an address-sized integer, or as an `INTEGER`.
const POINTER: i32 = 0;
const ADDRESS: i32 = 1;
const INTEGER: i32 = 3;

fn width(language: i32) -> CellWidth {
    if language == INTEGER { CellWidth::Small } else { CellWidth::Address }
}

/// `(function, object, keyval, extra_state, language, value, copied, flag)`
type CopyProxy =
    unsafe extern "C" fn(usize, i32, i32, *mut c_void, i32, *mut c_void, *mut *mut c_void, *mut i32) -> i32;
/// `(function, object, keyval, language, value, extra_state)`
type DeleteProxy = unsafe extern "C" fn(usize, i32, i32, i32, *mut c_void, *mut c_void) -> i32;

/// A key's functions with those that call them.
struct Proxied {
    copy: usize,
    delete: usize,
    extra: *mut c_void,
    copy_proxy: CopyProxy,
    delete_proxy: DeleteProxy,
}

/// The language of a cached value and what its functions get for it.
fn read(cached: usize) -> (i32, *mut c_void) {
    match cell::width(cached) {
        None => (POINTER, cached as *mut c_void),
        Some(CellWidth::Small) => (INTEGER, cell::value(cached) as *mut c_void),
        Some(CellWidth::Address) => (ADDRESS, cell::value(cached) as *mut c_void),
    }
}

fn write(value: *mut c_void, language: i32) -> usize {
    match language {
        POINTER => value as usize,
        INTEGER => cell::of(value as i32 as isize, CellWidth::Small),
        _ => cell::of(value as isize, width(language)),
    }
}

unsafe extern "C" fn copy(
    object: usize,
    keyval: i32,
    state: *mut c_void,
    value: usize,
    copied: *mut usize,
    flag: *mut i32,
) -> i32 {
    // SAFETY: the state is the one below, and the library's places.
    unsafe {
        let key = &*state.cast::<Proxied>();
        let ((language, value), mut out) = (read(value), std::ptr::null_mut());
        let proxy = key.copy_proxy;
        let code = proxy(key.copy, object as i32, keyval, key.extra, language, value, &mut out, flag);
        if code == values::SUCCESS && *flag != 0 {
            *copied = write(out, language);
        }
        code
    }
}

unsafe extern "C" fn delete(object: usize, keyval: i32, value: usize, state: *mut c_void) -> i32 {
    // SAFETY: as above.
    unsafe {
        let key = &*state.cast::<Proxied>();
        let (language, value) = read(value);
        let proxy = key.delete_proxy;
        proxy(key.delete, object as i32, keyval, language, value, key.extra)
    }
}

/// Puts proxies before the functions of a key that was just made. They live as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPII_Keyval_set_proxy(keyval: i32, copy_proxy: CopyProxy, delete_proxy: DeleteProxy) {
    const SPECIAL: usize = 1;
    let _ = weft_mpi::attribute::abi::rewrap(number::keyval_ours(keyval), |[user_copy, user_delete, extra]| {
        let key =
            Proxied { copy: user_copy, delete: user_delete, extra: extra as *mut c_void, copy_proxy, delete_proxy };
        let state = Box::into_raw(Box::new(key)) as usize;
        let front = |user: usize, ours: usize| if user <= SPECIAL { user } else { ours };
        [front(user_copy, copy as *const () as usize), front(user_delete, delete as *const () as usize), state]
    });
}

/// The value of an attribute for Fortran.
unsafe fn for_fortran(keyval: i32, cached: usize) -> *mut c_void {
    let int = |at: usize| {
        // SAFETY: a predefined attribute, whose value is the address of an `int`.
        unsafe { *(at as *const i32) as isize as *mut c_void }
    };
    match number::keyval_ours(keyval) {
        ours::WIN_BASE => cached as *mut c_void,
        // SAFETY: the address of an address-sized integer.
        ours::WIN_SIZE => unsafe { *(cached as *const *mut c_void) },
        ours::WIN_DISP_UNIT..=ours::WIN_MODEL | ours::TAG_UB..=ours::UNIVERSE_SIZE => int(cached),
        _ => cell::value(cached) as *mut c_void,
    }
}

macro_rules! attributes {
    ($($get:ident = $c_get:ident, $set:ident = $c_set:ident;)*) => {
        $(
            /// Reads an attribute for a language.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $get(
                object: i32,
                keyval: i32,
                value: *mut *mut c_void,
                flag: *mut i32,
                language: i32,
            ) -> i32 {
                let keyval = number::keyval_of_fortran(keyval);
                // SAFETY: the caller's places.
                unsafe {
                    let code = entries::$c_get(object, keyval, value.cast(), flag);
                    if code == values::SUCCESS && *flag != 0 && language != POINTER {
                        *value = for_fortran(keyval, *value as usize);
                    }
                    code
                }
            }

            /// Sets an attribute for a language.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $set(object: i32, keyval: i32, value: *mut c_void, language: i32) -> i32 {
                let keyval = number::keyval_of_fortran(keyval);
                // SAFETY: the caller's arguments.
                unsafe { entries::$c_set(object, keyval, write(value, language) as *mut c_void) }
            }
        )*
    };
}

attributes! {
    MPII_Comm_get_attr = PMPI_Comm_get_attr, MPII_Comm_set_attr = PMPI_Comm_set_attr;
    MPII_Type_get_attr = PMPI_Type_get_attr, MPII_Type_set_attr = PMPI_Type_set_attr;
    MPII_Win_get_attr = PMPI_Win_get_attr, MPII_Win_set_attr = PMPI_Win_set_attr;
}

/// Procedures of Fortran behind a generalized request: they store the code in a last argument.
struct Procedures {
    functions: Functions,
}

unsafe extern "C" fn query(state: *mut c_void, status: *mut ours::Status) -> i32 {
    let mut code = values::SUCCESS;
    // SAFETY: the state is the one below, and the functions are procedures of Fortran.
    unsafe {
        let functions = &(*state.cast::<Procedures>()).functions;
        if let Some(query) = functions.query {
            let procedure: unsafe extern "C" fn(*mut c_void, *mut ours::Status, *mut i32) = transmute(query);
            procedure(functions.extra, status, &mut code);
        }
    }
    code
}

unsafe extern "C" fn free(state: *mut c_void) -> i32 {
    let mut code = values::SUCCESS;
    // SAFETY: as above; this is the last call for this state.
    unsafe {
        let functions = Box::from_raw(state.cast::<Procedures>()).functions;
        if let Some(free) = functions.free {
            let procedure: unsafe extern "C" fn(*mut c_void, *mut i32) = transmute(free);
            procedure(functions.extra, &mut code);
        }
    }
    code
}

unsafe extern "C" fn cancel(state: *mut c_void, complete: i32) -> i32 {
    let mut code = values::SUCCESS;
    // SAFETY: as above.
    unsafe {
        let functions = &(*state.cast::<Procedures>()).functions;
        if let Some(cancel) = functions.cancel {
            let procedure: unsafe extern "C" fn(*mut c_void, *const i32, *mut i32) = transmute(cancel);
            procedure(functions.extra, &complete, &mut code);
        }
    }
    code
}

/// Says that the functions of a request that was just started are procedures of Fortran.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPII_Grequest_set_lang_f77(request: i32) {
    let request = crate::handle::ours::<values::Request>(request);
    let _ = weft_mpi::request::rewrap(request, |functions| {
        let state = Box::into_raw(Box::new(Procedures { functions }));
        Functions { query: Some(query), free: Some(free), cancel: Some(cancel), extra: state.cast() }
    });
}
