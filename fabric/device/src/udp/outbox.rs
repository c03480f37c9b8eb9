//! Datagrams that are to leave together.

use super::LONGEST;
use super::report::AddressReport;
use super::run::{DatagramRun, SocketName};
use super::socket::LinkSocket;
use crate::xdp::PACKET_BYTES;
use std::io;
use std::net::SocketAddr;

/// Room for datagrams that have not left.
const ARENA_BYTES: usize = 256 << 10;
/// The kernel cuts a run into at most so many datagrams, and takes so many bytes.
const MOST_SEGMENTS: u32 = 64;
const MOST_RUN_BYTES: usize = 65_000;
/// Runs of no more than that are not made: a filter of the other side that sees them before the kernel has cut them, as
/// one on a virtual cable does, would hand them to a lane as one datagram. No lane takes a longer one.
const LEAST_RUN_BYTES: usize = PACKET_BYTES;
/// So many runs in a row that were refused as runs, and none is made any more.
const PATIENCE: u32 = 4;

pub struct Outbox {
    arena: Box<[u8]>,
    used: usize,
    runs: Vec<DatagramRun>,
    /// So many of them have left.
    gone: usize,
    /// Whether runs of several datagrams are made, and how many have been refused since one left.
    joins: bool,
    refused: u32,
}

impl Outbox {
    pub fn new() -> Self {
        let arena = vec![0; ARENA_BYTES].into_boxed_slice();
        Self { arena, used: 0, runs: Vec::with_capacity(64), gone: 0, joins: true, refused: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Where a datagram can be written; `None` before some have left.
    pub fn room(&mut self) -> Option<&mut [u8]> {
        self.arena.get_mut(self.used..self.used + LONGEST)
    }

    /// The first `length` bytes of the room are a datagram.
    pub fn add(&mut self, address: &SocketAddr, length: usize, name: impl FnOnce() -> SocketName) {
        let start = self.used;
        self.used += length;
        if let Some(run) = self.runs.last_mut()
            && run.open
            && run.address == *address
            && length <= run.segment
            && run.bytes + length <= MOST_RUN_BYTES
        {
            run.bytes += length;
            run.count += 1;
            run.open = length == run.segment && run.count < MOST_SEGMENTS;
            return;
        }
        let to = name();
        let open = self.joins;
        self.runs.push(DatagramRun { to, address: *address, start, bytes: length, segment: length, count: 1, open });
    }

    /// Sends what there is room for; true if nothing is left. What the kernel has refused is reported.
    pub fn flush(&mut self, socket: &LinkSocket, reports: &mut Vec<AddressReport>) -> bool {
        self.part_short_runs();
        let mut again = true;
        while self.gone < self.runs.len() {
            let asked = LinkSocket::AT_ONCE.min(self.runs.len() - self.gone);
            match socket.send(&self.runs[self.gone..], &self.arena) {
                Ok(count) => {
                    let joined = self.runs[self.gone..self.gone + count].iter().any(|run| run.count > 1);
                    self.refused = if joined { 0 } else { self.refused };
                    self.gone += count;
                    again = true;
                    // Stopped by an error that the kernel does not tell, and has forgotten but for its queue.
                    if count < asked {
                        reports.extend(std::iter::from_fn(|| socket.take_report()));
                    }
                }
                Err(error) => match what_next(&error, self.runs[self.gone].count > 1, std::mem::take(&mut again)) {
                    NextRun::Again => {}
                    NextRun::Ask => {
                        reports.extend(std::iter::from_fn(|| socket.take_report()));
                    }
                    NextRun::Wait => return false,
                    NextRun::Part => self.part_run(),
                    NextRun::Drop => {
                        // If the network has said something meanwhile, that may be what was told.
                        let before = reports.len();
                        reports.extend(std::iter::from_fn(|| socket.take_report()));
                        let is_own = reports.len() == before;
                        reports.push(AddressReport { address: self.runs[self.gone].address, error, is_own });
                        self.gone += 1;
                        again = true;
                    }
                },
            }
        }
        self.runs.clear();
        (self.used, self.gone) = (0, 0);
        true
    }

    /// The next run, which was refused, leaves as datagrams of their own.
    fn part_run(&mut self) {
        self.refused += 1;
        self.joins &= self.refused < PATIENCE;
        self.part(self.gone);
    }

    fn part_short_runs(&mut self) {
        for index in (self.gone..self.runs.len()).rev() {
            if self.runs[index].count > 1 && self.runs[index].bytes <= LEAST_RUN_BYTES {
                self.part(index);
            }
        }
    }

    fn part(&mut self, index: usize) {
        let DatagramRun { to, address, start, bytes, segment, .. } = self.runs[index];
        let single = |at: usize| {
            let bytes = segment.min(start + bytes - at);
            DatagramRun { to, address, start: at, bytes, segment: bytes, count: 1, open: false }
        };
        let singles = (start..start + bytes).step_by(segment).map(single).collect::<Vec<_>>();
        self.runs.splice(index..=index, singles);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum NextRun {
    /// Now.
    Again,
    /// Now; what was said is of an earlier datagram, and the kernel has more to say of it.
    Ask,
    /// When there is room.
    Wait,
    /// As datagrams of their own.
    Part,
    /// It is lost, as one may be on the way.
    Drop,
}

/// What to do with a run that was refused; `first` if that is for the first time.
fn what_next(error: &io::Error, joined: bool, first: bool) -> NextRun {
    match error.raw_os_error().unwrap_or_default() {
        libc::EINTR => NextRun::Again,
        libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM => NextRun::Wait,
        // No card that sums up, no room for headers, or larger than the interface carries.
        libc::EIO | libc::EINVAL | libc::EOPNOTSUPP | libc::EMSGSIZE if joined => NextRun::Part,
        _ if first => NextRun::Ask,
        _ => NextRun::Drop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    #[test]
    fn what_the_kernel_refuses_is_never_the_end() {
        assert_eq!(what_next(&error(libc::EAGAIN), true, true), NextRun::Wait);
        assert_eq!(what_next(&error(libc::ENOBUFS), false, false), NextRun::Wait);
        assert_eq!(what_next(&error(libc::EIO), true, true), NextRun::Part);
        assert_eq!(what_next(&error(libc::ECONNREFUSED), true, true), NextRun::Ask, "perhaps of an earlier one");
        assert_eq!(what_next(&error(libc::ENETUNREACH), false, false), NextRun::Drop);
        assert_eq!(what_next(&error(libc::EMSGSIZE), false, false), NextRun::Drop);
    }
}
