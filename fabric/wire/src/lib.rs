//! Every byte that another process or host reads, and the table of settings.
#![forbid(unsafe_code)]

pub mod settings;
