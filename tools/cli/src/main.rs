#![forbid(unsafe_code)]
//! The `weft` command: a table of subcommands, each in its own file.
//!
//! Installed under another name that people type (`mpiexec`, `mpirun`), it is the front of that name.

mod mpiexec;
mod run;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;

/// Runs parallel programs over user-level communication.
#[derive(Parser)]
#[command(name = "weft", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a parallel program on this host.
    Run(run::Arguments),
    /// Start a parallel program with the options of mpiexec and mpirun.
    #[command(disable_help_flag = true)]
    Mpiexec(mpiexec::Arguments),
}

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments.first().and_then(|path| Path::new(path).file_name()).and_then(|name| name.to_str());
    let code = match name {
        Some(front @ ("mpiexec" | "mpirun")) => mpiexec::main(front, &arguments[1..]),
        _ => weft(arguments),
    };
    std::process::exit(code);
}

fn weft(arguments: Vec<OsString>) -> i32 {
    let arguments = run::first_program_only(arguments);
    let matches = Cli::command().get_matches_from(&arguments.own);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Run(given) => run::main(given, &arguments.further),
        Command::Mpiexec(given) => mpiexec::main("weft mpiexec", &given.arguments),
    }
}
