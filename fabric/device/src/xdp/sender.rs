//! How packets of a lane leave.

use super::socket::{KernelRing, Statistics, WhichRing, XdpSocket};
use crate::kernel::{self, Descriptor};
use crate::sync::{AtomicU64, Ordering};
use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use weft_wire::xdp::LaneLayout;

/// Between two looks whether an interface is up, a millisecond or a few.
const LOOK_TICKS: u64 = 1 << 22;

/// What a lane sends by.
pub enum LaneSender {
    /// An AF_XDP socket, which is told of many at once.
    Ring(XdpSocket, KernelRing),
    /// A tap device, into which they are written one by one.
    Tap(Tap),
}

impl LaneSender {
    /// Takes over what the privileged party has made.
    ///
    /// # Errors
    /// It is no AF_XDP socket where the layout says so.
    pub fn adopt(descriptor: impl Into<Descriptor>, layout: &LaneLayout) -> io::Result<Self> {
        if layout.sends_by_tap {
            return Ok(Self::Tap(Tap::new(descriptor.into())));
        }
        let socket = XdpSocket::adopt(descriptor);
        let ring = socket.map(WhichRing::Send, layout.send_frames)?;
        Ok(Self::Ring(socket, ring))
    }

    /// What the kernel has counted.
    pub fn statistics(&self) -> io::Result<Statistics> {
        match self {
            Self::Ring(socket, _) => socket.statistics(),
            Self::Tap(_) => Ok(Statistics::default()),
        }
    }
}

impl AsFd for LaneSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Ring(socket, _) => socket.as_fd(),
            Self::Tap(tap) => tap.device.as_fd(),
        }
    }
}

/// A rank's half of a tap device, for one user at a time.
pub struct Tap {
    device: Descriptor,
    looked_ticks: AtomicU64,
    is_down: AtomicBool,
}

impl Tap {
    fn new(device: Descriptor) -> Self {
        let long_ago = sys::ticks().wrapping_sub(LOOK_TICKS);
        Self { device, looked_ticks: AtomicU64::new(long_ago), is_down: AtomicBool::new(false) }
    }

    /// Whether the interface of a socket and the device are up, as was found lately. What is written does not go by the
    /// first, and would arrive all the same.
    ///
    /// # Errors
    /// The interface is gone.
    #[inline]
    pub fn is_up(&self, socket: &XdpSocket) -> io::Result<bool> {
        let ticks = sys::ticks();
        if ticks.wrapping_sub(self.looked_ticks.load(Ordering::Relaxed)) >= LOOK_TICKS {
            self.looked_ticks.store(ticks, Ordering::Relaxed);
            self.is_down.store(!socket.is_up()?, Ordering::Relaxed);
        }
        Ok(!self.is_down.load(Ordering::Relaxed))
    }

    /// The other end of the cable has the packet, or it is lost.
    ///
    /// # Errors
    /// The device is gone.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        let [device, at, bytes] = [self.device.as_raw_fd() as usize, packet.as_ptr() as usize, packet.len()];
        // SAFETY: so many bytes are there, which the kernel reads. Not by the C library, as in `XdpSocket::kick`.
        match unsafe { kernel::checked(libc::SYS_write, [device, at, bytes, 0, 0, 0]) } {
            Ok(_) => Ok(()),
            Err(error) => self.bear(error),
        }
    }

    #[cold]
    fn bear(&self, error: io::Error) -> io::Result<()> {
        match error.raw_os_error() {
            // Somebody has taken the device down.
            Some(libc::EIO) => {
                self.looked_ticks.store(sys::ticks(), Ordering::Relaxed);
                self.is_down.store(true, Ordering::Relaxed);
                Ok(())
            }
            // There is no memory for a packet.
            Some(libc::ENOMEM | libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(()),
            _ => Err(error),
        }
    }
}
