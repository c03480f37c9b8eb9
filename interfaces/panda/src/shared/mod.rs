//! What threads of a program share: locks and conditions, and what the time is.

pub mod condition;
pub mod time;
