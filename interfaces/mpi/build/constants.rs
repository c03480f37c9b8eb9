//! Writes the constants for the library: the names lose `MPI_`, handles and addresses are `usize`.

use std::fmt::Write;
use weft_mpi_table::{AbiTable, Constant};

pub fn write(table: &AbiTable) -> String {
    let mut text = String::new();
    for section in &table.constants {
        for constant in &section.constants {
            let _ = writeln!(text, "/// `{}`: {}", constant.name, section.title);
            let _ =
                writeln!(text, "pub const {}: {} = {};", rust_name(&constant.name), kind(constant), value(constant));
        }
    }
    write_names(&mut text, table);
    text
}

/// What `MPI_Type_get_name` answers for predefined types. The first one counts: of two names of one type the ABI makes
/// those an alias that the standard lists first, with the other one as their synonym (MPI 5.0, section 3.2.2).
fn write_names(text: &mut String, table: &AbiTable) {
    text.push_str(
        "/// Names of the predefined datatypes by handle.\npub const DATATYPE_NAMES: &[(usize, &str)] = &[\n",
    );
    let types = table.constants.iter().filter(|section| section.handle.as_deref() == Some("MPI_Datatype"));
    let mut types: Vec<&Constant> = types.flat_map(|section| &section.constants).collect();
    types.sort_by_key(|constant| !constant.value.starts_with("MPI_"));
    for constant in types {
        let _ = writeln!(text, "    ({}, \"{}\"),", value(constant), constant.name);
    }
    text.push_str("];\n");
}

/// `MPI_2INT` becomes `TWO_INT`, since a name cannot begin with a digit.
fn rust_name(name: &str) -> String {
    let name = name.split_once('_').map_or(name, |(_, rest)| rest);
    match name.strip_prefix('2') {
        Some(rest) => format!("TWO_{rest}"),
        None => name.to_owned(),
    }
}

fn kind(constant: &Constant) -> &'static str {
    match constant.cast.as_deref() {
        None => "i32",
        Some("MPI_Offset") => "i64",
        Some(_) => "usize",
    }
}

fn value(constant: &Constant) -> String {
    if constant.value.starts_with("MPI_") { rust_name(&constant.value) } else { constant.value.clone() }
}
