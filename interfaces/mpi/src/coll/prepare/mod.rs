//! From the arguments of a call to its schedule: checks them, names what is wrong, and picks the builder.
//!
//! Arguments that are significant only at a root are looked at only there.

pub mod check;
pub mod fold;
pub mod movement;
pub mod neighbor;
pub mod reduction;
