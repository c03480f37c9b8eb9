//! The programs beside Intel's: how they are started, and what they print.

use super::ImbFigure;
use super::suites::Suite;
use crate::library::{Library, LibraryName};
use crate::{parse, process};
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A C program of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnProgram {
    OneSided,
    Pack,
}

/// Where Debian's package scalapack-mpi-test puts its programs for MPICH.
const XDLU: &str = "/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests/xdlu";

impl OwnProgram {
    pub fn suite(self) -> Suite {
        match self {
            OwnProgram::OneSided => Suite::OneSided,
            OwnProgram::Pack => Suite::Pack,
        }
    }

    fn name(self) -> &'static str {
        match self {
            OwnProgram::OneSided => "rmabench",
            OwnProgram::Pack => "packbench",
        }
    }

    fn source(self) -> &'static str {
        match self {
            OwnProgram::OneSided => include_str!("../../c/rmabench.c"),
            OwnProgram::Pack => include_str!("../../c/packbench.c"),
        }
    }
}

/// Compiles the program with the library's own wrapper, once for each library.
pub fn compile(own: OwnProgram, library: &Library, folder: &Path) -> anyhow::Result<PathBuf> {
    let source = folder.join(own.name()).with_extension("c");
    let program = folder.join(format!("{}-{}", own.name(), library.name as usize));
    if !program.exists() {
        std::fs::write(&source, own.source())?;
        process::compile(library.compile(&source, &program)).context("its mpicc failed")?;
    }
    Ok(program)
}

pub fn own_figures(own: OwnProgram, text: &str) -> anyhow::Result<Vec<ImbFigure>> {
    let figures = parse::output(own.name(), text)?.figures;
    Ok(figures.into_iter().map(|figure| ImbFigure { name: figure.spec, bytes: None, value: figure.value }).collect())
}

/// Matrices as large as the program has memory for, in blocks as people choose them.
pub fn xdlu(command: &mut Command, folder: &Path, quick: bool) -> anyhow::Result<()> {
    ensure!(Path::new(XDLU).exists(), "{XDLU} is not there; Debian's package scalapack-mpi-test has it");
    let sizes: &[u32] = if quick { &[500] } else { &[250, 500, 750] };
    let list = sizes.iter().map(|size| format!("{size} ")).collect::<String>();
    let place = folder.join("xdlu");
    std::fs::create_dir_all(&place)?;
    let count = sizes.len();
    let input = format!(
        "'LU of a few sizes'\n'two ranks'\n'LU.out'\n6\n{count}\n{list}\n{list}\n1\n64\n1\n1\n1\n1\n1\n1\n2\n1.0\nF\n"
    );
    std::fs::write(place.join("LU.dat"), input)?;
    // One thread for each rank, whichever BLAS is installed.
    command.env("OPENBLAS_NUM_THREADS", "1").env("OMP_NUM_THREADS", "1");
    command.current_dir(place).arg(XDLU);
    Ok(())
}

/// Rows `WALL M N NB NRHS NBRHS P Q LU-time Sol-time MFLOPS CHECK`.
pub fn xdlu_figures(text: &str) -> anyhow::Result<Vec<ImbFigure>> {
    let mut figures = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("WALL")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, size, .., speed, check] = words[..] else { bail!("line {line:?} of xdlu") };
        ensure!(check == "PASSED", "xdlu found its result wrong: {line:?}");
        let speed: f64 = speed.parse().with_context(|| format!("line {line:?} of xdlu"))?;
        figures.push(ImbFigure { name: format!("n={size}"), bytes: None, value: speed * 1e6 });
    }
    Ok(figures)
}

pub fn mpi4py(command: &mut Command, python: &Path, name: LibraryName) {
    command.env("MPI4PY_MPIABI", if name == LibraryName::Openmpi { "openmpi" } else { "mpich" });
    command.arg(python).args(["-m", "mpi4py.bench", "pingpong", "--array", "none"]);
    command.args(["--min-size", "8", "--max-size", "8", "--loop", "30000"]);
}

/// Rows `BYTES BANDWIDTH | SECONDS ± ...`.
pub fn mpi4py_figures(text: &str) -> anyhow::Result<Vec<ImbFigure>> {
    let row = |line: &str| {
        let (left, right) = line.split_once('|')?;
        let bytes = left.split_whitespace().next()?.parse().ok()?;
        let value = right.split_whitespace().next()?.parse().ok()?;
        Some(ImbFigure { name: "pingpong".into(), bytes: Some(bytes), value })
    };
    Ok(text.lines().filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_xdlu_and_mpi4py_are_read() {
        let text = "TIME     M     N  NB NRHS NBRHS    P    Q  LU Time   Sol Time  MFLOPS   CHECK\n\
                    WALL   500   500  64    1     1    1    2     0.02      0.00  4123.50  PASSED\n";
        let figures = xdlu_figures(text).unwrap();
        assert_eq!((figures[0].name.as_str(), figures[0].value), ("n=500", 4123.5e6));
        assert!(xdlu_figures(&text.replace("PASSED", "FAILED")).is_err());
        let text = "# MPI PingPong Test\n         8             24.10 | 3.3200000e-07 ± 1.0e-08    10000\n";
        assert_eq!(
            mpi4py_figures(text).unwrap(),
            [ImbFigure { name: "pingpong".into(), bytes: Some(8), value: 3.32e-7 }]
        );
    }
}
