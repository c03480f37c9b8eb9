//! What the parameters of C are in Fortran. It follows from their types, and from the names that the standard uses
//! alike everywhere.

use crate::{AbiTable, Parameter, TableFunction};

/// An integer of Fortran, by its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IntegerWidth {
    Default,
    Address,
    Count,
    Offset,
}

#[derive(Clone, PartialEq, Eq)]
pub enum ArgumentRule {
    /// A handle of this kind (`Comm`, ...).
    Handle(String),
    Handles(String),
    Status,
    Statuses,
    Number(IntegerWidth),
    Numbers(IntegerWidth),
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
    pub what: ArgumentRule,
    /// The procedure does not change it.
    pub is_input: bool,
}

/// The functions that Fortran has. Tools have C, and so have conversions of handles.
pub fn functions(table: &AbiTable) -> impl Iterator<Item = &TableFunction> {
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

pub fn arguments(function: &TableFunction, wide: bool) -> Vec<Argument> {
    if function.variadic {
        return vec![Argument {
            name: "level".to_owned(),
            what: ArgumentRule::Number(IntegerWidth::Default),
            is_input: true,
        }];
    }
    let starts = function.name.starts_with("MPI_Init") || function.name == "MPI_Info_create_env";
    let parameters = function.parameters.iter().filter(|it| !(starts && matches!(&*it.name, "argc" | "argv")));
    parameters.map(|parameter| argument(function, parameter, wide)).collect()
}

fn argument(function: &TableFunction, parameter: &Parameter, wide: bool) -> Argument {
    let is_const = parameter.kind.starts_with("const ");
    let kind = parameter.kind.trim_start_matches("const ");
    let stars = kind.matches('*').count() + parameter.array.matches('[').count();
    let base = kind.trim_end_matches(['*', ' ']).trim_end_matches("const").trim();
    let name = match &*parameter.name {
        "indx" => "index",
        name => name,
    };
    let what = what(function, name, base, stars, !parameter.array.is_empty(), wide);
    let is_input = is_const
        || stars == 0
        || matches!(
            what,
            ArgumentRule::Texts | ArgumentRule::TextLists | ArgumentRule::Procedure(_) | ArgumentRule::Ranges
        );
    let is_input = is_input || name == "extra_state" || name == "attribute_val" && !function.name.contains("get");
    Argument { name: name.to_owned(), what, is_input }
}

fn what(function: &TableFunction, name: &str, base: &str, stars: usize, is_array: bool, wide: bool) -> ArgumentRule {
    let in_form = |base: &str| base.replace("[_c]", if wide { "_c" } else { "" });
    if base.ends_with("_function") || base.ends_with("_function[_c]") {
        return ArgumentRule::Procedure(in_form(base));
    }
    match (name, base) {
        ("extra_state" | "attribute_val", _) if is_old(&function.name) => return ArgumentRule::SmallValue,
        ("extra_state" | "attribute_val", _) => return ArgumentRule::Value,
        ("baseptr", _) => return ArgumentRule::Pointer,
        ("buffer_addr", _) => return ArgumentRule::Detached,
        ("weights" | "sourceweights" | "destweights", _) => return ArgumentRule::Weights,
        ("array_of_errcodes", _) => return ArgumentRule::Errcodes,
        ("array_of_indices", _) => return ArgumentRule::Indices,
        ("index", _) if !is_array => return ArgumentRule::Index,
        ("ranges", _) => return ArgumentRule::Ranges,
        ("array_of_argv", _) => return ArgumentRule::TextLists,
        ("argv" | "array_of_commands", _) => return ArgumentRule::Texts,
        // The bits that members agree on.
        ("flag", "int") if function.name.to_lowercase().ends_with("agree") => {
            return ArgumentRule::Number(IntegerWidth::Default);
        }
        ("flag" | "reorder" | "commute" | "high" | "weighted" | "is_set", "int") => return ArgumentRule::Logical,
        ("logical_true" | "logical_false", _) => return ArgumentRule::Logical,
        ("periods" | "remain_dims", "int") => return ArgumentRule::Logicals,
        _ => {}
    }
    let width = match base {
        "void" => return ArgumentRule::Choice,
        "char" => return if function.is_const(name) { ArgumentRule::Text } else { ArgumentRule::TextOut },
        "MPI_Status" => return if name.starts_with("array") { ArgumentRule::Statuses } else { ArgumentRule::Status },
        "int" => IntegerWidth::Default,
        "COUNT" => [IntegerWidth::Default, IntegerWidth::Count][usize::from(wide)],
        "DISPL" => [IntegerWidth::Default, IntegerWidth::Address][usize::from(wide)],
        "EXTENT" => [IntegerWidth::Address, IntegerWidth::Count][usize::from(wide)],
        "MPI_Aint" => IntegerWidth::Address,
        "MPI_Count" => IntegerWidth::Count,
        "MPI_Offset" => IntegerWidth::Offset,
        _ => {
            let kind = base.strip_prefix("MPI_").expect("a handle").to_owned();
            return if is_array { ArgumentRule::Handles(kind) } else { ArgumentRule::Handle(kind) };
        }
    };
    if is_array || stars > 1 { ArgumentRule::Numbers(width) } else { ArgumentRule::Number(width) }
}

impl TableFunction {
    fn is_const(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|other| other.name == parameter && other.kind.starts_with("const "))
    }
}

/// Whether the compiler can tell the two forms of a function apart by their arguments.
pub fn forms_differ(function: &TableFunction) -> bool {
    let plain = |width: IntegerWidth| if width == IntegerWidth::Default { 4 } else { 8 };
    let both = arguments(function, false).into_iter().zip(arguments(function, true));
    both.into_iter().any(|(small, large)| match (small.what, large.what) {
        (ArgumentRule::Number(a), ArgumentRule::Number(b)) | (ArgumentRule::Numbers(a), ArgumentRule::Numbers(b)) => {
            plain(a) != plain(b)
        }
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

/// Whether the buffers of a function may be sections that are not contiguous: they are in use after it returned, and
/// each has its count and its datatype behind it, which count in every rank. Where a buffer has a block for each rank,
/// a block of a type that describes the section would begin elsewhere than in the section.
pub fn takes_sections(function: &str, arguments: &[Argument]) -> bool {
    let is_described = |at: usize| {
        let is = |next: usize, what: &dyn Fn(&ArgumentRule) -> bool| {
            arguments.get(at + next).is_some_and(|it| what(&it.what))
        };
        is(1, &|what| matches!(what, ArgumentRule::Number(_)))
            && is(2, &|what| *what == ArgumentRule::Handle("Datatype".to_owned()))
    };
    let buffers: Vec<usize> = (0..arguments.len()).filter(|&at| arguments[at].what == ArgumentRule::Choice).collect();
    let name = &function[4..];
    let in_blocks =
        ["gather", "scatter", "alltoall", "Gather_init", "Scatter_init", "Allgather", "Alltoall", "Neighbor"]
            .iter()
            .any(|part| name.contains(part));
    let in_halves = function.contains("_begin") || function.contains("_end");
    is_nonblocking(function) && !(buffers.is_empty() || in_blocks || in_halves) && buffers.into_iter().all(is_described)
}
