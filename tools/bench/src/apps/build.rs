//! Compiles the applications in C, and finds the others.

use super::table::{AppFile, AppSource, PaperApp, RANKS};
use crate::library::Library;
use crate::process;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the applications in C are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum AppBuild {
    Pvm,
    Mpi,
}

impl AppBuild {
    fn word(self) -> &'static str {
        match self {
            Self::Pvm => "pvm",
            Self::Mpi => "mpi",
        }
    }
}

/// The program of an application, in `folder` if it is compiled; it may be in one of `places` otherwise.
///
/// # Errors
/// Why it cannot be had, in one line.
pub fn program(
    app: &PaperApp,
    library: &Library,
    build: AppBuild,
    folder: &Path,
    places: &[PathBuf],
) -> anyhow::Result<PathBuf> {
    let AppSource::C(files) = &app.source else {
        let found = places.iter().map(|place| place.join(app.name)).find(|path| path.is_file());
        let all = || places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ");
        return found.with_context(|| format!("there is no program `{}` in {} (--programs DIR)", app.name, all()));
    };
    write(folder, files)?;
    write(folder, RANKS)?;
    let program = folder.join(format!("{}-{}", app.name, build.word()));
    let compiled = process::compile(compiler(library, build, folder, files, &program));
    process::check_interrupt()?;
    compiled.with_context(|| format!("{} cannot be compiled", app.name))?;
    Ok(program)
}

fn write(folder: &Path, files: &[AppFile]) -> anyhow::Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn compiler(library: &Library, build: AppBuild, folder: &Path, files: &[AppFile], program: &Path) -> Command {
    let mut command = match build {
        AppBuild::Mpi => library.command("mpicc"),
        AppBuild::Pvm => Command::new("cc"),
    };
    let other = if build == AppBuild::Mpi { "ranks/pvm/" } else { "ranks/mpi/" };
    let sources = files.iter().chain(RANKS).map(|(name, _)| *name);
    command.arg("-O3").arg("-I").arg(folder.join("ranks"));
    let [include, lib] = ["include", "lib"].map(|part| library.prefix.join(part));
    if build == AppBuild::Pvm {
        command.arg("-I").arg(include);
    }
    command.args(sources.filter(|name| name.ends_with(".c") && !name.starts_with(other)).map(|name| folder.join(name)));
    command.arg("-o").arg(program);
    if build == AppBuild::Pvm {
        command.arg("-L").arg(&lib).arg("-lpvm3").arg(format!("-Wl,-rpath,{}", lib.display()));
    }
    command.arg("-lm");
    command
}
