//! Whole programs, unmodified: network programs with the socket library preloaded, MPI programs that others built, and
//! the launchers of others.
//!
//! Not in parallel: several of the programs keep all cores busy, and time limits of their own.
//!
//! They are many packages, and no other stage needs them: where they cannot be installed, this stage alone is not run.

use crate::command::cargo;
use crate::machine::{self, Need};
use crate::stage::{Outcome, Stage, cargo_test};

pub static STAGE: Stage = Stage {
    name: "programs",
    meaning: "network programs, name servers, prebuilt MPI programs and other launchers, unmodified",
    needs: &[Need::CCompiler],
    gate: false,
    run: || {
        for needs in [Need::NETWORK_PROGRAMS, Need::MPI_PROGRAMS, Need::LAUNCHERS, Need::NAME_SERVERS] {
            if let Err(lack) = machine::provide(needs) {
                return Ok(Outcome::NotRun(format!("{lack:#}")));
            }
        }
        let arguments = "test -p weft-tests --features sockets,programs --no-fail-fast --test sockets_programs \
                         --test mpi_programs --test launchers --test name_servers --test pmix -- --test-threads 1";
        cargo_test(cargo(&arguments.split_whitespace().collect::<Vec<_>>()))
    },
};
