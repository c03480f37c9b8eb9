//! The name that we were called by.

use crate::cc::Language;
use std::path::{Path, PathBuf};

/// As many links as the kernel follows.
const LINKS: usize = 40;

fn is_front(name: &str) -> bool {
    Language::of_name(name).is_some() || matches!(name, "mpiexec" | "mpirun" | "parallel")
}

/// The name of the front that is meant: that of the command, or, where it is a link of the user's own, the first one
/// that it leads over. Otherwise the command's.
pub fn of(command: &Path) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own = name(command);
    if is_front(&own) {
        return own;
    }
    let mut path = found(command);
    for _ in 0..LINKS {
        let Some(next) = path.as_deref().and_then(followed) else { break };
        if is_front(&name(&next)) {
            return name(&next);
        }
        path = Some(next);
    }
    own
}

/// Where the file of a command lies that a shell has found.
fn found(command: &Path) -> Option<PathBuf> {
    if command.components().count() > 1 || command.is_absolute() {
        return Some(command.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(command)).find(|file| file.is_file())
}

/// What a link says, from where the link lies.
fn followed(link: &Path) -> Option<PathBuf> {
    let to = link.read_link().ok()?;
    Some(link.parent().map_or(to.clone(), |folder| folder.join(to)))
}
