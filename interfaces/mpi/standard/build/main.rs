//! Writes the entry points of the standard ABI from the table in `interfaces/mpi/abi`.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for input in ["../abi", "build"] {
        println!("cargo:rerun-if-changed={input}");
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let table = weft_mpi_table::read(Path::new("../abi"));
    fs::write(out.join("entries.rs"), weft_mpi_table::entries::write(&table))
        .expect("the folder of the build is writable");
}
