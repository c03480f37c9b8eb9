//! Whole programs, unmodified: network programs with the socket library preloaded, MPI programs that others built, and
//! the launchers of others.
//!
//! Not in parallel: several of the programs keep all cores busy, and time limits of their own.
//!
//! They are many packages, and no other stage needs them: where they cannot be installed, this stage alone is not run.

use crate::machine::{self, Need};
use crate::stage::{Stage, StageOutcome, cargo_test};
use crate::stages::targets::{self, TestNeed};

pub static STAGE: Stage = Stage {
    name: "programs",
    meaning: "network programs, name servers, prebuilt MPI programs and other launchers, unmodified",
    needs: &[Need::CCompiler],
    gate: false,
    run: || {
        for needs in [Need::NETWORK_PROGRAMS, Need::MPI_PROGRAMS, Need::LAUNCHERS, Need::NAME_SERVERS] {
            if let Err(lack) = machine::provide(needs) {
                return Ok(StageOutcome::NotRun(format!("{lack:#}")));
            }
        }
        cargo_test(targets::test(TestNeed::Programs, &["--", "--test-threads", "1"])?)
    },
};
