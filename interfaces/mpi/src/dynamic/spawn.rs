//! Spawning: a job of its own, whose launcher gets its order at a door of the root, and whose processes then come in
//! there as whoever connects does.

use super::{meet, ports};
use crate::comm::agree::tell;
use crate::comm::{Comm, abi as comms};
use crate::error::{Class, Error, Result};
use crate::info::Info;
use crate::world::WORLD;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weft_fabric::InterfaceName;
use weft_fabric::door::{DoorError, Talk};
use weft_fabric::spawn::{Program, SpawnOrder, SpawnWord};

/// How long a launcher may take until it asks what it is to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The communicator with the processes that have spawned this one.
static PARENT: AtomicUsize = AtomicUsize::new(crate::abi::COMM_NULL);

/// One program, as the root gives it.
pub(super) struct WantedProgram {
    pub command: String,
    pub arguments: Vec<OsString>,
    pub maxprocs: i32,
    pub info: Info,
}

/// What all learn of a spawn that was tried: how many processes were asked for, and which of them could not be started.
pub(super) struct TriedSpawn {
    pub processes: usize,
    pub outcome: Result<usize>,
}

impl WantedProgram {
    fn program(self) -> Result<Program> {
        let Self { command, arguments, maxprocs, info } = self;
        if command.is_empty() {
            return Err(Error::new(Class::Spawn, "command is empty; it names the program to be started"));
        }
        let ranks = usize::try_from(maxprocs)
            .map_err(|_| Error::new(Class::Arg, format!("maxprocs {maxprocs} of '{command}' is negative")))?;
        let ranks = soft_ranks(info.get("soft"), ranks)?;
        let here = std::env::current_dir().ok();
        let directory = info.get("wdir").map(PathBuf::from);
        let directory = match (here, directory) {
            (Some(here), Some(directory)) => Some(here.join(directory)),
            (here, directory) => directory.or(here),
        };
        let path = info.get("path").unwrap_or_default();
        let found = path.split(':').filter(|place| !place.is_empty() && !command.contains('/'));
        let found = found.map(|place| PathBuf::from(place).join(&command)).find(|file| file.is_file());
        let program = found.map_or(command, |file| file.to_string_lossy().into_owned());
        Ok(Program { program, arguments, ranks, environment: Vec::new(), directory })
    }
}

/// The number of processes where `soft` names the numbers that are allowed as well: the largest of them up to `most`.
/// All that are asked for can be started, or none.
fn soft_ranks(soft: Option<&str>, most: usize) -> Result<usize> {
    let Some(soft) = soft else { return Ok(most) };
    let wrong = || Error::new(Class::Spawn, format!("info key soft is '{soft}', allowed are numbers and ranges a:b:c"));
    let mut best = None;
    for part in soft.split(',') {
        let numbers =
            part.split(':').map(|number| number.trim().parse::<i64>()).collect::<std::result::Result<Vec<_>, _>>();
        let (from, to, step) = match numbers.map_err(|_| wrong())?[..] {
            [one] => (one, one, 1),
            [from, to] => (from, to, 1),
            [from, to, step] if step != 0 => (from, to, step),
            _ => return Err(wrong()),
        };
        let steps = (to - from) / step;
        let allowed = (0..=steps.min(1 << 20)).map(|number| from + number * step);
        let fits = allowed.filter_map(|number| usize::try_from(number).ok()).filter(|number| *number <= most);
        best = best.max(fits.max());
    }
    best.ok_or_else(|| Error::new(Class::Spawn, format!("info key soft ('{soft}') allows no number up to {most}")))
}

/// Spawns: `wanted` only in the root.
pub(super) fn spawn(call: &'static str, comm: &Arc<Comm>, root: u32, wanted: Option<Vec<WantedProgram>>) -> TriedSpawn {
    let (processes, found) = match wanted {
        None => (0, None),
        Some(wanted) => {
            let sum = wanted.iter().map(|wanted| usize::try_from(wanted.maxprocs).unwrap_or(0)).sum();
            let programs = wanted.into_iter().map(WantedProgram::program).collect::<Result<Vec<_>>>();
            (sum, Some(programs.and_then(|programs| begin(call, programs))))
        }
    };
    let said = tell(call, comm, [processes as u64, 0, 0, 0]).map(|said| said[root as usize][0] as usize);
    let processes = said.as_ref().copied().unwrap_or(0);
    let outcome = said.and_then(|_| meet::together(call, comm, root, found));
    TriedSpawn { processes, outcome }
}

/// As the root: has the programs started, and waits for their processes.
fn begin(call: &'static str, programs: Vec<Program>) -> Result<meet::MetRoot> {
    let failed = |why: String| Error::new(Class::Spawn, why);
    if programs.iter().all(|program| program.ranks == 0) {
        return Err(failed("no process is asked for: maxprocs is 0".to_owned()));
    }
    let door = ports::door()?;
    let name = door.name().to_owned();
    let names: Vec<String> = programs.iter().map(|program| program.program.clone()).collect();
    let order = SpawnOrder::new(programs, InterfaceName::Mpi, &name).encode();
    WORLD.enter().endpoint.start_launcher(&name).map_err(failed)?;
    let door = Arc::new(Mutex::new(door));
    let (mut launcher, begun): (Option<Talk>, _) = (None, Instant::now());
    let told = |word: &SpawnWord| match word {
        SpawnWord::Started | SpawnWord::Ended { .. } => Ok(()),
        SpawnWord::Failed { text } => Err(failed(text.clone())),
    };
    meet::await_visitor(call, &door, |came| {
        if let Some((mut talk, piece)) = came
            && SpawnOrder::is_asked_for(&piece)
        {
            talk.say(&order);
            launcher = Some(talk);
        }
        match launcher.as_mut().map(Talk::poll) {
            None if begun.elapsed() > PATIENCE => {
                Err(failed(format!("the launcher has not asked for its order for {} s", PATIENCE.as_secs())))
            }
            None | Some(Ok(None)) => Ok(()),
            Some(Ok(Some(piece))) => SpawnWord::decode(&piece).map_or(Ok(()), |word| told(&word)),
            Some(Err(DoorError::Closed)) => {
                Err(failed(format!("the processes of '{}' ended before they called MPI_Init", names.join("', '"))))
            }
            Some(Err(error)) => Err(failed(format!("the launcher of the new processes is lost: {error}"))),
        }
    })
}

/// Joins those who have spawned this job, if somebody has: all processes of it together, when the world is there.
pub(crate) fn greet_parent() -> Result<()> {
    let parent = WORLD.enter().endpoint.take_parent();
    let Some(parent) = parent else { return Ok(()) };
    let world = comms::of(crate::abi::COMM_WORLD)?;
    const CALL: &str = "MPI_Init";
    let found = (world.rank == 0).then(|| meet::connect(CALL, &parent, None));
    let handle = meet::together(CALL, &world, 0, found).map_err(|error| {
        Error::new(Class::Spawn, format!("those who have spawned this job are gone: {}", error.detail))
    })?;
    if let Ok(comm) = comms::of(handle) {
        comm.state().name = "MPI_COMM_PARENT".to_owned();
    }
    PARENT.store(handle, Ordering::Release);
    Ok(())
}

/// The handle of that communicator; null once it was freed.
pub(super) fn parent() -> usize {
    let handle = PARENT.load(Ordering::Acquire);
    if handle != crate::abi::COMM_NULL && WORLD.enter().comms.get(handle).is_ok() {
        handle
    } else {
        crate::abi::COMM_NULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_chooses_the_largest_number_that_it_allows() {
        assert_eq!(soft_ranks(None, 3), Ok(3));
        assert_eq!(soft_ranks(Some("1:10:4"), 6), Ok(5));
        assert_eq!(soft_ranks(Some("2,4"), 4), Ok(4));
        assert_eq!(soft_ranks(Some("8:2:-3"), 4), Ok(2));
        for wrong in ["", "x", "1:2:0", "1:2:3:4", "7"] {
            assert_eq!(soft_ranks(Some(wrong), 4).map_err(|error| error.class), Err(Class::Spawn), "{wrong}");
        }
    }
}
