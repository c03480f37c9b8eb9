//! Writes the entry points of the MPICH ABI, the conversions of its values and its header, from two tables: the
//! functions and constants of the standard ABI (`interfaces/mpi/abi`), and the values that the same constants have
//! here, with the functions that only this ABI has (`abi`).
//!
//! The header is committed as `include/mpi.h`; a unit test compares it with what this script wrote (and puts the new
//! one there when `WEFT_UPDATE` is set).

mod entries;
mod header;
mod meaning;
mod pass;
mod values;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for input in ["../abi", "abi", "build"] {
        println!("cargo:rerun-if-changed={input}");
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
    let standard = weft_mpi_table::read(Path::new("../abi"));
    let constants = weft_mpi_table::sections(&read("abi/constants.abi"));
    let more = weft_mpi_table::chapter(&read("abi/more.abi"));
    let write = |name: &str, text: String| {
        fs::write(out.join(name), text).expect("the folder of the build is writable");
    };
    write("entries.rs", entries::write(&standard, &more));
    write("values.rs", values::write(&standard.constants, &constants));
    write("mpi.h", header::write(&standard, &constants, &more));
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}
