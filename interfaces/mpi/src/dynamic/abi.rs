//! Bodies of the functions for dynamic processes.

use super::spawn::{self, TriedSpawn, WantedProgram};
use super::{join as sockets, meet, names, ports};
use crate::abi::{COMM_NULL, MAX_PORT_NAME, store_string, text_of};
use crate::comm::{Comm, abi::intra};
use crate::error::{Class, Error, RANKS, Result};
use crate::info::{self, Info};
use crate::program;
use std::ffi::{CStr, OsString, c_char, c_void};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;

pub unsafe fn open_port(info: usize, port_name: *mut c_char) -> Result<()> {
    info::copy_of(info)?;
    if port_name.is_null() {
        return Err(crate::error::null_place("port_name"));
    }
    // SAFETY: the program gave room for MPI_MAX_PORT_NAME bytes.
    unsafe { store_string(&ports::open()?, MAX_PORT_NAME as usize, port_name, std::ptr::null_mut()) };
    Ok(())
}

pub unsafe fn close_port(port_name: *const c_char) -> Result<()> {
    // SAFETY: a C string of the program.
    let name = unsafe { text_of(port_name, "port_name")? };
    ports::close(&name)
}

/// An intracommunicator and a rank of it.
fn with_root(comm: usize, root: i32) -> Result<(Arc<Comm>, u32)> {
    let comm = intra(comm)?;
    match u32::try_from(root).ok().filter(|root| *root < comm.size()) {
        Some(root) => Ok((comm, root)),
        None => {
            let (given, size) = (format!("root {root}"), comm.size() as usize);
            Err(Error::outside(Class::Root, given, comm.display_name(), RANKS, size))
        }
    }
}

pub unsafe fn accept(port_name: *const c_char, _info: usize, root: i32, comm: usize) -> Result<usize> {
    const CALL: &str = "MPI_Comm_accept";
    let (comm, root) = with_root(comm, root)?;
    let found = (comm.rank == root).then(|| {
        // SAFETY: a C string of the program, in the root.
        let name = unsafe { text_of(port_name, "port_name")? };
        meet::accept(CALL, &ports::find(&name)?)
    });
    meet::together(CALL, &comm, root, found)
}

pub unsafe fn connect(port_name: *const c_char, info: usize, root: i32, comm: usize) -> Result<usize> {
    const CALL: &str = "MPI_Comm_connect";
    let (comm, root) = with_root(comm, root)?;
    let found = (comm.rank == root).then(|| {
        // SAFETY: a C string of the program, in the root.
        let name = unsafe { text_of(port_name, "port_name")? };
        let seconds = info::value(info, "timeout")?.and_then(|text| text.parse::<f64>().ok());
        let patience = seconds.filter(|seconds| (0.0..1e9).contains(seconds)).map(Duration::from_secs_f64);
        meet::connect(CALL, &name, patience)
    });
    meet::together(CALL, &comm, root, found)
}

pub unsafe fn join(fd: i32) -> Result<usize> {
    if fd < 0 {
        return Err(Error::new(Class::Arg, format!("fd {fd} is no descriptor")));
    }
    // SAFETY: a descriptor of the program, which it keeps open during the call.
    sockets::join(unsafe { BorrowedFd::borrow_raw(fd) })
}

pub fn get_parent() -> Result<usize> {
    Ok(spawn::parent())
}

/// The words of a null-terminated array of C strings; none of a null pointer.
///
/// # Safety
/// It is one.
unsafe fn words(mut at: *const *const c_char) -> Vec<OsString> {
    let mut words = Vec::new();
    // SAFETY: as the caller says: a null pointer is its end.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            words.push(OsString::from_vec(CStr::from_ptr(*at).to_bytes().to_vec()));
            at = at.add(1);
        }
    }
    words
}

/// Stores the handle, and a code for each process where the program wants them.
///
/// # Safety
/// The program's places: one handle, and a number for each process that it asked for or a null pointer.
unsafe fn answer(tried: TriedSpawn, out: *mut usize, codes: *mut i32) -> Result<()> {
    let TriedSpawn { processes, outcome } = tried;
    let code = outcome.as_ref().map_or_else(|error| program::code(error.code), |_| 0);
    // SAFETY: as the caller says.
    unsafe {
        if !codes.is_null() {
            (0..processes).for_each(|process| *codes.add(process) = code);
        }
        *out = outcome.as_ref().copied().unwrap_or(COMM_NULL);
    }
    outcome.map(drop)
}

pub unsafe fn spawn(
    command: *const c_char,
    argv: *mut c_void,
    maxprocs: i32,
    info: usize,
    root: i32,
    comm: usize,
    out: *mut usize,
    codes: *mut i32,
) -> Result<()> {
    let (comm, root) = with_root(comm, root)?;
    // SAFETY: strings of the program, in the root.
    let wanted = (comm.rank == root).then(|| unsafe { vec![one(command, argv.cast(), maxprocs, info)] });
    // SAFETY: the program's places.
    unsafe { answer(spawn::spawn("MPI_Comm_spawn", &comm, root, wanted), out, codes) }
}

/// # Safety
/// A C string, and a null-terminated array of such.
unsafe fn one(command: *const c_char, argv: *const *const c_char, maxprocs: i32, info: usize) -> WantedProgram {
    // What is wrong is said where the root tells the others of it, so that nobody waits for ever.
    // SAFETY: as the caller says.
    unsafe {
        let command = text_of(command, "command").unwrap_or_default();
        let info = info::copy_of(info).unwrap_or_default();
        WantedProgram { command, arguments: words(argv), maxprocs, info }
    }
}

pub unsafe fn spawn_multiple(
    count: i32,
    commands: *mut c_void,
    argvs: *mut c_void,
    maxprocs: *const i32,
    infos: *const usize,
    root: i32,
    comm: usize,
    out: *mut usize,
    codes: *mut i32,
) -> Result<()> {
    let (comm, root) = with_root(comm, root)?;
    let wanted = (comm.rank == root).then(|| {
        let (commands, argvs): (*const *const c_char, *const *const *const c_char) = (commands.cast(), argvs.cast());
        // SAFETY: arrays of so many of the program, in the root.
        let one = |index: usize| unsafe {
            let argv = if argvs.is_null() { std::ptr::null() } else { *argvs.add(index) };
            let info = if infos.is_null() { crate::abi::INFO_NULL } else { *infos.add(index) };
            one(*commands.add(index), argv, *maxprocs.add(index), info)
        };
        let usable = !commands.is_null() && !maxprocs.is_null();
        (0..usize::try_from(count).unwrap_or(0)).filter(|_| usable).map(one).collect()
    });
    // SAFETY: the program's places.
    unsafe { answer(spawn::spawn("MPI_Comm_spawn_multiple", &comm, root, wanted), out, codes) }
}

pub unsafe fn publish_name(service: *const c_char, info: usize, port_name: *const c_char) -> Result<()> {
    let _: Info = info::copy_of(info)?;
    // SAFETY: C strings of the program.
    let (service, port) = unsafe { (text_of(service, "service_name")?, text_of(port_name, "port_name")?) };
    names::publish(&service, &port)
}

pub unsafe fn unpublish_name(service: *const c_char, info: usize, port_name: *const c_char) -> Result<()> {
    let _: Info = info::copy_of(info)?;
    // SAFETY: C strings of the program.
    let (service, port) = unsafe { (text_of(service, "service_name")?, text_of(port_name, "port_name")?) };
    names::unpublish(&service, &port)
}

pub unsafe fn lookup_name(service: *const c_char, info: usize, port_name: *mut c_char) -> Result<()> {
    let _: Info = info::copy_of(info)?;
    if port_name.is_null() {
        return Err(crate::error::null_place("port_name"));
    }
    // SAFETY: a C string of the program, and room for MPI_MAX_PORT_NAME bytes.
    unsafe {
        let port = names::look_up(&text_of(service, "service_name")?)?;
        store_string(&port, MAX_PORT_NAME as usize, port_name, std::ptr::null_mut());
    }
    Ok(())
}
