//! Where ranks of this host have failed, and their cores: the keeper's part.
//!
//! Two ways lead there. A process whose library is ours calls in distress (`weft_wire::distress`) before a signal ends
//! it, and stands still for a moment. And what has ended may have left a core, which is found where the kernel writes
//! it ([`pattern`]) and moved where the user wants it; the rank's directory stays what it was.
//!
//! Looking is done by *examiners*: children with limits, since what they read may be anything ([`examine`]). The first
//! failure on a host is looked at in full. The keeper goes on meanwhile; at the end it waits for them, not long.

mod examine;
mod pattern;
#[allow(unsafe_code)]
mod sys;

use crate::sys as process;
use examine::CoreHunt;
pub use pattern::CorePattern;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use weft_cluster::failure::FailureReport;
use weft_wire::distress::{self, DistressCall};

/// How long examiners are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(4);
/// Between two looks whether anybody still wants to know.
const LOOK: Duration = Duration::from_millis(50);
/// A report is shorter.
const REPORT_BYTES: u64 = 32 << 10;
/// Signals that leave a core.
const WITH_CORE: [i32; 10] = [
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGSYS,
];

/// What is wanted, and of whom.
#[derive(Default)]
pub struct FaultPlan {
    /// The directory of this job's cores.
    pub cores: Option<PathBuf>,
    /// Where calls in distress come.
    pub socket: Option<OwnedFd>,
    /// The rank of each member.
    pub ranks: Vec<usize>,
    /// Where each of them starts.
    pub directories: Vec<PathBuf>,
}

/// An address for calls in distress, and its socket.
pub fn socket(job: &str) -> std::io::Result<(String, OwnedFd)> {
    let name = format!("weft-distress-{job}-{}", std::process::id());
    let socket = weft_kernel::socket(libc::AF_UNIX, libc::SOCK_DGRAM)?;
    sys::ask_for_senders(socket.as_raw_fd())?;
    weft_kernel::bind(socket.as_raw_fd(), &weft_kernel::Abstract::new(name.as_bytes()))?;
    Ok((name, socket.into()))
}

/// The keeper's part.
pub struct FaultWatch {
    plan: FaultPlan,
    begun: SystemTime,
    examiners: Vec<Examiner>,
    /// The first failure has been looked at, or is.
    has_looked: bool,
    /// Who has called first, and who has called while that one has not ended: they end after it, so that it is the
    /// first failure for everybody.
    first: Option<usize>,
    held: Vec<DistressCall>,
    /// How large the kernel lets cores of ranks be.
    core_limit: u64,
}

/// A child that looks.
struct Examiner {
    member: usize,
    pid: i32,
    /// It has ended and was collected.
    collected: bool,
    report: File,
}

impl FaultWatch {
    /// Ranks start now. Where cores are wanted, they may have them.
    pub fn new(plan: FaultPlan) -> Self {
        let core_limit = weft_kernel::limits(libc::RLIMIT_CORE).map_or(0, |(_, hard)| hard);
        if plan.cores.is_some() {
            let _ = weft_kernel::set_limits(libc::RLIMIT_CORE, core_limit, core_limit);
        }
        let (examiners, held) = Default::default();
        Self { plan, begun: SystemTime::now(), examiners, has_looked: false, first: None, held, core_limit }
    }

    /// Where calls in distress come.
    pub fn fd(&self) -> Option<RawFd> {
        self.plan.socket.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Takes calls; `member_of` says whose a process is.
    pub fn handle_calls(&mut self, member_of: impl Fn(i32) -> Option<usize>) {
        let Some(socket) = self.fd() else { return };
        let mut bytes = [0; distress::BYTES];
        while let Ok((count, sender)) = sys::receive_with_sender(socket, &mut bytes) {
            // Whoever calls for another process, or is another user, is not believed: what is done for a call changes
            // memory.
            let call = DistressCall::decode(&bytes[..count]).filter(|call| sender == Some(call.pid));
            let Some(call) = call else { continue };
            let Some(member) = member_of(call.pid as i32) else { continue };
            if self.first.is_some() {
                self.held.push(call);
            } else if !self.has_looked && self.start(member, move || examine::look_at_process(&call)) {
                self.first = Some(member);
            } else {
                examine::release(&call);
            }
        }
    }

    /// A rank has ended with this raw status.
    pub fn handle_end(&mut self, member: usize, pid: i32, status: i32) {
        if self.first == Some(member) {
            self.first = None;
            self.held.drain(..).for_each(|call| examine::release(&call));
        }
        let dumped = libc::WIFSIGNALED(status) && libc::WCOREDUMP(status);
        let signalled = libc::WIFSIGNALED(status) && WITH_CORE.contains(&libc::WTERMSIG(status));
        // What a shell says of a program that it has run.
        let of_shell = libc::WIFEXITED(status) && WITH_CORE.contains(&(libc::WEXITSTATUS(status) - 128));
        if !(dumped || of_shell || signalled && self.plan.cores.is_some()) {
            return;
        }
        let hunt = CoreHunt {
            pid,
            dumped,
            start: self.plan.directories.get(member).cloned().unwrap_or_default(),
            since: self.begun,
            to: self.plan.cores.as_ref().map(|cores| {
                let rank = self.plan.ranks.get(member).copied().unwrap_or(member);
                cores.join(format!("rank-{rank}"))
            }),
            says_why_not: signalled,
            looks: !self.has_looked,
            may_be: self.core_limit > 0,
        };
        self.start(member, move || hunt.run());
    }

    /// Has a child do that; answers whether there is one.
    fn start(&mut self, member: usize, look: impl FnOnce() -> FailureReport) -> bool {
        let Ok((report, writer)) = std::io::pipe() else { return false };
        match process::fork() {
            Ok(process::Fork::Child) => examine::live(writer.into(), look),
            Ok(process::Fork::Parent { child: pid }) => {
                let report = File::from(OwnedFd::from(report));
                self.examiners.push(Examiner { member, pid, collected: false, report });
                self.has_looked = true;
                true
            }
            Err(_) => false,
        }
    }

    /// A child was collected; answers whether it was an examiner.
    pub fn handle_collected(&mut self, pid: i32) -> bool {
        let examiner = self.examiners.iter_mut().find(|examiner| examiner.pid == pid && !examiner.collected);
        examiner.map(|examiner| examiner.collected = true).is_some()
    }

    /// What was found out, once all examiners have ended, or have had time enough. `is_wanted` says whether anybody
    /// still wants to know.
    pub fn finish(&mut self, is_wanted: impl Fn() -> bool) -> Vec<(usize, FailureReport)> {
        let end = Instant::now() + PATIENCE;
        let mut reports: Vec<(usize, FailureReport)> = Vec::new();
        for examiner in self.examiners.drain(..) {
            let text = if is_wanted() { examiner.heard(end, &is_wanted) } else { String::new() };
            if !examiner.collected {
                let _ = process::kill(examiner.pid, libc::SIGKILL);
                process::wait_for(examiner.pid);
            }
            let report = FailureReport::decode(&text);
            match reports.iter_mut().find(|(member, _)| *member == examiner.member) {
                Some((_, known)) => known.merge(report),
                None if report.is_empty() => {}
                None => reports.push((examiner.member, report)),
            }
        }
        reports
    }
}

impl Examiner {
    /// All that it says until it ends, or until then.
    fn heard(&self, end: Instant, is_wanted: impl Fn() -> bool) -> String {
        let mut text = Vec::new();
        let fd = self.report.as_raw_fd();
        while Instant::now() < end && is_wanted() {
            match weft_kernel::await_events(fd, libc::POLLIN, Some(LOOK)) {
                Ok(0) => continue,
                Err(_) => break,
                Ok(_) => {}
            }
            let mut piece = [0; 4096];
            match (&self.report).take(REPORT_BYTES).read(&mut piece) {
                Ok(count @ 1..) if text.len() < REPORT_BYTES as usize => text.extend(&piece[..count]),
                _ => break,
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_for_another_process_is_not_believed() {
        let (name, socket) = socket("test").expect("a socket");
        let caller = weft_kernel::socket(libc::AF_UNIX, libc::SOCK_DGRAM).expect("a socket");
        let mut bytes = [0; 8];
        weft_kernel::send_to(caller.as_raw_fd(), b"call", &weft_kernel::Abstract::new(name.as_bytes())).expect("sent");
        let received = sys::receive_with_sender(socket.as_raw_fd(), &mut bytes).expect("a datagram");
        assert_eq!(received, (4, Some(std::process::id())), "the kernel names the sender");
        let call = DistressCall {
            pid: 1,
            thread: 1,
            signal: 11,
            processor: distress::X86,
            address: 0,
            release: 0,
            instruction: 0,
            registers: [0; distress::REGISTERS],
        };
        let address = weft_kernel::Abstract::new(name.as_bytes());
        weft_kernel::send_to(caller.as_raw_fd(), &call.encode(), &address).expect("sent");
        let mut faults = FaultWatch::new(FaultPlan { socket: Some(socket), ..FaultPlan::default() });
        faults.handle_calls(|pid| panic!("nobody asks whose process {pid} is"));
        assert!(faults.examiners.is_empty() && !faults.has_looked);
    }
}
