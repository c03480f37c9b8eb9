//! The `weft` command: a table of subcommands, each in its own file.
//!
//! Under another name that people type (`mpicc`, `mpicxx`, `mpiexec`, `mpirun`) it is the front of that name.
#![forbid(unsafe_code)]

mod cc;
mod info;
mod manual;
mod mpiexec;
mod ps;
mod run;

use anyhow::Result;
use cc::Language;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
    /// Compile a C program.
    #[command(disable_help_flag = true)]
    Cc(CompilerArguments),
    /// Compile a C++ program.
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(CompilerArguments),
    /// Compare MPI libraries side by side on this machine.
    Bench(weft_bench::BenchArgs),
    /// Show this user's jobs on this host and what each rank is doing.
    Ps(ps::Arguments),
    /// Show version, devices and settings.
    Info,
    /// Write the manual pages.
    #[command(hide = true)]
    Man { folder: PathBuf },
    /// Write completions for a shell.
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
}

#[derive(clap::Args)]
struct CompilerArguments {
    /// Passed to the compiler.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments.first().and_then(|path| Path::new(path).file_name()).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let outcome = match (Language::of_name(&name), name.as_str()) {
        (Some(language), _) => cc::run(&arguments[1..], language),
        (None, "mpiexec" | "mpirun") => Ok(mpiexec::main(&name, &arguments[1..])),
        _ => weft(arguments),
    };
    std::process::exit(outcome.unwrap_or_else(|error| {
        eprintln!("{name}: {error:#}");
        1
    }));
}

fn weft(arguments: Vec<OsString>) -> Result<i32> {
    let arguments = run::first_program_only(arguments);
    let matches = Cli::command().get_matches_from(&arguments.own);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    Ok(match cli.command {
        Command::Run(given) => run::main(given, &arguments.further),
        Command::Mpiexec(given) => mpiexec::main("weft mpiexec", &given.arguments),
        Command::Cc(compiler) => cc::run(&compiler.arguments, Language::C)?,
        Command::Cxx(compiler) => cc::run(&compiler.arguments, Language::Cxx)?,
        Command::Bench(given) => weft_bench::run(given).map(|()| 0)?,
        Command::Ps(given) => ps::run(given)?,
        Command::Info => info::run(weft_fabric::probe),
        Command::Man { folder } => manual::man(Cli::command(), &folder).map(|()| 0)?,
        Command::Completions { shell } => {
            manual::completions(Cli::command(), shell, &mut std::io::stdout());
            0
        }
    })
}
