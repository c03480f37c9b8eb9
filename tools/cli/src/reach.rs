//! How other hosts are reached, and which host is this one.

pub mod batch;

use weft_cluster::hosts::{Launch, SlotHost};

/// The command that starts a program on a host, where nothing else says it.
pub const LAUNCH_VARIABLE: &str = "WEFT_LAUNCH";

/// How hosts are reached, as the environment says.
///
/// # Errors
/// It says what is no launch command.
pub fn launch_of_environment() -> Result<Launch, Vec<String>> {
    launch_of_environment_or(Launch::default())
}

/// The same where another command than ssh is usual.
fn launch_of_environment_or(usual: Launch) -> Result<Launch, Vec<String>> {
    match std::env::var(LAUNCH_VARIABLE) {
        Ok(given) => given.parse().map_err(|error| vec![format!("{LAUNCH_VARIABLE}: {error}")]),
        Err(_) => Ok(usual),
    }
}

/// Whether a host is the one that we are on.
pub fn is_here(name: &str) -> bool {
    let here = weft_agent::host_name();
    let short = here.split('.').next().unwrap_or_default();
    ["localhost", "127.0.0.1", "::1", here.as_str(), short].contains(&name)
}

/// Whether all of them are names of this host, so that nothing has to be reached.
pub fn are_here(hosts: &[SlotHost]) -> bool {
    hosts.iter().all(|host| is_here(&host.name))
}
