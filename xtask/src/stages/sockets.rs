//! The feature keeps these tests out of a plain `cargo test`. Not in parallel: the programs time what they see.

use crate::command::cargo;
use crate::machine::Need;
use crate::stage::{Stage, cargo_test};

pub static STAGE: Stage = Stage {
    name: "sockets",
    meaning: "what programs see of sockets, on the kernel and with the library preloaded, and random operations on both",
    needs: &[Need::CCompiler],
    gate: false,
    run: || {
        let tests = ["behaviour", "duplex", "oracle", "short", "squatted", "stats", "udp"]
            .map(|part| format!("--test sockets_{part}"))
            .join(" ");
        let arguments =
            format!("test -p weft-tests --features sockets --no-fail-fast {tests} -- --test-threads 1 --show-output");
        cargo_test(cargo(&arguments.split(' ').collect::<Vec<_>>()))
    },
};
