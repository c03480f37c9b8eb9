//! Where we are installed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const LIBRARY: &str = "lib/libmpi_abi.so";

/// The directory over `bin`, `lib` and `include`.
///
/// It is found from where this command itself lies, so an installation can be moved as a whole. A command that cargo
/// has just built (`target/debug/weft`) uses the tree beside it (`target/weft`).
///
/// # Errors
/// There is no library in any of these places.
pub fn prefix() -> Result<PathBuf> {
    let command = std::env::current_exe().context("cannot find out where this command lies")?;
    prefix_of(&command)
}

pub(super) fn prefix_of(command: &Path) -> Result<PathBuf> {
    let installed = command.parent().and_then(Path::parent).context("this command lies in no directory")?;
    let places = [installed.to_owned(), installed.join("weft")];
    match places.iter().find(|place| place.join(LIBRARY).exists()) {
        Some(place) => Ok(place.clone()),
        None => bail!(
            "no {} (nor in {}); install with `cargo xtask install`, in a clone run `cargo xtask tree`",
            installed.join(LIBRARY).display(),
            places[1].display()
        ),
    }
}
