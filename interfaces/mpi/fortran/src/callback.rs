//! Procedures of the program behind functions of C.
//!
//! Fortran passes everything by address and gets the error code in a last argument, so most procedures need a function
//! of C in front. What that one needs to know travels as the extra state. It is never freed for keys and data
//! representations: nothing says when they are used last.
//!
//! Operations and error handlers need nothing: what C and Fortran pass them is the same, since a handle lies in memory
//! with its low half first, and that half is the `INTEGER`.

use crate::cell::{self, CellWidth};
use crate::handle;
use std::ffi::c_void;

/// The procedures of a key, with the state of the program.
pub struct KeyProcedures {
    copy: *const c_void,
    delete: *const c_void,
    extra_state: isize,
    width: CellWidth,
}

impl KeyProcedures {
    /// The state that goes to the library in the place of the program's.
    pub fn state(copy: *const c_void, delete: *const c_void, extra_state: isize, width: CellWidth) -> *mut c_void {
        Box::into_raw(Box::new(Self { copy, delete, extra_state, width })).cast()
    }

    fn cut(&self, value: isize) -> isize {
        if self.width == CellWidth::Small { value as i32 as isize } else { value }
    }
}

/// `(object, keyval, extra_state, value_in, value_out, flag, ierror)`; the values are `i32` in procedures of MPI 1,
/// which leave the high half of `value_out` alone.
type Copy = unsafe extern "C" fn(*const i32, *const i32, *const isize, *const isize, *mut isize, *mut i32, *mut i32);
/// `(object, keyval, value, extra_state, ierror)`
type Delete = unsafe extern "C" fn(*const i32, *const i32, *const isize, *const isize, *mut i32);

type ToInteger = fn(usize) -> i32;

unsafe fn copy(object: i32, keyval: i32, state: *mut c_void, value: usize, copied: *mut usize, flag: *mut i32) -> i32 {
    // SAFETY: the state was made above, and the program said that these are procedures of these types.
    unsafe {
        let key = &*state.cast::<KeyProcedures>();
        let procedure: Copy = std::mem::transmute(key.copy);
        let (value, mut out, mut is_copied, mut code) = (cell::value(value), 0, 0, 0);
        procedure(&object, &keyval, &key.extra_state, &value, &mut out, &mut is_copied, &mut code);
        *flag = i32::from(is_copied != 0);
        if is_copied != 0 {
            *copied = cell::of(key.cut(out), key.width);
        }
        code
    }
}

unsafe fn delete(object: i32, keyval: i32, value: usize, state: *mut c_void) -> i32 {
    // SAFETY: as above.
    unsafe {
        let key = &*state.cast::<KeyProcedures>();
        let procedure: Delete = std::mem::transmute(key.delete);
        let (value, mut code) = (cell::value(value), 0);
        procedure(&object, &keyval, &value, &key.extra_state, &mut code);
        code
    }
}

macro_rules! of_objects {
    ($($copy:ident, $delete:ident: $kind:ident;)*) => {
        $(
            pub unsafe extern "C" fn $copy(
                object: usize,
                keyval: i32,
                state: *mut c_void,
                value: usize,
                copied: *mut usize,
                flag: *mut i32,
            ) -> i32 {
                const TO: ToInteger = handle::$kind::f;
                // SAFETY: the library's call of a function with this state.
                unsafe { copy(TO(object), keyval, state, value, copied, flag) }
            }

            pub unsafe extern "C" fn $delete(object: usize, keyval: i32, value: usize, state: *mut c_void) -> i32 {
                const TO: ToInteger = handle::$kind::f;
                // SAFETY: the library's call of a function with this state.
                unsafe { delete(TO(object), keyval, value, state) }
            }
        )*
    };
}

of_objects! {
    copy_comm, delete_comm: Comm;
    copy_type, delete_type: Datatype;
    copy_win, delete_win: Win;
}

/// The procedures of a generalized request; freed when the library frees that. They get the program's own variable for
/// the extra state, and may change it.
pub struct GeneralizedProcedures {
    pub query: unsafe extern "C" fn(*mut isize, *mut i32, *mut i32),
    pub free: unsafe extern "C" fn(*mut isize, *mut i32),
    pub cancel: unsafe extern "C" fn(*mut isize, *const i32, *mut i32),
    pub extra_state: *mut isize,
}

pub unsafe extern "C" fn query(state: *mut c_void, status: *mut i32) -> i32 {
    let mut code = 0;
    // SAFETY: the state of a generalized request, and the library's status.
    unsafe {
        let request = &*state.cast::<GeneralizedProcedures>();
        (request.query)(request.extra_state, status, &mut code);
    }
    code
}

pub unsafe extern "C" fn free(state: *mut c_void) -> i32 {
    let mut code = 0;
    // SAFETY: as above; this is the last call for this state.
    unsafe {
        let request = Box::from_raw(state.cast::<GeneralizedProcedures>());
        (request.free)(request.extra_state, &mut code);
    }
    code
}

pub unsafe extern "C" fn cancel(state: *mut c_void, complete: i32) -> i32 {
    let (complete, mut code) = (i32::from(complete != 0), 0);
    // SAFETY: as above.
    unsafe {
        let request = &*state.cast::<GeneralizedProcedures>();
        (request.cancel)(request.extra_state, &complete, &mut code);
    }
    code
}

/// `(userbuf, datatype, count, filebuf, position, extra_state, ierror)`
type Convert<N> =
    unsafe extern "C" fn(*mut c_void, *const i32, *const N, *mut c_void, *const i64, *const isize, *mut i32);

/// The procedures of a data representation.
pub struct Representation {
    pub read: *const c_void,
    pub write: *const c_void,
    pub extent: unsafe extern "C" fn(*const i32, *mut i64, *const isize, *mut i32),
    pub extra_state: isize,
}

impl Representation {
    unsafe fn convert<N>(
        &self,
        procedure: *const c_void,
        userbuf: *mut c_void,
        datatype: usize,
        count: N,
        filebuf: *mut c_void,
        position: i64,
    ) -> i32 {
        let (datatype, mut code) = (handle::Datatype::f(datatype), 0);
        // SAFETY: the program said that it is a procedure of this type.
        unsafe {
            let procedure: Convert<N> = std::mem::transmute(procedure);
            procedure(userbuf, &datatype, &count, filebuf, &position, &self.extra_state, &mut code);
        }
        code
    }
}

macro_rules! conversions {
    ($($name:ident($count:ty): $which:ident;)*) => {
        $(
            pub unsafe extern "C" fn $name(
                userbuf: *mut c_void,
                datatype: usize,
                count: $count,
                filebuf: *mut c_void,
                position: i64,
                state: *mut c_void,
            ) -> i32 {
                // SAFETY: the library's call of a function with this state.
                unsafe {
                    let given = &*state.cast::<Representation>();
                    given.convert(given.$which, userbuf, datatype, count, filebuf, position)
                }
            }
        )*
    };
}

conversions! {
    read(i32): read;
    write(i32): write;
    read_large(i64): read;
    write_large(i64): write;
}

pub unsafe extern "C" fn extent(datatype: usize, extent: *mut i64, state: *mut c_void) -> i32 {
    let (datatype, mut code) = (handle::Datatype::f(datatype), 0);
    // SAFETY: the library's call of a function with this state.
    unsafe {
        let given = &*state.cast::<Representation>();
        (given.extent)(&datatype, extent, &given.extra_state, &mut code);
    }
    code
}
