//! What no rule of the generator fits. The functions have the parameters of Fortran, with the lengths of strings last,
//! and answer the error code.
#![allow(
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    reason = "all are bodies of entries, and ask what the standard asks of the program"
)]
#![allow(clashing_extern_declarations, reason = "the generated declarations write all pointers alike")]

use crate::callback::{self, GeneralizedProcedures, KeyProcedures, Representation};
use crate::cell::CellWidth;
use crate::{attribute, handle, sentinel, text};
use std::ffi::c_void;
use std::ptr;

unsafe extern "C" {
    fn PMPI_Comm_create_keyval(copy: usize, delete: usize, keyval: *mut i32, state: *mut c_void) -> i32;
    fn PMPI_Type_create_keyval(copy: usize, delete: usize, keyval: *mut i32, state: *mut c_void) -> i32;
    fn PMPI_Win_create_keyval(copy: usize, delete: usize, keyval: *mut i32, state: *mut c_void) -> i32;
    fn PMPI_Comm_get_attr(object: usize, keyval: i32, value: *mut usize, flag: *mut i32) -> i32;
    fn PMPI_Type_get_attr(object: usize, keyval: i32, value: *mut usize, flag: *mut i32) -> i32;
    fn PMPI_Win_get_attr(object: usize, keyval: i32, value: *mut usize, flag: *mut i32) -> i32;
    fn PMPI_Comm_set_attr(object: usize, keyval: i32, value: usize) -> i32;
    fn PMPI_Type_set_attr(object: usize, keyval: i32, value: usize) -> i32;
    fn PMPI_Win_set_attr(object: usize, keyval: i32, value: usize) -> i32;
    fn PMPI_Grequest_start(query: usize, free: usize, cancel: usize, state: *mut c_void, request: *mut usize) -> i32;
    fn PMPI_Register_datarep(name: *const c_void, read: usize, write: usize, extent: usize, state: *mut c_void) -> i32;
    fn PMPI_Register_datarep_c(
        name: *const c_void,
        read: usize,
        write: usize,
        extent: usize,
        state: *mut c_void,
    ) -> i32;
    fn PMPI_Comm_spawn(
        command: *const c_void,
        argv: *mut c_void,
        maxprocs: i32,
        info: usize,
        root: i32,
        comm: usize,
        intercomm: *mut usize,
        codes: *mut c_void,
    ) -> i32;
    fn PMPI_Comm_spawn_multiple(
        count: i32,
        commands: *mut c_void,
        argv: *mut c_void,
        maxprocs: *const i32,
        info: *const c_void,
        root: i32,
        comm: usize,
        intercomm: *mut usize,
        codes: *mut c_void,
    ) -> i32;
    fn PMPI_Comm_rank(comm: usize, rank: *mut i32) -> i32;
    fn PMPI_Comm_size(comm: usize, size: *mut i32) -> i32;
    fn PMPI_Comm_remote_size(comm: usize, size: *mut i32) -> i32;
    fn PMPI_Comm_test_inter(comm: usize, flag: *mut i32) -> i32;
    fn PMPI_Topo_test(comm: usize, status: *mut i32) -> i32;
    fn PMPI_Cartdim_get(comm: usize, ndims: *mut i32) -> i32;
    fn PMPI_Graph_neighbors_count(comm: usize, rank: i32, count: *mut i32) -> i32;
    fn PMPI_Dist_graph_neighbors_count(comm: usize, ins: *mut i32, outs: *mut i32, weighted: *mut i32) -> i32;
    fn PMPI_Info_get_string(
        info: usize,
        key: *const c_void,
        length: *mut i32,
        value: *mut c_void,
        flag: *mut i32,
    ) -> i32;
    fn PMPI_Session_get_nth_pset(session: usize, info: usize, n: i32, length: *mut i32, name: *mut c_void) -> i32;
    fn PMPI_Pcontrol(level: i32, ...) -> i32;
}

const SUCCESS: i32 = 0;
const ERR_ARG: i32 = 13;
const CART: i32 = 211;
const GRAPH: i32 = 212;
const DIST_GRAPH: i32 = 213;

/// Indices of `count` elements begin with one; those of no element (`MPI_UNDEFINED`) stay.
pub unsafe fn from_one(at: *mut i32, count: i32) {
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the program's places.
        unsafe {
            let place = &mut *at.add(index);
            if *place >= 0 {
                *place += 1;
            }
        }
    }
}

/// The number of ranks that a collective operation with a type for each talks with; none of the types counts where the
/// buffer is `MPI_IN_PLACE`.
pub unsafe fn peers(comm: i32, buffer: *mut c_void) -> i64 {
    if sentinel::is_in_place(buffer) {
        return 0;
    }
    let (comm, mut inter, mut size) = (handle::Comm::c(comm), 0, 0);
    // SAFETY: places for the numbers.
    unsafe {
        PMPI_Comm_test_inter(comm, &mut inter);
        let _ = if inter != 0 { PMPI_Comm_remote_size(comm, &mut size) } else { PMPI_Comm_size(comm, &mut size) };
    }
    i64::from(size)
}

/// The numbers of neighbours that this rank receives from and sends to.
pub unsafe fn neighbors(comm: i32) -> (i64, i64) {
    let (comm, mut topology) = (handle::Comm::c(comm), 0);
    let (mut ins, mut outs, mut rank, mut weighted) = (0, 0, 0, 0);
    // SAFETY: places for the numbers.
    unsafe {
        PMPI_Topo_test(comm, &mut topology);
        match topology {
            CART => {
                PMPI_Cartdim_get(comm, &mut ins);
                (ins, outs) = (2 * ins, 2 * ins);
            }
            GRAPH => {
                PMPI_Comm_rank(comm, &mut rank);
                PMPI_Graph_neighbors_count(comm, rank, &mut ins);
                outs = ins;
            }
            DIST_GRAPH => {
                PMPI_Dist_graph_neighbors_count(comm, &mut ins, &mut outs, &mut weighted);
            }
            _ => {}
        }
    }
    (i64::from(ins), i64::from(outs))
}

macro_rules! attributes {
    ($($create:ident = $c_create:ident($copy:ident, $delete:ident), $get:ident = $c_get:ident,
        $set:ident = $c_set:ident: $kind:ident;)*) => {
        $(
            pub unsafe fn $create(copy: *mut c_void, delete: *mut c_void, keyval: *mut i32, state: *mut isize) -> i32 {
                // SAFETY: the functions take the state that is made here.
                unsafe {
                    let state = KeyProcedures::state(copy, delete, *state, CellWidth::Address);
                    let (copy, delete) = (callback::$copy as *const () as usize, callback::$delete as *const () as usize);
                    $c_create(copy, delete, keyval, state)
                }
            }

            pub unsafe fn $get(object: *const i32, keyval: *const i32, value: *mut isize, flag: *mut i32) -> i32 {
                let mut cached = 0;
                // SAFETY: the program's places.
                unsafe {
                    let code = $c_get(handle::$kind::c(*object), *keyval, &mut cached, flag);
                    if code == SUCCESS && *flag != 0 {
                        *value = attribute::read(*keyval, cached);
                    }
                    code
                }
            }

            pub unsafe fn $set(object: *const i32, keyval: *const i32, value: *mut isize) -> i32 {
                // SAFETY: the program's places.
                unsafe {
                    $c_set(handle::$kind::c(*object), *keyval, attribute::write(*value, CellWidth::Address))
                }
            }
        )*
    };
}

attributes! {
    comm_create_keyval = PMPI_Comm_create_keyval(copy_comm, delete_comm), comm_get_attr = PMPI_Comm_get_attr,
        comm_set_attr = PMPI_Comm_set_attr: Comm;
    type_create_keyval = PMPI_Type_create_keyval(copy_type, delete_type), type_get_attr = PMPI_Type_get_attr,
        type_set_attr = PMPI_Type_set_attr: Datatype;
    win_create_keyval = PMPI_Win_create_keyval(copy_win, delete_win), win_get_attr = PMPI_Win_get_attr,
        win_set_attr = PMPI_Win_set_attr: Win;
}

pub unsafe fn keyval_create(copy: *mut c_void, delete: *mut c_void, keyval: *mut i32, state: *mut i32) -> i32 {
    // SAFETY: the functions take the state that is made here.
    unsafe {
        let state = KeyProcedures::state(copy, delete, *state as isize, CellWidth::Small);
        let copy = callback::copy_comm as *const () as usize;
        PMPI_Comm_create_keyval(copy, callback::delete_comm as *const () as usize, keyval, state)
    }
}

pub unsafe fn attr_get(comm: *const i32, keyval: *const i32, value: *mut i32, flag: *mut i32) -> i32 {
    let mut wide = 0;
    // SAFETY: the program's places.
    unsafe {
        let code = comm_get_attr(comm, keyval, &mut wide, flag);
        if code == SUCCESS && *flag != 0 {
            *value = wide as i32;
        }
        code
    }
}

pub unsafe fn attr_put(comm: *const i32, keyval: *const i32, value: *mut i32) -> i32 {
    // SAFETY: the program's places.
    unsafe { PMPI_Comm_set_attr(handle::Comm::c(*comm), *keyval, attribute::write(*value as isize, CellWidth::Small)) }
}

pub unsafe fn grequest_start(
    query: *mut c_void,
    free: *mut c_void,
    cancel: *mut c_void,
    state: *mut isize,
    request: *mut i32,
) -> i32 {
    if query.is_null() || free.is_null() || cancel.is_null() {
        return ERR_ARG;
    }
    // SAFETY: procedures of these types, and the functions take the state that is made here.
    unsafe {
        let procedures = GeneralizedProcedures {
            query: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut isize, *mut i32, *mut i32)>(query),
            free: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut isize, *mut i32)>(free),
            cancel: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut isize, *const i32, *mut i32)>(cancel),
            extra_state: state,
        };
        let state = Box::into_raw(Box::new(procedures));
        let (query, free) = (callback::query as *const () as usize, callback::free as *const () as usize);
        let mut c_request = handle::Request::c(*request);
        let cancel = callback::cancel as *const () as usize;
        let code = PMPI_Grequest_start(query, free, cancel, state.cast(), &mut c_request);
        if code == SUCCESS {
            *request = handle::Request::f(c_request);
        } else {
            drop(Box::from_raw(state));
        }
        code
    }
}

/// The function for a conversion that the program may leave out.
fn or_none(procedure: *const c_void, function: usize) -> usize {
    let null = [crate::small::mpi_conversion_fn_null_ as *const c_void, crate::small::mpi_conversion_fn_null_c_ as _];
    if procedure.is_null() || null.contains(&procedure) { 0 } else { function }
}

macro_rules! register {
    ($($name:ident = $c:ident($read:ident, $write:ident);)*) => {
        $(
            pub unsafe fn $name(
                datarep: *const u8,
                read: *mut c_void,
                write: *mut c_void,
                extent: *mut c_void,
                state: *mut isize,
                length: usize,
            ) -> i32 {
                if extent.is_null() {
                    return ERR_ARG;
                }
                // SAFETY: procedures of these types, and the functions take the state that is made here.
                unsafe {
                    let name = text::c_string(datarep, length);
                    let extent = std::mem::transmute::<
                        *mut c_void,
                        unsafe extern "C" fn(*const i32, *mut i64, *const isize, *mut i32),
                    >(extent);
                    let given = Box::new(Representation { read, write, extent, extra_state: *state });
                    let read = or_none(read, callback::$read as *const () as usize);
                    let write = or_none(write, callback::$write as *const () as usize);
                    let extent = callback::extent as *const () as usize;
                    $c(name.as_ptr().cast(), read, write, extent, Box::into_raw(given).cast())
                }
            }
        )*
    };
}

register! {
    register_datarep = PMPI_Register_datarep(read, write);
    register_datarep_c = PMPI_Register_datarep_c(read_large, write_large);
}

/// What stands for the arguments of a command that has none; only the root's arguments count.
unsafe fn is_root(comm: usize, root: i32) -> bool {
    let mut rank = -1;
    // SAFETY: a place for the number.
    unsafe { PMPI_Comm_rank(comm, &mut rank) == SUCCESS && rank == root }
}

pub unsafe fn comm_spawn(
    command: *const u8,
    argv: *const u8,
    maxprocs: *const i32,
    info: *const i32,
    root: *const i32,
    comm: *const i32,
    intercomm: *mut i32,
    codes: *mut i32,
    command_length: usize,
    argv_length: usize,
) -> i32 {
    // SAFETY: the program's arguments; those that only the root has are read there alone.
    unsafe {
        let comm = handle::Comm::c(*comm);
        let at_root = is_root(comm, *root);
        let command = if at_root { text::trimmed(command, command_length) } else { c"".to_owned() };
        let mut list =
            (at_root && !sentinel::is_no_arguments(argv)).then(|| text::List::read(argv, argv_length, 1, None));
        let argv = list.as_mut().map_or(ptr::null_mut(), text::List::at);
        let mut c_intercomm = handle::Comm::c(*intercomm);
        let info = if at_root { handle::Info::c(*info) } else { INFO_NULL };
        let maxprocs = if at_root { *maxprocs } else { 0 };
        let codes = sentinel::error_codes(codes);
        let code = PMPI_Comm_spawn(command.as_ptr().cast(), argv, maxprocs, info, *root, comm, &mut c_intercomm, codes);
        *intercomm = handle::Comm::f(c_intercomm);
        code
    }
}

const INFO_NULL: usize = 0x130;

pub unsafe fn comm_spawn_multiple(
    count: *const i32,
    commands: *const u8,
    argvs: *const u8,
    maxprocs: *mut i32,
    infos: *mut i32,
    root: *const i32,
    comm: *const i32,
    intercomm: *mut i32,
    codes: *mut i32,
    commands_length: usize,
    argvs_length: usize,
) -> i32 {
    // SAFETY: as above. The arguments of a command lie `count` strings apart.
    unsafe {
        let comm = handle::Comm::c(*comm);
        let number = if is_root(comm, *root) { usize::try_from(*count).unwrap_or(0) } else { 0 };
        let mut commands = text::List::read(commands, commands_length, 1, Some(number));
        let has_arguments = number > 0 && !sentinel::is_no_arguments(argvs);
        let read =
            |index: usize| text::List::read(argvs.wrapping_add(index * argvs_length), argvs_length, number, None);
        let mut lists: Vec<text::List> = (0..if has_arguments { number } else { 0 }).map(read).collect();
        let mut places: Vec<*mut c_void> = lists.iter_mut().map(text::List::at).collect();
        let argv = if has_arguments { places.as_mut_ptr().cast() } else { ptr::null_mut() };
        let mut infos = handle::Array::<handle::Info>::new(infos, number as i64);
        let mut c_intercomm = handle::Comm::c(*intercomm);
        let code = PMPI_Comm_spawn_multiple(
            if number > 0 { *count } else { 0 },
            commands.at(),
            argv,
            maxprocs,
            infos.at(),
            *root,
            comm,
            &mut c_intercomm,
            sentinel::error_codes(codes),
        );
        *intercomm = handle::Comm::f(c_intercomm);
        code
    }
}

/// Lengths count no zero here, and one in C.
pub unsafe fn info_get_string(
    info: *const i32,
    key: *const u8,
    length: *mut i32,
    value: *mut u8,
    flag: *mut i32,
    key_length: usize,
    value_length: usize,
) -> i32 {
    // SAFETY: the program's arguments.
    unsafe {
        let key = text::trimmed(key, key_length);
        let asked = *length;
        let (mut filled, mut needed) = (text::Filled::new(asked), c_length(asked));
        let info = handle::Info::c(*info);
        let code = PMPI_Info_get_string(info, key.as_ptr().cast(), &mut needed, filled.at(), flag);
        if code == SUCCESS && *flag != 0 {
            *length = needed - 1;
            if asked > 0 {
                filled.back(value, value_length);
            }
        }
        code
    }
}

/// A length with the zero. No length asks for the length alone.
fn c_length(length: i32) -> i32 {
    if length > 0 { length.saturating_add(1) } else { length }
}

pub unsafe fn session_get_nth_pset(
    session: *const i32,
    info: *const i32,
    n: *const i32,
    length: *mut i32,
    name: *mut u8,
    name_length: usize,
) -> i32 {
    // SAFETY: the program's arguments.
    unsafe {
        let asked = *length;
        let (mut filled, mut needed) = (text::Filled::new(asked), c_length(asked));
        let (session, info) = (handle::Session::c(*session), handle::Info::c(*info));
        let code = PMPI_Session_get_nth_pset(session, info, *n, &mut needed, filled.at());
        if code == SUCCESS {
            if asked > 0 {
                filled.back(name, name_length);
            } else {
                *length = needed - 1;
            }
        }
        code
    }
}

pub unsafe fn pcontrol(level: *const i32) {
    // SAFETY: the program's argument.
    unsafe { PMPI_Pcontrol(*level) };
}
