//! Bodies of the one-sided calls.

mod create;
mod operate;
mod synchronise;

pub use create::*;
pub use operate::*;
pub use synchronise::*;
