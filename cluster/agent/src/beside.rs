//! A program that is run by a command which has something to say when it has ended, and is otherwise as little in the
//! way as can be: it has our process group, our terminal and our streams, gets the signals that we get, and we end as
//! it does.
//!
//! What the program gets anyway, because it is in the same group (a terminal's signals, or those that somebody sends to
//! the group), is not sent twice: a *witness*, a process that does nothing, is in the group, too, and what has come to
//! it was sent to all. For a shell with job control it is us who stops when the program does. Program and witness are
//! killed when we are.

#[allow(unsafe_code)]
mod sys;

use crate::sys::{ArrivedSignal, SignalSet, exit_now, kill, read_signal_from};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::process::Command;
use sys::Witness;
use weft_kernel::Descriptor;
use weft_wire::stream::tally::{self, Address, Sums};

/// The memory in which a program and all that it starts count together.
pub struct Tally {
    memory: File,
    number: u64,
}

impl Tally {
    /// # Errors
    /// The kernel gives no memory.
    pub fn new() -> io::Result<Self> {
        let number = weft_kernel::true_random().ok_or(io::ErrorKind::Unsupported)?;
        let mut bytes = vec![0; tally::BYTES];
        bytes[tally::MAGIC_AT..][..8].copy_from_slice(&tally::MAGIC.to_le_bytes());
        bytes[tally::VERSION_AT..][..4].copy_from_slice(&tally::VERSION.to_le_bytes());
        let name = std::ffi::CString::new(tally::memory_name(number))?;
        let memory = weft_kernel::memory_with(&name, &bytes, false)?;
        let memory = Descriptor::own(weft_kernel::out_of_the_way(memory.into_raw_fd()));
        Ok(Self { memory: File::from(OwnedFd::from(memory)), number })
    }

    /// The variable by which the program finds it.
    pub fn variable(&self) -> (&'static str, String) {
        let address =
            Address { process: std::process::id(), descriptor: self.memory.as_raw_fd() as u32, number: self.number };
        (tally::VARIABLE, address.to_string())
    }

    /// What has been counted so far.
    pub fn sums(&self) -> Sums {
        let mut bytes = vec![0; tally::BYTES];
        let read = std::os::unix::fs::FileExt::read_exact_at(&self.memory, &mut bytes, 0);
        read.ok().and_then(|()| Sums::read(&bytes)).unwrap_or_default()
    }
}

/// How a program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Code(i32),
    Signal(i32),
}

impl ProgramEnd {
    /// Ends this process in the same way.
    pub fn imitate(self) -> ! {
        match self {
            Self::Code(code) => exit_now(code),
            Self::Signal(signal) => sys::end_by_signal(signal),
        }
    }
}

/// Runs the program, with `tally`, to its end. `keep`: what of ours stays open meanwhile; our own standard input and
/// output are let go of, so that who is at their other ends sees the program's. This process must have one thread only.
///
/// # Errors
/// The program cannot be started.
pub fn run(command: &mut Command, tally: &Tally, keep: &[RawFd]) -> io::Result<ProgramEnd> {
    let (name, value) = tally.variable();
    run_plain(command.env(name, value), &[keep, &[tally.memory.as_raw_fd()]].concat())
}

/// What the children of this process have used that have been waited for: user and system time in microseconds, and the
/// bytes of the largest.
pub fn used() -> ([u64; 2], u64) {
    let used = crate::sys::used_by_children();
    ([used.user_us, used.system_us], used.peak_bytes)
}

/// The same without a tally.
///
/// # Errors
/// The program cannot be started.
pub fn run_plain(command: &mut Command, keep: &[RawFd]) -> io::Result<ProgramEnd> {
    let signals = SignalSet::all();
    let before = signals.block()?;
    let descriptor = signals.descriptor()?;
    let child = sys::spawn_beside(command, before)? as i32;
    let ours = [keep, &[descriptor.as_raw_fd()]].concat();
    let _ = sys::let_go_of_others(&ours);
    ProgramBeside { descriptor, child, witness: Witness::start().ok() }.serve()
}

/// A command with its program.
struct ProgramBeside {
    descriptor: OwnedFd,
    child: i32,
    /// None where no process can be made: then a signal to the group comes twice.
    witness: Option<Witness>,
}

impl ProgramBeside {
    fn serve(mut self) -> io::Result<ProgramEnd> {
        loop {
            weft_kernel::await_events(self.descriptor.as_raw_fd(), libc::POLLIN, None)?;
            let (came, shared) = self.take_signals();
            came.iter().filter(|came| shared & bit(came.signal) == 0).for_each(|came| self.pass_on(came));
            while let Some(status) = sys::change_of(self.child)? {
                if libc::WIFEXITED(status) {
                    return Ok(ProgramEnd::Code(libc::WEXITSTATUS(status)));
                }
                if libc::WIFSIGNALED(status) {
                    return Ok(ProgramEnd::Signal(libc::WTERMSIG(status)));
                }
                if libc::WIFSTOPPED(status) {
                    self.stop(libc::WSTOPSIG(status));
                }
            }
        }
    }

    /// What has come, and which of it the program has got with its group, as bits.
    fn take_signals(&mut self) -> (Vec<ArrivedSignal>, u64) {
        let (mut came, mut got) = (Vec::new(), 0);
        loop {
            let more = std::iter::from_fn(|| read_signal_from(&self.descriptor));
            let before = came.len();
            came.extend(more.filter(|came| came.signal != libc::SIGCHLD));
            if came.len() == before {
                break;
            }
            // What a witness has got stays with it, so each answers once. The next one has what we have not read.
            let next = self.witness.as_ref().and_then(|_| Witness::start().ok());
            got |= std::mem::replace(&mut self.witness, next).map_or(0, |witness| witness.signals());
        }
        // A shell, say, moves into a group of its own.
        (came, if sys::group_of(self.child) == sys::group_of(0) { got } else { 0 })
    }

    fn pass_on(&self, came: &ArrivedSignal) {
        let group = sys::group_of(self.child);
        match came.signal {
            libc::SIGCONT if group != sys::group_of(0) => drop(kill(-group, came.signal)),
            libc::SIGCONT => drop(kill(self.child, came.signal)),
            // Typed at the terminal: the program is in the same group and gets it as well.
            libc::SIGINT | libc::SIGQUIT | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU | libc::SIGWINCH
                if came.by_kernel => {}
            _ if came.sender == self.child => {}
            _ => drop(kill(self.child, came.signal)),
        }
    }

    /// The program has stopped by this signal. Who is stopped by his number alone is continued by it, too; but where he
    /// has the terminal, a shell waits for our stop to take that back.
    fn stop(&self, signal: i32) {
        let (ours, its) = (sys::group_of(0), sys::group_of(self.child));
        let terminal = sys::terminal();
        let has_terminal = |group| terminal.as_ref().is_some_and(|terminal| sys::foreground(terminal) == Some(group));
        let had_it = has_terminal(its);
        if signal == libc::SIGSTOP && !(had_it && sys::has_shell()) {
            return;
        }
        crate::signals::stop_here();
        // The shell has given it to our group.
        if let Some(terminal) = terminal.as_ref().filter(|_| had_it && its != ours && has_terminal(ours)) {
            sys::give_terminal(terminal, its);
        }
    }
}

/// In a set of signals.
fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_in_the_memory_is_read() {
        let tally = Tally::new().expect("memory");
        assert_eq!(tally.sums(), Sums::default());
        let (name, address) = tally.variable();
        let address = Address::parse(&address).expect("an address");
        assert_eq!((name, address.process), (tally::VARIABLE, std::process::id()));
        let memory = File::options().write(true).open(format!("/proc/self/fd/{}", address.descriptor)).expect("it");
        let at = tally::STRIPES_AT + 5 * tally::STRIPE_BYTES;
        std::os::unix::fs::FileExt::write_all_at(&memory, &9u64.to_le_bytes(), at as u64).expect("written");
        assert_eq!(tally.sums().counters[0], 9);
        assert!(memory.set_len(0).is_err(), "nobody can take it from those who have it mapped");
    }
}
