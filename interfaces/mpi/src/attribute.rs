//! Attributes: values that programs cache on communicators and datatypes (MPI 5.0, section 7.7).

pub mod abi;
mod predefined;

pub use predefined::{set_last_used_code, set_predefined};

use crate::abi::SUCCESS;
use crate::error::{Error, Result};
use crate::handle::{HandleKind, HandleTable};
use crate::program;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How attributes under one key are copied and deleted. Functions are the program's; 0 is the null function.
#[derive(Debug, PartialEq, Eq)]
pub struct Keyval {
    /// The number that the program knows.
    pub number: i32,
    pub kind: HandleKind,
    pub copy: usize,
    pub delete: usize,
    pub extra_state: usize,
}

/// The copy function that just copies.
const DUP_FN: usize = 1;

/// `(object, keyval, extra_state, value_in, value_out, flag)`
type CopyFunction = unsafe extern "C" fn(usize, i32, *mut c_void, *mut c_void, *mut c_void, *mut i32) -> i32;
/// `(object, keyval, value, extra_state)`
type DeleteFunction = unsafe extern "C" fn(usize, i32, *mut c_void, *mut c_void) -> i32;

static KEYVALS: Mutex<HandleTable<Arc<Keyval>>> = Mutex::new(HandleTable::new(HandleKind::Keyval));

fn keyvals() -> MutexGuard<'static, HandleTable<Arc<Keyval>>> {
    KEYVALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keys that were freed and may still be in attributes.
static FREED: Mutex<Vec<Weak<Keyval>>> = Mutex::new(Vec::new());

fn note_freed(keyval: &Arc<Keyval>) {
    let mut freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    freed.retain(|keyval| keyval.strong_count() > 0);
    freed.push(Arc::downgrade(keyval));
}

fn is_freed_and_in_use(number: i32, kind: HandleKind) -> bool {
    let freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    freed.iter().filter_map(Weak::upgrade).any(|keyval| keyval.number == number && keyval.kind == kind)
}

/// One value under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub keyval: Arc<Keyval>,
    pub value: usize,
}

impl Attribute {
    /// Calls the key's delete function.
    pub fn delete(&self, object: usize) -> Result<()> {
        let keyval = &self.keyval;
        if keyval.delete == 0 {
            return Ok(());
        }
        let (value, extra_state) = (self.value as *mut c_void, keyval.extra_state as *mut c_void);
        // SAFETY: the program said that this is a function of this type.
        let code = unsafe {
            let function: DeleteFunction = std::mem::transmute(keyval.delete);
            function(program::handle(keyval.kind, object), program::keyval(keyval.number), value, extra_state)
        };
        called("delete", keyval.number, code)
    }

    /// The value for a copy of the object; `None` if it is not to have the attribute.
    fn copy(&self, object: usize) -> Result<Option<usize>> {
        let keyval = &self.keyval;
        if keyval.copy <= DUP_FN {
            return Ok((keyval.copy == DUP_FN).then_some(self.value));
        }
        let (mut copied, mut flag) = (0usize, 0i32);
        let (value, extra_state) = (self.value as *mut c_void, keyval.extra_state as *mut c_void);
        // SAFETY: as above; it stores a value at `copied`.
        let code = unsafe {
            let function: CopyFunction = std::mem::transmute(keyval.copy);
            let (object, number) = (program::handle(keyval.kind, object), program::keyval(keyval.number));
            function(object, number, extra_state, value, (&raw mut copied).cast(), &mut flag)
        };
        called("copy", keyval.number, code)?;
        Ok((flag != 0).then_some(copied))
    }
}

fn called(which: &str, number: i32, code: i32) -> Result<()> {
    let code = program::code_back(code);
    let failed = || Error::from_code(code, format!("the {which} function of keyval {number:#x} returned {code}"));
    if code == SUCCESS { Ok(()) } else { Err(failed()) }
}

/// The attributes of one object, in the order in which they were set.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    list: Vec<Attribute>,
}

impl Attributes {
    pub fn find(&self, number: i32) -> Option<&Attribute> {
        self.list.iter().find(|attribute| attribute.keyval.number == number)
    }

    pub fn last(&self) -> Option<Attribute> {
        self.list.last().cloned()
    }

    /// Takes an attribute out after its delete function agreed.
    pub fn forget(&mut self, attribute: &Attribute) {
        self.list.retain(|other| other != attribute);
    }

    /// Sets a value; one set before was deleted already.
    pub fn set(&mut self, attribute: Attribute) {
        self.list.retain(|other| other.keyval.number != attribute.keyval.number);
        self.list.push(attribute);
    }

    /// The attributes of a copy of `object`. Runs the program's functions: call it on a clone, with nothing locked.
    pub fn copy(&self, object: usize) -> Result<Self> {
        let mut copied = Self::default();
        for attribute in &self.list {
            if let Some(value) = attribute.copy(object)? {
                copied.list.push(Attribute { keyval: attribute.keyval.clone(), value });
            }
        }
        Ok(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyval(number: i32, copy: usize, delete: usize) -> Arc<Keyval> {
        Arc::new(Keyval { number, kind: HandleKind::Comm, copy, delete, extra_state: 5 })
    }

    unsafe extern "C" fn add_extra(
        object: usize,
        _: i32,
        extra: *mut c_void,
        value: *mut c_void,
        out: *mut c_void,
        flag: *mut i32,
    ) -> i32 {
        // SAFETY: the test passes places for both.
        unsafe {
            *out.cast::<usize>() = object + value as usize + extra as usize;
            *flag = 1;
        }
        0
    }

    unsafe extern "C" fn refuse(_: usize, _: i32, _: *mut c_void, _: *mut c_void) -> i32 {
        77
    }

    #[test]
    fn copies_follow_the_copy_function() {
        let mut attributes = Attributes::default();
        attributes.set(Attribute { keyval: keyval(1, 0, 0), value: 10 });
        attributes.set(Attribute { keyval: keyval(2, DUP_FN, 0), value: 20 });
        attributes.set(Attribute { keyval: keyval(3, add_extra as *const () as usize, 0), value: 30 });
        let copied = attributes.copy(100).unwrap();
        let values: Vec<_> = copied.list.iter().map(|a| (a.keyval.number, a.value)).collect();
        assert_eq!(values, [(2, 20), (3, 135)]);
    }

    #[test]
    fn a_delete_function_that_fails_passes_its_code_on() {
        let attribute = Attribute { keyval: keyval(9, 0, refuse as *const () as usize), value: 1 };
        let error = attribute.delete(0x101).unwrap_err();
        assert_eq!((error.code, error.detail.as_str()), (77, "the delete function of keyval 0x9 returned 77"));
    }

    #[test]
    fn setting_again_moves_the_attribute_to_the_end() {
        let mut attributes = Attributes::default();
        attributes.set(Attribute { keyval: keyval(1, 0, 0), value: 10 });
        attributes.set(Attribute { keyval: keyval(2, 0, 0), value: 20 });
        attributes.set(Attribute { keyval: keyval(1, 0, 0), value: 11 });
        assert_eq!(attributes.last().map(|a| a.value), Some(11));
        assert_eq!(attributes.find(2).map(|a| a.value), Some(20));
    }
}
