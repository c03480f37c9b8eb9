//! Writes the entry points: for each function and form `mpi_x_` and `pmpi_x_`, which convert what Fortran passes and
//! call `MPI_X` or `PMPI_X` of C.

use std::fmt::Write;
use weft_mpi_table::fortran::rules::{Argument, ArgumentRule, IntegerWidth, arguments, functions, takes_sections};
use weft_mpi_table::{AbiTable, Parameter, TableFunction};

pub fn write(table: &AbiTable) -> String {
    let mut text = String::new();
    for function in functions(table) {
        for &wide in function.forms() {
            write_function(&mut text, function, wide);
        }
    }
    text
}

/// Functions that no rule fits: their bodies in `special.rs` get the arguments as they are.
fn is_special(function: &str) -> bool {
    function.contains("_keyval") && function.contains("create")
        || function.contains("_attr") && !function.contains("delete")
        || matches!(function, "MPI_Attr_get" | "MPI_Attr_put" | "MPI_Keyval_create" | "MPI_Grequest_start")
        || function.starts_with("MPI_Register_datarep")
        || function.starts_with("MPI_Comm_spawn")
        || function == "MPI_Pcontrol"
        || function.starts_with("MPI_Info_get_string")
        || function == "MPI_Session_get_nth_pset"
}

/// How an argument goes from Fortran to C.
#[derive(Default)]
struct FortranPassing {
    /// Type of the parameter of the entry; a string has its length at the end of all.
    foreign: &'static str,
    before: String,
    handed: String,
    after: String,
}

fn write_function(text: &mut String, function: &TableFunction, wide: bool) {
    let name = function.name_of(wide);
    let low = name.to_lowercase();
    let arguments = arguments(function, wide);
    let passing: Vec<FortranPassing> = arguments.iter().map(|it| pass(it, function)).collect();
    let mut foreign: Vec<String> =
        arguments.iter().zip(&passing).map(|(it, passing)| format!("f_{}: {}", it.name, passing.foreign)).collect();
    let names: Vec<String> = arguments.iter().map(|it| format!("f_{}", it.name)).collect();
    let answer = match &*function.answer {
        "double" => "f64",
        "MPI_Aint" => "isize",
        _ => "i32",
    };
    let lengths: Vec<&Argument> = arguments.iter().filter(|it| is_text(&it.what)).collect();
    let gives_code = answer == "i32" && !function.variadic;
    let mut inner = foreign.clone();
    inner.extend(lengths.iter().map(|it| format!("l_{}: usize", it.name)));
    let mut inner_names = names;
    inner_names.extend(lengths.iter().map(|it| format!("l_{}", it.name)));
    if gives_code {
        foreign.push("ierror: *mut i32".to_owned());
    }
    foreign.extend(lengths.iter().map(|it| format!("l_{}: usize", it.name)));

    let special = is_special(&function.name);
    if !special {
        write_body(text, function, wide, &passing, &inner, answer);
    }
    for (prefix, suffix) in names_of(&arguments) {
        let entry = format!("{}{low}{suffix}_", prefix.to_lowercase());
        let returns = if gives_code || function.variadic { String::new() } else { format!(" -> {answer}") };
        let call = if special {
            format!("special::{}({})", low.trim_start_matches("mpi_"), inner_names.join(", "))
        } else {
            format!("body_{low}({})", [&[format!("c_{prefix}{name}")], &*inner_names].concat().join(", "))
        };
        let call = match () {
            () if gives_code => format!("{{ answer({call}, ierror) }}"),
            () if function.variadic => format!("{{ {call} }};"),
            () => format!("{{ {call} }}"),
        };
        let _ = writeln!(text, "/// `{prefix}{}` of Fortran.", name.to_uppercase());
        let parameters = foreign.join(", ");
        let _ = writeln!(text, "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {entry}({parameters}){returns} {{");
        if suffix.is_empty() && arguments.iter().any(|it| it.what == ArgumentRule::Detached) {
            let _ = writeln!(text, "    let mut detached = std::ptr::null_mut::<c_void>();");
            let _ = writeln!(text, "    let (_, f_buffer_addr) = (f_buffer_addr, &raw mut detached);");
        }
        let _ = writeln!(text, "    // SAFETY: the program keeps the promises of the standard.\n    unsafe {call}\n}}");
    }
    if takes_sections(&function.name, &arguments) {
        write_sections(text, &name, &arguments, &passing);
    }
}

/// The entries whose buffers are descriptors: they hand on what describes the memory.
fn write_sections(text: &mut String, name: &str, arguments: &[Argument], passing: &[FortranPassing]) {
    let low = name.to_lowercase();
    let mut foreign: Vec<String> = Vec::new();
    let mut handed: Vec<String> = arguments.iter().map(|it| format!("f_{}", it.name)).collect();
    let mut before = String::new();
    for (at, argument) in arguments.iter().enumerate() {
        let (name, is_buffer) = (&argument.name, argument.what == ArgumentRule::Choice);
        let kind = if is_buffer { "*const section::ArrayDescriptor" } else { passing[at].foreign };
        foreign.push(format!("f_{name}: {kind}"));
        if is_buffer {
            let (count, datatype) = (&arguments[at + 1], &arguments[at + 2]);
            let narrowed = if count.what == ArgumentRule::Number(IntegerWidth::Default) { " as i32" } else { "" };
            let given = format!("f_{name}, i64::from(*f_{}), *f_{}", count.name, datatype.name);
            let _ = writeln!(before, "        let s_{name} = section::ArraySection::new({given});");
            let _ = writeln!(before, "        let n_{name} = s_{name}.count{narrowed};");
            handed[at] = format!("s_{name}.base");
            handed[at + 1] = format!("&raw const n_{name}");
            handed[at + 2] = format!("&raw const s_{name}.datatype");
        }
    }
    for prefix in ["", "P"] {
        let entry = format!("{}{low}_f08ts_", prefix.to_lowercase());
        let _ = writeln!(text, "/// `{prefix}{}` of Fortran, where buffers may be sections.", name.to_uppercase());
        let _ = writeln!(
            text,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {entry}({}, ierror: *mut i32) {{",
            foreign.join(", ")
        );
        let _ =
            writeln!(text, "    // SAFETY: the program keeps the promises of the standard.\n    unsafe {{\n{before}");
        let _ =
            writeln!(text, "        answer(body_{low}(c_{prefix}{name}, {}), ierror);\n    }}\n}}", handed.join(", "));
    }
}

/// Prefix and suffix of each name. Where `TYPE(C_PTR)` takes the place of an integer the standard gives the procedure a
/// name of its own; where a detached buffer is told only in `mpi_f08`, that has one.
fn names_of(arguments: &[Argument]) -> Vec<(&'static str, &'static str)> {
    let more = arguments.iter().find_map(|it| match it.what {
        ArgumentRule::Pointer => Some("_cptr"),
        ArgumentRule::Detached => Some("_f08"),
        _ => None,
    });
    std::iter::once("").chain(more).flat_map(|suffix| [("", suffix), ("P", suffix)]).collect()
}

fn write_body(
    text: &mut String,
    function: &TableFunction,
    wide: bool,
    passing: &[FortranPassing],
    inner: &[String],
    answer: &str,
) {
    let name = function.name_of(wide);
    let low = name.to_lowercase();
    let mut handed: Vec<String> = passing.iter().map(|it| it.handed.clone()).collect();
    if function.name.starts_with("MPI_Init") && function.parameters.iter().any(|it| it.name == "argv")
        || function.name == "MPI_Info_create_env"
    {
        let argc = if function.name == "MPI_Info_create_env" { "0" } else { "std::ptr::null_mut()" };
        handed.splice(0..0, [argc.to_owned(), "std::ptr::null_mut()".to_owned()]);
    }
    let kinds: Vec<&str> = function.parameters.iter().map(|it| in_c(it, wide)).collect();
    let declared: Vec<String> = kinds.iter().map(|kind| format!("_: {kind}")).collect();
    let (kinds, declared) = (kinds.join(", "), declared.join(", "));
    let _ =
        writeln!(text, "unsafe extern \"C\" {{\n    #[link_name = \"{name}\"] fn c_{name}({declared}) -> {answer};");
    let _ = writeln!(text, "    #[link_name = \"P{name}\"] fn c_P{name}({declared}) -> {answer};\n}}");
    let mut parameters = vec![format!("call: unsafe extern \"C\" fn({kinds}) -> {answer}")];
    parameters.extend(inner.iter().cloned());
    let _ = writeln!(text, "#[inline(always)]\nunsafe fn body_{low}({}) -> {answer} {{", parameters.join(", "));
    let _ = writeln!(text, "    // SAFETY: as the caller says.\n    unsafe {{");
    for before in passing.iter().filter(|it| !it.before.is_empty()) {
        let _ = writeln!(text, "        {}", before.before);
    }
    let call = format!("call({})", handed.join(", "));
    let after: Vec<&str> = passing.iter().map(|it| &*it.after).filter(|after| !after.is_empty()).collect();
    let _ = if after.is_empty() {
        writeln!(text, "        {call}\n    }}\n}}")
    } else {
        writeln!(text, "        let code = {call};\n        {}\n        code\n    }}\n}}", after.join("\n        "))
    };
}

fn is_text(what: &ArgumentRule) -> bool {
    matches!(what, ArgumentRule::Text | ArgumentRule::TextOut | ArgumentRule::Texts | ArgumentRule::TextLists)
}

/// The type of a parameter of the function of C.
fn in_c(parameter: &Parameter, wide: bool) -> &'static str {
    let pointer = parameter.kind.contains('*') || !parameter.array.is_empty();
    let base = parameter.kind.trim_start_matches("const ");
    match base {
        _ if pointer => "*mut c_void",
        "int" => "i32",
        "COUNT" | "DISPL" => ["i32", "i64"][usize::from(wide)],
        "EXTENT" | "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64",
        _ => "usize",
    }
}

fn pass(argument: &Argument, function: &TableFunction) -> FortranPassing {
    let name = format!("f_{}", argument.name);
    let handed =
        |foreign: &'static str, handed: String| FortranPassing { foreign, handed, ..FortranPassing::default() };
    let through = |foreign: &'static str| handed(foreign, format!("{name}.cast()"));
    let parameter = function.parameters.iter().find(|it| it.name == argument.name);
    let by_value = parameter.is_some_and(|it| !it.kind.contains('*') && it.array.is_empty());
    match &argument.what {
        ArgumentRule::Handle(kind) if by_value => handed("*const i32", format!("handle::{kind}::c(*{name})")),
        ArgumentRule::Handle(kind) => one_handle(argument, kind),
        ArgumentRule::Handles(kind) => many_handles(argument, function, kind),
        ArgumentRule::Status | ArgumentRule::Statuses => handed("*mut i32", format!("sentinel::status({name})")),
        ArgumentRule::Number(IntegerWidth::Default) if by_value => handed("*const i32", format!("*{name}")),
        ArgumentRule::Number(_) if by_value => handed("*const i64", format!("*{name}")),
        ArgumentRule::Logical if by_value => handed("*const i32", format!("i32::from(*{name} != 0)")),
        ArgumentRule::Number(IntegerWidth::Default) | ArgumentRule::Numbers(IntegerWidth::Default) => {
            through("*mut i32")
        }
        ArgumentRule::Number(_) | ArgumentRule::Numbers(_) => through("*mut i64"),
        ArgumentRule::Logical | ArgumentRule::Logicals | ArgumentRule::Ranges => through("*mut i32"),
        ArgumentRule::Choice => handed("*mut c_void", format!("sentinel::buffer({name})")),
        ArgumentRule::Text => FortranPassing {
            foreign: "*const u8",
            before: format!("let c_{0} = text::{1}({name}, l_{0});", argument.name, read_as(&argument.name)),
            handed: format!("c_{}.as_ptr().cast_mut().cast()", argument.name),
            after: String::new(),
        },
        ArgumentRule::TextOut => text_out(argument, function),
        ArgumentRule::Texts | ArgumentRule::TextLists => through("*const u8"),
        ArgumentRule::Procedure(_) => handed("*mut c_void", name),
        ArgumentRule::Value => through("*mut isize"),
        ArgumentRule::SmallValue | ArgumentRule::Errcodes => through("*mut i32"),
        ArgumentRule::Pointer => through("*mut *mut c_void"),
        ArgumentRule::Detached => {
            let after = format!("if code == 0 {{ sentinel::detached({name}); }}");
            FortranPassing { after, ..through("*mut *mut c_void") }
        }
        ArgumentRule::Weights => handed("*mut i32", format!("sentinel::weights({name})")),
        // A call that fails may leave them as they were before.
        ArgumentRule::Index => FortranPassing {
            before: format!("*{name} = -1;"),
            after: format!("special::from_one({name}, 1);"),
            ..through("*mut i32")
        },
        ArgumentRule::Indices => FortranPassing {
            before: "*f_outcount = 0;".to_owned(),
            after: format!("special::from_one({name}, *f_outcount);"),
            ..through("*mut i32")
        },
    }
}

/// A handle that the function sets, or changes.
fn one_handle(argument: &Argument, kind: &str) -> FortranPassing {
    let name = &argument.name;
    FortranPassing {
        foreign: "*mut i32",
        before: format!("let mut c_{name} = handle::{kind}::c(*f_{name});"),
        handed: format!("(&raw mut c_{name}).cast()"),
        after: format!("*f_{name} = handle::{kind}::f(c_{name});"),
    }
}

fn many_handles(argument: &Argument, function: &TableFunction, kind: &str) -> FortranPassing {
    let (name, length) = (&argument.name, length(&function.name, &argument.name));
    FortranPassing {
        foreign: "*mut i32",
        before: format!("let mut c_{name} = handle::Array::<handle::{kind}>::new(f_{name}, {length});"),
        handed: format!("c_{name}.at()"),
        after: if argument.is_input { String::new() } else { format!("c_{name}.back(f_{name});") },
    }
}

fn read_as(parameter: &str) -> &'static str {
    if matches!(parameter, "key" | "value") { "trimmed" } else { "c_string" }
}

/// A string that the function fills, in memory of the longest that there can be.
fn text_out(argument: &Argument, function: &TableFunction) -> FortranPassing {
    let name = &argument.name;
    // A value that there is not leaves the program's string alone.
    let (room, found) = if function.name == "MPI_Info_get" { ("*f_valuelen", " && *f_flag != 0") } else { ("0", "") };
    FortranPassing {
        foreign: "*mut u8",
        before: format!("let mut c_{name} = text::Filled::new({room});"),
        handed: format!("c_{name}.at()"),
        after: format!("if code == 0{found} {{ c_{name}.back(f_{name}, l_{name}); }}"),
    }
}

/// The length of an array of handles, in terms of the entry's parameters.
fn length(function: &str, parameter: &str) -> &'static str {
    if function.contains("lltoallw") {
        let is_neighbor = function.contains("eighbor");
        return match (is_neighbor, parameter) {
            (false, "sendtypes") => "special::peers(*f_comm, f_sendbuf)",
            (false, _) => "special::peers(*f_comm, std::ptr::null_mut())",
            (true, "sendtypes") => "special::neighbors(*f_comm).1",
            (true, _) => "special::neighbors(*f_comm).0",
        };
    }
    match (function, parameter) {
        (_, "array_of_datatypes") => "i64::from(*f_max_datatypes)",
        (name, _) if name.ends_with("some") => "i64::from(*f_incount)",
        _ => "i64::from(*f_count)",
    }
}
