//! Writes the modules: `weft_mpi_types` with what both others have, `mpi` and `mpi_f08`.

use super::constants::{
    NEW_STATUSES, NULL_CONVERSIONS, OLD_STATUSES, VARIABLES, attribute_functions, handle_value, handles, numbers,
};
use super::rules::{
    Argument, ArgumentRule, IntegerWidth, arguments, forms_differ, functions, is_nonblocking, is_old, takes_sections,
};
use crate::{AbiTable, TableFunction};
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// Handles are integers.
    Mpi,
    /// Handles are types.
    F08,
}

pub fn write(table: &AbiTable) -> String {
    let mut text = "\
! The Fortran modules of MPI 5.0 with the values of the standard ABI: interfaces and constants, no code.
!
! Generated from the table in interfaces/mpi/abi.
"
    .to_owned();
    types(&mut text, table);
    module(&mut text, table, Module::Mpi);
    module(&mut text, table, Module::F08);
    text
}

fn types(text: &mut String, table: &AbiTable) {
    text.push_str("module weft_mpi_types\nimplicit none\npublic\n");
    for number in numbers(table, false) {
        let kind = number.kind.map_or(String::new(), |kind| format!("(KIND={kind})"));
        let _ = writeln!(text, "integer{kind}, parameter :: {} = {}", number.name, number.value);
    }
    text.push_str("logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.\n");
    text.push_str(
        "type, bind(C) :: MPI_Status\n  integer :: MPI_SOURCE\n  integer :: MPI_TAG\n  integer :: MPI_ERROR\n",
    );
    text.push_str("  integer, private :: internal(5)\nend type\n");
    let kinds: Vec<&str> = handles(table).map(|(kind, _)| kind).collect();
    for kind in &kinds {
        let _ = writeln!(text, "type, bind(C) :: {kind}\n  integer :: MPI_VAL\nend type");
    }
    for (operator, name) in [("==", "eq"), ("/=", "ne")] {
        let _ = writeln!(text, "interface operator({operator})");
        for kind in &kinds {
            let low = kind.trim_start_matches("MPI_").to_lowercase();
            let _ = writeln!(text, "  elemental logical function weft_{name}_{low}(left, right)");
            let _ = writeln!(text, "    import :: {kind}\n    type({kind}), intent(in) :: left, right\n  end function");
        }
        text.push_str("end interface\n");
    }
    variables(text, VARIABLES);
    own_procedures(text);
    text.push_str("end module weft_mpi_types\n\n");
}

fn module(text: &mut String, table: &AbiTable, module: Module) {
    let name = if module == Module::Mpi { "mpi" } else { "mpi_f08" };
    let protects = if module == Module::Mpi { ".false." } else { ".true." };
    let _ = writeln!(text, "module {name}\nuse, intrinsic :: iso_c_binding, only: c_ptr\nuse weft_mpi_types");
    let _ = writeln!(text, "implicit none\npublic\nprivate :: c_ptr");
    let _ = writeln!(text, "logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = {protects}");
    for (kind, section) in handles(table) {
        for constant in &section.constants {
            let value = handle_value(section, constant);
            let _ = match module {
                Module::Mpi => writeln!(text, "integer, parameter :: {} = {value}", constant.name),
                Module::F08 => writeln!(text, "type({kind}), parameter :: {} = {kind}({value})", constant.name),
            };
        }
    }
    variables(text, if module == Module::Mpi { OLD_STATUSES } else { NEW_STATUSES });
    if module == Module::Mpi {
        for name in attribute_functions().chain(NULL_CONVERSIONS.map(str::to_owned)) {
            let _ = writeln!(text, "external :: {name}");
        }
    } else {
        callbacks(text);
    }
    for prefix in ["", "P"] {
        for (generic, bodies) in procedures(table, module, prefix) {
            let _ = writeln!(text, "interface {generic}\n{bodies}end interface");
        }
    }
    let _ = writeln!(text, "end module {name}\n");
}

/// Variables by the symbols that common blocks have.
fn variables(text: &mut String, list: &[(&str, &str, &str, &str)]) {
    for (name, kind, shape, block) in list {
        let _ = writeln!(text, "{kind}, bind(C, name=\"{block}_\") :: {name}{shape}");
    }
}

/// The interfaces by generic name, each with its procedures. Where two forms of a function could not be told apart, the
/// large one has an interface of its own.
fn procedures(table: &AbiTable, module: Module, prefix: &str) -> BTreeMap<String, String> {
    let mut generics: BTreeMap<String, String> = BTreeMap::new();
    for function in functions(table).filter(|function| module == Module::Mpi || !is_old(&function.name)) {
        for &wide in function.forms() {
            let name = function.name_of(wide);
            let is_large = wide || name.ends_with("_c");
            if is_large && module == Module::Mpi {
                continue;
            }
            let own = wide && !forms_differ(function);
            let generic = if is_large && !own { name.trim_end_matches("_c").to_owned() } else { name.clone() };
            let bodies = generics.entry(format!("{prefix}{generic}")).or_default();
            let given = arguments(function, wide);
            let pointer = given.iter().any(|it| it.what == ArgumentRule::Pointer);
            let detached = given.iter().any(|it| it.what == ArgumentRule::Detached);
            let sections = takes_sections(&function.name, &given);
            for suffix in match (module, pointer, detached) {
                (Module::Mpi, true, _) => ["", "_cptr"].as_slice(),
                (Module::F08, true, _) => &["_cptr"],
                (Module::F08, _, true) => &["_f08"],
                (Module::F08, ..) if sections => &["_f08ts"],
                _ => &[""],
            } {
                procedure(bodies, function, &format!("{prefix}{name}{suffix}"), &given, module);
            }
        }
    }
    generics
}

fn procedure(text: &mut String, function: &TableFunction, name: &str, given: &[Argument], module: Module) {
    let (c_pointer, sections) = (name.ends_with("_cptr"), name.ends_with("_f08ts"));
    let mut dummies: Vec<&str> = given.iter().map(|it| &*it.name).collect();
    let is_subroutine = function.answer == "int";
    let has_code = is_subroutine && !function.variadic;
    if has_code {
        dummies.push("ierror");
    }
    let (opening, closing) = match &*function.answer {
        "int" => ("subroutine", "subroutine"),
        "double" => ("double precision function", "function"),
        _ => ("integer(KIND=8) function", "function"),
    };
    // Only what a procedure of C gets for an argument of any rank has a form that is defined.
    let binding = if sections { format!(" bind(C, name=\"{}_\")", name.to_lowercase()) } else { String::new() };
    let _ = writeln!(text, "{}", folded(&format!("  {opening} {name}({}){binding}", dummies.join(", "))));
    let types = imports(given, module, c_pointer);
    if !types.is_empty() {
        let _ = writeln!(text, "{}", folded(&format!("    import :: {types}")));
    }
    for argument in given {
        let mut line = declaration(function, argument, module, c_pointer);
        if sections && argument.what == ArgumentRule::Choice {
            line = line.replace("dimension(*)", "dimension(..)").replace(", target", "");
        } else if argument.what == ArgumentRule::Choice
            || argument.what == ArgumentRule::Detached && module == Module::Mpi
        {
            let _ = writeln!(text, "    !GCC$ ATTRIBUTES NO_ARG_CHECK :: {}", argument.name);
        }
        let _ = writeln!(text, "    {line}");
    }
    if has_code {
        let optional = if module == Module::F08 { "integer, optional, intent(out)" } else { "integer, intent(out)" };
        let _ = writeln!(text, "    {optional} :: ierror");
    }
    let _ = writeln!(text, "  end {closing}");
}

/// The names that an interface body needs from outside.
fn imports(given: &[Argument], module: Module, c_pointer: bool) -> String {
    let mut names: Vec<String> = Vec::new();
    for argument in given {
        let name = match &argument.what {
            ArgumentRule::Handle(kind) | ArgumentRule::Handles(kind) if module == Module::F08 => format!("MPI_{kind}"),
            ArgumentRule::Status | ArgumentRule::Statuses if module == Module::F08 => "MPI_Status".to_owned(),
            ArgumentRule::Procedure(kind) if module == Module::F08 => kind.clone(),
            ArgumentRule::Pointer if c_pointer => "c_ptr".to_owned(),
            ArgumentRule::Detached if module == Module::F08 => "c_ptr".to_owned(),
            _ => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

pub fn declaration(function: &TableFunction, argument: &Argument, module: Module, c_pointer: bool) -> String {
    let name = &argument.name;
    let kind = |width: IntegerWidth| if width == IntegerWidth::Default { "integer" } else { "integer(KIND=8)" };
    let handle = |kind: &str| if module == Module::F08 { format!("type(MPI_{kind})") } else { "integer".to_owned() };
    let is_new = module == Module::F08;
    let (kind, shape) = match &argument.what {
        ArgumentRule::Handle(kind) => (handle(kind), ""),
        ArgumentRule::Handles(kind) => (handle(kind), "(*)"),
        ArgumentRule::Status if is_new => ("type(MPI_Status)".to_owned(), ""),
        ArgumentRule::Statuses if is_new => ("type(MPI_Status)".to_owned(), "(*)"),
        ArgumentRule::Status => ("integer".to_owned(), "(8)"),
        ArgumentRule::Statuses => ("integer".to_owned(), "(8,*)"),
        ArgumentRule::Number(width) => (kind(*width).to_owned(), ""),
        ArgumentRule::Numbers(width) => (kind(*width).to_owned(), "(*)"),
        ArgumentRule::Ranges => ("integer".to_owned(), "(3,*)"),
        ArgumentRule::Logical => ("logical".to_owned(), ""),
        ArgumentRule::Logicals => ("logical".to_owned(), "(*)"),
        ArgumentRule::Choice => return choice(function, argument),
        ArgumentRule::Detached if !is_new => return choice(function, argument),
        ArgumentRule::Text | ArgumentRule::TextOut => ("character(LEN=*)".to_owned(), ""),
        ArgumentRule::Texts => ("character(LEN=*)".to_owned(), "(*)"),
        ArgumentRule::TextLists => ("character(LEN=*)".to_owned(), "(count,*)"),
        ArgumentRule::Procedure(kind) if is_new => return format!("procedure({kind}) :: {name}"),
        ArgumentRule::Procedure(_) => return format!("external :: {name}"),
        ArgumentRule::Pointer if c_pointer => ("type(c_ptr)".to_owned(), ""),
        ArgumentRule::Detached => ("type(c_ptr)".to_owned(), ""),
        // The procedures of the request get the variable itself, later.
        ArgumentRule::Value if function.name == "MPI_Grequest_start" => ("integer(KIND=8), target".to_owned(), ""),
        ArgumentRule::Value | ArgumentRule::Pointer => ("integer(KIND=8)".to_owned(), ""),
        ArgumentRule::SmallValue | ArgumentRule::Index => ("integer".to_owned(), ""),
        ArgumentRule::Weights | ArgumentRule::Errcodes | ArgumentRule::Indices => ("integer".to_owned(), "(*)"),
    };
    let intent = if argument.is_input { ", intent(in)" } else { "" };
    format!("{kind}{intent} :: {name}{shape}")
}

/// A buffer of any type and rank, by its address. What is not contiguous the compiler copies, so it may be used only
/// until the call returns.
fn choice(function: &TableFunction, argument: &Argument) -> String {
    let intent = if argument.is_input { ", intent(in)" } else { "" };
    let lasting = if is_nonblocking(&function.name) { ", asynchronous, target" } else { "" };
    format!("type(*), dimension(*){intent}{lasting} :: {}", argument.name)
}

/// A line in pieces that no compiler refuses.
fn folded(line: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in line.split_inclusive(", ") {
        if length + word.len() > 120 {
            text.push_str("&\n      ");
            length = 6;
        }
        text.push_str(word);
        length += word.len();
    }
    text
}

/// Procedures that C has not.
fn own_procedures(text: &mut String) {
    for prefix in ["", "P"] {
        let low = prefix.to_lowercase();
        let _ = write!(
            text,
            "\
interface
  subroutine {prefix}MPI_Sizeof(x, size, ierror) bind(C, name=\"{low}mpi_sizeof_\")
    type(*), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine {prefix}MPI_F_sync_reg(buf)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
    type(*), dimension(*), asynchronous, target :: buf
  end subroutine
  subroutine {prefix}MPI_Status_f2f08(f_status, f08_status, ierror)
    import :: MPI_Status
    integer, intent(in) :: f_status(8)
    type(MPI_Status), intent(out) :: f08_status
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine {prefix}MPI_Status_f082f(f08_status, f_status, ierror)
    import :: MPI_Status
    type(MPI_Status), intent(in) :: f08_status
    integer, intent(out) :: f_status(8)
    integer, optional, intent(out) :: ierror
  end subroutine
end interface
"
        );
    }
}

/// The procedures that programs hand over (MPI 5.0, sections 6.9.5, 7.7, 9.3, 13.2 and 14.5.3), and those that copy and
/// delete attributes.
fn callbacks(text: &mut String) {
    text.push_str("abstract interface\n");
    for (suffix, kind) in [("", "integer"), ("_c", "integer(KIND=8)")] {
        let _ = write!(
            text,
            "\
  subroutine MPI_User_function{suffix}(invec, inoutvec, len, datatype)
    import :: c_ptr, MPI_Datatype
    type(c_ptr), value :: invec, inoutvec
    {kind} :: len
    type(MPI_Datatype) :: datatype
  end subroutine
  subroutine MPI_Datarep_conversion_function{suffix}(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    import :: c_ptr, MPI_Datatype
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    {kind} :: count
    integer(KIND=8) :: position, extra_state
    integer :: ierror
  end subroutine
"
        );
    }
    text.push_str(
        "\
  subroutine MPI_Datarep_extent_function(datatype, extent, extra_state, ierror)
    import :: MPI_Datatype
    type(MPI_Datatype) :: datatype
    integer(KIND=8) :: extent, extra_state
    integer :: ierror
  end subroutine
  subroutine MPI_Grequest_query_function(extra_state, status, ierror)
    import :: MPI_Status
    integer(KIND=8) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
  end subroutine
  subroutine MPI_Grequest_free_function(extra_state, ierror)
    integer(KIND=8) :: extra_state
    integer :: ierror
  end subroutine
  subroutine MPI_Grequest_cancel_function(extra_state, complete, ierror)
    integer(KIND=8) :: extra_state
    logical :: complete
    integer :: ierror
  end subroutine
",
    );
    for (object, name) in [("Comm", "comm"), ("Win", "win"), ("File", "file"), ("Session", "session")] {
        let _ = write!(
            text,
            "\
  subroutine MPI_{object}_errhandler_function({name}, error_code)
    import :: MPI_{object}
    type(MPI_{object}) :: {name}
    integer :: error_code
  end subroutine
"
        );
    }
    let attributes = [("Comm", "Comm", "comm"), ("Type", "Datatype", "type"), ("Win", "Win", "win")];
    for (object, kind, low) in attributes {
        for (name, body) in attribute_bodies(kind, low) {
            let _ = write!(text, "  subroutine MPI_{object}_{}_function{body}", name);
        }
    }
    text.push_str("end interface\ninterface\n");
    for (object, kind, low) in attributes {
        let [(_, copy), (_, delete)] = attribute_bodies(kind, low);
        for (name, body) in [("NULL_COPY_FN", &copy), ("DUP_FN", &copy), ("NULL_DELETE_FN", &delete)] {
            let _ = write!(text, "  subroutine MPI_{}_{name}{body}", object.to_uppercase());
        }
    }
    for (name, kind) in [("MPI_CONVERSION_FN_NULL", "integer"), ("MPI_CONVERSION_FN_NULL_C", "integer(KIND=8)")] {
        let _ = write!(
            text,
            "\
  subroutine {name}(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    import :: c_ptr, MPI_Datatype
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    {kind} :: count
    integer(KIND=8) :: position, extra_state
    integer :: ierror
  end subroutine
"
        );
    }
    text.push_str("end interface\n");
}

/// Arguments and declarations of the procedures that copy and delete attributes of objects of a kind.
fn attribute_bodies(kind: &str, low: &str) -> [(&'static str, String); 2] {
    let values = "attribute_val";
    let copy = format!(
        "(old{low}, {low}_keyval, extra_state, {values}_in, {values}_out, flag, ierror)
    import :: MPI_{kind}
    type(MPI_{kind}) :: old{low}
    integer :: {low}_keyval, ierror
    integer(KIND=8) :: extra_state, {values}_in, {values}_out
    logical :: flag
  end subroutine\n"
    );
    let delete = format!(
        "({low}, {low}_keyval, {values}, extra_state, ierror)
    import :: MPI_{kind}
    type(MPI_{kind}) :: {low}
    integer :: {low}_keyval, ierror
    integer(KIND=8) :: {values}, extra_state
  end subroutine\n"
    );
    [("copy_attr", copy), ("delete_attr", delete)]
}
