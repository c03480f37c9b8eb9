//! Writes the entry points: for each function `MPI_X` and `PMPI_X`, which convert what they are given, call the body,
//! and convert what it answers.

use crate::pass::{MpichPassing, handle, pass};
use std::fmt::Write;
use weft_mpi_table::entries as standard;
use weft_mpi_table::{AbiTable, Chapter, TableFunction};

pub fn write(table: &AbiTable, more: &Chapter) -> String {
    let mut text = String::new();
    let functions = table.chapters.iter().flat_map(|chapter| &chapter.functions);
    for function in functions.chain(&more.functions) {
        for &wide in function.forms() {
            write_function(&mut text, function, wide);
        }
    }
    text
}

fn write_function(text: &mut String, function: &TableFunction, wide: bool) {
    let passing: Vec<MpichPassing> =
        function.parameters.iter().map(|parameter| pass(parameter, wide, function)).collect();
    let foreign: Vec<(&str, &str)> = passing.iter().map(|p| (&*p.name, &*p.foreign)).collect();
    standard::write_entry(text, function, wide, &foreign, answer(&function.answer), &inner(function, wide, &passing));
}

fn inner(function: &TableFunction, wide: bool, passing: &[MpichPassing]) -> String {
    let name = function.name_of(wide);
    if let [only] = passing
        && ["_toint", "_fromint", "_c2f", "_f2c"].iter().any(|end| name.ends_with(end))
    {
        return format!("    {} as {}\n", only.name, answer(&function.answer));
    }
    let call = call(function, wide, passing);
    let mut text = String::new();
    if !function.anytime {
        let _ = writeln!(text, "    weft_mpi::start::expect_running(\"{name}\");");
    }
    for early in passing.iter().filter_map(|p| p.early.as_ref()) {
        let _ = writeln!(text, "    {early}");
    }
    let places: String = passing.iter().filter_map(|p| p.place.as_ref()).map(|place| format!("{place} ")).collect();
    if function.body.answers_value {
        // Functions for tools answer a code themselves.
        let value = if name.starts_with("MPI_T_") { format!("number::code_theirs({call})") } else { call };
        let _ = writeln!(text, "    // SAFETY: as the caller says.\n    unsafe {{ {places}{value} }}");
        return text;
    }
    let null = standard::null_places(function);
    let end = if null.is_empty() { "" } else { " }" };
    let outcome = format!("{null}unsafe {{ {places}{call} }}{end}");
    let _ = writeln!(text, "    // SAFETY: as the caller says.\n    let outcome = {outcome};");
    if let Some(after) = after(function) {
        let _ = writeln!(text, "    if outcome.is_ok() {{\n        // SAFETY: the call has stored its results.");
        let _ = writeln!(text, "        unsafe {{ {after} }};\n    }}");
    }
    let _ = writeln!(text, "    match outcome {{\n        Ok(()) => values::SUCCESS,");
    let raised = format!("weft_mpi::errhandler::raise(\"{name}\", {}, error)", standard::object(function));
    let _ = writeln!(text, "        Err(error) => number::code_theirs({raised}),\n    }}");
    text
}

fn call(function: &TableFunction, wide: bool, passing: &[MpichPassing]) -> String {
    let body = &function.body;
    let handed = passing.iter().map(|p| p.handed.as_str()).collect();
    let mpi_1 = matches!(&*function.name, "MPI_Type_hindexed" | "MPI_Type_hvector" | "MPI_Type_struct");
    let (room, body) = body.path.split_once("::").expect("`room::body`");
    let path = match (room, body) {
        ("start", "abi_get_version") => "special::abi_get_version".to_owned(),
        ("special", _) => format!("special::{body}"),
        _ => format!("weft_mpi::{room}::abi::{body}"),
    };
    standard::call(function, &path, handed, wide && !mpi_1)
}

/// What follows the call, where a result means something else here and its type does not say so.
fn after(function: &TableFunction) -> Option<&'static str> {
    match &*function.name {
        "MPI_Comm_get_attr" => Some("special::attribute(comm_keyval, attribute_val, flag)"),
        "MPI_Win_get_attr" => Some("special::attribute(win_keyval, attribute_val, flag)"),
        "MPI_Attr_get" => Some("special::attribute(keyval, attribute_val, flag)"),
        "MPI_Type_get_contents" => Some("special::contents(datatype, array_of_integers, i64::from(max_integers))"),
        "MPI_Type_get_contents_c" => Some("special::contents(datatype, array_of_integers, max_integers)"),
        name if name.ends_with("_detach") && name.starts_with("MPI_Buffer") || name.ends_with("_detach_buffer") => {
            Some("special::buffer(buffer_addr)")
        }
        "MPI_Get_processor_name" => Some("special::clip(resultlen, values::MAX_PROCESSOR_NAME)"),
        _ => None,
    }
}

fn answer(kind: &str) -> &'static str {
    match kind {
        "int" | "MPI_Fint" => "i32",
        "double" => "f64",
        "MPI_Aint" => "isize",
        _ => handle(kind).map_or("usize", |handle| handle.1),
    }
}
