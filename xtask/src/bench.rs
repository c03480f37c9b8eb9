//! `cargo xtask bench`: the release build, then `weft bench`.

use anyhow::Result;

use crate::command::Program;
use crate::install;
use crate::machine::{self, Need};

pub fn run(arguments: &[String]) -> Result<()> {
    machine::provide(&[Need::CCompiler, Need::PythonVenv])?;
    let prefix = install::tree(false)?;
    Program::new(prefix.join("bin/weft")).args(["bench"]).args(arguments).run()
}
