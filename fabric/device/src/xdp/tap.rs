//! A tap device by which lanes send on a virtual cable.
//!
//! What an AF_XDP socket sends by such a cable is made a packet of the kernel's, waits among what the core has
//! received, and is moved to where there is room in front of it, before the filter at the other end sees it. What is
//! written into a tap device has been received already, with room in front of it. A program there says that it was
//! received by the other end of the cable, and the filter sees it before the call that writes it returns (decision 32).
//!
//! The device has no address and no carrier, so that nobody else sends by it, and ends with the last of its
//! descriptors, as long as nobody who has one changes that. Its program stays with it: what is written once its maker
//! is gone, by a rank without privileges, is not taken for what this host has received.

use super::bpf::{self, Hook, ProgramKind};
use super::program;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

const SET_INTERFACE: u64 = 0x4004_54ca;
const SET_OWNER: u64 = 0x4004_54cc;
const SET_CARRIER: u64 = 0x4004_54e2;
const SET_FLAGS: u64 = 0x8914;
/// Whole Ethernet packets, and nothing before them.
const TAP: i16 = 0x2;
const BARE: i16 = 0x1000;
/// The kernel puts the first number that is free behind it.
const NAME: &CStr = c"weft%d";

/// The privileged half.
pub struct PrivilegedTap {
    device: File,
    /// Without it sending takes longer, as is so once we have ended.
    _link: OwnedFd,
}

impl PrivilegedTap {
    /// A device whose packets are received by the other end of a virtual cable. That end must be in another network
    /// namespace: the kernel drops them otherwise.
    ///
    /// # Errors
    /// There is no `/dev/net/tun`, or the kernel is older than 6.6 and has no such hook.
    pub fn make(cable: u32) -> io::Result<Self> {
        // Only what is written without waiting is made a packet with room in front.
        let device = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: plain data, for which zero is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(NAME.to_bytes()) {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = TAP | BARE;
        let at = &raw mut request;
        ask(&device, SET_INTERFACE, at.cast())?;
        // Who has a descriptor could keep the device for longer. One without an owner would be anybody's then.
        // SAFETY: a number.
        let owner = unsafe { libc::geteuid() } as usize;
        ask(&device, SET_OWNER, std::ptr::without_provenance_mut(owner))?;
        let carrier: libc::c_int = 0;
        ask(&device, SET_CARRIER, (&raw const carrier).cast_mut().cast())?;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_NOARP) as i16;
        let any = std::net::UdpSocket::bind("0.0.0.0:0")?;
        ask(&any, SET_FLAGS, at.cast())?;
        // SAFETY: the kernel has written a name that ends.
        let number = unsafe { libc::if_nametoindex(request.ifr_name.as_ptr()) };
        // Before anybody else has the device.
        let classifier = bpf::load(ProgramKind::Classifier, &program::receive_at_peer(cable))?;
        bpf::classify(classifier.as_fd(), number)?;
        // Where a filter may see what is written, there is room for it.
        let filter = bpf::load(ProgramKind::Filter { pieces: false }, &program::pass())?;
        let link = bpf::attach(filter.as_fd(), number, Hook::Driver)?;
        Ok(Self { device, _link: link })
    }

    /// For a lane.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.device.try_clone().map(OwnedFd::from)
    }
}

fn ask(device: &impl AsRawFd, what: u64, value: *mut libc::c_void) -> io::Result<()> {
    // SAFETY: each request reads or writes what `value` leads to, which lives across the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), what as _, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
