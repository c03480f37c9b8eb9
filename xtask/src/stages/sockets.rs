//! The feature keeps these tests out of a plain `cargo test`. Not in parallel: the programs time what they see.

use crate::machine::Need;
use crate::stage::{Stage, cargo_test};
use crate::stages::targets::{self, TestNeed};

pub static STAGE: Stage = Stage {
    name: "sockets",
    meaning: "what programs see of sockets, on the kernel and with the library preloaded, and random operations on both",
    needs: &[Need::CCompiler],
    gate: false,
    run: || cargo_test(targets::test(TestNeed::Sockets, &["--", "--test-threads", "1", "--show-output"])?),
};
