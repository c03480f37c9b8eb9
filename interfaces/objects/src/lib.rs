//! Shared objects, in the manner of Orca: values that several processes use by operations that nobody sees half done.
//!
//! An object is a plain type with operations. It is replicated on all processes that have opened it, or on one of them;
//! what it costs is counted, and it moves while the program runs. A read of a replicated object asks nobody. A write is
//! sent to all in one order, and done by each. An operation with a guard waits until that is true.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use weft_objects::{Space, object};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Account {
//!     cents: i64,
//! }
//!
//! #[object]
//! impl Account {
//!     #[operation(read)]
//!     fn cents(&self) -> i64 {
//!         self.cents
//!     }
//!
//!     #[operation(write)]
//!     fn pay_in(&mut self, cents: i64) {
//!         self.cents += cents;
//!     }
//!
//!     /// Waits until there is enough. A guard sees arguments by reference.
//!     #[operation(write, guard = self.cents >= *cents)]
//!     fn pay_out(&mut self, cents: i64) -> i64 {
//!         self.cents -= cents;
//!         self.cents
//!     }
//! }
//!
//! let space = Space::alone();
//! let account = SharedAccount::share(&space, "mine", Account { cents: 0 })?;
//! account.pay_in(500)?;
//! assert_eq!(account.pay_out(200)?, 300);
//! assert_eq!(SharedAccount::find(&space, "mine")?.cents()?, 300);
//! # Ok::<(), weft_objects::ObjectFault>(())
//! ```
//!
//! What holds:
//! - All operations of all processes are as if done one after the other, in an order that agrees with each process's
//!   own (sequential consistency). `runtime` says why.
//! - Operations whose guard is false are tried again after each write of their object, in the order in which they came.
//! - An operation does the same on equal states: it uses its state and its arguments, no clock, no file, no other
//!   object, and no map without an order.
//! - An operation that panics is an error to its caller. If it reads, that is all. If it writes, its state may be half
//!   changed, so the object cannot be used any more, by nobody. All other objects go on. (A program that is built to
//!   abort when it panics ends.)
//! - A name that is used twice is the same object if the type is, and an error to the second creator if not.
//! - What a process that has ended waited for is dropped. An object that was on this process only is lost: its
//!   callers get an error, and who shares its name again creates it anew. Where processes go on when one has ended
//!   (`weft run --keep-going`) no object moves to a single one unless somebody says so.
//! - Who calls in a loop takes in what others have sent every few microseconds, so nobody is kept out.
//!
//! What is deliberately not here: operations on several objects at once, objects in objects, writes that are not waited
//! for, and processes that come later than the job.
//!
//! - `object`: types that can be shared. - [`kind`], [`dynamic`]: the same for doors of other languages. - `copy`: what
//!   a process has of an object. - `handle`, `space`: what programs call.
//! - `runtime`: the machine behind it. - `driver`, `live`: what moves it. - `message`: what processes say.
//! - [`standard`]: objects that many programs need.
//!
//! Test: `cargo test -p weft-objects`.

extern crate self as weft_objects;

mod copy;
mod driver;
pub mod dynamic;
mod fault;
mod handle;
pub mod kind;
mod live;
mod message;
mod object;
mod runtime;
mod space;
pub mod standard;

pub use fault::ObjectFault;
pub use handle::ObjectHandle;
pub use message::{ObjectPlacement, ProcessId, Strategy};
pub use object::{ObjectType, Shareable};
pub use space::Space;
pub use weft_objects_derive::object;

/// The programs of the guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/objects.md")]
mod guide {}

/// What `#[object]` writes of.
#[doc(hidden)]
pub mod made {
    pub use crate::object::{ObjectOperation, decode, encode};
}
