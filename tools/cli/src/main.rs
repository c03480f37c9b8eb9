//! The `weft` command. Each subcommand is a module; this file reads the command line and calls one of them.
#![forbid(unsafe_code)]

mod cc;
mod info;
mod manual;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use cc::Language;

#[derive(Parser)]
#[command(name = "weft", version, about = "Parallel programs over user-level communication")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile a C program
    #[command(disable_help_flag = true)]
    Cc(CompilerArguments),
    /// Compile a C++ program
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(CompilerArguments),
    /// Show version, devices and settings
    Info,
    /// Write the manual pages
    #[command(hide = true)]
    Man { folder: PathBuf },
    /// Write completions for a shell
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
}

#[derive(clap::Args)]
struct CompilerArguments {
    /// Passed to the compiler
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    let name = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy();
    let result = match Language::of_name(&name) {
        Some(language) => cc::run(&std::env::args_os().skip(1).collect::<Vec<_>>(), language),
        None => run(Arguments::parse().command),
    };
    match result {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<i32> {
    match command {
        Command::Cc(compiler) => cc::run(&compiler.arguments, Language::C),
        Command::Cxx(compiler) => cc::run(&compiler.arguments, Language::Cxx),
        Command::Info => Ok(info::run(Vec::new)),
        Command::Man { folder } => manual::man(Arguments::command(), &folder).map(|()| 0),
        Command::Completions { shell } => {
            manual::completions(Arguments::command(), shell, &mut std::io::stdout());
            Ok(0)
        }
    }
}
