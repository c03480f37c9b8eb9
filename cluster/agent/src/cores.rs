//! The cores of this host: which are ours to use, and claiming them so that two jobs do not share one while others
//! idle.
//!
//! A claim is a bound abstract Unix socket, named by the core's first hardware thread. The kernel frees the name when
//! the last process of the job that holds the descriptor is gone, however it dies. Such names are seen by everybody in
//! one network namespace; jobs in different ones do not see each other's claims.

use crate::LaunchError;
use std::fs::read_to_string;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use weft_cluster::placement::{Bind, Core, HostOffer, cores_wanted, parse_cpu_list, plan};

/// Cores that no other job takes while this value (or a forked copy of it) lives.
#[derive(Debug, Default)]
pub struct Claims {
    _sockets: Vec<UnixDatagram>,
}

/// The core of each rank, or `None` for "not bound", with the claims that hold them.
pub fn place(bind: Bind, ranks: usize) -> Result<(Option<Vec<Core>>, Claims), LaunchError> {
    if bind == Bind::None {
        return Ok((None, Claims::default()));
    }
    let mask = weft_kernel::affinity().map_err(LaunchError::system("affinity mask"))?;
    let cores = cores_of(&mask);
    let quota = weft_kernel::quota();
    let wanted = cores_wanted(bind, ranks, cores.len(), quota);
    let mut claims = Claims::default();
    let free = claim(&cores, wanted, &mut claims);
    let plan = plan(bind, ranks, &HostOffer { free, allowed: cores.len(), quota })?;
    // What is not used is free again at once.
    Ok(if plan.is_some() { (plan, claims) } else { (None, Claims::default()) })
}

/// Claims the first `wanted` cores that are free.
fn claim(cores: &[Core], wanted: usize, claims: &mut Claims) -> Vec<Core> {
    let mut free = Vec::new();
    for core in cores {
        if free.len() == wanted {
            break;
        }
        let Some(first) = core.first() else { continue };
        let Ok(address) = SocketAddr::from_abstract_name(format!("weft-core-{first}")) else { continue };
        if let Ok(socket) = UnixDatagram::bind_addr(&address) {
            claims._sockets.push(socket);
            free.push(core.clone());
        }
    }
    free
}

/// The hardware threads in `mask`, put together into cores.
fn cores_of(mask: &[usize]) -> Vec<Core> {
    let one_thread_each = read_to_string("/sys/devices/system/cpu/smt/active").is_ok_and(|text| text.trim() == "0");
    if one_thread_each {
        return mask.iter().map(|cpu| vec![*cpu]).collect();
    }
    let mut cores: Vec<Core> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for cpu in mask {
        if seen.insert(*cpu) {
            let core: Core = siblings(*cpu).into_iter().filter(|cpu| mask.binary_search(cpu).is_ok()).collect();
            seen.extend(core.iter().copied());
            cores.push(core);
        }
    }
    cores
}

fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = read_to_string(path).ok().and_then(|text| parse_cpu_list(&text));
    list.filter(|list| list.contains(&cpu)).unwrap_or_else(|| vec![cpu])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_core_is_not_given_twice_and_is_free_after() {
        // Numbers that no machine has, so that no job on this one is in the way.
        let cores: Vec<Core> = vec![vec![1_000_001], vec![1_000_002]];
        let (mut ours, mut theirs) = (Claims::default(), Claims::default());
        assert_eq!(claim(&cores, 1, &mut ours), [vec![1_000_001]]);
        assert_eq!(claim(&cores, 2, &mut theirs), [vec![1_000_002]]);
        drop(ours);
        assert_eq!(claim(&cores, 1, &mut theirs), [vec![1_000_001]]);
    }

    #[test]
    fn every_thread_of_the_mask_is_in_one_core() {
        let mask = weft_kernel::affinity().unwrap();
        let mut all = cores_of(&mask).concat();
        all.sort_unstable();
        assert_eq!(all, mask);
    }
}
