//! The hosts that a batch system has given to the job which we are started in.

use super::launch_of_environment_or;
use weft_cluster::allocation::{Allocation, AllocationError, BatchSystem, read};
use weft_cluster::hosts::Launch;

/// What there is. A job that a rank of a job starts takes none: each of them would take all.
///
/// # Errors
/// A variable is not understood.
pub fn allocation() -> Result<Option<Allocation>, AllocationError> {
    if std::env::var_os(weft_agent::JOB_VARIABLE).is_some() {
        return Ok(None);
    }
    let file = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    read(|name| std::env::var(name).ok(), file)
}

/// How these hosts are reached, where the command line does not say it.
///
/// # Errors
/// The environment does, and it is no launch command.
pub fn launch(system: BatchSystem) -> Result<Launch, Vec<String>> {
    let usual = system.launch().and_then(|command| command.parse().ok()).unwrap_or_default();
    launch_of_environment_or(usual)
}
