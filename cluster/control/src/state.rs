//! The state of a running job: what each rank has reached, when the others must be ended, and the exit code.
//!
//! The exit code is that of the first failure in time: the rank's own code, 128 + signal for one killed by a signal,
//! [`EXIT_TIMEOUT`] for a job that took too long, 1 for a rank that left the others without `MPI_Finalize`. What
//! happens to ranks after we began to end them is a consequence and does not count.

mod cause;

use crate::pmi::Lost;
pub use cause::{Cause, signal_name, signal_text};
use weft_wire::interface::InterfaceName;

/// Exit code of a job that ran longer than its time limit.
pub const EXIT_TIMEOUT: i32 = 124;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Killed by the kernel, because memory had run out; or by force, and that may have been the kernel.
    OutOfMemory {
        is_sure: bool,
    },
}

/// How far a rank has come with MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mpi {
    Never,
    Initialised,
    Finalised,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RankLife {
    Waiting,
    Running,
    Ended(Exit),
}

#[derive(Clone, Debug)]
struct RankState {
    pid: u32,
    mpi: Mpi,
    /// By which it has begun.
    interface: InterfaceName,
    life: RankLife,
}

/// What the launcher has to do after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    Continue,
    /// What was told follows from something that is not known yet: call [`JobState::handle_no_cause`] when it has been
    /// waited for in vain.
    AwaitCause,
    /// End all ranks that still run: politely, then, after a grace, by force.
    EndOthers,
    /// This rank is lost, and the others go on: tell them, and the user.
    TellOthers(usize),
}

/// A failure with the rank that it happened to; `rank` is `None` for what concerns the whole job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub rank: Option<usize>,
    pub cause: Cause,
}

/// A rank that aborts after it has lost another one, whose end may be told later.
#[derive(Clone, Debug)]
struct HeldAbort {
    rank: usize,
    cause: Cause,
    lost: Lost,
}

/// Follows the ranks of one job.
#[derive(Clone, Debug)]
pub struct JobState {
    ranks: Vec<RankState>,
    /// The name of each rank's host.
    hosts: Vec<String>,
    failures: Vec<Failure>,
    /// Aborts that are failures unless their cause is told first.
    held: Vec<HeldAbort>,
    /// We have begun to end the ranks.
    ending: bool,
    /// Ranks that had not ended when we began to end them. Of some, that they run may not have been heard yet.
    ended_by_us: usize,
    /// Where ranks are lost the others go on.
    keeps_going: bool,
    /// Those that were, in this order.
    lost: Vec<Failure>,
}

impl JobState {
    /// A job with a rank on each of `hosts`, which are named once for every rank; none runs yet.
    pub fn new(hosts: Vec<String>) -> Self {
        let rank = RankState { pid: 0, mpi: Mpi::Never, interface: InterfaceName::Mpi, life: RankLife::Waiting };
        let (failures, held, lost) = Default::default();
        let ranks = vec![rank; hosts.len()];
        Self { ranks, hosts, failures, held, ending: false, ended_by_us: 0, keeps_going: false, lost }
    }

    /// Where a rank is lost (killed, or ended without `MPI_Finalize`), the others go on. Then a lost rank is a failure
    /// of the job only if no rank ends well.
    pub fn keep_going(&mut self) {
        self.keeps_going = true;
    }

    pub fn handle_started(&mut self, rank: usize, pid: u32) {
        self.ranks[rank].pid = pid;
        self.ranks[rank].life = RankLife::Running;
    }

    /// `reason` is the system's text.
    pub fn handle_not_started(&mut self, rank: usize, program: &str, reason: &str) -> Decision {
        self.ranks[rank].life = RankLife::Ended(Exit::Code(126));
        let cause = Cause::NotStarted { program: program.to_owned(), reason: reason.to_owned() };
        self.fail(Some(rank), cause)
    }

    /// The rank begins by this interface; MPI unless told.
    pub fn handle_interface(&mut self, rank: usize, interface: InterfaceName) {
        self.ranks[rank].interface = interface;
    }

    /// The rank called `MPI_Init`. Too late, when another has already ended without it.
    pub fn handle_initialised(&mut self, rank: usize) -> Decision {
        self.ranks[rank].mpi = Mpi::Initialised;
        match self
            .ranks
            .iter()
            .position(|other| other.mpi == Mpi::Never && other.life == RankLife::Ended(Exit::Code(0)))
        {
            Some(absent) => self.lose(absent, Cause::NeverInitialised { interface: self.ranks[rank].interface }),
            None => Decision::Continue,
        }
    }

    pub fn handle_finalised(&mut self, rank: usize) {
        self.ranks[rank].mpi = Mpi::Finalised;
    }

    /// The rank called `MPI_Abort`, after it has `lost` another one: it may see that before we are told of that one's
    /// end, which is the cause then. Who is lost in a job that was spawned may have been ended for the loss of one of
    /// ours.
    pub fn handle_abort(&mut self, rank: usize, code: i32, message: &str, lost: Option<Lost>) -> Decision {
        let cause = Cause::Aborted { code, message: message.to_owned(), interface: self.ranks[rank].interface };
        match lost.filter(|lost| !self.ending && !self.keeps_going && self.may_be_told(*lost, rank)) {
            Some(lost) => {
                self.held.push(HeldAbort { rank, cause, lost });
                Decision::AwaitCause
            }
            None => self.fail(Some(rank), cause),
        }
    }

    /// The cause of what was told has been waited for in vain.
    pub fn handle_no_cause(&mut self) -> Decision {
        let first = self.held.drain(..).next();
        match first {
            Some(HeldAbort { rank, cause, .. }) => self.fail(Some(rank), cause),
            None => Decision::Continue,
        }
    }

    /// Whether the end of a rank that may be the cause is still to be told, where `aborting` has lost this one.
    fn may_be_told(&self, lost: Lost, aborting: usize) -> bool {
        let lives = |rank: usize| rank != aborting && !self.has_ended(rank);
        match lost {
            Lost::Rank(rank) => lives(rank),
            Lost::Elsewhere => (0..self.ranks.len()).any(lives),
        }
    }

    /// A rank has ended without a failure of its own. Where no other is waited for, the first abort counts.
    fn settle(&mut self) -> Decision {
        let awaits = self.held.iter().any(|held| self.may_be_told(held.lost, held.rank));
        if awaits { Decision::Continue } else { self.handle_no_cause() }
    }

    /// The rank broke the protocol with the launcher.
    pub fn handle_fault(&mut self, rank: usize, reason: &str) -> Decision {
        self.fail(Some(rank), Cause::Fault { reason: reason.to_owned() })
    }

    /// The rank's process ended. Feed what the rank said over PMI before this.
    pub fn handle_exit(&mut self, rank: usize, exit: Exit) -> Decision {
        self.ranks[rank].life = RankLife::Ended(exit);
        if self.held.iter().any(|held| held.rank == rank) {
            // As its abort has said.
            return self.settle();
        }
        let interface = self.ranks[rank].interface;
        let of_others = self.ranks.iter().find(|other| other.mpi != Mpi::Never).map(|other| other.interface);
        let cause = match (exit, self.ranks[rank].mpi) {
            (Exit::Signal(signal), _) => Cause::Killed { signal },
            (Exit::OutOfMemory { is_sure }, _) => Cause::OutOfMemory { is_sure },
            (Exit::Code(0), Mpi::Initialised) => Cause::NotFinalised { interface },
            (Exit::Code(0), Mpi::Never) => match of_others {
                Some(interface) => Cause::NeverInitialised { interface },
                None => return self.settle(),
            },
            (Exit::Code(0), Mpi::Finalised) => return self.settle(),
            (Exit::Code(code), Mpi::Finalised) => {
                // The rank has taken its leave, so nobody waits for it: the others go on to their own end.
                let _ = self.note(Some(rank), Cause::ExitedAfterFinalize { code, interface });
                return self.settle();
            }
            (Exit::Code(code), _) => Cause::Exited { code },
        };
        self.lose(rank, cause)
    }

    /// The rank is gone without leave.
    fn lose(&mut self, rank: usize, cause: Cause) -> Decision {
        if !self.keeps_going {
            return self.fail(Some(rank), cause);
        }
        if self.ending || self.lost.iter().any(|failure| failure.rank == Some(rank)) {
            return Decision::Continue;
        }
        self.lost.push(Failure { rank: Some(rank), cause });
        Decision::TellOthers(rank)
    }

    /// The line that tells of the rank that was lost last.
    pub fn loss(&self) -> Option<String> {
        self.lost.last().map(|failure| format!("{}; the others go on", self.failure_line(failure, 0)))
    }

    /// The time limit is over.
    pub fn handle_timeout(&mut self, limit: &str) -> Decision {
        self.fail(None, Cause::Timeout { limit: limit.to_owned() })
    }

    /// The user insists on the end with a second interrupt.
    pub fn handle_insistence(&mut self, signal: i32) -> Decision {
        self.fail(None, Cause::Interrupted { signal })
    }

    /// The launcher itself cannot go on.
    pub fn handle_breakdown(&mut self, reason: &str) -> Decision {
        self.fail(None, Cause::Breakdown { reason: reason.to_owned() })
    }

    fn fail(&mut self, rank: Option<usize>, cause: Cause) -> Decision {
        // Who aborts ends by itself.
        let aborter = rank.filter(|_| matches!(cause, Cause::Aborted { .. }));
        let aborting =
            self.held.iter().map(|held| held.rank).chain(aborter).filter(|rank| self.is_running(*rank)).count();
        let first = self.note(rank, cause);
        if !first {
            return Decision::Continue;
        }
        self.ending = true;
        self.ended_by_us = self.not_ended() - aborting;
        Decision::EndOthers
    }

    /// Whether the end of the ranks has begun.
    pub fn is_ending(&self) -> bool {
        self.ending
    }

    /// Writes a failure down unless it is a consequence of our ending the ranks; answers whether it was written.
    fn note(&mut self, rank: Option<usize>, cause: Cause) -> bool {
        if !self.ending {
            self.failures.push(Failure { rank, cause });
        }
        !self.ending
    }

    fn not_ended(&self) -> usize {
        self.ranks.iter().filter(|rank| !matches!(rank.life, RankLife::Ended(_))).count()
    }

    /// Ranks that have been started and not ended.
    pub fn running(&self) -> usize {
        self.ranks.iter().filter(|rank| rank.life == RankLife::Running).count()
    }

    fn has_ended(&self, rank: usize) -> bool {
        matches!(self.ranks[rank].life, RankLife::Ended(_))
    }

    /// Whether every rank has ended or could not be started.
    pub fn is_over(&self) -> bool {
        self.ranks.iter().all(|rank| matches!(rank.life, RankLife::Ended(_)))
    }

    /// Whether the rank has been started and not ended.
    pub fn is_running(&self, rank: usize) -> bool {
        self.ranks[rank].life == RankLife::Running
    }

    /// The process id of a rank, once started.
    pub fn pid(&self, rank: usize) -> Option<u32> {
        (self.ranks[rank].pid != 0).then_some(self.ranks[rank].pid)
    }

    /// How the rank's process ended, once it has been told.
    pub fn exit(&self, rank: usize) -> Option<Exit> {
        match self.ranks[rank].life {
            RankLife::Ended(exit) => Some(exit),
            RankLife::Waiting | RankLife::Running => None,
        }
    }

    /// Whether the rank has taken its leave; nothing where it never began.
    pub fn has_finalised(&self, rank: usize) -> Option<bool> {
        (self.ranks[rank].mpi != Mpi::Never).then_some(self.ranks[rank].mpi == Mpi::Finalised)
    }

    /// The failure that the exit code is of.
    pub fn first_failure(&self) -> Option<&Failure> {
        let ended_well = |rank: &RankState| rank.life == RankLife::Ended(Exit::Code(0)) && rank.mpi != Mpi::Initialised;
        let lost = self.lost.first().filter(|_| !self.ranks.iter().any(ended_well));
        self.failures.first().or(lost)
    }

    /// The same in words.
    pub fn cause(&self) -> Option<String> {
        self.first_failure().map(|failure| self.failure_line(failure, 0))
    }

    /// What the launcher exits with when the job is over.
    pub fn exit_code(&self) -> i32 {
        self.first_failure().map_or(0, |failure| failure.cause.exit_code())
    }

    /// The report in lines: one per distinct failure (alike ones share a line), and how many ranks were ended for it.
    pub fn report(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut told = vec![false; self.failures.len()];
        for (at, failure) in self.failures.iter().enumerate() {
            if told[at] {
                continue;
            }
            let alike: Vec<usize> =
                (at + 1..self.failures.len()).filter(|other| self.failures[*other].cause == failure.cause).collect();
            alike.iter().for_each(|other| told[*other] = true);
            let line = self.failure_line(failure, alike.len());
            let absent = matches!(failure.cause, Cause::NotFinalised { .. } | Cause::NeverInitialised { .. });
            let why =
                if absent && self.ended_by_us > 0 { "; the others, which may wait for it, are ended" } else { "" };
            lines.push(line + why);
        }
        match self.ended_by_us {
            0 => {}
            1 => lines.push("the 1 rank that still ran was ended".to_owned()),
            n => lines.push(format!("the {n} ranks that still ran were ended")),
        }
        lines
    }

    fn failure_line(&self, failure: &Failure, alike: usize) -> String {
        let Failure { rank, cause } = failure;
        let more = match alike {
            0 => String::new(),
            1 => " (and 1 more rank alike)".to_owned(),
            n => format!(" (and {n} more ranks alike)"),
        };
        match rank {
            None => format!("{cause}"),
            Some(rank) => {
                let pid = self.pid(*rank).map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                format!("rank {rank}{pid} on {} {cause}{more}", self.hosts[*rank])
            }
        }
    }
}

#[cfg(test)]
mod tests;
