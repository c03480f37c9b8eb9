//! Lines for who looks after the daemon: to standard error, which systemd or `weft cluster start` keeps.

use std::fmt::Display;
use std::io::Write;

/// Says a line. Where it cannot be written, on a full disk, the daemon goes on.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "weftd: {line}");
}
