//! When to look at the port. A look at the socket is a system call: while a lane brings what is sent to us, few are
//! taken.

use weft_device::tcp::Look;
use weft_device::udp::Came;

pub(super) struct Looks {
    port: Look,
    /// Beside a lane: when to look at the socket, too.
    socket: Look,
}

impl Looks {
    /// With `alone` no other device is polled beside.
    pub fn new(alone: bool) -> Self {
        Self { port: Look::new(alone), socket: Look::new(false) }
    }

    /// Whether it is time for a look at the port.
    #[inline]
    pub fn is_due(&mut self, ticks: u64) -> bool {
        self.port.is_due(ticks)
    }

    /// Whether such a look beside a lane is one at the socket, too.
    #[inline]
    pub fn is_due_at_socket(&mut self, ticks: u64) -> bool {
        self.socket.is_due(ticks)
    }

    /// What a look has brought that was `due`.
    #[inline]
    pub fn learn(&mut self, due: bool, by_lane: bool, looked_at_socket: bool, came: Came) {
        if due {
            self.port.learn(came.by_socket && !by_lane);
        }
        if by_lane {
            self.learn_beside_lane(looked_at_socket, came);
        }
    }

    #[inline]
    fn learn_beside_lane(&mut self, looked_at_socket: bool, came: Came) {
        if came.by_socket || came.by_lane {
            self.socket.set_idle(!came.by_socket);
        }
        if looked_at_socket {
            self.socket.learn(came.by_socket);
        }
    }

    /// The next poll looks at everything, however short ago the last did.
    pub fn soon(&mut self) {
        self.port.soon();
        self.socket.soon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_a_lane_the_socket_is_looked_at_rarely_while_nothing_comes_by_it() {
        let mut looks = Looks::new(true);
        let (by_lane, by_socket) = (Came { by_lane: true, by_socket: false }, Came { by_lane: false, by_socket: true });
        let settle = |looks: &mut Looks| {
            (0..30).for_each(|_| looks.learn_beside_lane(true, Came::default()));
            looks.socket.interval_ticks()
        };
        let often = settle(&mut looks);
        looks.learn_beside_lane(false, by_lane);
        let rarely = settle(&mut looks);
        assert!(rarely > 10 * often, "{rarely} and {often}");
        looks.learn_beside_lane(true, by_socket);
        assert!(looks.socket.interval_ticks() < often);
        assert_eq!(settle(&mut looks), often, "it may be the way of this peer");
    }
}
