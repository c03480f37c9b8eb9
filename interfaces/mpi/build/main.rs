//! Writes constants for the library and the header from the table in `abi/`. Entry points are written by the crates
//! that export them.
//!
//! The header is committed as `include/mpi.h`; a unit test compares it with what this script wrote (and puts the new
//! one there when `WEFT_UPDATE` is set).

mod constants;
mod header;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for input in ["abi", "build"] {
        println!("cargo:rerun-if-changed={input}");
    }
    let table = weft_mpi_table::read(&root.join("abi"));
    write(&out.join("mpi.h"), &header::write(&table));
    write(&out.join("constants.rs"), &constants::write(&table));
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
