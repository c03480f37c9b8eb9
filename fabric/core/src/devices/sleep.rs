//! How to sleep until something comes by any device.

use super::Devices;
use crate::links::Links;
use crate::process::SleepPlace;
use std::os::fd::RawFd;
use std::time::Duration;
use weft_device::shm::Doorbell;
use weft_device::shm::stream::bell::OwnBell;
use weft_device::{Device, sleep, tcp};

/// Who sleeps on a descriptor and has no bell there does not hear the others.
const DEAF_SLEEP: Duration = Duration::from_millis(1);

/// Who waits for a word from outside looks so often whether it waits too long for it.
const ATTENDING_SLEEP: Duration = Duration::from_millis(50);

impl Devices {
    /// Before a sleep: whether the caller may sleep, or must poll.
    pub fn arm(&mut self) -> bool {
        self.shm.arm()
            & self.net.as_mut().is_none_or(|net| net.twos.arm() & net.unmet.arm() & (net.arm() && net.watch_links()))
    }

    pub fn arm_beside(&mut self) -> bool {
        self.shm.arm_beside() & self.net.as_mut().is_none_or(|net| net.twos.arm_beside() & net.arm())
    }

    pub fn disarm(&mut self) {
        self.shm.disarm();
        self.own_bell().into_iter().for_each(|bell| bell.drain());
        if let Some(net) = &mut self.net {
            net.twos.disarm();
            net.tcp.disarm();
            net.watch.disarm();
            net.look_soon();
        }
    }

    /// Says how the next sleep is: on a descriptor, too, where those who share memory with us ring a bell beside it; or
    /// not. Before lying down.
    pub fn will_sleep(&mut self, beside: bool) {
        if self.net.is_some() || self.segment().members() == 1 || !beside && self.bell.is_none() {
            return;
        }
        if beside && self.bell.is_none() {
            self.bell = OwnBell::take().ok();
        }
        let number = self.bell.as_ref().filter(|_| beside).map_or(0, |bell| bell.number());
        self.shm.sleep_on_bell(number);
    }

    /// The bell that the next sleep is on, where there is no network.
    fn own_bell(&self) -> Option<&OwnBell> {
        self.bell.as_ref().filter(|_| self.shm.bell() != 0)
    }

    /// The next poll looks at the network.
    pub fn look_soon(&mut self) {
        if let Some(net) = &mut self.net {
            net.look_soon();
        }
    }

    pub fn doorbell(&self) -> Doorbell {
        self.segment().doorbell(self.my_member())
    }

    pub fn sleeper(&self) -> Sleeper {
        match (&self.net, self.own_bell()) {
            (None, _) if self.segment().members() == 1 => Sleeper::Alone(self.doorbell()),
            (None, None) => Sleeper::Doorbell(self.doorbell()),
            (None, Some(bell)) => Sleeper::Bell(bell.descriptor()),
            (Some(net), _) => Sleeper::Sockets(net.tcp.sleeper().until(net.links.as_ref().and_then(Links::until_ns))),
        }
    }
}

/// How a thread sleeps until something comes, without holding the endpoint meanwhile.
pub(crate) enum Sleeper {
    Doorbell(Doorbell),
    /// Nobody else rings it, as far as processes go.
    Alone(Doorbell),
    /// What can be read when it has been rung.
    Bell(RawFd),
    Sockets(tcp::TcpSleeper),
}

impl Sleeper {
    /// Where that is, for who sleeps on several such places.
    pub fn place(&self, limit: Option<Duration>) -> SleepPlace {
        match self {
            Self::Doorbell(doorbell) | Self::Alone(doorbell) => {
                let (word, asleep) = doorbell.word();
                SleepPlace::on_word(word, asleep).within(limit)
            }
            Self::Bell(bell) => SleepPlace::on_descriptor(*bell).within(limit),
            Self::Sockets(sockets) => {
                SleepPlace::on_descriptor(sockets.descriptor()).within(limit).within(sockets.due())
            }
        }
    }

    /// Also until a descriptor can be read.
    pub fn sleep_beside(&self, descriptor: RawFd, limit: Option<Duration>) {
        let at_most = |longest: Duration| Some(limit.map_or(longest, |limit| limit.min(longest)));
        match self {
            Self::Doorbell(_) => sleep::on_descriptors(&[descriptor], at_most(DEAF_SLEEP)),
            Self::Alone(_) => sleep::on_descriptors(&[descriptor], at_most(ATTENDING_SLEEP)),
            Self::Bell(bell) => sleep::on_descriptors(&[descriptor, *bell], at_most(ATTENDING_SLEEP)),
            Self::Sockets(sockets) => {
                let limit = at_most(ATTENDING_SLEEP).into_iter().chain(sockets.due()).min();
                sleep::on_descriptors(&[descriptor, sockets.descriptor()], limit);
            }
        }
    }

    /// At most for `limit`.
    pub fn sleep(&self, limit: Option<Duration>) {
        match self {
            Self::Doorbell(doorbell) | Self::Alone(doorbell) => doorbell.sleep(limit),
            Self::Bell(bell) => sleep::on_descriptors(&[*bell], limit),
            Self::Sockets(sockets) => sockets.sleep(limit),
        }
    }
}
