//! How a parameter of the MPICH ABI becomes what the body takes.

use crate::meaning::{is_special_buffer, length, meaning};
use weft_mpi_table::entries as standard;
use weft_mpi_table::{Parameter, TableFunction};

/// How a parameter goes from C to the body.
pub struct MpichPassing {
    pub name: String,
    /// Type at the C boundary.
    pub foreign: String,
    /// Statement that converts a value, before anything else.
    pub early: Option<String>,
    /// Statement that makes a place whose content is converted, and converted back after the call.
    pub place: Option<String>,
    /// Expression handed to the body.
    pub handed: String,
}

/// Handles that are integers here.
const INTEGERS: [&str; 10] =
    ["Comm", "Group", "Datatype", "Op", "Request", "Message", "Info", "Errhandler", "Win", "Session"];

/// The type of one value of a handle, if the C type is one of a handle.
pub fn handle(base: &str) -> Option<(&str, &'static str)> {
    let kind = base.strip_prefix("MPI_")?;
    if INTEGERS.contains(&kind) { Some((kind, "i32")) } else { (kind == "File").then_some((kind, "usize")) }
}

pub fn pass(parameter: &Parameter, wide: bool, function: &TableFunction) -> MpichPassing {
    let is_const = parameter.kind.starts_with("const ");
    let kind = parameter.kind.trim_start_matches("const ");
    let is_array = !parameter.array.is_empty();
    let stars = kind.matches('*').count() + usize::from(is_array);
    let base = kind.trim_end_matches(['*', ' ']).trim_end_matches("const").trim();
    let name = standard::rust_name(&parameter.name);
    let count = length(&function.name, &parameter.name);
    let early = |text: String, foreign: &str| MpichPassing {
        early: Some(format!("let {name} = {text};")),
        place: None,
        handed: name.clone(),
        foreign: foreign.to_owned(),
        name: name.clone(),
    };
    let place = |text: String, foreign: String| MpichPassing {
        place: Some(format!("let mut {name} = place::{text};")),
        early: None,
        handed: format!("{name}.at()"),
        foreign,
        name: name.clone(),
    };
    let pointer = |element: &str| format!("*{} {element}", if is_const { "const" } else { "mut" });
    let access = if is_const { "read" } else { "new" };
    let made = |many: bool, conversion: String, element: &str| match many {
        true => place(format!("ManyPlaces::{access}({name}, {count}, {conversion})"), pointer(element)),
        false => place(format!("OnePlace::new({name}, {conversion})"), pointer(element)),
    };
    if let Some((kind, element)) = handle(base) {
        if stars == 0 {
            return early(format!("<values::{kind} as place::HeldHandle>::ours({name})"), element);
        }
        return made(is_array || is_const, format!("place::handles::<values::{kind}>()"), element);
    }
    if base == "MPI_Status" {
        let many = parameter.name == "array_of_statuses";
        let made = if many { format!("Statuses::new({name}, {count})") } else { format!("StatusAt::{access}({name})") };
        return place(made, pointer("MpichStatus"));
    }
    let is_number = matches!(base, "int" | "MPI_T_cb_safety" | "MPI_T_source_order");
    if let Some(meaning) = meaning(&function.name, &parameter.name).filter(|_| is_number) {
        if stars == 0 {
            return early(format!("number::{meaning}_ours({name})"), "i32");
        }
        let pair = ["ours", "theirs"].map(|way| format!("number::{meaning}_{way} as place::Number")).join(", ");
        return made(is_array, format!("({pair})"), "i32");
    }
    if let Some(room) = room(&function.name, &parameter.name).filter(|_| base == "char" && !is_const && stars == 1) {
        return place(format!("Text::new({name}, values::{room})"), "*mut c_char".to_owned());
    }
    let plain = standard::pass(parameter, wide, function);
    let conversions = [
        (base == "void" && is_special_buffer(&function.name, &parameter.name), "place::buffer"),
        (parameter.name == "disp" && function.name == "MPI_File_set_view", "number::displacement"),
        (base.ends_with("_copy_attr_function") || base == "MPI_Copy_function", "program::copy_function"),
    ];
    let early = conversions.iter().find(|it| it.0).map(|it| format!("let {name} = {}({name});", it.1));
    let handed = if early.is_some() { name } else { plain.handed };
    MpichPassing { early, place: None, handed, foreign: plain.foreign.to_owned(), name: plain.name }
}

/// The length of the program's string, where it is shorter than the standard ABI's.
fn room(function: &str, parameter: &str) -> Option<&'static str> {
    match (function, parameter) {
        ("MPI_Get_processor_name", "name") => Some("MAX_PROCESSOR_NAME"),
        ("MPI_Open_port" | "MPI_Lookup_name", "port_name") => Some("MAX_PORT_NAME"),
        _ => None,
    }
}
