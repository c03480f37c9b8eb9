//! Several interfaces in one process: how the libraries that each embed this code find each other.
//!
//! The first interface of a process joins the job, consumes the variables that the launcher has set, and leaves the
//! *process table* where the others find it: a page of memory with a name of its own among the mappings of the process
//! ([`page`]). So neither symbols nor the way in which a library was loaded matter, a program that is executed finds
//! none, and a forked copy finds that it is another process's. The others take their place in the job from there, each
//! with an endpoint and a section of the segment for itself.
//!
//! The table is a C structure with a version. What stands in its head never changes, so that a library of another
//! version is refused by name. Functions in it are those of the library that has put them there, which stays loaded.
//!
//! [`company`] is what a waiting thread does for the other interfaces.

mod company;
mod page;
mod table;

pub(crate) use company::company;
pub(crate) use table::{BESIDE, LOOK_AGAIN, MonitorCalls, NOTHING, ON_PLACE, SleepPlace};
pub(crate) use table::{Enrolment, JobPlace, ManagerAnswer, ManagerCalls, NO_ANSWER, REFUSED, SharedText, SlotTaken};

use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicPtr, Ordering};
use table::{COMPANY, ProcessTable, TableOfOther};
use weft_wire::interface::InterfaceName;

/// The table, once this library has made or found it.
static TABLE: AtomicPtr<ProcessTable> = AtomicPtr::new(std::ptr::null_mut());

/// The table that this library knows.
pub(crate) fn known() -> Option<&'static ProcessTable> {
    // A forked copy of the process has the mapping, and none of what it says.
    table::known(TABLE.load(Ordering::Acquire)).filter(|table| table.process() == std::process::id())
}

/// The table of this process, if an interface is or was open in it.
///
/// # Errors
/// It is one of another version: the text names both.
pub(crate) fn find() -> Result<Option<&'static ProcessTable>, String> {
    if let Some(table) = known() {
        return Ok(Some(table));
    }
    let Some(found) = page::find() else { return Ok(None) };
    match found.check() {
        Ok(table) => {
            TABLE.store(std::ptr::from_ref(table).cast_mut(), Ordering::Release);
            Ok(Some(table))
        }
        Err(TableOfOther { theirs, ours }) => Err(format!(
            "a library of Weft {theirs} is open in this process, and this one is of Weft {ours}: load libraries of one \
             version"
        )),
    }
}

/// Makes the table of this process, in which its first interface is open.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn begin(place: JobPlace, manager: ManagerCalls, interface: InterfaceName) -> io::Result<Enrolment> {
    // The table leads to functions of this library.
    page::stay_loaded(begin as *const ());
    let table = page::publish(ProcessTable::new(place, manager))?;
    // A forked copy of a process that had some has none.
    COMPANY.store(std::ptr::null_mut(), Ordering::Release);
    TABLE.store(std::ptr::from_ref(table).cast_mut(), Ordering::Release);
    Ok(table.enrol(interface).unwrap_or_else(|_| unreachable!("the table is new")))
}

/// From now on others may move the interface. Both stay as long as the process.
pub(crate) fn register(enrolment: Enrolment, context: *const c_void, calls: &'static MonitorCalls) {
    page::stay_loaded(calls.share as *const ());
    enrolment.register(context, calls);
}
