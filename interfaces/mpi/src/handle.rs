//! Handles: what a C program holds, and the tables that turn them into objects.
//!
//! A handle of the program's own objects is `kind | generation | index` in 31 bits, never below [`FIRST_USER`], so that
//! it also fits a Fortran integer and `toint`/`fromint` change nothing. Predefined handles are the ABI's codes below
//! [`FIRST_USER`]; each table keeps those of its kind in fixed places. A handle that was freed does not match the
//! generation of its slot any more and is refused (until the slot was used 128 times more).

pub mod kind;

pub use kind::{FIRST_USER, HandleKind};

use crate::error::{Class, Error, Result};
use kind::{GENERATION_BITS, INDEX_BITS, INDEX_MASK, KIND_SHIFT};

impl HandleKind {
    const fn class(self) -> Class {
        match self {
            Self::Op => Class::Op,
            Self::Comm => Class::Comm,
            Self::Group => Class::Group,
            Self::Win => Class::Win,
            Self::File => Class::File,
            Self::Session => Class::Session,
            Self::Message | Self::Request => Class::Request,
            Self::Info => Class::Info,
            Self::Errhandler => Class::Errhandler,
            Self::Datatype => Class::Type,
            Self::Keyval => Class::Keyval,
        }
    }

    /// The error for a handle that names no live object; `argument` is the parameter's name in the standard.
    #[cold]
    pub fn unknown(self, argument: &str, handle: usize) -> Error {
        let why = if handle == self.null() {
            "is the null handle".to_owned()
        } else if let (Self::Comm, Some(name)) = (self, predefined_comm(handle)) {
            format!("is {name}, which is no more after MPI_Finalize")
        } else if handle < FIRST_USER || handle >> KIND_SHIFT != self as usize {
            format!("({handle:#x}) is no {}", self.noun())
        } else {
            format!("({handle:#x}) was freed or never made")
        };
        Error::new(self.class(), format!("{argument} {why}"))
    }
}

/// The name of a communicator that is there until `MPI_Finalize`.
fn predefined_comm(handle: usize) -> Option<&'static str> {
    match handle {
        crate::abi::COMM_WORLD => Some("MPI_COMM_WORLD"),
        crate::abi::COMM_SELF => Some("MPI_COMM_SELF"),
        _ => None,
    }
}

struct HandleSlot<T> {
    /// The handle under which the value is known now, or the next one if there is none.
    handle: u32,
    value: Option<T>,
}

/// Objects of one kind by their handles.
pub struct HandleTable<T> {
    kind: HandleKind,
    predefined: Vec<Option<T>>,
    slots: Vec<HandleSlot<T>>,
    free: Vec<u32>,
}

impl<T> HandleTable<T> {
    pub const fn new(kind: HandleKind) -> Self {
        Self { kind, predefined: Vec::new(), slots: Vec::new(), free: Vec::new() }
    }

    /// Puts a predefined object in its fixed place. `handle` is the ABI's code, above the kind's null handle.
    pub fn define(&mut self, handle: usize, value: T) {
        let place = handle - self.kind.null();
        if self.predefined.len() <= place {
            self.predefined.resize_with(place + 1, || None);
        }
        self.predefined[place] = Some(value);
    }

    /// Empties a fixed place again.
    pub fn undefine(&mut self, handle: usize) {
        if let Some(place) = self.predefined.get_mut(handle - self.kind.null()) {
            *place = None;
        }
    }

    /// Takes a handle whose object comes later ([`Self::fill`]); until then it is refused like a freed one.
    #[inline]
    pub fn reserve(&mut self) -> usize {
        if let Some(index) = self.free.pop() {
            return self.slots[index as usize].handle as usize;
        }
        self.grow()
    }

    #[cold]
    fn grow(&mut self) -> usize {
        let index = self.slots.len();
        assert!(index <= INDEX_MASK, "more than {} live handles of one kind", INDEX_MASK + 1);
        let handle = (self.kind as usize) << KIND_SHIFT | index;
        self.slots.push(HandleSlot { handle: handle as u32, value: None });
        handle
    }

    /// Gives a reserved handle its object.
    #[inline(always)]
    pub fn fill(&mut self, handle: usize, value: T) {
        let slot = &mut self.slots[handle & INDEX_MASK];
        debug_assert!(slot.handle as usize == handle && slot.value.is_none());
        // Nothing is there to be dropped.
        std::mem::forget(slot.value.replace(value));
    }

    #[inline(always)]
    pub fn insert(&mut self, value: T) -> usize {
        let handle = self.reserve();
        self.fill(handle, value);
        handle
    }

    /// The object, if the handle names a live one.
    #[inline]
    pub fn find(&self, handle: usize) -> Option<&T> {
        if handle >= FIRST_USER {
            let slot = self.slots.get(handle & INDEX_MASK)?;
            return if slot.handle as usize == handle { slot.value.as_ref() } else { None };
        }
        self.predefined.get(handle.wrapping_sub(self.kind.null()))?.as_ref()
    }

    #[inline]
    pub fn find_mut(&mut self, handle: usize) -> Option<&mut T> {
        if handle >= FIRST_USER {
            let slot = self.slots.get_mut(handle & INDEX_MASK)?;
            return if slot.handle as usize == handle { slot.value.as_mut() } else { None };
        }
        self.predefined.get_mut(handle.wrapping_sub(self.kind.null()))?.as_mut()
    }

    /// The object; otherwise an error of the kind's class that names the argument by the kind's usual name.
    #[inline]
    pub fn get(&self, handle: usize) -> Result<&T> {
        self.named(self.kind.noun(), handle)
    }

    /// Like [`Self::get`], for a parameter of another name, such as `sendtype`.
    #[inline]
    pub fn named(&self, argument: &'static str, handle: usize) -> Result<&T> {
        match self.find(handle) {
            Some(value) => Ok(value),
            None => Err(self.kind.unknown(argument, handle)),
        }
    }

    #[inline]
    pub fn get_mut(&mut self, handle: usize) -> Result<&mut T> {
        let kind = self.kind;
        self.find_mut(handle).ok_or_else(|| kind.unknown(kind.noun(), handle))
    }

    /// Takes the program's own object out; its handle is stale from then on. Predefined ones stay: an error.
    pub fn remove(&mut self, handle: usize) -> Result<T> {
        let kind = self.kind;
        let missing = || kind.unknown(kind.noun(), handle);
        if handle < FIRST_USER {
            let predefined = self.find(handle).is_some();
            let refused = || Error::new(kind.class(), format!("{} ({handle:#x}) is predefined", kind.noun()));
            return Err(if predefined { refused() } else { missing() });
        }
        let slot = self.slots.get_mut(handle & INDEX_MASK).filter(|slot| slot.handle as usize == handle);
        let slot = slot.ok_or_else(missing)?;
        let value = slot.value.take().ok_or_else(missing)?;
        self.retire(handle);
        Ok(value)
    }

    /// Drops the program's own object with this handle, which is live, where it stands.
    #[inline]
    pub fn discard(&mut self, handle: usize) {
        self.slots[handle & INDEX_MASK].value = None;
        self.retire(handle);
    }

    /// Makes a handle stale and its slot free.
    #[inline]
    fn retire(&mut self, handle: usize) {
        let generation = ((handle >> INDEX_BITS) + 1) & ((1 << GENERATION_BITS) - 1);
        let next = (self.kind as usize) << KIND_SHIFT | generation << INDEX_BITS | handle & INDEX_MASK;
        self.slots[handle & INDEX_MASK].handle = next as u32;
        self.free.push((handle & INDEX_MASK) as u32);
    }

    /// All live objects, with the predefined ones.
    pub fn every(&self) -> impl Iterator<Item = &T> {
        self.predefined.iter().flatten().chain(self.slots.iter().filter_map(|slot| slot.value.as_ref()))
    }

    /// The program's own live objects.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref().map(|value| (slot.handle as usize, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_is_refused_by_name_even_when_its_slot_is_used_again() {
        let mut table = HandleTable::new(HandleKind::Comm);
        let first = table.insert("first");
        assert_eq!(table.remove(first).unwrap(), "first");
        let second = table.insert("second");
        assert_ne!(first, second);
        assert_eq!(*table.get(second).unwrap(), "second");
        let error = table.named("comm1", first).unwrap_err();
        assert_eq!(error.class, Class::Comm);
        assert_eq!(error.detail, format!("comm1 ({first:#x}) was freed or never made"));
        assert!(table.remove(first).is_err());
    }

    #[test]
    fn user_handles_fit_a_fortran_integer_for_every_generation() {
        let mut table = HandleTable::new(HandleKind::Keyval);
        for _ in 0..300 {
            let handle = table.insert(());
            assert!((FIRST_USER..1 << 31).contains(&handle), "{handle:#x}");
            table.remove(handle).unwrap();
        }
    }

    #[test]
    fn predefined_handles_are_the_codes_of_the_abi_and_cannot_be_removed() {
        let mut table = HandleTable::new(HandleKind::Datatype);
        table.define(0x209, 4);
        assert_eq!(table.get(0x209), Ok(&4));
        assert_eq!(table.get(0x200).unwrap_err().detail, "datatype is the null handle");
        assert_eq!(table.get(0x208).unwrap_err().detail, "datatype (0x208) is no datatype");
        assert_eq!(table.remove(0x209).unwrap_err().detail, "datatype (0x209) is predefined");
        assert!(table.get(0x101).is_err());
    }

    #[test]
    fn a_handle_of_another_kind_is_refused() {
        let mut comms = HandleTable::new(HandleKind::Comm);
        let mut groups = HandleTable::new(HandleKind::Group);
        let comm = comms.insert(1);
        groups.insert(2);
        assert_eq!(groups.get(comm).unwrap_err().detail, format!("group ({comm:#x}) is no group"));
    }

    #[test]
    fn a_communicator_of_the_world_that_is_gone_is_named() {
        let comms: HandleTable<()> = HandleTable::new(HandleKind::Comm);
        let detail = comms.get(0x101).unwrap_err().detail;
        assert_eq!(detail, "comm is MPI_COMM_WORLD, which is no more after MPI_Finalize");
    }

    #[test]
    fn a_reserved_handle_names_nothing_until_it_is_filled() {
        let mut table = HandleTable::new(HandleKind::Comm);
        let handle = table.reserve();
        assert!(table.get(handle).is_err());
        table.fill(handle, 7);
        assert_eq!(table.get(handle), Ok(&7));
    }
}
