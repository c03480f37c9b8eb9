//! Whole network programs, and the oracle. Some of them still fail with the library (docs/guide/sockets.md says which), so
//! this stage runs when it is named and not with all others.
//!
//! Not in parallel: several of the programs keep all cores busy, and time limits of their own.

use crate::command::cargo;
use crate::machine::Need;
use crate::stage::{Stage, cargo_test};

pub static STAGE: Stage = Stage {
    name: "programs",
    meaning: "network programs, unmodified, and random socket operations against kernel TCP (only when named)",
    needs: Need::NETWORK_PROGRAMS,
    gate: false,
    run: || {
        let tests = ["--test", "sockets_oracle", "--test", "sockets_programs"];
        let arguments = [&["test", "-p", "weft-tests", "--features", "sockets", "--no-fail-fast"], &tests[..]].concat();
        cargo_test(cargo(&[&arguments[..], &["--", "--test-threads", "1", "--show-output"]].concat()))
    },
};
