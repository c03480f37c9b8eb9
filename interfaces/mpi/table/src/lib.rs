//! The table of `interfaces/mpi/abi` for those who write something out of it when they are built: one line for each
//! function, constant and type of the standard ABI.
//!
//! A function: `[anytime] TYPE NAME[_c](PARAMETERS) [= room::body]`.
//! - `[_c]`: there is a twin for large counts. In the parameters `COUNT`, `DISPL` and `EXTENT` are what the twins
//!   differ in (`int`/`MPI_Count`, `int`/`MPI_Aint`, `MPI_Aint`/`MPI_Count`), and `TYPE[_c]` is a function type with a
//!   twin.
//! - `= body` answers a `Result`, `=* body` one with what is stored where the last parameter says, `=** body` one with
//!   what is stored where the last two say; `= body(wide)` gets a last argument that is true in the large twin;
//!   `=> body` is the value itself; without a body the function reports that it is not supported. What describes a
//!   buffer goes to the body as one argument ([`entries::call`]).
//! - `anytime`: it may be called before `MPI_Init` and after `MPI_Finalize`.
//!
//! - [`entries`]: the entry points of C, as far as both ABIs have them alike.
//! - [`fortran`]: what the parameters are in Fortran, and the sources for its compilers.

pub mod entries;
pub mod fortran;

use std::fs;
use std::path::Path;

/// Chapters in the order of the header.
const CHAPTERS: [&str; 23] = [
    "environment",
    "error",
    "group",
    "comm",
    "attribute",
    "info",
    "topology",
    "convert",
    "datatype",
    "op",
    "point",
    "buffer",
    "request",
    "status",
    "partitioned",
    "collective",
    "neighbor",
    "session",
    "process",
    "window",
    "file",
    "tool",
    "failure",
];

pub struct AbiTable {
    pub constants: Vec<ConstantSection>,
    /// Lines of C.
    pub types: Vec<String>,
    pub chapters: Vec<Chapter>,
}

/// Constants that belong together.
pub struct ConstantSection {
    pub title: String,
    /// The handle type that the section declares.
    pub handle: Option<String>,
    pub constants: Vec<Constant>,
}

pub struct Constant {
    pub name: String,
    /// C type of a constant that is not an `int`.
    pub cast: Option<String>,
    pub value: String,
}

pub struct Chapter {
    pub title: String,
    pub functions: Vec<TableFunction>,
}

impl Chapter {
    /// What stands around its functions in a header: those that are not of the standard can be left out.
    pub fn guard(&self) -> (&'static str, &'static str) {
        match self.functions.iter().any(|function| function.name.starts_with("MPIX_")) {
            true => ("#ifndef WEFT_NO_MPIX\n", "#endif\n"),
            false => ("", ""),
        }
    }
}

pub struct TableFunction {
    pub anytime: bool,
    pub answer: String,
    pub name: String,
    pub twin: bool,
    pub parameters: Vec<Parameter>,
    pub variadic: bool,
    pub body: EntryBody,
}

pub struct EntryBody {
    pub path: String,
    pub answers_value: bool,
    /// How many of the last parameters say where what it answers is stored.
    pub results: usize,
    /// The body wants to know which of the twins was called.
    pub takes_form: bool,
}

#[derive(Clone)]
pub struct Parameter {
    /// Everything before the name, such as `const void *`.
    pub kind: String,
    pub name: String,
    /// What stands behind the name, such as `[]`.
    pub array: String,
}

pub fn read(directory: &Path) -> AbiTable {
    let text = |name: &str| {
        let path = directory.join(format!("{name}.abi"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    };
    let types = text("types").lines().filter(|line| !line.starts_with("# ")).map(str::to_owned).collect();
    let chapters = CHAPTERS.iter().map(|name| chapter(&text(name))).collect();
    AbiTable { constants: sections(&text("constants")), types, chapters }
}

pub fn chapter(text: &str) -> Chapter {
    let title = text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a chapter begins with its title");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    Chapter { title: title.to_owned(), functions: lines.map(function).collect() }
}

fn function(line: &str) -> TableFunction {
    let bad = || -> ! { panic!("not a function line: {line}") };
    let (anytime, rest) = line.strip_prefix("anytime ").map_or((false, line), |rest| (true, rest));
    let (head, rest) = rest.split_once('(').unwrap_or_else(|| bad());
    let (parameters, rest) = rest.split_once(')').unwrap_or_else(|| bad());
    let (answer, name) = head.split_once(' ').unwrap_or_else(|| bad());
    let (name, twin) = name.strip_suffix("[_c]").map_or((name, false), |name| (name, true));
    let rest = rest.trim();
    let body = match rest.strip_prefix("=> ") {
        Some(path) => EntryBody { path: path.to_owned(), answers_value: true, results: 0, takes_form: false },
        None => {
            let (kind, path) = rest.split_once(' ').unwrap_or_else(|| bad());
            let results = ["=", "=*", "=**"].iter().position(|known| *known == kind).unwrap_or_else(|| bad());
            let takes_form = path.ends_with("(wide)");
            EntryBody { path: path.trim_end_matches("(wide)").to_owned(), answers_value: false, results, takes_form }
        }
    };
    let listed = parameters.split(',').map(str::trim).filter(|text| *text != "void" && *text != "...");
    TableFunction {
        anytime,
        answer: answer.to_owned(),
        name: name.to_owned(),
        twin,
        parameters: listed.map(parameter).collect(),
        variadic: parameters.contains("..."),
        body,
    }
}

fn parameter(text: &str) -> Parameter {
    let declared = text.find(['[', ' ', '*']).unwrap_or(text.len());
    let array = text.rfind(']').filter(|&end| end + 1 == text.len());
    let array = array.map_or(text.len(), |_| first_array_bracket(text, declared));
    let (front, array) = text.split_at(array);
    let start = front.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let (kind, name) = front.split_at(start);
    Parameter { kind: kind.trim().to_owned(), name: name.to_owned(), array: array.to_owned() }
}

/// Where the brackets behind the name begin; brackets of a `TYPE[_c]` stand before the first blank.
fn first_array_bracket(text: &str, from: usize) -> usize {
    let name = text.rfind([' ', '*']).map_or(from, |at| at + 1);
    name + text[name..].find('[').expect("there is one at the end")
}

pub fn sections(text: &str) -> Vec<ConstantSection> {
    let mut sections: Vec<ConstantSection> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(title) = line.strip_prefix("# ") {
            let (title, handle) = title.split_once(" : ").map_or((title, None), |(title, kind)| (title, Some(kind)));
            let handle = handle.map(str::to_owned);
            sections.push(ConstantSection { title: title.to_owned(), handle, constants: Vec::new() });
            continue;
        }
        let section = sections.last_mut().expect("a title comes first");
        let (name, value) = line.split_once(" = ").unwrap_or_else(|| panic!("not a constant line: {line}"));
        let cast = value.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let (cast, value) =
            cast.map_or((section.handle.clone(), value), |(cast, value)| (Some(cast.to_owned()), value));
        section.constants.push(Constant { name: name.to_owned(), cast, value: value.to_owned() });
    }
    sections
}

impl TableFunction {
    /// Whether each form of the function takes large counts: `[false]`, or both.
    pub fn forms(&self) -> &'static [bool] {
        if self.twin { &[false, true] } else { &[false] }
    }

    pub fn name_of(&self, wide: bool) -> String {
        format!("{}{}", self.name, if wide { "_c" } else { "" })
    }

    /// The declaration in C.
    pub fn declaration(&self, name: &str, wide: bool) -> String {
        let mut parameters: Vec<String> = self.parameters.iter().map(|parameter| parameter.in_c(wide)).collect();
        if self.variadic {
            parameters.push("...".to_owned());
        }
        if parameters.is_empty() {
            parameters.push("void".to_owned());
        }
        format!("{} {name}({})", self.answer, parameters.join(", "))
    }
}

impl Parameter {
    pub fn in_c(&self, wide: bool) -> String {
        let kind = self.kind_in_c(wide);
        let space = if kind.ends_with('*') { "" } else { " " };
        format!("{kind}{space}{}{}", self.name, self.array)
    }

    fn kind_in_c(&self, wide: bool) -> String {
        let pick = |word: &str| match (word, wide) {
            ("COUNT" | "DISPL", false) => Some("int"),
            ("DISPL" | "EXTENT", _) => Some(if wide && word == "EXTENT" { "MPI_Count" } else { "MPI_Aint" }),
            ("COUNT", true) => Some("MPI_Count"),
            _ => None,
        };
        let words = self.kind.split(' ').map(|word| pick(word).unwrap_or(word)).collect::<Vec<_>>().join(" ");
        words.replace("[_c]", if wide { "_c" } else { "" })
    }

    /// Whether the twins of the function differ in this parameter.
    pub fn differs(&self) -> bool {
        self.kind_in_c(false) != self.kind_in_c(true)
    }
}
