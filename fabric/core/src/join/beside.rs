//! An interface that opens beside another one of its process takes its place from the process table.
//!
//! Inside a host its section of the segment is all it needs: what is sent to a process that has not opened the
//! interface yet waits in its ring, as before any start. Between hosts each rank makes sockets of its own and tells the
//! others their ports by the manager's store. So there, opening is collective over the ranks of the job, and all open
//! their interfaces in the same order. The key is one of the interface, so that no packet of one interface is
//! another's.

use super::owner::{JobMembership, ManagerAsk};
use super::{JoinError, Joined};
use crate::devices::Across;
use crate::process::{Enrolment, JobPlace, SlotTaken};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use weft_device::shm::Segment;
use weft_device::tcp;
use weft_wire::interface::InterfaceName;
use weft_wire::job_map::JobMap;
use weft_wire::siphash;

/// Takes the place of this interface.
pub(super) fn join_beside(
    enrol: impl FnOnce(InterfaceName) -> Result<Enrolment, SlotTaken>,
    interface: InterfaceName,
) -> Result<Joined, JoinError> {
    let enrolment = enrol(interface).map_err(|taken| JoinError::Taken {
        interface: interface.text(),
        how: if taken.has_left { "has been left in this process" } else { "is open in this process already" },
    })?;
    let joined = open(enrolment);
    if joined.is_err() {
        enrolment.withdraw();
    }
    joined
}

fn open(enrolment: Enrolment) -> Result<Joined, JoinError> {
    let (place, interface) = (enrolment.place(), enrolment.interface());
    let segment = Segment::open_as(segment_of(place)?.into(), interface)?;
    let membership = JobMembership::beside(enrolment)?;
    let across = match place.map.bytes() {
        [] => None,
        map => Some(network(&membership, map, place.rank)?),
    };
    let (job, world) = (place.job.text(), place.world.text());
    Ok(Joined { across, job, world, membership: Some(membership), ..Joined::plain(segment, place.member) })
}

/// The segment, as long as the program has not closed it.
fn segment_of(place: &JobPlace) -> Result<File, JoinError> {
    let opened = OpenOptions::new().read(true).write(true).open(format!("/proc/self/fd/{}", place.segment));
    let closed = |cause| JoinError::Descriptor { name: "the shared memory", number: place.segment, cause };
    let file = opened.map_err(closed)?;
    let is = file.metadata().map_err(closed)?;
    match (is.dev(), is.ino()) == (place.device, place.file) {
        true => Ok(file),
        false => Err(closed(io::Error::other("it is another file by now"))),
    }
}

/// Sockets of this interface, and those of the others.
fn network(membership: &JobMembership, map: &[u8], rank: u32) -> Result<Across, JoinError> {
    let mut map = JobMap::decode(map)?;
    let interface = membership.enrolment().interface();
    let key = |rank: usize| format!("weft-{}-{rank}", interface.text());
    let ([listener, datagrams], [tcp_port, udp_port]) = tcp::everywhere().map_err(JoinError::Network)?;
    membership.ask(ManagerAsk::Put, &key(rank as usize), &format!("{tcp_port}:{udp_port}"))?;
    membership.ask(ManagerAsk::Barrier, "", "")?;
    for other in (0..map.ranks.len()).filter(|other| *other != rank as usize) {
        let told = membership.ask(ManagerAsk::Get, &key(other), "")?;
        let told = told.ok_or(JoinError::NotOpened { rank: other as u32, interface: interface.text() })?;
        let ports = told.split_once(':').and_then(|(tcp, udp)| Some((tcp.parse().ok()?, udp.parse().ok()?)));
        let place = &mut map.ranks[other];
        (place.tcp_port, place.udp_port) = ports.ok_or(JoinError::Invitation(told))?;
    }
    map.key = siphash::tag(&map.key, format!("weft interface {}", interface.number()).as_bytes());
    Ok(Across { map, rank, listener, datagrams: Some(datagrams), lane: None, faults: None, encrypts: false })
}
