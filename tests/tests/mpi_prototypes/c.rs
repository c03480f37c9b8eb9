//! Declarations of C, as the compiler's preprocessor shows them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// A function, or a type of functions.
#[derive(Clone, Debug)]
pub struct Declared {
    pub answer: String,
    pub parameters: Vec<Parameter>,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    /// The type as the function gets it: an array is the address of its first element.
    pub kind: String,
    pub name: String,
    pub is_array: bool,
}

impl Declared {
    /// What a caller has to agree with.
    pub fn kinds(&self) -> Vec<&str> {
        std::iter::once(&*self.answer).chain(self.parameters.iter().map(|it| &*it.kind)).collect()
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let kinds: Vec<&str> = self.parameters.iter().map(|it| &*it.kind).collect();
        write!(f, "{}({})", self.answer, kinds.join(", "))
    }
}

/// Whatever a header declares as a function of MPI, and the types of functions that programs hand over, by name;
/// extensions, whose names begin with `MPIX_`, are everybody's own.
pub fn declared(header: &Path) -> BTreeMap<String, Declared> {
    let folder = header.parent().expect("a header lies in a folder");
    let output = Command::new("cc").args(["-E", "-P", "-x", "c", "-I"]).arg(folder).arg(header).output();
    let output = output.expect("cc can be started");
    assert!(output.status.success(), "{}: {}", header.display(), String::from_utf8_lossy(&output.stderr));
    let text = without_attributes(&String::from_utf8(output.stdout).expect("text"));
    text.split(';').filter_map(function).collect()
}

fn without_attributes(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(at) = rest.find("__attribute__") {
        kept.push_str(&rest[..at]);
        let mut depth = 0;
        let end = rest[at..].find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            letter == ')' && depth == 0
        });
        rest = &rest[at + end.expect("brackets match") + 1..];
    }
    kept + rest
}

fn function(declaration: &str) -> Option<(String, Declared)> {
    let line = declaration.split_whitespace().collect::<Vec<_>>().join(" ").replace(") (", ")(");
    let line = line.rsplit(['{', '}']).next()?.trim().trim_start_matches("extern ").to_owned();
    let line = match line.strip_prefix("typedef ") {
        // `int (NAME)(...)` is `int NAME(...)`.
        Some(kind) => kind.replacen(" (MPI", " MPI", 1).replacen(")(", "(", 1),
        None => line,
    };
    let (head, parameters) = line.split_once('(')?;
    let (answer, name) = split(head)?;
    let parameters = parameters.strip_suffix(')').filter(|_| name.trim_start_matches('P').starts_with("MPI_"))?;
    let listed = parameters.split(',').map(str::trim).filter(|it| *it != "void");
    Some((name, Declared { answer, parameters: listed.map(parameter).collect() }))
}

/// Type and name.
fn split(text: &str) -> Option<(String, String)> {
    let is_break = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let (kind, name) = text.trim().split_at(text.trim().rfind(is_break)? + 1);
    Some((kind.trim().replace(" *", "*"), name.to_owned()))
}

fn parameter(text: &str) -> Parameter {
    if text == "..." {
        return Parameter { kind: text.to_owned(), name: String::new(), is_array: false };
    }
    let (front, array) = text.split_at(text.find('[').unwrap_or(text.len()));
    let (kind, name) = split(front).unwrap_or_else(|| (front.to_owned(), String::new()));
    let kind = match array.split_once(']') {
        Some((_, more)) => format!("{kind}*{more}"),
        // A value that is constant is a value.
        None if !kind.contains('*') => kind.trim_start_matches("const ").to_owned(),
        None => kind,
    };
    Parameter { kind, name, is_array: !array.is_empty() }
}
