//! The hidden command `weftd man DIR`, which writes the manual page.

use crate::DaemonArguments;
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::Path;

/// What the daemon uses, where an administrator looks for it.
const FILES: [(&str, &str); 5] = [
    (
        "/etc/weft/NAME.toml, ~/.config/weft/NAME.toml",
        "The cluster, for all users or for one. A newer version is taken by itself.",
    ),
    ("NAME.key", "The key of the cluster, beside its file. Who has it may do everything in the cluster."),
    (
        "NAME.log",
        "What a daemon says that weft cluster start has started, beside the file. With systemd it is in the journal.",
    ),
    ("/var/lib/weft, ~/.local/state/weft", "Records of jobs, and the last version that was good."),
    ("TCP and UDP port 7337", "The daemons among each other; the page for browsers is on port 7338 of this host."),
];

/// Writes it into `folder`.
///
/// # Errors
/// It cannot be written.
pub fn write(folder: &Path) -> Result<()> {
    let path = folder.join("weftd.8");
    std::fs::write(&path, page()?).with_context(|| format!("cannot write {}", path.display()))
}

fn page() -> Result<Vec<u8>> {
    let command = DaemonArguments::command().disable_help_subcommand(true);
    let mut page = Vec::new();
    Man::new(command).section("8").render(&mut page)?;
    section("FILES", &FILES).to_writer(&mut page)?;
    let signals = [("SIGTERM, SIGINT", "The daemon ends, and says goodbye to the others. Jobs go on.")];
    section("SIGNALS", &signals).to_writer(&mut page)?;
    let see_also = [("weft-cluster(1), weft-ps(1), weft-drain(1), weft-kill(1), weft-logs(1)", "")];
    section("SEE ALSO", &see_also).to_writer(&mut page)?;
    Ok(page)
}

fn section(title: &str, all: &[(&str, &str)]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (name, text) in all {
        section.control("TP", []);
        section.text([bold(*name)]);
        section.text([roman(*text)]);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_options_and_files_and_nothing_hidden() {
        let page = String::from_utf8(page().expect("made")).expect("text");
        for part in [".TH weftd 8", "page\\-token", "/var/lib/weft", ".SH FILES", "SIGTERM"] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("weftd\\-door") && !page.contains("detach"), "{page}");
    }
}
