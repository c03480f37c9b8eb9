//! Bodies of the functions on attributes and names.

use super::{Attribute, Attributes, Keyval, is_freed_and_in_use, keyvals, note_freed, predefined};
use crate::abi::{
    COMM_NULL, DATATYPE_NULL, KEYVAL_INVALID, MAX_OBJECT_NAME, TAG_UB, WIN_BASE, WIN_MODEL, WIN_NULL, store_string,
    text_of,
};
use crate::comm::abi::of;
use crate::error::{Class, Error, Result};
use crate::handle::HandleKind;
use crate::world::{Labels, WORLD};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

unsafe fn create(kind: HandleKind, copy: usize, delete: usize, out: *mut i32, extra_state: *mut c_void) -> Result<()> {
    let mut keyvals = keyvals();
    let handle = keyvals.reserve();
    let number = handle as i32;
    keyvals.fill(handle, Arc::new(Keyval { number, kind, copy, delete, extra_state: extra_state as usize }));
    // SAFETY: the program's place for the key.
    unsafe { *out = number };
    Ok(())
}

/// Replaces the functions and the extra state of a key that no object has yet; `with` gets and gives copy function,
/// delete function and state.
pub fn rewrap(number: i32, with: impl FnOnce([usize; 3]) -> [usize; 3]) -> Result<()> {
    let mut keyvals = keyvals();
    let keyval = keyvals.get_mut(number as u32 as usize)?;
    let [copy, delete, extra_state] = with([keyval.copy, keyval.delete, keyval.extra_state]);
    *keyval = Arc::new(Keyval { number, kind: keyval.kind, copy, delete, extra_state });
    Ok(())
}

/// The key lives on in the attributes that have it; until they are gone it may be freed again (through a copy of the
/// number, as delete functions do).
unsafe fn free(keyval: *mut i32, kind: HandleKind) -> Result<()> {
    // SAFETY: the program's key.
    let number = unsafe { *keyval };
    if !is_freed_and_in_use(number, kind) {
        let freed = known(number, kind)?;
        keyvals().remove(number as usize)?;
        note_freed(&freed);
    }
    // SAFETY: as above.
    unsafe { *keyval = KEYVAL_INVALID };
    Ok(())
}

/// A key of the program's for objects of `kind`.
fn known(number: i32, kind: HandleKind) -> Result<Arc<Keyval>> {
    let is_of_windows = kind == HandleKind::Win && (WIN_BASE..=WIN_MODEL).contains(&number);
    if predefined::place(number).is_some() || is_of_windows {
        return Err(Error::new(Class::Keyval, format!("keyval {number} is predefined")));
    }
    let keyval = keyvals().get(number as u32 as usize)?.clone();
    if keyval.kind != kind {
        let detail = format!("keyval {number:#x} was made for a {}, not a {}", keyval.kind.noun(), kind.noun());
        return Err(Error::new(Class::Keyval, detail));
    }
    Ok(keyval)
}

/// Sets an attribute where `with` reaches the object's attributes; an old value is deleted first.
fn put(
    object: usize,
    number: i32,
    kind: HandleKind,
    value: usize,
    mut with: impl FnMut(&mut dyn FnMut(&mut Attributes)) -> Result<()>,
) -> Result<()> {
    let keyval = known(number, kind)?;
    let mut old = None;
    with(&mut |attributes| old = attributes.find(number).cloned())?;
    if let Some(old) = old {
        old.delete(object)?;
    }
    with(&mut |attributes| attributes.set(Attribute { keyval: keyval.clone(), value }))
}

fn delete(
    object: usize,
    number: i32,
    kind: HandleKind,
    mut with: impl FnMut(&mut dyn FnMut(&mut Attributes)) -> Result<()>,
) -> Result<()> {
    let mut old = None;
    with(&mut |attributes| old = attributes.find(number).cloned())?;
    let Some(old) = old else {
        known(number, kind)?;
        return Err(Error::new(Class::Keyval, format!("keyval {number:#x} has no value on this object")));
    };
    old.delete(object)?;
    with(&mut |attributes| attributes.forget(&old))
}

unsafe fn give(value: Option<usize>, out: *mut c_void, flag: *mut i32) {
    // SAFETY: the program's places for the value and the flag.
    unsafe {
        *flag = value.is_some() as i32;
        if let Some(value) = value {
            *out.cast::<usize>() = value;
        }
    }
}

fn on_comm(comm: usize, change: &mut dyn FnMut(&mut Attributes)) -> Result<()> {
    change(&mut of(comm)?.state().attributes);
    Ok(())
}

fn on_type(datatype: usize, change: &mut dyn FnMut(&mut Attributes)) -> Result<()> {
    change(&mut WORLD.enter().labels_of_type(datatype)?.attributes);
    Ok(())
}

/// The functions that make and free keys for a kind of objects.
macro_rules! keys {
    ($($kind:ident: $create:ident, $free:ident;)*) => {$(
        pub unsafe fn $create(copy: usize, delete: usize, out: *mut i32, extra: *mut c_void) -> Result<()> {
            // SAFETY: as the caller says.
            unsafe { create(HandleKind::$kind, copy, delete, out, extra) }
        }

        pub unsafe fn $free(keyval: *mut i32) -> Result<()> {
            // SAFETY: as the caller says.
            unsafe { free(keyval, HandleKind::$kind) }
        }
    )*};
}

keys! {
    Comm: comm_create_keyval, comm_free_keyval;
    Datatype: type_create_keyval, type_free_keyval;
    Win: win_create_keyval, win_free_keyval;
}

pub unsafe fn comm_set_attr(comm: usize, keyval: i32, value: *mut c_void) -> Result<()> {
    of(comm)?;
    put(comm, keyval, HandleKind::Comm, value as usize, |change| on_comm(comm, change))
}

pub unsafe fn comm_get_attr(comm: usize, keyval: i32, value: *mut c_void, flag: *mut i32) -> Result<()> {
    let comm = of(comm)?;
    let found = match predefined::place(keyval) {
        // They describe the world: communicators of sessions have the bound of tags alone (MPI 5.0, section 9.1.2).
        Some(_) if comm.session.is_some() && keyval != TAG_UB => None,
        Some(place) => Some(place),
        None => {
            let found = comm.state().attributes.find(keyval).map(|attribute| attribute.value);
            if found.is_none() {
                known(keyval, HandleKind::Comm)?;
            }
            found
        }
    };
    // SAFETY: as the caller says.
    unsafe { give(found, value, flag) };
    Ok(())
}

pub unsafe fn comm_delete_attr(comm: usize, keyval: i32) -> Result<()> {
    of(comm)?;
    delete(comm, keyval, HandleKind::Comm, |change| on_comm(comm, change))
}

pub unsafe fn type_set_attr(datatype: usize, keyval: i32, value: *mut c_void) -> Result<()> {
    put(datatype, keyval, HandleKind::Datatype, value as usize, |change| on_type(datatype, change))
}

pub unsafe fn type_get_attr(datatype: usize, keyval: i32, value: *mut c_void, flag: *mut i32) -> Result<()> {
    let mut found = None;
    on_type(datatype, &mut |attributes| found = attributes.find(keyval).map(|attribute| attribute.value))?;
    if found.is_none() {
        known(keyval, HandleKind::Datatype)?;
    }
    // SAFETY: as the caller says.
    unsafe { give(found, value, flag) };
    Ok(())
}

pub unsafe fn type_delete_attr(datatype: usize, keyval: i32) -> Result<()> {
    delete(datatype, keyval, HandleKind::Datatype, |change| on_type(datatype, change))
}

fn on_win(win: usize, change: &mut dyn FnMut(&mut Attributes)) -> Result<()> {
    change(&mut WORLD.enter().windows.table.get_mut(win)?.attributes);
    Ok(())
}

pub unsafe fn win_set_attr(win: usize, keyval: i32, value: *mut c_void) -> Result<()> {
    put(win, keyval, HandleKind::Win, value as usize, |change| on_win(win, change))
}

pub unsafe fn win_get_attr(win: usize, keyval: i32, value: *mut c_void, flag: *mut i32) -> Result<()> {
    let found = {
        let world = WORLD.enter();
        let window = world.windows.table.get(win)?;
        let own = || window.attributes.find(keyval).map(|attribute| attribute.value);
        window.predefined_attribute(keyval).or_else(own)
    };
    if found.is_none() {
        known(keyval, HandleKind::Win)?;
    }
    // SAFETY: as the caller says.
    unsafe { give(found, value, flag) };
    Ok(())
}

pub unsafe fn win_delete_attr(win: usize, keyval: i32) -> Result<()> {
    delete(win, keyval, HandleKind::Win, |change| on_win(win, change))
}

/// Runs the delete functions of all attributes of a window, the last one set first.
pub fn delete_win_attributes(win: usize) -> Result<()> {
    loop {
        let last = WORLD.enter().windows.table.get(win)?.attributes.last();
        let Some(attribute) = last else { return Ok(()) };
        attribute.delete(win)?;
        on_win(win, &mut |attributes| attributes.forget(&attribute))?;
    }
}

/// A name as the program gave it, cut to what fits.
unsafe fn name_of(name: *const c_char, argument: &str) -> Result<String> {
    // SAFETY: a C string of the program.
    let mut name = unsafe { text_of(name, argument)? };
    let mut end = name.len().min(MAX_OBJECT_NAME as usize - 1);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    Ok(name)
}

pub unsafe fn comm_set_name(comm: usize, name: *const c_char) -> Result<()> {
    // SAFETY: as the caller says.
    of(comm)?.state().name = unsafe { name_of(name, "comm_name")? };
    Ok(())
}

pub unsafe fn comm_get_name(comm: usize, name: *mut c_char, length: *mut i32) -> Result<()> {
    let text = if comm == COMM_NULL { "MPI_COMM_NULL".to_owned() } else { of(comm)?.state().name.clone() };
    // SAFETY: the program gave room for MPI_MAX_OBJECT_NAME bytes.
    unsafe { store_string(&text, MAX_OBJECT_NAME as usize, name, length) };
    Ok(())
}

pub unsafe fn type_set_name(datatype: usize, name: *const c_char) -> Result<()> {
    // SAFETY: as the caller says.
    let name = unsafe { name_of(name, "type_name")? };
    WORLD.enter().labels_of_type(datatype)?.name = Some(name);
    Ok(())
}

pub unsafe fn type_get_name(datatype: usize, name: *mut c_char, length: *mut i32) -> Result<()> {
    let text = if datatype == DATATYPE_NULL {
        "MPI_DATATYPE_NULL".to_owned()
    } else {
        let given = WORLD.enter().labels_of_type(datatype)?.name.clone();
        given.unwrap_or_else(|| Labels::predefined_name(datatype).to_owned())
    };
    // SAFETY: the program gave room for MPI_MAX_OBJECT_NAME bytes.
    unsafe { store_string(&text, MAX_OBJECT_NAME as usize, name, length) };
    Ok(())
}

pub unsafe fn win_set_name(win: usize, name: *const c_char) -> Result<()> {
    // SAFETY: as the caller says.
    let name = unsafe { name_of(name, "win_name")? };
    WORLD.enter().windows.table.get_mut(win)?.name = name;
    Ok(())
}

pub unsafe fn win_get_name(win: usize, name: *mut c_char, length: *mut i32) -> Result<()> {
    let text = match win {
        WIN_NULL => "MPI_WIN_NULL".to_owned(),
        _ => WORLD.enter().windows.table.get(win)?.name.clone(),
    };
    // SAFETY: the program gave room for MPI_MAX_OBJECT_NAME bytes.
    unsafe { store_string(&text, MAX_OBJECT_NAME as usize, name, length) };
    Ok(())
}
