//! The interfaces of the network namespace that the calling thread is in, as far as lanes care.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub number: u32,
    /// None where it is no Ethernet.
    pub hardware: Option<[u8; 6]>,
    pub addresses: Vec<IpAddr>,
}

/// What is asked of one interface that is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceFacts {
    pub mtu: u32,
    /// Queues by which packets arrive.
    pub queues: u32,
    /// The XDP program that is attached, if one is.
    pub program: Option<u32>,
    /// It is an end of a virtual cable (veth).
    pub is_virtual_cable: bool,
    /// The other end is in another network namespace.
    pub leads_elsewhere: bool,
}

/// All interfaces, by number, with the addresses that mean one machine only.
pub fn all() -> io::Result<Vec<Interface>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: a valid place for the answer, which is freed below.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = BTreeMap::<u32, Interface>::new();
    let mut at = list;
    while !at.is_null() {
        // SAFETY: an entry of the list that the C library has made; its name is a C string, and its address, if it has
        // one, is of the family that it says.
        unsafe {
            let entry = &*at;
            let number = libc::if_nametoindex(entry.ifa_name);
            if number > 0 {
                let name = || CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned();
                let interface = found.entry(number).or_insert_with(|| Interface {
                    name: name(),
                    number,
                    hardware: None,
                    addresses: Vec::new(),
                });
                note(interface, entry.ifa_addr);
            }
            at = entry.ifa_next;
        }
    }
    // SAFETY: the list from above, freed once.
    unsafe { libc::freeifaddrs(list) };
    Ok(found.into_values().collect())
}

/// # Safety
/// `address` is null or leads to an address of the family that it says.
unsafe fn note(interface: &mut Interface, address: *const libc::sockaddr) {
    if address.is_null() {
        return;
    }
    // SAFETY: the caller's.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = &*address.cast::<libc::sockaddr_in>();
                interface.addresses.push(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into());
            }
            libc::AF_INET6 => {
                let v6 = Ipv6Addr::from((*address.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr);
                // Of addresses that mean another machine on every wire nobody speaks between hosts.
                if !v6.is_unicast_link_local() {
                    interface.addresses.push(v6.into());
                }
            }
            libc::AF_PACKET => {
                let link = &*address.cast::<libc::sockaddr_ll>();
                if link.sll_hatype == libc::ARPHRD_ETHER && link.sll_halen == 6 {
                    let [a, b, c, d, e, f, ..] = link.sll_addr;
                    interface.hardware = Some([a, b, c, d, e, f]);
                }
            }
            _ => {}
        }
    }
}

/// Asks the kernel about an interface.
pub fn facts(interface: &Interface) -> io::Result<InterfaceFacts> {
    let answer = ask_link(interface.number)?;
    let mut facts = InterfaceFacts {
        mtu: 1500,
        queues: queues(&interface.name),
        program: None,
        is_virtual_cable: false,
        leads_elsewhere: false,
    };
    // Behind the heading of the message and that of the link.
    for (kind, value) in attributes(answer.get(32..).unwrap_or_default()) {
        match kind {
            MTU => facts.mtu = number(value),
            XDP => facts.program = program(value),
            KIND => facts.is_virtual_cable = is_virtual_cable(value),
            ELSEWHERE => facts.leads_elsewhere = true,
            _ => {}
        }
    }
    Ok(facts)
}

const GET_LINK: u16 = 18;
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
const MTU: u16 = 4;
const XDP: u16 = 43;
const KIND: u16 = 18;
/// Which network namespace the other end is in, where it is another one.
const ELSEWHERE: u16 = 37;
/// Of any mode; of one where there are several.
const PROGRAMS: [u16; 4] = [4, 5, 6, 7];

/// The kernel's message about a link, its heading before it.
fn ask_link(index: u32) -> io::Result<Vec<u8>> {
    // SAFETY: numbers only; the descriptor is new and ours.
    let socket = unsafe {
        match libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) {
            -1 => return Err(io::Error::last_os_error()),
            number => OwnedFd::from_raw_fd(number),
        }
    };
    let mut socket = File::from(socket);
    let mut request = [0u8; 32];
    request[..4].copy_from_slice(&32u32.to_ne_bytes());
    request[4..6].copy_from_slice(&GET_LINK.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    request[20..24].copy_from_slice(&index.to_ne_bytes());
    socket.write_all(&request)?;
    let mut answer = vec![0; 65536];
    let length = socket.read(&mut answer)?;
    answer.truncate(length);
    if answer.get(4..6) == Some(&ERROR.to_ne_bytes()) {
        let code = answer.get(16..20).map_or(0, |word| number(word) as i32);
        return Err(io::Error::from_raw_os_error(-code));
    }
    Ok(answer)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.get(..4).map_or(0, |word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
}

/// Kind and value of each attribute.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let heading = bytes.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([heading[0], heading[1]]));
        let kind = u16::from_ne_bytes([heading[2], heading[3]]) & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn program(xdp: &[u8]) -> Option<u32> {
    attributes(xdp).find(|(kind, value)| PROGRAMS.contains(kind) && number(value) > 0).map(|(_, value)| number(value))
}

fn is_virtual_cable(kind: &[u8]) -> bool {
    const NAME: u16 = 1;
    attributes(kind).any(|(kind, name)| kind == NAME && name.strip_suffix(b"\0").unwrap_or(name) == b"veth")
}

#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

const GET_CHANNELS: u32 = 0x3c;

/// Queues by which packets arrive; 1 where the driver knows of no such thing.
fn queues(name: &str) -> u32 {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    // SAFETY: plain data, for which zero is a valid value; the kernel fills `channels`, which lives across the call,
    // and reads the name, which is cut to its place.
    let asked = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut channels).cast();
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return 1;
        }
        let socket = OwnedFd::from_raw_fd(socket);
        libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request)
    };
    if asked == 0 { (channels.receive + channels.combined).max(1) } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found_and_is_no_ethernet() {
        let all = all().expect("interfaces");
        let local = all.iter().find(|interface| interface.name == "lo").expect("lo");
        assert_eq!(local.hardware, None);
        let facts = facts(local).expect("facts");
        assert!((68..=65536).contains(&facts.mtu), "{facts:?}");
        assert_eq!(facts.program, None);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let none = Interface { name: "none".into(), number: 0x7fff_0000, hardware: None, addresses: Vec::new() };
        assert_eq!(facts(&none).expect_err("no such").raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn attributes_that_end_in_the_middle_end_there() {
        let whole = [6, 0, 4, 0, 1, 2, 0, 0, 8, 0, 43, 0, 9, 9, 9, 9];
        for length in 0..=whole.len() {
            let found = attributes(&whole[..length]).count();
            assert_eq!(found, usize::from(length >= 6) + usize::from(length >= 16), "{length} bytes");
        }
        assert_eq!(attributes(&[0, 0, 0, 0, 1]).count(), 0);
    }
}
