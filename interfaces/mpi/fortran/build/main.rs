//! Writes the entry points of Fortran from the table in `interfaces/mpi/abi`.

mod entries;
#[allow(dead_code, reason = "the sources for the compiler are written where they are installed")]
mod sources;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for input in ["../abi", "../build/table.rs", "build"] {
        println!("cargo:rerun-if-changed={input}");
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libweft_mpifort.so.1");
    let table = sources::table::read(Path::new("../abi"));
    fs::write(out.join("entries.rs"), entries::write(&table)).expect("the folder of the build is writable");
}
