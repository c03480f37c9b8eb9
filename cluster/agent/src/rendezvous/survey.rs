//! Asking the rendezvous who is there.

use super::sys;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use weft_wire::stream::packet::{Answer, BYTES, StreamRequest};
use weft_wire::stream::page;

const NUMBERS: usize = page::COUNTER_NAMES.len() + page::REASON_NAMES.len();
const PATIENCE: Duration = Duration::from_secs(2);

/// A process that offers connections; or all that have ended, as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedProcess {
    /// 0 for those that have ended.
    pub pid: u32,
    /// Connections that it has shown and whose other end nobody has shown. Of those that have ended: how many they are.
    pub waiting: u32,
    /// In the order of [`page::COUNTER_NAMES`].
    pub counters: Vec<u64>,
    /// In the order of [`page::REASON_NAMES`].
    pub fallen_back: Vec<u64>,
}

/// A connection that goes over shared memory. Side n of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedConnection {
    pub pids: [u32; 2],
    pub ports: [u16; 2],
    /// Bytes that this side has sent so.
    pub bytes: [u64; 2],
}

/// A connection to another host that goes by a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedFar {
    pub pid: u32,
    /// Of the end here.
    pub port: u16,
    pub remote: SocketAddr,
    /// Bytes that the end here has sent so, and that the other host has.
    pub bytes: [u64; 2],
}

/// What the rendezvous knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    pub processes: Vec<SurveyedProcess>,
    /// What all had counted that have ended since the rendezvous began.
    pub ended: Option<SurveyedProcess>,
    pub connections: Vec<SurveyedConnection>,
    pub far: Vec<SurveyedFar>,
}

/// Asks this user's rendezvous, or root's, which tells only root.
///
/// # Errors
/// `ConnectionRefused` when there is none; `TimedOut` when it does not answer.
pub fn survey() -> io::Result<Survey> {
    let socket = sys::connect()?;
    sys::send(&socket, &StreamRequest::Survey.pack(), None)?;
    let end = Instant::now() + PATIENCE;
    let mut found = Survey::default();
    loop {
        let mut packet = [0; BYTES + NUMBERS * 8];
        match sys::receive(&socket, &mut packet) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                if !note(&mut found, &packet) {
                    return Ok(found);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let rest = end.saturating_duration_since(Instant::now());
                if rest.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                weft_kernel::await_events(socket.as_raw_fd(), libc::POLLIN, Some(rest))?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// False at the end of the list.
fn note(found: &mut Survey, packet: &[u8; BYTES + NUMBERS * 8]) -> bool {
    let (head, numbers) = packet.split_first_chunk::<BYTES>().unwrap_or((&[0; BYTES], &[]));
    match Answer::parse(head) {
        Some(Answer::Process { pid, offers }) => {
            let all: Vec<u64> =
                numbers.chunks_exact(8).map(|n| u64::from_le_bytes(n.try_into().unwrap_or_default())).collect();
            let (counters, fallen_back) = all.split_at(page::COUNTER_NAMES.len());
            let (counters, fallen_back) = (counters.to_vec(), fallen_back.to_vec());
            let process = SurveyedProcess { pid, waiting: offers, counters, fallen_back };
            if pid == 0 {
                found.ended = Some(process);
            } else {
                found.processes.push(process);
            }
        }
        Some(Answer::Connection { pids, ports, bytes }) => {
            found.connections.push(SurveyedConnection { pids, ports, bytes });
        }
        Some(Answer::Far { pid, port, peer, bytes }) => {
            let remote = peer.socket_address();
            let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
            found.far.push(SurveyedFar { pid, port, remote, bytes });
        }
        Some(Answer::End) => return false,
        _ => {}
    }
    true
}
