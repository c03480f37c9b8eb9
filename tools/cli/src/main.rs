//! The `weft` command: a table of subcommands, each in its own file.
//!
//! Under another name that people type (`mpicc`, `mpicxx`, `mpifort`, `mpiexec`, `mpirun`, `parallel`) it is the front
//! of that name, and under a link of the user's own to one of those (`mympicc`) as well.
#![forbid(unsafe_code)]

mod ask;
mod cc;
mod closed;
mod cluster;
mod complete;
mod counted;
mod defaults;
mod environment;
mod fronts;
mod hosts;
mod info;
mod jobs;
mod logs;
mod manual;
mod name;
mod ps;
mod pvm;
mod reach;
mod registered;
mod rendezvous;
mod run;
mod sock;
mod spawned;
mod time;
mod top;
mod tune;

use anyhow::Result;
use cc::Language;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use fronts::{mpiexec, parallel, srun};
use std::ffi::{OsStr, OsString};
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
    /// Start a parallel program on this host or on several.
    #[command(long_about = run::LONG_ABOUT)]
    Run(run::RunArguments),
    /// Start a parallel program with the options of mpiexec and mpirun.
    #[command(disable_help_flag = true, alias = "mpirun")]
    Mpiexec(fronts::FrontArguments),
    /// Start a parallel program with the options of Slurm's srun, without Slurm.
    #[command(disable_help_flag = true)]
    Srun(fronts::FrontArguments),
    /// Start TCGMSG programs as a PROCGRP file says.
    #[command(disable_help_flag = true)]
    Parallel(fronts::FrontArguments),
    /// Compile a C program.
    #[command(disable_help_flag = true, long_about = cc::LONG_ABOUT)]
    Cc(CompilerArguments),
    /// Compile a C++ program.
    #[command(name = "c++", disable_help_flag = true, long_about = cc::LONG_ABOUT)]
    Cxx(CompilerArguments),
    /// Compile a Fortran program.
    #[command(disable_help_flag = true, long_about = cc::FORTRAN_ABOUT)]
    Fc(CompilerArguments),
    /// Run a network program with its sockets over shared memory.
    #[command(long_about = sock::LONG_ABOUT)]
    Sock(sock::SockArguments),
    /// Let programs find our MPI libraries that are not started by weft run: a plain python, a notebook.
    #[command(long_about = environment::LONG_ABOUT)]
    Env(environment::EnvArguments),
    /// Compare MPI libraries side by side on this machine.
    Bench(weft_bench::BenchArgs),
    /// Show this user's jobs on this host and what each rank is doing.
    #[command(after_long_help = ps::after_help())]
    Ps(ps::PsArguments),
    /// Show jobs that are over: who ran what where, how it ended, and what it used.
    #[command(long_about = jobs::LONG_ABOUT)]
    Jobs(jobs::JobsArguments),
    /// Show what the ranks of a job have written lately, wherever it runs or has run.
    #[command(long_about = logs::LONG_ABOUT)]
    Logs(logs::LogsArguments),
    /// Run a command and say what it and the ranks of all jobs that it starts have used, on all hosts.
    #[command(long_about = time::LONG_ABOUT)]
    Time(time::TimeArguments),
    /// Show hosts, queue and jobs of the cluster from second to second.
    #[command(long_about = top::LONG_ABOUT)]
    Top(top::TopArguments),
    /// Look after this user's virtual machine of PVM: start it, show it, start tasks.
    #[command(long_about = pvm::LONG_ABOUT)]
    Pvm(pvm::MachineArguments),
    /// Measure what is best for messages on this machine, for jobs that start from now on.
    #[command(long_about = tune::LONG_ABOUT)]
    Tune(tune::TuneArguments),
    /// Show version, devices and settings; of programs, which MPI each was built for and whether it runs here.
    Info {
        /// Show how messages of each length go, and why
        #[arg(long, conflicts_with = "programs")]
        choices: bool,
        /// Programs to look at
        #[arg(value_name = "PROGRAM")]
        programs: Vec<std::path::PathBuf>,
    },
    /// Look after the members of a cluster and the partitions that jobs run on.
    #[command(subcommand, long_about = cluster::LONG_ABOUT)]
    Cluster(cluster::ClusterCommand),
    /// Send a signal to jobs of a cluster, wherever they run.
    Kill(ask::KillArguments),
    /// Let a member of a cluster take nothing new: what runs there goes on.
    Drain(ask::DrainArguments),
    /// Look at the hosts that jobs may run on.
    #[command(subcommand)]
    Hosts(hosts::HostsCommand),
    /// Say in JSON what this host has; for `weft hosts check`, through a launch command.
    #[command(hide = true)]
    About,
    /// Be one of two ranks and measure the way to the other one; for `weft hosts check`.
    #[command(hide = true)]
    Distance,
    /// Serve as the place where connected processes of this host, and of others, find each other.
    #[command(long_about = rendezvous::LONG_ABOUT)]
    Rendezvous(rendezvous::RendezvousArguments),
    /// Stand for the launcher on one of several hosts: started by it, through its launch command.
    #[command(hide = true)]
    Agent {
        /// Run from a copy: the libraries beside it stand for those in this directory of the launcher.
        #[arg(long, value_name = "DIR")]
        in_place_of: Option<PathBuf>,
    },
    /// Start what a running job has asked for, and look after it as `weft run` does.
    #[command(hide = true)]
    Spawned(spawned::SpawnedArguments),
    /// Say which build this is, with the libraries beside it.
    #[command(hide = true)]
    Checksum,
    /// Write the manual pages.
    #[command(hide = true)]
    Man { folder: PathBuf },
    /// Write the names that may come behind these words; for completions.
    #[command(hide = true)]
    Names {
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Write completions for a shell.
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
}

/// `weft run` and nothing else: to define all commands takes longer than to start a small job.
#[derive(Parser)]
#[command(name = "weft", version, max_term_width = 100)]
struct RunCli {
    #[command(subcommand)]
    command: RunCommand,
}

#[derive(Subcommand)]
enum RunCommand {
    /// Start a parallel program on this host or on several.
    #[command(long_about = run::LONG_ABOUT)]
    Run(run::RunArguments),
}

#[derive(clap::Args)]
struct CompilerArguments {
    /// Passed to the compiler.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Exit code for a command line that cannot be understood, as option parsers have it.
const EXIT_USAGE: i32 = 2;

fn main() {
    closed::end_where_nobody_reads();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let name = name::of(Path::new(arguments.first().map_or(OsStr::new(""), |name| name)));
    let outcome = match (Language::of_name(&name), name.as_str()) {
        (Some(language), _) => compile(&arguments[1..], language),
        (None, "mpiexec" | "mpirun") => Ok(mpiexec::main(&name, &arguments[1..])),
        (None, "parallel") => Ok(parallel::main(&name, &arguments[1..])),
        _ => weft(arguments),
    };
    std::process::exit(outcome.unwrap_or_else(|error| {
        eprintln!("{name}: {error:#}");
        1
    }));
}

fn weft(arguments: Vec<OsString>) -> Result<i32> {
    let arguments = run::first_program_only(arguments);
    if arguments.own.get(1).is_some_and(|name| name == "run") {
        let RunCli { command: RunCommand::Run(given) } =
            parse(&arguments.own).unwrap_or_else(|error| refuse("weft run", &error));
        return Ok(run::main(given, &arguments.further));
    }
    let cli = parse::<Cli>(&arguments.own).unwrap_or_else(|error| {
        let subcommand = arguments.own.get(1).and_then(|name| name.to_str()).filter(|name| !name.starts_with('-'));
        refuse(&subcommand.map_or("weft".to_owned(), |name| format!("weft {name}")), &error)
    });
    Ok(match cli.command {
        Command::Run(given) => run::main(given, &arguments.further),
        Command::Mpiexec(given) => mpiexec::main("weft mpiexec", &given.arguments),
        Command::Srun(given) => srun::main("weft srun", &given.arguments),
        Command::Parallel(given) => parallel::main("weft parallel", &given.arguments),
        Command::Cc(compiler) => compile(&compiler.arguments, Language::C)?,
        Command::Cxx(compiler) => compile(&compiler.arguments, Language::Cxx)?,
        Command::Fc(compiler) => compile(&compiler.arguments, Language::Fortran)?,
        Command::Sock(given) => sock::main(given),
        Command::Env(given) => environment::main(&given)?,
        Command::Bench(given) => weft_bench::run(given).map(|()| 0)?,
        Command::Ps(given) => ps::run(given)?,
        Command::Jobs(given) => jobs::main(&given)?,
        Command::Logs(given) => logs::main(&given)?,
        Command::Time(given) => time::main(&given),
        Command::Top(given) => top::main(&given)?,
        Command::Info { choices: true, .. } => info::choices::run(),
        Command::Info { programs, .. } if programs.is_empty() => info::run(weft_fabric::probe),
        Command::Info { programs, .. } => info::programs(&programs),
        Command::Pvm(given) => pvm::main(&given)?,
        Command::Tune(given) => tune::main(&given)?,
        Command::Cluster(given) => cluster::main(given),
        Command::Kill(given) => ask::kill(&given)?,
        Command::Drain(given) => ask::drain(&given)?,
        Command::Hosts(given) => hosts::main(given),
        Command::About => hosts::about(weft_fabric::probe).map(|()| 0)?,
        Command::Distance => weft_bench::run_distance().map(|()| 0)?,
        Command::Rendezvous(given) => rendezvous::main(&given).map(|()| 0)?,
        Command::Agent { in_place_of } => weft_agent::serve(run::segment, run::lanes, in_place_of.as_deref()),
        Command::Spawned(given) => spawned::main(given),
        Command::Checksum => {
            println!("{}", weft_agent::checksum_of_kit()?);
            0
        }
        Command::Man { folder } => manual::man(Cli::command(), &folder).map(|()| 0)?,
        Command::Names { words } => complete::names(&words),
        Command::Completions { shell } => {
            manual::completions(Cli::command(), shell, &mut std::io::stdout()).map(|()| 0)?
        }
    })
}

/// Compiles, or says what there is to say of that: `--help` alone is for us, with anything else for the compiler.
fn compile(arguments: &[OsString], language: Language) -> Result<i32> {
    if arguments != ["--help"] {
        return cc::run(arguments, language);
    }
    print!("{}", compiler_help(language));
    Ok(0)
}

fn compiler_help(language: Language) -> String {
    let mut command = Cli::command();
    command.build();
    let name = language.command();
    let described = name.strip_prefix("weft ").and_then(|name| command.find_subcommand_mut(name));
    described.map(|command| command.render_long_help().to_string()).unwrap_or_default()
}

/// Stack that the parser is given. It needs more than some users allow (`ulimit -s 64`).
const STACK: usize = 2 << 20;

/// Reads a command line. Where the stack may be small, on one of its own, by a thread that is gone before anything else
/// begins; where none can be made (`ulimit -u`, a sandbox), here.
fn parse<P: Parser + Send>(words: &[OsString]) -> Result<P, clap::Error> {
    let (allowed, _) = weft_kernel::limits(libc::RLIMIT_STACK).unwrap_or_default();
    // Arguments and environment take a quarter at most.
    if allowed >= 2 * STACK as u64 {
        return P::try_parse_from(words);
    }
    let thread = std::thread::Builder::new().stack_size(STACK);
    std::thread::scope(|scope| {
        match thread.spawn_scoped(scope, || P::try_parse_from(words)).map(|thread| thread.join()) {
            Ok(Ok(parsed)) => parsed,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) if allowed < STACK as u64 => {
                eprintln!(
                    "weft: the command line cannot be read: no thread can be made ({error}), and the stack may have {allowed} \
                     bytes only (ulimit -s), less than {STACK}"
                );
                std::process::exit(1)
            }
            Err(_) => P::try_parse_from(words),
        }
    })
}

/// Ends with one line that says what is wrong with the command line; help, also where nothing was asked for, and
/// version are printed as they are.
fn refuse(front: &str, error: &clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => eprint!("{error}"),
        _ => eprintln!("{front}: {}{}", one_line(&error.to_string()), advice(front, error)),
    }
    std::process::exit(EXIT_USAGE)
}

/// To who gives `weft run` an option of the launchers of others.
fn advice(front: &str, error: &clap::Error) -> &'static str {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if front == "weft run" && mpiexec::has(option) => {
            "; weft mpiexec takes the options of mpiexec and mpirun"
        }
        _ => "",
    }
}

/// The parser's message without its decoration: the paragraph that says what is wrong, and its hints.
fn one_line(message: &str) -> String {
    let paragraphs = message.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let wanted = paragraphs.enumerate().filter(|(at, text)| *at == 0 || is_hint(text));
    let wanted = wanted.map(|(_, text)| text.split(" tip: to pass").next().unwrap_or_default().to_owned());
    let text = wanted.collect::<Vec<_>>().join("; ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// A hint at what was meant. That anything can be passed after `--` is true and helps nobody.
fn is_hint(paragraph: &str) -> bool {
    paragraph.starts_with("tip:") && !paragraph.starts_with("tip: to pass")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parser_s_message_becomes_one_line() {
        let error = Cli::try_parse_from(["weft", "run", "--tag-outptu", "true"]).err().expect("unknown option");
        let line = one_line(&error.to_string());
        assert!(line.starts_with("unexpected argument '--tag-outptu' found"), "{line}");
        assert!(line.contains("'--tag-output'") && !line.contains('\n'), "{line}");
        let error = Cli::try_parse_from(["weft", "sock", "--statz", "true"]).err().expect("unknown option");
        let line = one_line(&error.to_string());
        assert!(advice("weft sock", &error).is_empty());
        let of_others = Cli::try_parse_from(["weft", "run", "--oversubscribe", "true"]).err().expect("unknown option");
        assert!(advice("weft run", &of_others).contains("weft mpiexec"));
        assert!(line.ends_with("a similar argument exists: '--stats'"), "{line}");
    }

    #[test]
    fn compilers_have_a_help_of_ours() {
        for (language, usage) in [(Language::C, "weft cc"), (Language::Cxx, "weft c++"), (Language::Fortran, "weft fc")]
        {
            let help = compiler_help(language);
            for said in [&format!("Usage: {usage} [ARGUMENTS]...")[..], "-showme:link", "the folder", "-v --help"] {
                assert!(help.contains(said), "{said}: {help}");
            }
        }
    }

    #[test]
    fn definition_of_the_command_line_is_sound() {
        <Cli as clap::CommandFactory>::command().debug_assert();
        <RunCli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn run_is_the_same_by_itself_and_among_all_commands() {
        let help = |mut all: clap::Command| {
            all.build();
            let run = all.find_subcommand_mut("run").expect("it is there");
            [run.render_help(), run.render_long_help(), run.render_usage()].map(|text| text.to_string())
        };
        assert_eq!(help(RunCli::command()), help(Cli::command()));
    }
}
