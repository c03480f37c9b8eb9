//! Which device leads to a rank, under which number.
//!
//! A device more is: a variant of [`DeviceKind`], its type in [`DeviceKind::capabilities`], a field in
//! [`Net`](super::net::Net) with its line in [`with_device`], and where it is chosen (`start`) and polled (`net`). What
//! holds for it above follows from what it declares and answers. All calls are direct ones.

use super::held::Unmet;
use super::twos::Twos;
use crate::links::Links;
use weft_device::shm::ShmDevice;
use weft_device::tcp::TcpDevice;
use weft_device::{Capabilities, Device};

/// All devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceKind {
    /// The segment of this host, in which a rank has the number of a member.
    Shm,
    /// A segment that we share with a process of another job alone.
    Two,
    /// Of another job, and it is not known yet how packets go there.
    Unmet,
    Udp,
    Tcp,
    #[cfg(test)]
    Simulated,
}

/// How packets reach a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RankWay {
    pub which: DeviceKind,
    pub number: u32,
}

impl DeviceKind {
    #[inline]
    pub fn capabilities(self) -> &'static Capabilities {
        match self {
            Self::Shm => declared_by::<ShmDevice>(),
            Self::Two => declared_by::<Twos>(),
            Self::Unmet => declared_by::<Unmet>(),
            Self::Udp => declared_by::<Links>(),
            Self::Tcp => declared_by::<TcpDevice>(),
            #[cfg(test)]
            Self::Simulated => declared_by::<weft_device::loopback::Loopback>(),
        }
    }
}

/// What carries datagrams that may be lost is no device for messages: it gets links above it.
const fn declared_by<D: Device>() -> &'static Capabilities {
    const { assert!(D::CAPABILITIES.reliable && D::CAPABILITIES.ordered) };
    const { &D::CAPABILITIES }
}

/// Asks the device that leads somewhere. One that there is not leads nowhere.
macro_rules! with_device {
    (($($by:tt)+) $net:expr, $shm:expr, $which:expr, $device:ident => $call:expr) => {{
        #[allow(unused_imports, reason = "some calls are of traits")]
        use weft_device::Device as _;
        match $which {
            DeviceKind::Shm => { let $device = $shm; $call }
            DeviceKind::Two => { let $device = $($by)+ $net.twos; $call }
            DeviceKind::Unmet => { let $device = $($by)+ $net.unmet; $call }
            DeviceKind::Udp => match $($by)+ $net.links { Some($device) => $call, None => Default::default() },
            DeviceKind::Tcp => { let $device = $($by)+ $net.tcp; $call }
            #[cfg(test)]
            DeviceKind::Simulated => match $($by)+ $net.simulated {
                Some($device) => $call,
                None => Default::default(),
            },
        }
    }};
}
pub(super) use with_device;
