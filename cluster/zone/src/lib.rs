//! Reads a cluster out of the domain name system: [`read`] asks name servers for the records of
//! `weft_database::records`, and gives the cluster that they describe.
//!
//! It is a stub: it asks the servers of `/etc/resolv.conf`, or one that is named, which do the rest. It asks by UDP,
//! and again by TCP when an answer does not fit. It blocks; nothing of it runs in a library that programs load.
//!
//! Deliberately not here: a cache (the file that `weft cluster take` writes is one), and belief. Whoever can forge
//! answers says what the cluster is, so no command comes out of a zone, and who needs more takes a file.
//!
//! What holds: every read is bounded in bytes and in time, and no answer makes it panic.
//!
//! Test: `cargo test -p weft-zone`, against servers of its own; against real name servers, `hosts_zone` of weft-tests.
#![forbid(unsafe_code)]

mod ask;
mod source;

use ask::{ZoneAnswer, ZoneAsker};
pub use source::{PlaceError, ZonePlace};
use weft_database::Cluster;
use weft_database::records::{HEAD, block_name, read_blocks, read_head};

/// How often reading begins again because the zone has changed meanwhile.
const BEGINNINGS: usize = 3;

/// Why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum ZoneError {
    #[error(transparent)]
    ZonePlace(#[from] PlaceError),
    #[error("no name server has answered for '{name}': {}", why.join("; "))]
    Silent { name: String, why: Vec<String> },
    #[error("there is no '{name}'")]
    Absent { name: String },
    #[error("{}", what.join("; "))]
    Wrong { what: Vec<String> },
    #[error("the zone has changed {BEGINNINGS} times while it was read")]
    Restless,
}

/// The cluster at this place.
///
/// # Errors
/// Nobody answers, there is none, or its records are wrong.
pub fn read(place: &ZonePlace) -> Result<Cluster, ZoneError> {
    let asker = ZoneAsker::new(place.servers()?);
    let full = |name: &str| format!("{name}.{}", place.origin());
    'again: for _ in 0..BEGINNINGS {
        let name = full(HEAD);
        let ZoneAnswer::Records(records) = asker.ask(&name)? else { return Err(ZoneError::Absent { name }) };
        let head = read_head(&records).map_err(|line| ZoneError::Wrong { what: vec![line] })?;
        let mut all = Vec::new();
        for number in 0..head.blocks {
            match asker.ask(&full(&block_name(number, head.version)))? {
                ZoneAnswer::Records(records) => all.extend(records),
                // It is a block of a version that is no more, or not yet there.
                ZoneAnswer::Absent => continue 'again,
            }
        }
        return read_blocks(&head, &all).map_err(|what| ZoneError::Wrong { what });
    }
    Err(ZoneError::Restless)
}

#[cfg(test)]
mod tests;
