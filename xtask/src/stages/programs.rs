//! Whole network programs, unmodified, with the socket library preloaded.
//!
//! Not in parallel: several of the programs keep all cores busy, and time limits of their own.
//!
//! They are many packages, and no other stage needs them: where they cannot be installed, this stage alone is not run.

use crate::command::cargo;
use crate::machine::{self, Need};
use crate::stage::{Outcome, Stage, cargo_test};

pub static STAGE: Stage = Stage {
    name: "programs",
    meaning: "network programs, unmodified, with the library preloaded",
    needs: &[Need::CCompiler],
    gate: false,
    run: || {
        if let Err(lack) = machine::provide(Need::NETWORK_PROGRAMS) {
            return Ok(Outcome::NotRun(format!("{lack:#}")));
        }
        let arguments =
            "test -p weft-tests --features sockets --no-fail-fast --test sockets_programs -- --test-threads 1";
        cargo_test(cargo(&arguments.split(' ').collect::<Vec<_>>()))
    },
};
