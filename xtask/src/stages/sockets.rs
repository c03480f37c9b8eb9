//! The feature keeps these tests out of a plain `cargo test`: the programs that they run are many, and nothing else needs
//! them. Not in parallel: several of the programs keep all cores busy, and time limits of their own.

use crate::command::cargo;
use crate::machine::Need;
use crate::stage::{Stage, cargo_test};

pub static STAGE: Stage = Stage {
    name: "sockets",
    meaning: "network programs, unmodified, and random socket operations against kernel TCP",
    needs: Need::NETWORK_PROGRAMS,
    gate: false,
    run: || {
        let tests = ["--test", "sockets_behaviour", "--test", "sockets_oracle", "--test", "sockets_programs"];
        let arguments = [&["test", "-p", "weft-tests", "--features", "sockets", "--no-fail-fast"], &tests[..]].concat();
        cargo_test(cargo(&[&arguments[..], &["--", "--test-threads", "1", "--show-output"]].concat()))
    },
};
