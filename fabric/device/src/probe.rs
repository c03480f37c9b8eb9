//! What can be used on this machine, found out by trying, and why.

use crate::shm::Memory;
use crate::{kernel, sys, xdp};
use std::fs::read_to_string;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// One device and whether it can be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    pub name: &'static str,
    pub usable: bool,
    /// Why, one line each.
    pub reasons: Vec<String>,
}

/// Tries every device. Forks two short-lived processes, so the caller should have one thread.
pub fn probe() -> Vec<ProbeReport> {
    let loopback = "between endpoints of one process; the reference for tests".to_owned();
    vec![shm(), xdp(), udp(), tcp(), ProbeReport { name: "loopback", usable: true, reasons: vec![loopback] }]
}

/// Whether two sockets of this host reach each other.
fn tcp() -> ProbeReport {
    let tried =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| TcpStream::connect(listener.local_addr()?));
    let reason = match &tried {
        Ok(_) => "between hosts, and inside one where shared memory is not wanted".to_owned(),
        Err(error) => format!("no connection on the loopback interface: {error}"),
    };
    ProbeReport { name: "tcp", usable: tried.is_ok(), reasons: vec![reason] }
}

/// Whether an agent that runs as this process does could make lanes, and on which interfaces.
fn xdp() -> ProbeReport {
    let tried = xdp::permitted().map_err(|cause| cause.to_string());
    let interfaces = tried.and_then(|()| xdp::interfaces().map_err(|cause| format!("no list of interfaces: {cause}")));
    let interfaces = match interfaces {
        Err(reason) => return ProbeReport { name: "xdp", usable: false, reasons: vec![reason] },
        Ok(interfaces) => interfaces,
    };
    let mut report = ProbeReport { name: "xdp", usable: false, reasons: Vec::new() };
    for interface in interfaces.iter().filter(|interface| interface.hardware.is_some()) {
        report.reasons.push(match xdp::look(interface) {
            Ok((_, facts)) if facts.queues > 1 => {
                format!("datagrams past the kernel on {}, by the first of its {} queues", interface.name, facts.queues)
            }
            Ok(_) => format!("datagrams past the kernel on {}", interface.name),
            Err(cause) => cause.to_string(),
        });
        report.usable |= xdp::look(interface).is_ok();
    }
    if report.reasons.is_empty() {
        report.reasons.push("no interface is Ethernet".to_owned());
    }
    report
}

/// Whether a datagram reaches another socket of this host.
fn udp() -> ProbeReport {
    let tried = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| {
        socket.send_to(b"weft", socket.local_addr()?)?;
        sys::wait_readable(&socket, Duration::from_secs(1))
    });
    let (usable, reason) = match tried {
        Ok(true) => (true, "between hosts, for what is short; what is long goes by tcp".to_owned()),
        Ok(false) => (false, "a datagram on the loopback interface does not arrive".to_owned()),
        Err(error) => (false, format!("no datagrams on the loopback interface: {error}")),
    };
    ProbeReport { name: "udp", usable, reasons: vec![reason] }
}

fn shm() -> ProbeReport {
    let memory = Memory::create(c"weft-probe", 4096).and_then(|memory| memory.populate(0, 4096));
    if let Err(error) = memory {
        let reason = format!("no anonymous shared memory (memfd_create): {error}");
        return ProbeReport { name: "shm", usable: false, reasons: vec![reason] };
    }
    ProbeReport {
        name: "shm",
        usable: true,
        reasons: vec!["sealed anonymous memory (memfd)".into(), barrier(), copy()],
    }
}

fn barrier() -> String {
    match kernel::register_for_barriers() {
        Ok(()) => "the price of sleeping falls on the sleeper (membarrier)".into(),
        Err(error) => format!("every send pays a fence, because the kernel refuses membarrier: {error}"),
    }
}

/// Long messages are copied between processes that are not each other's parents, so such two are tried.
fn copy() -> String {
    match copy_between_siblings() {
        Ok(()) => "long messages are copied once (process_vm_readv, tried between two processes)".into(),
        Err(error) => format!("long messages are copied twice: process_vm_readv fails: {error}{}", explain(&error)),
    }
}

fn explain(error: &io::Error) -> String {
    let scope = read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let scope = scope.trim();
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "; the kernel is built without it or a sandbox hides it".into(),
        Some(libc::EPERM) if scope == "2" || scope == "3" => {
            format!("; kernel.yama.ptrace_scope is {scope}, 0 or 1 would allow it")
        }
        Some(libc::EPERM) if filtered() => "; a system call filter (seccomp, as in containers) is in force".into(),
        _ => String::new(),
    }
}

/// Whether this process lives under a system call filter.
fn filtered() -> bool {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

const PATTERN: u64 = 0x7765_6674_2d6f_6b21;

fn copy_between_siblings() -> io::Result<()> {
    let source = PATTERN;
    let (mut ready, said) = io::pipe()?;
    let owner = Child::fork(|| {
        sys::allow_attach();
        let _ = io::Write::write_all(&mut &said, b"!");
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
        0
    })?;
    drop(said);
    io::Read::read_exact(&mut ready, &mut [0])?;
    let copier = Child::fork(|| {
        let mut target = 0u64;
        // SAFETY: the target stands on our stack; `source` has the same address in the other process, our sibling.
        let copied = unsafe { sys::copy_from_process(owner.0, &raw const source as u64, (&raw mut target).cast(), 8) };
        match copied {
            Ok(()) if target == PATTERN => 0,
            Ok(()) => libc::EIO,
            Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
        }
    })?;
    match copier.wait()? {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// A forked process, which does not outlive this value.
struct Child(i32);

impl Child {
    fn fork(act: impl FnOnce() -> i32) -> io::Result<Self> {
        // SAFETY: the child makes system calls only, then ends without running anything of ours.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: should the parent die, so does the child.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                sys::exit_now(act())
            }
            pid => Ok(Self(pid)),
        }
    }

    /// The exit code; an error where it was killed, as a filter may do.
    fn wait(self) -> io::Result<i32> {
        let status = self.collect()?;
        std::mem::forget(self);
        match libc::WIFEXITED(status) {
            true => Ok(libc::WEXITSTATUS(status)),
            false => Err(io::Error::other("the process that tried it was killed")),
        }
    }

    fn collect(&self) -> io::Result<i32> {
        let mut status = 0;
        // SAFETY: a valid place for the status.
        while unsafe { libc::waitpid(self.0, &mut status, 0) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: our own child, not yet collected.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        let _ = self.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_has_a_reason() {
        let reports = probe();
        assert_eq!(reports.iter().map(|r| r.name).collect::<Vec<_>>(), ["shm", "xdp", "udp", "tcp", "loopback"]);
        assert!(reports.iter().all(|r| !r.reasons.is_empty() && r.reasons.iter().all(|line| !line.contains('\n'))));
    }

    #[test]
    fn the_copy_agrees_with_what_a_process_may_do_to_itself() {
        // Where even that is forbidden, siblings cannot; where siblings can, so can one alone.
        if copy_between_siblings().is_ok() {
            sys::attach_works().expect("allowed between siblings");
        }
    }
}
