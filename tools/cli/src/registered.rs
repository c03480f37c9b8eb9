//! Processes that are no jobs and are to be seen in `weft ps --cluster`: the daemon of this host is told that they have
//! begun, and sees their end itself.

use std::ffi::OsString;
use weft_requests::{Demand, Description, RegisteredKind, client};

/// Tells the daemon of this host, if one runs, of this process and of the command that it is or becomes. Nobody waits
/// for what it says, or for one that hangs: without it all goes on as well.
pub fn registered(kind: RegisteredKind, command: &[OsString]) {
    let mut words = command.iter().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let about = Description { program, arguments: words.collect(), kind, ..Description::default() };
    let _ = client::announce(&Demand::Register(about.bounded()));
}
