//! Objects that many programs need.
//!
//! Test: `cargo test -p weft-objects standard`.

mod bag;
mod barrier;
mod bin;
mod integer;
mod job_queue;
mod poll;
mod set;
mod table;
#[cfg(test)]
mod tests;

pub use bag::{BagObject, SharedBag};
pub use barrier::{BarrierObject, SharedBarrier};
pub use bin::{BinObject, SharedBin};
pub use integer::{IntegerObject, SharedInteger};
pub use job_queue::{JobQueueObject, SharedJobQueue};
pub use poll::{PollObject, SharedPoll};
pub use set::{SetObject, SharedSet};
pub use table::{SharedTable, TableObject};
