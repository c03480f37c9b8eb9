//! Hosts and slots that a batch system has given to the job which we are started in: Slurm, PBS (Torque, PBS Pro) or
//! LSF.
//!
//! What it has to say stands in variables, and for some in a file that a variable names; both are handed in by
//! functions. Names are claims: each must be one that [`crate::hosts`] takes.
//!
//! Deliberately not there: the further components of a heterogeneous job of Slurm, and asking a batch system anything.
//!
//! Test: `cargo test -p weft-cluster allocation`.

use crate::hosts::{HOSTS_MAX, HostsError, SlotHost, parse_list};
use crate::job::RANKS_MAX;
use std::collections::HashMap;

/// Who has given the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSystem {
    Slurm,
    Pbs,
    Lsf,
}

/// What a job may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub system: BatchSystem,
    pub hosts: Vec<SlotHost>,
    /// How many ranks were asked for, where that was told apart from slots.
    pub ranks: Option<usize>,
}

/// A variable that does not say what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    #[error("{variable} is '{given}', which is not {allowed}")]
    Bad { variable: &'static str, given: String, allowed: &'static str },
    #[error("{variable} names '{path}', which cannot be read: {reason}")]
    File { variable: &'static str, path: String, reason: String },
    #[error("{variable}: {error}")]
    Hosts { variable: &'static str, error: HostsError },
}

impl std::fmt::Display for BatchSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Slurm => "Slurm",
            Self::Pbs => "PBS",
            Self::Lsf => "LSF",
        })
    }
}

impl BatchSystem {
    /// The command that starts an agent on a host of the allocation; none where that is `ssh`, as elsewhere. `pbsdsh`
    /// of PBS passes on no standard input, which an agent needs.
    ///
    /// Slurm's step takes nothing from other steps (`--overlap`) and binds nothing: what ranks get the agent decides.
    /// By default Slurm passes on whole lines only, and frames are none.
    pub fn launch(self) -> Option<&'static str> {
        match self {
            Self::Slurm => Some(
                "srun --quiet --overlap --unbuffered --mpi=none --cpu-bind=none --nodes=1 --ntasks=1 \
                 --ntasks-per-node=1 --nodelist={host}",
            ),
            Self::Pbs => None,
            Self::Lsf => Some("blaunch {host}"),
        }
    }
}

/// The allocation that we are started in. `variable` answers a variable's value, `file` the text of a file or why it
/// cannot be read.
///
/// There is none for one of several tasks of a Slurm step: each would take all hosts.
///
/// # Errors
/// A variable or file is there, and not understood.
pub fn read(
    variable: impl Fn(&'static str) -> Option<String>,
    file: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<Allocation>, AllocationError> {
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    let text_of = |name: &'static str, path: String| {
        file(&path).map_err(|reason| AllocationError::File { variable: name, path, reason })
    };
    if let Some(list) = variable("SLURM_JOB_NODELIST") {
        let tasks = variable("SLURM_STEP_NUM_TASKS").and_then(|tasks| tasks.parse::<usize>().ok());
        let is_one_of_several = tasks.is_some_and(|tasks| tasks > 1);
        return if is_one_of_several { Ok(None) } else { slurm(&list, variable).map(Some) };
    }
    let (system, name, words) = if let Some(path) = variable("PBS_NODEFILE") {
        (BatchSystem::Pbs, "PBS_NODEFILE", text_of("PBS_NODEFILE", path)?)
    } else if let Some(path) = variable("LSB_DJOB_HOSTFILE") {
        (BatchSystem::Lsf, "LSB_DJOB_HOSTFILE", text_of("LSB_DJOB_HOSTFILE", path)?)
    } else if let Some(pairs) = variable("LSB_MCPU_HOSTS") {
        return lsf_pairs(&pairs).map(Some);
    } else if let Some(words) = variable("LSB_HOSTS") {
        (BatchSystem::Lsf, "LSB_HOSTS", words)
    } else {
        return Ok(None);
    };
    let hosts = gathered(name, words.split_whitespace().map(|host| (host.to_owned(), 1)))?;
    Ok(Some(Allocation { system, hosts, ranks: None }))
}

/// A host that is listed again has the slots of both.
fn gathered(
    variable: &'static str,
    listed: impl Iterator<Item = (String, usize)>,
) -> Result<Vec<SlotHost>, AllocationError> {
    let mut hosts: Vec<SlotHost> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let wrong = |error| AllocationError::Hosts { variable, error };
    for (name, slots) in listed {
        match places.get(&name) {
            Some(at) => hosts[*at].slots = (hosts[*at].slots + slots).min(RANKS_MAX),
            None => {
                // A name alone, without the slots that a list may have.
                let single = parse_list(&name).ok().and_then(|mut list| list.pop()).filter(|host| host.name == name);
                let mut host = single.ok_or_else(|| wrong(HostsError::Bad { given: excerpt(&name) }))?;
                host.slots = slots.min(RANKS_MAX);
                places.insert(name, hosts.len());
                hosts.push(host);
            }
        }
    }
    match hosts.len() {
        0 => Err(wrong(HostsError::Empty)),
        1..=HOSTS_MAX => Ok(hosts),
        count => Err(wrong(HostsError::TooMany { count })),
    }
}

fn slurm(list: &str, variable: impl Fn(&'static str) -> Option<String>) -> Result<Allocation, AllocationError> {
    const LIST: &str = "SLURM_JOB_NODELIST";
    let bad = |variable, given: &str, allowed| AllocationError::Bad { variable, given: excerpt(given), allowed };
    let names = expand(list).ok_or_else(|| bad(LIST, list, "a list of hosts such as login,node[01-03,7]"))?;
    let mut slots = vec![1; names.len()];
    for name in ["SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"] {
        let Some(given) = variable(name) else { continue };
        let counts = counts(&given).ok_or_else(|| bad(name, &given, "counts such as 2(x3),1"))?;
        // In a step of one task the first is the step's, and the list the job's.
        if counts.len() == names.len() {
            slots = counts;
            break;
        }
    }
    let hosts = gathered(LIST, names.into_iter().zip(slots))?;
    let all: usize = hosts.iter().map(|host| host.slots).sum();
    let asked = variable("SLURM_NTASKS").filter(|_| variable("SLURM_STEP_ID").is_none());
    let ranks = asked.and_then(|ranks| ranks.parse().ok()).filter(|ranks| (1..=all).contains(ranks));
    Ok(Allocation { system: BatchSystem::Slurm, hosts, ranks })
}

/// `hostA 2 hostB 4`.
fn lsf_pairs(given: &str) -> Result<Allocation, AllocationError> {
    const NAME: &str = "LSB_MCPU_HOSTS";
    let words: Vec<&str> = given.split_whitespace().collect();
    let pair = |pair: &[&str]| match *pair {
        [host, slots] => Some((host.to_owned(), count(slots)?)),
        _ => None,
    };
    let pairs: Option<Vec<_>> = words.chunks(2).map(pair).collect();
    let allowed = "hosts with their slots, such as 'hostA 2 hostB 4'";
    let pairs = pairs.ok_or_else(|| AllocationError::Bad { variable: NAME, given: excerpt(given), allowed })?;
    Ok(Allocation { system: BatchSystem::Lsf, hosts: gathered(NAME, pairs.into_iter())?, ranks: None })
}

/// The names of a list as Slurm writes it, such as `login,node[01-03,7]` or `r[1-2]n[1-4]`; numbers keep the digits of
/// the first. `None` for what is no such list, or names more hosts than a job may have.
pub fn expand(list: &str) -> Option<Vec<String>> {
    let mut inside = false;
    let parts = list.split(|letter| {
        inside = (inside || letter == '[') && letter != ']';
        letter == ',' && !inside
    });
    let mut names = Vec::new();
    for part in parts.map(str::trim) {
        names.extend(expand_part(part)?);
        if names.len() > HOSTS_MAX {
            return None;
        }
    }
    Some(names)
}

/// The last brackets count fastest.
fn expand_part(part: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = part.split_once('[') else {
        return (!part.is_empty() && !part.contains(']')).then(|| vec![part.to_owned()]);
    };
    let (numbers, after) = rest.split_once(']')?;
    let endings = if after.is_empty() { vec![String::new()] } else { expand_part(after)? };
    let mut names = Vec::new();
    for range in numbers.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to, width) = (number(first)?, number(last)?, first.len());
        let count = to.checked_sub(from)?.checked_add(1)?;
        if count.checked_mul(endings.len())? > HOSTS_MAX - names.len() {
            return None;
        }
        for at in from..=to {
            names.extend(endings.iter().map(|ending| format!("{before}{at:0width$}{ending}")));
        }
    }
    Some(names)
}

/// `2(x3),1` as 2, 2, 2, 1.
fn counts(given: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in given.split(',') {
        let (value, times) = match part.split_once("(x") {
            None => (part, 1),
            Some((value, times)) => (value, number(times.strip_suffix(')')?)?),
        };
        if times > HOSTS_MAX - all.len().min(HOSTS_MAX) {
            return None;
        }
        all.extend(std::iter::repeat_n(count(value)?, times));
    }
    Some(all)
}

fn count(given: &str) -> Option<usize> {
    number(given).filter(|count| *count > 0)
}

fn number(given: &str) -> Option<usize> {
    let digits = (1..=18).contains(&given.len()) && given.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| given.parse().ok())?
}

fn excerpt(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(60).collect()
}

#[cfg(test)]
mod tests;
