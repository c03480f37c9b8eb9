//! The port: datagrams out, datagrams in.

use super::LONGEST;
use super::by_lane::ByLane;
use super::faults::Faults;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::report::AddressReport;
use super::socket::{LinkSocket, interface_bytes};
use crate::xdp::Lane;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Headers of IP and UDP.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;
/// What everybody carries, where the kernel does not know.
const USUAL_BYTES: usize = 1500;

/// What a look has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    pub by_lane: bool,
    pub by_socket: bool,
}

impl Came {
    pub fn any(self) -> bool {
        self.by_lane || self.by_socket
    }
}

/// Sends and receives datagrams; see the module.
pub struct UdpPort {
    socket: LinkSocket,
    outbox: Outbox,
    inbox: Inbox,
    /// Slots that the next look offers: more where the last ones were full.
    most: usize,
    /// Looks in a row that filled all slots.
    full: u32,
    reports: Vec<AddressReport>,
    faults: Option<Box<Faults>>,
    lane: Option<Box<ByLane>>,
}

impl UdpPort {
    /// The port at a bound socket.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let socket = LinkSocket::new(descriptor)?;
        socket.join_received();
        Ok(Self {
            socket,
            outbox: Outbox::new(),
            inbox: Inbox::new(),
            most: 1,
            full: 0,
            reports: Vec::new(),
            faults: None,
            lane: None,
        })
    }

    /// What to sleep on: readable when something has come.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }

    /// From now on what comes by this lane, which lies underneath the socket's address, is received; with `sends`
    /// datagrams go by it where it leads. Who has a lane and is not to use it receives all the same: what the filter
    /// hands to a lane does not come by the socket.
    pub fn set_lane(&mut self, lane: Lane, sends: bool) {
        self.lane = Some(Box::new(ByLane::new(lane, sends)));
    }

    /// The lane, while it works. What it has counted is among its own counters.
    pub fn lane(&self) -> Option<&Lane> {
        self.lane.as_deref().map(ByLane::lane)
    }

    /// Whether datagrams to this address go by the lane.
    pub fn goes_by_lane(&self, to: &SocketAddr, now_ns: u64) -> bool {
        self.lane.as_ref().is_some_and(|lane| lane.leads_to(to, now_ns))
    }

    /// Gives up a lane that has failed; the socket goes on. Its descriptor must not be slept on any more: who watches
    /// it ends that before the lane is dropped, for where a child by fork has the descriptor as well it stays open, and
    /// watched.
    pub fn take_failed_lane(&mut self) -> Option<Lane> {
        self.lane()?.fault()?;
        self.lane.take().map(|lane| lane.into_lane())
    }

    /// Whether something has come that [`Self::receive`] takes without a system call.
    #[inline]
    pub fn has_arrived(&self) -> bool {
        self.lane().is_some_and(|lane| !lane.arm())
    }

    /// Bytes of datagrams, at least of the usual size, that the kernel keeps for us.
    pub fn kept_bytes(&self) -> usize {
        // The kernel counts what it needs beside a datagram as well.
        self.socket.kept_bytes() / 2
    }

    /// From now on datagrams that arrive suffer this.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = Some(Box::new(faults));
    }

    pub fn faults(&self) -> Option<&Faults> {
        self.faults.as_deref()
    }

    /// Hands `write` the place of a datagram to `to`, which answers the datagram's length, or that there is none. False
    /// if there is no place, or no datagram. What was written leaves with [`Self::flush`]. `now_ns` is the time, as
    /// [`Self::receive`] has it.
    #[inline]
    pub fn send(&mut self, to: &SocketAddr, now_ns: u64, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let mut write = Some(write);
        if let Some(lane) = &mut self.lane
            && lane.send(to, now_ns, &mut write)
        {
            return true;
        }
        let Some(write) = write else { return false };
        if self.outbox.room().is_none() {
            self.flush();
        }
        let Some(length) = self.outbox.room().and_then(write) else { return false };
        let socket = &self.socket;
        self.outbox.add(to, length, || socket.name(to));
        true
    }

    /// Sends what was written; true if nothing is left.
    #[inline]
    pub fn flush(&mut self) -> bool {
        let by_lane = self.lane.as_mut().is_none_or(|lane| lane.flush());
        // Also where the lane is stuck.
        let by_socket = self.outbox.is_empty() || self.outbox.flush(&self.socket, &mut self.reports);
        by_lane && by_socket
    }

    /// Whether something that was written has not left.
    pub fn is_stuck(&self) -> bool {
        !self.outbox.is_empty() || self.lane().is_some_and(Lane::is_stuck)
    }

    /// Hands on what has come, a bounded number of datagrams. `handle` answers whether it believes
    /// that the datagram is of whom it says: the way that such a one came is the way back. One system call, or with
    /// `look_at_socket` false none.
    #[inline]
    pub fn receive(
        &mut self,
        now_ns: u64,
        look_at_socket: bool,
        mut handle: impl FnMut(SocketAddr, &[u8]) -> bool,
    ) -> Came {
        let mut came = Came::default();
        if let Some(lane) = &mut self.lane {
            came.by_lane = match &mut self.faults {
                // Whether it is believed shows perhaps later.
                Some(faults) => lane.receive(now_ns, |from, datagram| {
                    let mut believed = false;
                    faults.pass(from, datagram, &mut |from, datagram| believed = handle(from, datagram));
                    believed
                }),
                None => lane.receive(now_ns, &mut handle),
            };
        }
        if look_at_socket {
            came.by_socket = self.receive_by_socket(|from, datagram| _ = handle(from, datagram));
        }
        came
    }

    #[inline]
    fn receive_by_socket(&mut self, mut handle: impl FnMut(SocketAddr, &[u8])) -> bool {
        let count = match self.socket.receive(&mut self.inbox, self.most) {
            Ok(count) => count,
            Err(error) => {
                if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) {
                    self.look_for_reports();
                }
                0
            }
        };
        // One that comes alone fills the one slot, and the look after it had better be the short one as well.
        self.full = if count == self.most { self.full + 1 } else { 0 };
        self.most = if self.full > 1 { (2 * count).min(Inbox::SLOTS) } else { count.max(1) };
        if let Some(faults) = &mut self.faults {
            self.inbox.datagrams(count).for_each(|(from, datagram)| faults.pass(from, datagram, &mut handle));
            return count > 0 || faults.release(&mut handle);
        }
        self.inbox.datagrams(count).for_each(|(from, datagram)| handle(from, datagram));
        count > 0
    }

    /// Takes from the kernel what the network has said. While there is anything, a sleep on the descriptor ends at
    /// once.
    pub fn look_for_reports(&mut self) {
        self.reports.extend(std::iter::from_fn(|| self.socket.take_report()));
    }

    pub fn take_report(&mut self) -> Option<AddressReport> {
        self.reports.pop()
    }
}

/// The largest datagram that the interface towards `to` carries whole.
pub fn largest_datagram(to: &SocketAddr) -> usize {
    let packet = interface_bytes(to).ok().filter(|bytes| *bytes > 0).unwrap_or(USUAL_BYTES);
    let headers = if to.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
    packet.saturating_sub(headers).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    /// Longer than any scheduling.
    const LOST: Duration = Duration::from_secs(60);

    fn port() -> (UdpPort, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("bound");
        (UdpPort::new(socket.into()).expect("a port"), address)
    }

    fn send(port: &mut UdpPort, to: &SocketAddr, bytes: &[u8]) -> bool {
        port.send(to, 0, |place| {
            place[..bytes.len()].copy_from_slice(bytes);
            Some(bytes.len())
        })
    }

    fn take(port: &mut UdpPort, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut got, start) = (Vec::new(), Instant::now());
        while got.len() < count {
            port.receive(0, true, |from, datagram| {
                got.push((from, datagram.to_vec()));
                true
            });
            assert!(start.elapsed() < LOST, "what was sent does not come");
        }
        got
    }

    #[test]
    fn what_is_sent_together_comes_apart_and_says_from_whom() {
        let ((mut a, a_at), (mut b, b_at), (mut c, c_at)) = (port(), port(), port());
        let sizes = [100, 100, 100, 40, 100, 1400, 1400, 3, 60_000];
        let datagrams: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(at, size)| vec![at as u8; *size]).collect();
        for datagram in &datagrams {
            assert!(send(&mut a, &b_at, datagram));
        }
        assert!(send(&mut a, &c_at, b"for c"));
        assert!(a.is_stuck() && a.flush() && !a.is_stuck());
        let got = take(&mut b, datagrams.len());
        assert!(got.iter().all(|(from, _)| *from == a_at));
        assert!(got.into_iter().map(|(_, datagram)| datagram).eq(datagrams));
        assert_eq!(take(&mut c, 1), [(a_at, b"for c".to_vec())]);
    }

    #[test]
    fn a_socket_of_both_families_speaks_to_either() {
        let Ok(socket) = UdpSocket::bind("[::]:0") else { return };
        let number = socket.local_addr().expect("bound").port();
        let mut both = UdpPort::new(socket.into()).expect("a port");
        let (mut old, old_at) = port();
        assert!(send(&mut both, &old_at, b"to IPv4") && both.flush());
        assert_eq!(take(&mut old, 1), [(SocketAddr::new([127, 0, 0, 1].into(), number), b"to IPv4".to_vec())]);
        let at = SocketAddr::new([127, 0, 0, 1].into(), number);
        assert!(send(&mut old, &at, b"from IPv4") && old.flush());
        assert_eq!(take(&mut both, 1), [(old_at, b"from IPv4".to_vec())]);
    }

    #[test]
    fn a_port_that_nobody_has_is_reported_and_hinders_nobody() {
        let ((mut a, _), (mut b, b_at)) = (port(), port());
        let nobody = UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
        let (mut reports, start) = (Vec::new(), Instant::now());
        while reports.is_empty() {
            assert!(send(&mut a, &nobody, b"anybody?") && send(&mut a, &b_at, b"b") && a.flush());
            a.receive(0, true, |_, _| true);
            reports.extend(std::iter::from_fn(|| a.take_report()));
            assert!(start.elapsed() < LOST, "no report");
        }
        assert!(reports.iter().all(|report| report.address == nobody));
        assert_eq!(reports[0].error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(reports.iter().all(|report| report.is_own), "it is an address of this host that says so");
        assert_eq!(take(&mut b, 1)[0].1, b"b");
    }

    #[test]
    fn what_no_interface_carries_is_dropped_and_the_rest_goes() {
        let ((mut a, _), (mut b, b_at)) = (port(), port());
        let nowhere: SocketAddr = "255.255.255.255:9".parse().expect("an address");
        assert!(send(&mut a, &nowhere, b"x") && send(&mut a, &b_at, b"y") && a.flush());
        assert_eq!(a.take_report().map(|report| report.address), Some(nowhere));
        assert_eq!(take(&mut b, 1)[0].1, b"y");
    }

    #[test]
    fn the_loopback_interface_carries_large_datagrams() {
        let (_, at) = port();
        assert!(largest_datagram(&at) > 1400);
    }
}
