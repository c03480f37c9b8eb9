//! Every byte that another process or host reads: cells, the shared segment, the status page, settings.
//!
//! Pure layout: this crate computes offsets, packs and unpacks words, and touches no memory but its arguments.
//! What comes out of shared memory is a claim, so decoding never trusts: unknown kinds and lengths are answers.
//!
//! Not here: atomics, mappings, system calls (`weft-device`); what a message means (`weft-protocol`).
#![forbid(unsafe_code)]

pub mod cell;
pub mod segment;
pub mod settings;
pub mod status;
