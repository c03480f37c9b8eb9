//! How the ranks of a foreign launcher come by one segment.
//!
//! Rank 0 makes the segment, opens a socket under a random name and puts that name and its host's identity into the
//! manager's store; after a barrier the others read it, connect and are handed the segment. Names are not trusted to
//! tell hosts apart: who cannot connect is elsewhere, and the identity of the boot only words the message.

use super::owner::unexpected;
use super::{JoinError, Manager};
use std::time::Duration;
use weft_cluster::pmi::{PmiRequest, Reply};
use weft_device::handover::{DescriptorOffer, fetch};
use weft_device::shm::Segment;
use weft_wire::segment::VERSION;

/// What rank 0 puts, as `version:boot:name`.
const KEY: &str = "weft-segment";

/// After the barrier all ranks are on their way; a crowded machine may still take a while.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes or fetches the segment of a job of `size`; and a name of the job, which all its ranks know, and no other job
/// has.
pub fn meet(manager: &mut Manager, rank: u32, size: u32) -> Result<(Segment, String), JoinError> {
    if size == 1 {
        return Ok((Segment::create(1)?, String::new()));
    }
    let kvsname = match manager.ask(PmiRequest::KvsName)? {
        Reply::KvsName(name) => name,
        other => return Err(unexpected("get_my_kvsname", &other).into()),
    };
    if rank == 0 { invite(manager, kvsname, size) } else { follow(manager, kvsname, rank) }
}

fn invite(manager: &mut Manager, kvsname: String, size: u32) -> Result<(Segment, String), JoinError> {
    let segment = Segment::create(size)?;
    let offer = DescriptorOffer::new().map_err(JoinError::HandOver)?;
    let value = format!("{VERSION}:{}:{}", boot(), offer.name());
    manager.ask(PmiRequest::Put { kvsname, key: KEY.into(), value: value.clone() })?;
    manager.ask(PmiRequest::Barrier)?;
    offer.serve(segment.descriptor(), size, LIMIT).map_err(JoinError::HandOver)?;
    Ok((segment, value))
}

fn follow(manager: &mut Manager, kvsname: String, rank: u32) -> Result<(Segment, String), JoinError> {
    manager.ask(PmiRequest::Barrier)?;
    let value = match manager.ask(PmiRequest::Get { kvsname, key: KEY.into() })? {
        Reply::Get(Some(value)) => value,
        Reply::Get(None) => return Err(JoinError::Invitation(String::new())),
        other => return Err(unexpected("get", &other).into()),
    };
    let (same_boot, name) = parse(&value, &boot())?;
    let elsewhere = |cause| match same_boot {
        true => JoinError::Unreachable { rank, cause },
        false => JoinError::OtherHost { rank },
    };
    let segment = Segment::open(fetch(name, rank).map_err(elsewhere)?)?;
    Ok((segment, value))
}

/// Whether rank 0 runs on the machine of our `boot`, and the name of its socket.
fn parse<'a>(value: &'a str, boot: &str) -> Result<(bool, &'a str), JoinError> {
    let mut parts = value.splitn(3, ':');
    let (version, theirs, name) = (parts.next(), parts.next(), parts.next());
    match (version.and_then(|v| v.parse::<u32>().ok()), theirs, name) {
        (Some(VERSION), Some(theirs), Some(name)) => Ok((theirs == boot, name)),
        _ => Err(JoinError::Invitation(value.to_owned())),
    }
}

/// Identifies this machine since it was switched on.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_is_understood_or_refused() {
        let value = format!("{VERSION}:here:weft-12:3");
        assert_eq!(parse(&value, "here").expect("ours"), (true, "weft-12:3"));
        assert_eq!(parse(&value, "there").expect("ours"), (false, "weft-12:3"));
        for bad in ["", "x", "999:here:name", "1:here", ":::"] {
            assert!(parse(bad, "here").is_err(), "{bad}");
        }
    }
}
