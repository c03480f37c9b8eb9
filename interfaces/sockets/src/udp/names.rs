//! Addresses of datagrams as programs write and read them.

use std::ffi::c_int;

use libc::{AF_INET, AF_INET6, sockaddr_in, sockaddr_in6, socklen_t};
use weft_fabric::datagram::DatagramPeer;

/// An address that the program hands in for a socket of this family, if it is one that a ring may lead to.
///
/// # Safety
/// `size` bytes can be read at `name`.
pub unsafe fn read(name: *const u8, size: usize, family: c_int) -> Option<DatagramPeer> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; as much is read as there is.
    unsafe {
        if size < size_of::<libc::sa_family_t>()
            || c_int::from(name.cast::<libc::sa_family_t>().read_unaligned()) != family
        {
            return None;
        }
        let peer = match family {
            AF_INET if size >= size_of::<sockaddr_in>() => {
                let v4 = name.cast::<sockaddr_in>().read_unaligned();
                DatagramPeer::of_v4(v4.sin_addr.s_addr.to_ne_bytes(), u16::from_be(v4.sin_port))
            }
            AF_INET6 if size >= size_of::<sockaddr_in6>() => {
                let v6 = name.cast::<sockaddr_in6>().read_unaligned();
                DatagramPeer::new(v6.sin6_addr.s6_addr, u16::from_be(v6.sin6_port))
            }
            _ => return None,
        };
        (peer.port != 0 && peer.is_loopback()).then_some(peer)
    }
}

/// Writes the address of a peer as a socket of this family has it, cut to the room; answers its whole size.
///
/// # Safety
/// `room` bytes can be written at `into`, or it is null.
pub unsafe fn write(peer: &DatagramPeer, family: c_int, into: *mut u8, room: usize) -> socklen_t {
    let put = |from: *const u8, size: usize| {
        if !into.is_null() {
            // SAFETY: the caller's promise, and `size` bytes of a local.
            unsafe { std::ptr::copy_nonoverlapping(from, into, size.min(room)) };
        }
        size as socklen_t
    };
    if family == AF_INET6 {
        // SAFETY: zeros are an address.
        let mut v6: sockaddr_in6 = unsafe { std::mem::zeroed() };
        v6.sin6_family = AF_INET6 as libc::sa_family_t;
        v6.sin6_port = peer.port.to_be();
        v6.sin6_addr.s6_addr = peer.address;
        return put((&raw const v6).cast(), size_of::<sockaddr_in6>());
    }
    // SAFETY: as above.
    let mut v4: sockaddr_in = unsafe { std::mem::zeroed() };
    v4.sin_family = AF_INET as libc::sa_family_t;
    v4.sin_port = peer.port.to_be();
    v4.sin_addr.s_addr = u32::from_ne_bytes(peer.v4().unwrap_or_default());
    put((&raw const v4).cast(), size_of::<sockaddr_in>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_in_the_family_of_the_socket() {
        let mut place = [0u8; 64];
        let mapped = DatagramPeer::of_v4([127, 0, 0, 1], 5353);
        let own = DatagramPeer::new(std::net::Ipv6Addr::LOCALHOST.octets(), 53);
        for (peer, family, size) in [(mapped, AF_INET, 16), (mapped, AF_INET6, 28), (own, AF_INET6, 28)] {
            // SAFETY: a place of so many bytes.
            unsafe {
                assert_eq!(write(&peer, family, place.as_mut_ptr(), place.len()), size);
                assert_eq!(read(place.as_ptr(), size as usize, family), Some(peer));
                assert_eq!(read(place.as_ptr(), size as usize - 1, family), None);
            }
        }
    }

    #[test]
    fn addresses_elsewhere_lead_to_no_ring() {
        let mut place = [0u8; 64];
        for peer in [
            DatagramPeer::of_v4([127, 0, 0, 1], 0),
            DatagramPeer::of_v4([224, 0, 0, 1], 9),
            DatagramPeer::of_v4([127, 0, 0, 2], 9),
        ] {
            // SAFETY: as above.
            unsafe {
                write(&peer, AF_INET, place.as_mut_ptr(), place.len());
                assert_eq!(read(place.as_ptr(), 16, AF_INET), None);
            }
        }
    }
}
