//! Writes the C boundary from the table in `abi/`: entry points and constants for the library, and the header.
//!
//! The header is committed as `include/mpi.h`; a unit test compares it with what this script wrote (and puts the new
//! one there when `WEFT_UPDATE` is set).

mod constants;
mod entries;
mod header;
mod table;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for input in ["abi", "build"] {
        println!("cargo:rerun-if-changed={input}");
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let table = table::read(&root.join("abi"));
    write(&out.join("mpi.h"), &header::write(&table));
    write(&out.join("constants.rs"), &constants::write(&table));
    write(&out.join("entries.rs"), &entries::write(&table));
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
