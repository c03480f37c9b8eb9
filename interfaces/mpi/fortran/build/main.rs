//! Writes the entry points of Fortran from the table in `interfaces/mpi/abi`.

mod entries;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for input in ["../abi", "build"] {
        println!("cargo:rerun-if-changed={input}");
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libweft_mpifort.so.1");
    let table = weft_mpi_table::read(Path::new("../abi"));
    fs::write(out.join("entries.rs"), entries::write(&table)).expect("the folder of the build is writable");
}
