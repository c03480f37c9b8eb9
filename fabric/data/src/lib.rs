//! Layouts of data in memory: how they are made, packed and unpacked, for whatever interface has typed buffers.
//!
//! A [`Form`] is what a type is in memory. It has a type map (`map`: which basic elements, in order) and a layout
//! (`layout`: which bytes, joined into runs and loops), both made by its two combinators, copies at a distance and
//! members one after the other.
//!
//! - `transfer`: packing, unpacking, and the runs of a buffer. Packing is the order of the type map; it can stop and go
//!   on at any byte. `walk` finds the runs, `copy` has the loops that copy them.
//! - `external`: external32, a format in which numbers have one byte order and fixed sizes.
//! - `elements`: counting what has arrived.
//! - [`Scalar`]: the basic elements, in memory and in external32.
//!
//! Deliberately not here: names and numbers of types, how one was made, whether it may be used in communication, and
//! who describes what to whom.
//!
//! Invariants:
//! - All counts, sizes and displacements are 64-bit and checked where a form is made: one whose size or bounds do not
//!   fit is refused ([`Overflow`]), so that nothing has to be checked when bytes are copied.
//! - Addresses are made with wrapping arithmetic: a null base with absolute displacements works like any other.
//! - `walk` and `copy` touch the bytes of the data alone, never gaps.
//!
//! Test: `cargo test -p weft-data` (packing against an oracle that expands a form to its bytes).

mod arith;
mod copy;
mod elements;
mod external;
mod form;
mod layout;
mod map;
mod scalar;
mod transfer;
mod walk;

#[cfg(test)]
mod tests;

pub use arith::{Overflow, Result, mul};
pub use form::Form;
pub use scalar::Scalar;
