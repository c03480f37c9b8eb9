//! Interfaces of Fortran as the modules have them, and as they follow from the declarations of C (MPI 5.0, section
//! 19.1).

use super::c::{Declared, Parameter};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Mpi,
    F08,
}

/// A procedure: its arguments in order, each as `name: type` with its shape, in small letters.
#[derive(Debug, PartialEq, Eq)]
pub struct Procedure {
    arguments: Vec<String>,
}

impl fmt::Display for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.arguments.join(", "))
    }
}

/// What a suffix of a specific name says is nothing that a program sees: memory by `TYPE(C_PTR)`, `mpi_f08`, buffers of
/// any shape.
const SUFFIXES: [&str; 3] = ["_cptr", "_f08ts", "_f08"];

impl Procedure {
    /// A line that says how the procedure of this name is otherwise.
    pub fn differs(&self, name: &str, ours: &BTreeMap<String, Procedure>) -> Option<String> {
        let low = name.to_lowercase();
        let names = SUFFIXES.iter().map(|suffix| format!("{low}{suffix}")).chain([low.clone()]);
        let found: Vec<&Procedure> = names.filter_map(|name| ours.get(&name)).collect();
        match &found[..] {
            [] => Some(format!("{name}: missing")),
            found if found.contains(&self) => None,
            [first, ..] => Some(format!("{name}: ({first}) here, ({self}) wanted")),
        }
    }
}

/// The procedures of a module, by their specific names.
pub fn procedures(modules: &str, dialect: Dialect) -> BTreeMap<String, Procedure> {
    let name = if dialect == Dialect::Mpi { "mpi" } else { "mpi_f08" };
    let (_, text) = modules.split_once(&format!("\nmodule {name}\n")).expect("the module");
    let (text, _) = text.split_once("\nend module").expect("the end of the module");
    let text = text.replace("&\n", "");
    let mut lines = text.lines().map(str::trim);
    let mut found = BTreeMap::new();
    while let Some(line) = lines.next() {
        let Some(heading) = heading(line) else { continue };
        let (name, dummies) = heading.split_once('(').expect("a list of arguments");
        let dummies = dummies.split(')').next().unwrap_or_default();
        let body: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("end ")).collect();
        let dummies = dummies.split(',').map(str::trim).filter(|dummy| !dummy.is_empty());
        let arguments = dummies.map(|dummy| argument(name, dummy, &body)).collect();
        found.insert(name.to_lowercase(), Procedure { arguments });
    }
    found
}

fn heading(line: &str) -> Option<&str> {
    let at = line.find("subroutine ").map(|at| at + 11).or_else(|| line.find(" function ").map(|at| at + 10))?;
    (!line.starts_with("end ") && line.contains('(')).then(|| &line[at..])
}

fn argument(procedure: &str, dummy: &str, body: &[&str]) -> String {
    for line in body.iter().filter(|line| !line.starts_with('!')) {
        let Some((attributes, variables)) = line.split_once(" :: ") else { continue };
        let shapes = variables.split(", ").filter_map(|variable| variable.strip_prefix(dummy));
        let Some(rest) = shapes.into_iter().find(|rest| rest.is_empty() || rest.starts_with('(')) else { continue };
        let kind = attributes.split(", ").next().unwrap_or_default();
        let shape = if kind == "type(*)" { "" } else { rest };
        return format!("{dummy}: {kind}{shape}").to_lowercase();
    }
    panic!("{procedure} declares no {dummy}");
}

/// What follows for Fortran from the declarations of C. Tools have C alone, and so have conversions of handles;
/// `mpi_f08` lacks what was deprecated before it came, and `mpi` has no large counts.
pub fn expected(functions: &BTreeMap<String, Declared>, dialect: Dialect) -> Vec<(String, Procedure)> {
    let old = ["MPI_Attr_delete", "MPI_Attr_get", "MPI_Attr_put", "MPI_Keyval_create", "MPI_Keyval_free"];
    let is_there = |name: &str| {
        let name = name.trim_start_matches('P');
        let of_c = name.starts_with("MPI_T_") || name.ends_with("_toint") || name.ends_with("_fromint");
        let of_type = name.ends_with("_function") || name.ends_with("_fn") || name.ends_with("_function_c");
        let elsewhere = match dialect {
            Dialect::Mpi => name.ends_with("_c"),
            Dialect::F08 => old.contains(&name),
        };
        !(of_c || of_type || elsewhere)
    };
    let there = functions.iter().filter(|(name, _)| is_there(name));
    there.map(|(name, declared)| (name.clone(), procedure(name.trim_start_matches('P'), declared, dialect))).collect()
}

fn procedure(name: &str, declared: &Declared, dialect: Dialect) -> Procedure {
    let starts = name.starts_with("MPI_Init") || name == "MPI_Info_create_env";
    let given = declared.parameters.iter().filter(|it| it.kind != "...");
    let given = given.filter(|it| !(starts && ["argc", "argv"].contains(&&*it.name)));
    let called = |it: &Parameter| if it.name == "indx" { "index".to_owned() } else { it.name.to_lowercase() };
    let mut arguments: Vec<String> =
        given.map(|it| format!("{}: {}", called(it), kind(name, it, dialect).to_lowercase())).collect();
    if declared.answer == "int" && name != "MPI_Pcontrol" {
        arguments.push("ierror: integer".to_owned());
    }
    Procedure { arguments }
}

/// Integers of C that are truth values of Fortran.
const LOGICALS: [&str; 8] = ["flag", "reorder", "commute", "high", "weighted", "is_set", "periods", "remain_dims"];

/// Type and shape of an argument.
fn kind(function: &str, parameter: &Parameter, dialect: Dialect) -> String {
    let Parameter { kind, name, is_array } = parameter;
    let is_new = dialect == Dialect::F08;
    let base = kind.trim_start_matches("const ").split('*').next().unwrap_or_default().trim();
    let is_old = function.starts_with("MPI_Attr") || function.starts_with("MPI_Keyval");
    let pick = |new: &str, old: &str| if is_new { new.to_owned() } else { old.to_owned() };
    match (&**name, base) {
        ("attribute_val" | "extra_state", _) => return if is_old { "integer" } else { "integer(KIND=8)" }.to_owned(),
        ("baseptr", _) => return "type(c_ptr)".to_owned(),
        ("buffer_addr", _) => return pick("type(c_ptr)", "type(*)"),
        // They may be one of two constants, and are arrays otherwise.
        ("weights" | "sourceweights" | "destweights", _) => return "integer(*)".to_owned(),
        ("ranges", _) => return "integer(3,*)".to_owned(),
        ("array_of_argv", _) => return "character(LEN=*)(count,*)".to_owned(),
        ("argv" | "array_of_commands", _) => return "character(LEN=*)(*)".to_owned(),
        ("logical_true" | "logical_false", _) => return "logical".to_owned(),
        (_, "void") => return "type(*)".to_owned(),
        (_, "char") => return "character(LEN=*)".to_owned(),
        ("array_of_statuses", _) if is_new => return "type(MPI_Status)(*)".to_owned(),
        (_, "MPI_Status") if is_new => {}
        (_, "MPI_Status") => return if name.starts_with("array") { "integer(8,*)" } else { "integer(8)" }.to_owned(),
        (_, base) if base.contains("_function") => return pick(&format!("procedure({base})"), "external"),
        _ => {}
    }
    let scalar = match base {
        "int" if LOGICALS.contains(&&**name) => "logical".to_owned(),
        "int" => "integer".to_owned(),
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "integer(KIND=8)".to_owned(),
        handle if is_new => format!("type({handle})"),
        _ => "integer".to_owned(),
    };
    format!("{scalar}{}", if *is_array { "(*)" } else { "" })
}
