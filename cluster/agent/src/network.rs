//! What ranks need to reach each other over the network: sockets, and the map that says where everybody is.

use crate::descriptors::Here;
use crate::{Job, LaunchError, sys};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use weft_wire::job_map::{Host, JobMap, MappedRank};
use weft_wire::settings::XdpMode;
use weft_wire::tcp::Key;

/// The variables of a rank that tell the numbers of its descriptors.
const MAP_VARIABLE: &str = "WEFT_JOB_MAP";
const LISTENER_VARIABLE: &str = "WEFT_TCP_LISTENER";
const DATAGRAMS_VARIABLE: &str = "WEFT_UDP_SOCKET";
pub const LANES_VARIABLE: &str = "WEFT_XDP_MEMORY";
/// Of the sockets of a lane.
pub const LANE_VARIABLES: [&str; 2] = ["WEFT_XDP_RECEIVER", "WEFT_XDP_SENDER"];

/// Descriptors of one rank, with the variables that tell their numbers.
type Sockets = Vec<(&'static str, OwnedFd)>;

/// A TCP listener and a UDP socket on every address of the host, and their ports in this order.
pub fn sockets() -> Result<(Sockets, (u16, u16)), LaunchError> {
    let made = || -> std::io::Result<(Sockets, (u16, u16))> {
        let listener = TcpListener::from(sys::socket_on_every_address(libc::SOCK_STREAM)?);
        let datagrams = UdpSocket::from(sys::socket_on_every_address(libc::SOCK_DGRAM)?);
        let ports = (listener.local_addr()?.port(), datagrams.local_addr()?.port());
        Ok((vec![(LISTENER_VARIABLE, listener.into()), (DATAGRAMS_VARIABLE, datagrams.into())], ports))
    };
    made().map_err(LaunchError::system("sockets of a rank"))
}

/// A job map as ranks inherit it.
pub fn map_in_memory(map: &[u8]) -> Result<(String, OwnedFd), LaunchError> {
    let memory =
        weft_kernel::memory_with(c"weft-job-map", map, true).map_err(LaunchError::system("memory of the job map"))?;
    Ok((MAP_VARIABLE.to_owned(), memory))
}

/// The key of a new job.
pub fn new_key() -> Result<Key, LaunchError> {
    let mut key = Key::default();
    let random = std::fs::File::open("/dev/urandom");
    let filled = random.and_then(|mut random| std::io::Read::read_exact(&mut random, &mut key));
    filled.map_err(LaunchError::system("random numbers")).map(|()| key)
}

/// Lanes past the kernel underneath the UDP ports of this host's ranks.
pub struct HostLanes {
    pub memory: OwnedFd,
    /// For each port the one that receives, and the one that sends.
    pub sockets: Vec<[OwnedFd; 2]>,
    /// What the user should know beside that there are some.
    pub note: Option<String>,
    /// They are there as long as this is.
    pub attached: Box<dyn std::any::Any>,
}

/// Makes lanes towards hosts at these addresses, for these ports, with the filter attached so; what it answers
/// otherwise is why there are none.
pub type MakeLanes = fn(&[IpAddr], &[u16], XdpMode) -> Result<HostLanes, String>;

/// Addresses of the other hosts of a job.
pub fn addresses_of_others(map: &JobMap) -> Vec<IpAddr> {
    let own = sys::interface_addresses();
    map.hosts.iter().flat_map(|host| &host.addresses).filter(|address| !own.contains(address)).copied().collect()
}

/// All ranks of a job on this host, which reach each other as those of several hosts do. Ranks of one host find each
/// other on the loopback interface, so the map has no address.
pub fn here(job: &mut Job, size: usize) -> Result<Here, LaunchError> {
    let mut here = Here::all(size);
    let mut ranks = Vec::new();
    for (member, own) in here.own.iter_mut().enumerate() {
        let (sockets, (tcp_port, udp_port)) = sockets()?;
        own.extend(sockets);
        ranks.push(MappedRank { host: 0, member: member as u32, tcp_port, udp_port });
    }
    let host = Host { name: sys::host_name(), addresses: Vec::new() };
    let map = JobMap { key: new_key()?, hosts: vec![host], ranks }.encode();
    job.inherit.push(map_in_memory(&map)?);
    Ok(here)
}
