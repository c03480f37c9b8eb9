//! `cargo xtask demo`: from a fresh clone to a picture of heat that four processes computed together.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::command::{ToolProgram, root, target};
use crate::install;
use crate::machine::{self, Need};

const RANKS: &str = "4";

/// The plate is a picture, read from the repository; the last frame of this run is `docs/heat.png`.
const PLATE: [&str; 8] = ["--input", "apps/heat/weft.png", "-n", "480", "--start", "10", "--steps", "600"];

/// Builds, compiles the heat program with our compiler command, runs it, and says where its picture lies. With
/// `picture`, the last one is copied there too.
pub fn run(picture: Option<&Path>) -> Result<()> {
    machine::provide(&[Need::CCompiler, Need::PkgConfig, Need::LibPng])?;
    let prefix = install::tree(false)?;
    let folder = target().join("demo");
    fs::create_dir_all(&folder)?;
    let program = folder.join("heat");
    compile(&prefix, &program)?;
    let frames = folder.join("heat.frames");
    remove_old(&frames)?;
    let start = Instant::now();
    ToolProgram::new(prefix.join("bin/weft"))
        .args(["run", "-n", RANKS])
        .args([&program])
        .args(PLATE)
        .args([Path::new("--out"), &frames])
        .run()?;
    tell(&frames, start.elapsed().as_secs_f64(), picture)
}

fn compile(prefix: &Path, program: &Path) -> Result<()> {
    let png = ToolProgram::new("pkg-config").args(["--cflags", "--libs", "libpng"]).output()?;
    ToolProgram::new(prefix.join("bin/weft"))
        .args(["cc", "-O2", "-o"])
        .args([program])
        .args(files(&root().join("apps/heat"), "c")?)
        .args(png.split_whitespace())
        .args(["-lm"])
        .run()
}

fn remove_old(frames: &Path) -> Result<()> {
    if frames.exists() {
        fs::remove_dir_all(frames).context("cannot remove the frames of an earlier run")
    } else {
        Ok(())
    }
}

fn tell(frames: &Path, seconds: f64, picture: Option<&Path>) -> Result<()> {
    let pictures = files(frames, "png")?;
    let last = pictures.last().context("the heat program wrote no picture")?;
    println!("\n{RANKS} ranks computed heat diffusion on one plate, row blocks each, in {seconds:.1} s;");
    println!("they wrote {} pictures under {}; the last one is", pictures.len(), frames.display());
    println!("  {}", last.display());
    if let Some(copy) = picture {
        fs::copy(last, copy).with_context(|| format!("cannot write {}", copy.display()))?;
    }
    println!(
        "to repeat it: PATH={}:$PATH, then the commands above that begin with weft",
        target().join("weft/bin").display()
    );
    Ok(())
}

/// The files in a folder with this ending, sorted by name.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    Ok(files)
}
