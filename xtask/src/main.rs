//! Every developer command: `cargo xtask COMMAND`.
//!
//! The commands start other programs (cargo, the C compiler, `weft`) and say each one before it runs, so that anything
//! seen here can be repeated by hand. What the machine lacks is found before work begins, not in the middle of it.
//!
//! Not here: any knowledge of how the rooms work. What a stage needs to know it learns from cargo or from `weft`.
#![forbid(unsafe_code)]

mod bench;
mod command;
mod demo;
mod hosts;
mod install;
mod machine;
mod silence;
mod stage;
mod stages;
mod wire_docs;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use install::Symbols;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: TaskCommand,
}

#[derive(Subcommand)]
enum TaskCommand {
    /// Every test, with all set-up
    Test {
        /// Only these stages (see `cargo xtask stages`)
        stages: Vec<String>,
    },
    /// The stages that `test` runs, in order
    Stages,
    /// Build everything, run heat diffusion on 4 ranks, write a picture
    Demo {
        /// Also copy the last picture to this file
        #[arg(long)]
        picture: Option<PathBuf>,
    },
    /// Put commands, library, header and manual under one directory
    Install {
        /// The directory: DIR/bin, DIR/lib, DIR/include, DIR/share
        #[arg(long, value_name = "DIR")]
        prefix: PathBuf,
        /// Keep the symbols of programs and libraries, in files of their own where debuggers look for them
        #[arg(long)]
        symbols: bool,
    },
    /// The same under target/weft, from where the tests and the demo run
    Tree {
        /// Build without optimisation: faster to build, slower to run
        #[arg(long)]
        quick: bool,
    },
    /// Benchmarks, ours and the peers side by side; arguments go to `weft bench`
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Several hosts on this machine, made of network namespaces (needs root)
    Hosts {
        #[command(subcommand)]
        command: hosts::TestHostsCommand,
    },
    /// Explore thread interleavings of the lock-free parts
    Loom,
    /// Run the tests of the rooms with unsafe code under the address sanitizer
    Sanitize,
    /// Say which pages of docs/wire are older than the code that they describe
    WireDocs {
        /// First renew these (segment, tcp, ...), which you have read
        pages: Vec<String>,
    },
    /// What this machine lacks
    Doctor {
        /// Install it through the system's package manager
        #[arg(long)]
        install: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command; `false` means that it ran and found something wrong, which has been said.
fn run(command: TaskCommand) -> Result<bool> {
    match command {
        TaskCommand::Test { stages } => stage::run(&stages::chosen(&stages)?, stage::Missing::IsToldOnly),
        TaskCommand::Stages => {
            stages::ALL.iter().for_each(|stage| println!("{:<10} {}", stage.name, stage.meaning));
            Ok(true)
        }
        TaskCommand::Demo { picture } => demo::run(picture.as_deref()).map(|()| true),
        TaskCommand::Install { prefix, symbols } => {
            let symbols = if symbols { Symbols::Beside } else { Symbols::Left };
            install::run(&prefix, symbols).map(|()| true)
        }
        TaskCommand::Tree { quick } => install::tree(quick).map(|_| true),
        TaskCommand::Bench { arguments } => bench::run(&arguments).map(|()| true),
        TaskCommand::Hosts { command } => hosts::run(&command),
        TaskCommand::Loom => stage::run(&[&stages::LOOM], stage::Missing::Fails),
        TaskCommand::Sanitize => stage::run(&[&stages::SANITIZE], stage::Missing::Fails),
        TaskCommand::WireDocs { pages } => wire_docs::run(&pages),
        TaskCommand::Doctor { install } => machine::doctor(install),
    }
}
