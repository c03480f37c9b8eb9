//! The ten applications: a line of the table for each, which is all that a new one needs.
//!
//! Every program takes `--class`, checks its own result, and ends with one line `NAME: INPUT, ..., SECONDS s:
//! right`, where the seconds are those of its parallel part.

use crate::kernels::kernel::KernelName;

/// One application.
#[derive(Debug)]
pub struct PaperApp {
    /// The program.
    pub name: &'static str,
    /// As the paper calls it.
    pub title: &'static str,
    /// How processes communicate: the kernels of which the model takes the curves.
    pub patterns: &'static [KernelName],
    /// Arguments: seconds at most, the paper's input, and one that suits machines of today.
    pub quick: &'static str,
    pub paper: &'static str,
    pub large: &'static str,
    pub source: AppSource,
}

/// Where a program comes from.
#[derive(Debug)]
pub enum AppSource {
    /// Files of `apps` that are compiled here, beside those of [`RANKS`].
    C(&'static [AppFile]),
    /// A program that was built before.
    Program,
}

/// A name below `apps`, and what is in it.
pub type AppFile = (&'static str, &'static str);

macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../../../apps/", $name)))),*] };
}

/// What all programs in C share.
pub const RANKS: &[AppFile] = files!(
    "ranks/lines.c" "ranks/lines.h" "ranks/nas.h" "ranks/picture.c" "ranks/picture.h" "ranks/ranks.h" "ranks/run.c"
    "ranks/run.h" "ranks/mpi/ranks.c" "ranks/pvm/ranks.c"
);

const PERSONALISED: &[KernelName] = &[KernelName::Personalised];
const RING: &[KernelName] = &[KernelName::Ring];
const GROUP: &[KernelName] = &[KernelName::Group];
const RPC: &[KernelName] = &[KernelName::Messages];

/// In the order of the paper's table 1. Patterns are those of our programs: the paper's shallow water exchanged in a
/// hypercube and a ring.
pub const APPS: &[PaperApp] = &[
    PaperApp {
        name: "is",
        title: "Integer Sort",
        patterns: PERSONALISED,
        quick: "--class W --way keys",
        paper: "--class P --way keys",
        large: "--class B --way keys",
        source: AppSource::C(files!("is/is.c" "is/problem.c" "is/problem.h" "is/sort.c" "is/sort.h")),
    },
    PaperApp {
        name: "shallow",
        title: "Shallow Water",
        patterns: PERSONALISED,
        quick: "--class S",
        paper: "--class W",
        large: "--class A",
        source: AppSource::C(files!(
            "shallow/cases.c" "shallow/cases.h" "shallow/harmonics.c" "shallow/harmonics.h" "shallow/legendre.c"
            "shallow/legendre.h" "shallow/model.c" "shallow/model.h" "shallow/shallow.c" "shallow/sphere.c"
            "shallow/sphere.h"
        )),
    },
    PaperApp {
        name: "mg",
        title: "Multi-Grid",
        patterns: RING,
        quick: "--class S",
        paper: "--class S",
        large: "--class A",
        source: AppSource::C(files!("mg/charges.c" "mg/charges.h" "mg/grid.c" "mg/grid.h" "mg/mg.c")),
    },
    program("moca", "Monte Carlo", GROUP),
    program("sor", "SOR", RING),
    program("polygon", "Polygon Overlay", RPC),
    PaperApp {
        name: "fft",
        title: "3D-FFT",
        patterns: PERSONALISED,
        quick: "--class S",
        paper: "--class S",
        large: "--class A",
        source: AppSource::C(files!("fft/cube.c" "fft/cube.h" "fft/fft.c" "fft/problem.c" "fft/problem.h")),
    },
    program("skyline", "Skyline Matrix", &[KernelName::Messages, KernelName::Group]),
    program("barnes", "Barnes-Hut", GROUP),
    program("awari", "Awari", RPC),
];

/// One over shared objects. They have the same classes: S, P as the paper, L.
const fn program(name: &'static str, title: &'static str, patterns: &'static [KernelName]) -> PaperApp {
    let (quick, paper, large) = ("--class S", "--class P", "--class L");
    PaperApp { name, title, patterns, quick, paper, large, source: AppSource::Program }
}

/// Which input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum AppInput {
    /// A few seconds for all of them
    Quick,
    /// That of the paper, of 1998
    Paper,
    /// One that suits machines of today
    Large,
}

impl PaperApp {
    pub fn arguments(&self, input: AppInput) -> impl Iterator<Item = &'static str> + use<> {
        let line = match input {
            AppInput::Quick => self.quick,
            AppInput::Paper => self.paper,
            AppInput::Large => self.large,
        };
        line.split(' ')
    }
}

/// Seconds of a run, by the last line of what a program said.
///
/// # Errors
/// There is no such line, or it says that the result is wrong.
pub fn seconds(name: &str, said: &str) -> anyhow::Result<f64> {
    let wrong = || anyhow::anyhow!("it said '{}', not '{name}: ..., SECONDS s: right'", said.trim());
    let begin = format!("{name}: ");
    let line = said.lines().rev().find(|line| line.starts_with(&begin)).ok_or_else(wrong)?;
    let words = line.strip_suffix(" s: right").ok_or_else(wrong)?;
    let seconds: f64 = words.rsplit(' ').next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    if seconds > 0.0 { Ok(seconds) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn all_sources_of_a_program_are_there() {
        let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps");
        let of_folder = |folder: &str| -> BTreeSet<String> {
            let entries = std::fs::read_dir(apps.join(folder)).unwrap().flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            names
                .filter(|name| name.ends_with(".c") || name.ends_with(".h"))
                .map(|name| format!("{folder}/{name}"))
                .collect()
        };
        for app in APPS {
            let AppSource::C(files) = &app.source else { continue };
            let names: BTreeSet<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(names, of_folder(app.name));
        }
        let ranks: BTreeSet<String> = RANKS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let folders = ["ranks", "ranks/mpi", "ranks/pvm"];
        assert_eq!(ranks, folders.iter().flat_map(|folder| of_folder(folder)).collect());
    }

    #[test]
    fn there_are_the_ten_of_the_paper() {
        let names: BTreeSet<&str> = APPS.iter().map(|app| app.name).collect();
        assert_eq!((APPS.len(), names.len()), (10, 10));
        assert!(APPS.iter().all(|app| !app.patterns.is_empty()));
    }

    #[test]
    fn the_last_line_tells_the_seconds_and_whether_it_is_right() {
        let said = "is: 10 keys\nis: class P, 2 ranks, 0.1234 s: right\n";
        assert_eq!(seconds("is", said).unwrap(), 0.1234);
        assert_eq!(seconds("sor", "sor: 482 x 80, 2 processes, 1.5 s: right\n").unwrap(), 1.5);
        for bad in
            ["", "is: class P, 2 ranks, 0.1234 s: WRONG\n", "is: so s: right", "mg: class S, 1 rank, 1.0 s: right"]
        {
            assert!(seconds("is", bad).unwrap_err().to_string().starts_with("it said '"), "{bad}");
        }
    }
}
