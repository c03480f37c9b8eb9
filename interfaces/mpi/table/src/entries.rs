//! Writes the entry points: for each function `MPI_X` and `PMPI_X`, both calling one body in a room.

use crate::{AbiTable, Parameter, TableFunction};
use std::fmt::Write;

pub fn write(table: &AbiTable) -> String {
    let mut text = String::new();
    for function in table.chapters.iter().flat_map(|chapter| &chapter.functions) {
        for &wide in function.forms() {
            write_function(&mut text, function, wide);
        }
    }
    text
}

/// How a parameter goes from C to the body.
pub struct Passing {
    pub name: String,
    /// Type at the C boundary.
    pub foreign: &'static str,
    /// Expression handed to the body.
    pub handed: String,
}

fn write_function(text: &mut String, function: &TableFunction, wide: bool) {
    let passing: Vec<Passing> = function.parameters.iter().map(|parameter| pass(parameter, wide, function)).collect();
    let foreign: Vec<(&str, &str)> = passing.iter().map(|p| (&*p.name, p.foreign)).collect();
    write_entry(text, function, wide, &foreign, answer(&function.answer), &inner(function, wide, &passing));
}

/// The function itself and its two names. `foreign`: name and type of each parameter at the C boundary.
pub fn write_entry(
    text: &mut String,
    function: &TableFunction,
    wide: bool,
    foreign: &[(&str, &str)],
    answer: &str,
    inner: &str,
) {
    let name = function.name_of(wide);
    let names: Vec<&str> = foreign.iter().map(|(name, _)| *name).collect();
    let foreign: Vec<String> = foreign.iter().map(|(name, kind)| format!("{name}: {kind}")).collect();
    let (foreign, names) = (foreign.join(", "), names.join(", "));
    let declaration = function.declaration(&name, wide);
    let _ = writeln!(text, "#[inline]\nunsafe fn entry_{name}({foreign}) -> {answer} {{\n{inner}}}");
    for prefix in ["", "P"] {
        let _ = writeln!(text, "/// `{declaration}`");
        let _ =
            writeln!(text, "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({foreign}) -> {answer} {{");
        let _ = writeln!(text, "    // SAFETY: the program keeps the promises of the standard.");
        let _ = writeln!(text, "    unsafe {{ entry_{name}({names}) }}\n}}");
    }
}

fn inner(function: &TableFunction, wide: bool, passing: &[Passing]) -> String {
    let name = function.name_of(wide);
    let handed = passing.iter().map(|p| p.handed.as_str()).collect();
    let (room, body) = function.body.path.split_once("::").expect("`room::body`");
    let call = call(function, &format!("weft_mpi::{room}::abi::{body}"), handed, wide);
    let mut text = String::new();
    if !function.anytime {
        let _ = writeln!(text, "    weft_mpi::start::expect_running(\"{name}\");");
    }
    if function.body.answers_value {
        let _ = writeln!(text, "    // SAFETY: as the caller says.\n    unsafe {{ {call} }}");
        return text;
    }
    let places = null_places(function);
    let end = if places.is_empty() { "" } else { " }" };
    let outcome = format!("{places}unsafe {{ {call} }}{end}");
    let _ = writeln!(text, "    // SAFETY: as the caller says.\n    let outcome = {outcome};");
    let _ = writeln!(text, "    match outcome {{\n        Ok(()) => weft_mpi::abi::SUCCESS,");
    let raised = format!("weft_mpi::errhandler::raise(\"{name}\", {}, error)", object(function));
    let _ = writeln!(text, "        Err(error) => {raised},\n    }}");
    text
}

/// Parameters that say something together, the type that the body gets in their place, and its fields.
const TOGETHER: [(&[&str], &str, &[&str]); 3] = [
    (&["void *", "COUNT", "MPI_Datatype"], "Described", &["buffer", "count", "datatype"]),
    (&["void *", "COUNT[]", "DISPL[]", "MPI_Datatype"], "Various", &["buffer", "counts", "displacements", "datatype"]),
    (&["int", "MPI_Aint", "COUNT", "MPI_Datatype"], "Aim", &["rank", "disp", "count", "datatype"]),
];

/// The call of the body at `path`, which `handed` has an argument for each parameter for; what it answers is stored, if
/// it is told no place for that. `wide` is what a body hears that wants to know which of the twins was called.
pub fn call(function: &TableFunction, path: &str, mut handed: Vec<&str>, wide: bool) -> String {
    let places = handed.split_off(handed.len() - function.body.results);
    if function.body.takes_form {
        handed.push(if wide { "true" } else { "false" });
    }
    let call = format!("{path}({})", arguments(function, &handed));
    let stored = |place: &str, value: &str| match place.starts_with("weft_mpi::abi::CountOut") {
        true => format!("{place}.set({value})"),
        false => format!("*{place} = {value}"),
    };
    match places[..] {
        [] => call,
        [place] => format!("{call}.map(|value| {})", stored(place, "value")),
        [first, second] => {
            format!("{call}.map(|values| {{ {}; {} }})", stored(first, "values.0"), stored(second, "values.1"))
        }
        _ => panic!("{} has too many results", function.name),
    }
}

/// The arguments of the body, of which those become one that say something together.
fn arguments(function: &TableFunction, handed: &[&str]) -> String {
    let kind = |it: &Parameter| format!("{}{}", it.kind.trim_start_matches("const "), it.array);
    let kinds: Vec<String> = function.parameters.iter().map(kind).collect();
    let (mut arguments, mut at) = (Vec::new(), 0);
    while at < handed.len() {
        let fits = |pattern: &[&str]| kinds.get(at..at + pattern.len()).is_some_and(|kinds| kinds == pattern);
        let together = TOGETHER.iter().find(|(pattern, ..)| fits(pattern));
        let Some((_, name, fields)) = together else {
            arguments.push(handed[at].to_owned());
            at += 1;
            continue;
        };
        let field = |(name, it): (&&str, &&str)| if name == it { name.to_string() } else { format!("{name}: {it}") };
        let fields: Vec<String> = fields.iter().zip(&handed[at..]).map(field).collect();
        arguments.push(format!("weft_mpi::abi::{name} {{ {} }}", fields.join(", ")));
        at += fields.len();
    }
    arguments.join(", ")
}

/// Refuses null, and values of predefined handles, for the places of single results, which no function may leave out
/// (arrays, buffers and statuses may be null; `argc` too). Weights may be a constant of small value.
pub fn null_places(function: &TableFunction) -> String {
    let mut text = String::new();
    for parameter in &function.parameters {
        let base = parameter.kind.trim_end_matches(['*', ' ']);
        let is_place = parameter.kind.matches('*').count() == 1 && parameter.array.is_empty();
        let may_be_null = base.starts_with("const ") || matches!(base, "void" | "char" | "MPI_Status");
        if is_place
            && !may_be_null
            && !base.ends_with("_function[_c]")
            && !base.ends_with("_function")
            && !base.ends_with("_fn")
            && parameter.name != "argc"
        {
            let name = rust_name(&parameter.name);
            let test = match parameter.name.ends_with("weights") {
                true => format!("{name}.is_null()"),
                false => format!("weft_mpi::error::is_no_place({name})"),
            };
            let refusal = format!("weft_mpi::error::no_place(\"{}\", {name})", parameter.name);
            let _ = write!(text, "if {test} {{ Err({refusal}) }} else ");
        }
    }
    if text.is_empty() { text } else { text + "{ " }
}

/// Whose error handler an error of the function goes to, unless the error says otherwise.
pub fn object(function: &TableFunction) -> String {
    if function.name.starts_with("MPI_File_") || function.name == "MPI_Register_datarep" {
        let file = function.parameters.iter().find(|parameter| parameter.kind == "MPI_File");
        let handle = file.map_or("weft_mpi::abi::FILE_NULL".to_owned(), |file| rust_name(&file.name));
        return format!("weft_mpi::errhandler::On::File({handle})");
    }
    let mut parameters = function.parameters.iter().filter(|parameter| parameter.array.is_empty());
    let found = parameters.find_map(|parameter| {
        let kind = parameter.kind.strip_prefix("MPI_")?;
        matches!(kind, "Comm" | "Win" | "Session").then(|| (kind, rust_name(&parameter.name)))
    });
    let given = function.parameters.iter().find(|parameter| parameter.kind == "MPI_Errhandler");
    match (found, given) {
        (Some((kind, name)), _) => format!("weft_mpi::errhandler::On::{kind}({name})"),
        (None, Some(given)) => format!("weft_mpi::errhandler::On::Made({})", rust_name(&given.name)),
        (None, None) => "weft_mpi::errhandler::On::Process".to_owned(),
    }
}

fn answer(kind: &str) -> &'static str {
    match kind {
        "int" => "i32",
        "double" => "f64",
        "MPI_Aint" => "isize",
        _ => "usize",
    }
}

pub fn pass(parameter: &Parameter, wide: bool, function: &TableFunction) -> Passing {
    let name = rust_name(&parameter.name);
    let is_const = parameter.kind.starts_with("const ");
    let kind = parameter.kind.trim_start_matches("const ");
    let stars = kind.matches('*').count() + parameter.array.matches('[').count();
    let base = kind.trim_end_matches(['*', ' ']).trim_end_matches("const").trim();
    if base.ends_with("_function") || base.ends_with("_function[_c]") || base.ends_with("_fn") {
        let wide = if parameter.differs() && function.twin { Some(wide) } else { None };
        let handed = wide.map(|wide| format!("weft_mpi::abi::CountCallback {{ at: {name}, wide: {wide} }}"));
        return Passing { handed: handed.unwrap_or(name.clone()), name, foreign: "usize" };
    }
    if matches!(base, "COUNT" | "DISPL" | "EXTENT") {
        let is_wide = wide || base == "EXTENT";
        return match (stars, is_const) {
            (0, _) => Passing {
                handed: if is_wide { name.clone() } else { format!("i64::from({name})") },
                name,
                foreign: if is_wide { "i64" } else { "i32" },
            },
            (_, true) => Passing {
                handed: format!("weft_mpi::abi::Counts {{ at: {name}, wide: {is_wide} }}"),
                name,
                foreign: "*const c_void",
            },
            _ => Passing {
                handed: format!("weft_mpi::abi::CountOut {{ at: {name}, wide: {is_wide} }}"),
                name,
                foreign: "*mut c_void",
            },
        };
    }
    let foreign = foreign(base, stars, is_const, &parameter.array);
    Passing { handed: name.clone(), name, foreign }
}

pub fn foreign(base: &str, stars: usize, is_const: bool, array: &str) -> &'static str {
    if array == "[][3]" {
        return if is_const { "*const [i32; 3]" } else { "*mut [i32; 3]" };
    }
    match (base, stars, is_const) {
        ("void", 1, true) => "*const c_void",
        ("void", ..) => "*mut c_void",
        ("char", 1, true) => "*const c_char",
        ("char", 1, false) => "*mut c_char",
        ("char", ..) => "*mut c_void",
        ("int" | "MPI_T_cb_safety" | "MPI_T_source_order", 0, _) => "i32",
        ("int", 1, true) => "*const i32",
        ("int" | "MPI_T_cb_safety" | "MPI_T_source_order", 1, false) => "*mut i32",
        ("MPI_Aint", 0, _) => "isize",
        ("MPI_Aint", 1, true) => "*const isize",
        ("MPI_Aint", 1, false) => "*mut isize",
        ("MPI_Count" | "MPI_Offset", 0, _) => "i64",
        ("MPI_Count" | "MPI_Offset", 1, true) => "*const i64",
        ("MPI_Count" | "MPI_Offset", 1, false) => "*mut i64",
        ("MPI_Status", 1, true) => "*const weft_mpi::abi::Status",
        ("MPI_Status", 1, false) => "*mut weft_mpi::abi::Status",
        (_, 0, _) if base.starts_with("MPI_") => "usize",
        (_, 1, true) if base.starts_with("MPI_") => "*const usize",
        (_, 1, false) if base.starts_with("MPI_") => "*mut usize",
        _ => panic!("no type for `{base}` with {stars} stars (const: {is_const})"),
    }
}

pub fn rust_name(name: &str) -> String {
    if matches!(name, "type" | "match" | "ref" | "in") { format!("{name}_") } else { name.to_owned() }
}
