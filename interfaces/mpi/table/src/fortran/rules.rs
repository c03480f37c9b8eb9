//! What the parameters of C are in Fortran. It follows from their types, and from the names that the standard uses alike
//! everywhere.

use crate::{Function, Parameter, Table};

/// An integer of Fortran, by its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Default,
    Address,
    Count,
    Offset,
}

#[derive(Clone, PartialEq, Eq)]
pub enum What {
    /// A handle of this kind (`Comm`, ...).
    Handle(String),
    Handles(String),
    Status,
    Statuses,
    Number(Width),
    Numbers(Width),
    /// Triples of a range of ranks.
    Ranges,
    Logical,
    Logicals,
    /// A buffer of any type.
    Choice,
    Text,
    TextOut,
    /// Strings behind one another, an empty one at the end.
    Texts,
    /// Those of several commands.
    TextLists,
    /// A procedure of this interface.
    Procedure(String),
    /// A value of an attribute or a state, as wide as an address.
    Value,
    /// The same in functions of MPI 1.
    SmallValue,
    /// Where the address of memory is stored.
    Pointer,
    /// The same; in the older interfaces nothing is stored.
    Detached,
    /// Weights of edges, which may be left out.
    Weights,
    Errcodes,
    /// Position in an array: one more than in C.
    Index,
    Indices,
}

pub struct Argument {
    pub name: String,
    pub what: What,
    /// The procedure does not change it.
    pub is_input: bool,
}

/// The functions that Fortran has. Tools have C, and so have conversions of handles.
pub fn functions(table: &Table) -> impl Iterator<Item = &Function> {
    let chapters = table.chapters.iter().flat_map(|chapter| &chapter.functions);
    chapters.filter(|function| has_fortran(&function.name))
}

/// Whether Fortran has a function of this name.
pub fn has_fortran(function: &str) -> bool {
    !(function.starts_with("MPI_T_") || function.ends_with("_toint") || function.ends_with("_fromint"))
}

/// Whether a function is one of MPI 1 whose successor takes wider values; `mpi_f08` has none of them.
pub fn is_old(function: &str) -> bool {
    matches!(function, "MPI_Attr_delete" | "MPI_Attr_get" | "MPI_Attr_put" | "MPI_Keyval_create" | "MPI_Keyval_free")
}

pub fn arguments(function: &Function, wide: bool) -> Vec<Argument> {
    if function.variadic {
        return vec![Argument { name: "level".to_owned(), what: What::Number(Width::Default), is_input: true }];
    }
    let starts = function.name.starts_with("MPI_Init") || function.name == "MPI_Info_create_env";
    let parameters = function.parameters.iter().filter(|it| !(starts && matches!(&*it.name, "argc" | "argv")));
    parameters.map(|parameter| argument(function, parameter, wide)).collect()
}

fn argument(function: &Function, parameter: &Parameter, wide: bool) -> Argument {
    let is_const = parameter.kind.starts_with("const ");
    let kind = parameter.kind.trim_start_matches("const ");
    let stars = kind.matches('*').count() + parameter.array.matches('[').count();
    let base = kind.trim_end_matches(['*', ' ']).trim_end_matches("const").trim();
    let name = match &*parameter.name {
        "indx" => "index",
        name => name,
    };
    let what = what(function, name, base, stars, !parameter.array.is_empty(), wide);
    let is_input =
        is_const || stars == 0 || matches!(what, What::Texts | What::TextLists | What::Procedure(_) | What::Ranges);
    let is_input = is_input || name == "extra_state" || name == "attribute_val" && !function.name.contains("get");
    Argument { name: name.to_owned(), what, is_input }
}

fn what(function: &Function, name: &str, base: &str, stars: usize, is_array: bool, wide: bool) -> What {
    let in_form = |base: &str| base.replace("[_c]", if wide { "_c" } else { "" });
    if base.ends_with("_function") || base.ends_with("_function[_c]") {
        return What::Procedure(in_form(base));
    }
    match (name, base) {
        ("extra_state" | "attribute_val", _) if is_old(&function.name) => return What::SmallValue,
        ("extra_state" | "attribute_val", _) => return What::Value,
        ("baseptr", _) => return What::Pointer,
        ("buffer_addr", _) => return What::Detached,
        ("weights" | "sourceweights" | "destweights", _) => return What::Weights,
        ("array_of_errcodes", _) => return What::Errcodes,
        ("array_of_indices", _) => return What::Indices,
        ("index", _) if !is_array => return What::Index,
        ("ranges", _) => return What::Ranges,
        ("array_of_argv", _) => return What::TextLists,
        ("argv" | "array_of_commands", _) => return What::Texts,
        // The bits that members agree on.
        ("flag", "int") if function.name.to_lowercase().ends_with("agree") => return What::Number(Width::Default),
        ("flag" | "reorder" | "commute" | "high" | "weighted" | "is_set", "int") => return What::Logical,
        ("logical_true" | "logical_false", _) => return What::Logical,
        ("periods" | "remain_dims", "int") => return What::Logicals,
        _ => {}
    }
    let width = match base {
        "void" => return What::Choice,
        "char" => return if function.is_const(name) { What::Text } else { What::TextOut },
        "MPI_Status" => return if name.starts_with("array") { What::Statuses } else { What::Status },
        "int" => Width::Default,
        "COUNT" => [Width::Default, Width::Count][usize::from(wide)],
        "DISPL" => [Width::Default, Width::Address][usize::from(wide)],
        "EXTENT" => [Width::Address, Width::Count][usize::from(wide)],
        "MPI_Aint" => Width::Address,
        "MPI_Count" => Width::Count,
        "MPI_Offset" => Width::Offset,
        _ => {
            let kind = base.strip_prefix("MPI_").expect("a handle").to_owned();
            return if is_array { What::Handles(kind) } else { What::Handle(kind) };
        }
    };
    if is_array || stars > 1 { What::Numbers(width) } else { What::Number(width) }
}

impl Function {
    fn is_const(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|other| other.name == parameter && other.kind.starts_with("const "))
    }
}

/// Whether the compiler can tell the two forms of a function apart by their arguments.
pub fn forms_differ(function: &Function) -> bool {
    let plain = |width: Width| if width == Width::Default { 4 } else { 8 };
    let both = arguments(function, false).into_iter().zip(arguments(function, true));
    both.into_iter().any(|(small, large)| match (small.what, large.what) {
        (What::Number(a), What::Number(b)) | (What::Numbers(a), What::Numbers(b)) => plain(a) != plain(b),
        _ => false,
    })
}

/// Whether the buffers of a function are in use after it returned.
pub fn is_nonblocking(function: &str) -> bool {
    let rest = function.strip_prefix("MPI_").unwrap_or(function);
    let begins = rest.starts_with('I') && !rest.starts_with("Info") && !rest.starts_with("Inter");
    begins
        || function.contains("_init")
        || function.contains("_begin")
        || function.contains("_end")
        || rest.starts_with("File_i")
        || rest.starts_with("Win_")
        || rest.contains("uffer")
        || ["Put", "Get", "Accumulate", "Rput", "Rget", "Raccumulate", "Fetch", "Compare", "Get_", "Free_mem"]
            .iter()
            .any(|start| rest.starts_with(start))
}

/// Whether the buffers of a function may be sections that are not contiguous: they are in use after it returned, and each has its
/// count and its datatype behind it, which count in every rank. Where a buffer has a block for each rank, a block of a type that
/// describes the section would begin elsewhere than in the section.
pub fn takes_sections(function: &str, arguments: &[Argument]) -> bool {
    let is_described = |at: usize| {
        let is = |next: usize, what: &dyn Fn(&What) -> bool| arguments.get(at + next).is_some_and(|it| what(&it.what));
        is(1, &|what| matches!(what, What::Number(_))) && is(2, &|what| *what == What::Handle("Datatype".to_owned()))
    };
    let buffers: Vec<usize> = (0..arguments.len()).filter(|&at| arguments[at].what == What::Choice).collect();
    let name = &function[4..];
    let in_blocks =
        ["gather", "scatter", "alltoall", "Gather_init", "Scatter_init", "Allgather", "Alltoall", "Neighbor"]
            .iter()
            .any(|part| name.contains(part));
    let in_halves = function.contains("_begin") || function.contains("_end");
    is_nonblocking(function) && !(buffers.is_empty() || in_blocks || in_halves) && buffers.into_iter().all(is_described)
}
