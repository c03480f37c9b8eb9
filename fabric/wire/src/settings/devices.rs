//! Which devices may be used, in which order.

use std::fmt::{self, Display};

/// A device that an endpoint can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceName {
    Shm,
    /// As udp, and by a lane past the kernel where there is one.
    Xdp,
    Udp,
    Tcp,
}

/// Every device, the best first.
const BEST_FIRST: [(DeviceName, &str); 4] =
    [(DeviceName::Shm, "shm"), (DeviceName::Xdp, "xdp"), (DeviceName::Udp, "udp"), (DeviceName::Tcp, "tcp")];

/// The devices that may be used: to each rank goes the first that leads there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOrder {
    names: [Option<DeviceName>; BEST_FIRST.len()],
    auto: bool,
}

impl DeviceOrder {
    /// The devices that disturb nothing else, the best first. `xdp` puts a filter on an interface, which some drivers
    /// reset for it and which costs other traffic on others: it is used where it is asked for.
    pub const AUTO: DeviceOrder =
        DeviceOrder { names: [Some(DeviceName::Shm), Some(DeviceName::Udp), Some(DeviceName::Tcp), None], auto: true };
    /// The words of the devices, for the nearest one to a wrong value.
    pub const WORDS: [&'static str; BEST_FIRST.len() + 1] = ["auto", "shm", "xdp", "udp", "tcp"];

    /// The order that `text` means: `auto`, or names with commas, none of them twice.
    pub(super) fn parse(text: &str) -> Option<DeviceOrder> {
        if text.eq_ignore_ascii_case("auto") {
            return Some(Self::AUTO);
        }
        let mut order = Self { names: [None; BEST_FIRST.len()], auto: false };
        for (place, word) in text.split(',').enumerate() {
            let name = BEST_FIRST.iter().find(|(_, known)| word.trim().eq_ignore_ascii_case(known))?.0;
            if order.contains(name) {
                return None;
            }
            *order.names.get_mut(place)? = Some(name);
        }
        Some(order)
    }

    pub fn names(&self) -> impl Iterator<Item = DeviceName> {
        self.names.into_iter().flatten()
    }

    pub fn contains(&self, name: DeviceName) -> bool {
        self.names().any(|other| other == name)
    }
}

impl Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(BEST_FIRST.iter().find(|(name, _)| name == self).map_or("", |(_, word)| word))
    }
}

impl Display for DeviceOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.auto {
            return f.write_str("auto");
        }
        for (index, name) in self.names().enumerate() {
            write!(f, "{}{name}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_what_was_written_and_nothing_twice() {
        let text = |text| DeviceOrder::parse(text).map(|order| order.to_string());
        assert_eq!(text("tcp"), Some("tcp".to_owned()));
        assert_eq!(text("TCP, shm"), Some("tcp,shm".to_owned()));
        assert_eq!(text("auto"), Some("auto".to_owned()));
        for bad in ["", "tcp,", "tcp,tcp", "shm,tcp,shm", "auto,tcp", "infiniband"] {
            assert_eq!(text(bad), None, "{bad}");
        }
        let order = DeviceOrder::parse("tcp").expect("good");
        assert!(order.contains(DeviceName::Tcp) && !order.contains(DeviceName::Shm));
    }

    #[test]
    fn auto_is_every_device_the_best_first() {
        let undisturbing = BEST_FIRST.iter().map(|(name, _)| *name).filter(|name| *name != DeviceName::Xdp);
        assert!(DeviceOrder::AUTO.names().eq(undisturbing));
        assert!(DeviceOrder::WORDS[1..].iter().eq(BEST_FIRST.iter().map(|(_, word)| word)));
    }
}
