//! The feature keeps these tests out of a plain `cargo test`. Not in parallel: the programs time what they see.

use crate::command::cargo;
use crate::machine::Need;
use crate::stage::{Stage, cargo_test};

pub static STAGE: Stage = Stage {
    name: "sockets",
    meaning: "what programs see of sockets, on the kernel and with the library preloaded",
    needs: &[Need::CCompiler],
    gate: false,
    run: || {
        let tests = ["--test", "sockets_behaviour", "--test", "sockets_duplex"];
        let arguments = [&["test", "-p", "weft-tests", "--features", "sockets", "--no-fail-fast"], &tests[..]].concat();
        cargo_test(cargo(&[&arguments[..], &["--", "--test-threads", "1", "--show-output"]].concat()))
    },
};
