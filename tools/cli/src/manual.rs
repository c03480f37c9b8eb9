//! The hidden commands `weft man DIR` and `weft completions SHELL`, made from the definition of the command line.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::complete;
use crate::fronts::{mpiexec, parallel, srun};
use crate::pvm;
use anyhow::{Context, Result};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use weft_wire::settings::DEFINITIONS;

/// Other names of our commands and the pages that describe them.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("mpicc", "weft-cc"),
    ("mpifort", "weft-fc"),
    ("mpif90", "weft-fc"),
    ("mpif77", "weft-fc"),
    ("mpicxx", "weft-c++"),
    ("mpic++", "weft-c++"),
    ("mpiexec", "weft-mpiexec"),
    ("mpirun", "weft-mpiexec"),
    ("parallel", "weft-parallel"),
];

/// Commands of which the parser does not know all, the section that describes the rest, and its text.
const DESCRIBED: [(&str, &str, Help); 4] = [
    ("weft-mpiexec", "USAGE", mpiexec::help),
    ("weft-srun", "USAGE", srun::help),
    ("weft-parallel", "USAGE", parallel::help),
    ("weft-pvm", "COMMANDS", pvm::commands),
];

/// Makes the text that describes a command.
type Help = fn() -> String;

/// Writes a page per command, and one per other name that points to it, into `folder`.
///
/// # Errors
/// A file cannot be written.
pub fn man(command: clap::Command, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    pages(&command, folder)?;
    for (name, page) in OTHER_NAMES {
        if folder.join(format!("{page}.1")).exists() {
            write(folder, name, format!(".so man1/{page}.1\n").as_bytes())?;
        }
    }
    Ok(())
}

/// The page of this command and of all below it.
fn pages(command: &clap::Command, folder: &Path) -> Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    for (_, section, help) in DESCRIBED.iter().filter(|(described, ..)| *described == name) {
        as_typed(section, &help()).to_writer(&mut page)?;
    }
    if command.has_subcommands() {
        environment().to_writer(&mut page)?;
    }
    write(folder, name, &page)?;
    let mut visible = command.get_subcommands().filter(|below| !below.is_hide_set());
    visible.try_for_each(|below| pages(below, folder))
}

/// The settings, from their table.
fn environment() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["ENVIRONMENT"]);
    for definition in DEFINITIONS {
        section.control("TP", []);
        section.text([bold(definition.env)]);
        let accepted =
            format!("{} Accepted: {}. Default: {}.", definition.meaning, definition.kind, definition.default);
        section.text([roman(accepted)]);
    }
    section
}

/// A section whose lines stay as they are.
fn as_typed(title: &str, text: &str) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    section.control("nf", []);
    for line in text.lines() {
        section.text([roman(line)]);
    }
    section.control("fi", []);
    section
}

fn write(folder: &Path, name: &str, page: &[u8]) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes what makes this shell complete our command line.
///
/// # Errors
/// Nobody reads it.
pub fn completions(command: clap::Command, shell: Shell, out: &mut impl Write) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&command), "weft", &mut script);
    let script = complete::with_names(shell, String::from_utf8_lossy(&script).into_owned());
    out.write_all(script.as_bytes()).context("cannot write it")
}

/// What help tells of a command, and nothing of what only our own programs use. Names have to live as long as the
/// program, which ends when it has written them.
fn visible(command: &clap::Command) -> clap::Command {
    let lasting = |name: &str| -> &'static str { name.to_owned().leak() };
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let below = command.get_subcommands().filter(|below| !below.is_hide_set()).map(visible);
    let about = command.get_about().cloned().unwrap_or_default();
    let aliases = command.get_visible_aliases().map(lasting);
    clap::Command::new(lasting(command.get_name()))
        .about(about)
        .visible_aliases(aliases)
        .args(arguments)
        .subcommands(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> clap::Command {
        let hidden = clap::Command::new("man").hide(true);
        let cc = clap::Command::new("cc").about("Compile a C program");
        clap::Command::new("weft")
            .subcommand(hidden)
            .subcommand(cc)
            .subcommand(clap::Command::new("mpiexec"))
            .subcommand(clap::Command::new("srun"))
            .subcommand(clap::Command::new("pvm"))
    }

    #[test]
    fn every_visible_command_and_other_name_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        man(command(), folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("weft-cc.1").contains("Compile a C program"));
        assert_eq!(read("mpicc.1"), ".so man1/weft-cc.1\n");
        assert!(!folder.path().join("weft-man.1").exists());
        assert_eq!(read("mpirun.1"), ".so man1/weft-mpiexec.1\n");
        assert!(read("weft-mpiexec.1").contains("genvall"), "options that are read by hand are described");
        assert!(read("weft-srun.1").contains("ntasks"), "the same");
        assert!(read("weft-pvm.1").contains("\nspawn [\\-COUNT]"), "commands of the console are described");
        let page = read("weft.1");
        for definition in DEFINITIONS {
            assert!(page.contains(definition.env), "{}", definition.env);
        }
    }

    #[test]
    fn completions_name_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            completions(command(), shell, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("Compile a C program") || shell == Shell::Bash);
            assert!(text.contains(" names -- "), "{shell} asks for names");
        }
    }
}
