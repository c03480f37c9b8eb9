//! Every byte that another process or host reads: cells, the segment, the status page, streams, the job map, what ranks
//! say to each other over TCP, the datagrams between hosts, how both are encrypted; and the settings.
//!
//! Pure layout: this crate computes offsets, packs and unpacks words, and touches no memory but its arguments.
//! What comes out of shared memory or a datagram is a claim, so decoding never trusts: unknown kinds and lengths are
//! answers.
//! `docs/wire` shows the whole on one page.
//!
//! Not here: atomics, mappings, system calls (`weft-device`); which message goes where (`weft-protocol`); what launcher
//! and ranks say to each other over sockets (`weft-cluster`).
//!
//! Test: `cargo test -p weft-wire` (golden words, properties of header and geometry, every setting).
// But for the one file where an instruction of the processor is used.
#![deny(unsafe_code)]

pub mod active;
pub mod cell;
pub mod cipher;
pub mod distress;
pub mod interface;
pub mod job_map;
pub mod link;
pub mod segment;
pub mod settings;
pub mod share;
pub mod siphash;
pub mod status;
pub mod stream;
pub mod tcp;
pub mod xdp;
