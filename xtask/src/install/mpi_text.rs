//! What the manual pages of MPI say besides prototypes: the files of `interfaces/mpi/man`.
//!
//! ```text
//! # Title of a group of functions
//!
//!   parameter: what it means in all functions of the group
//! MPI_Function does something. More may be said of it.
//!   parameter INOUT: what it means here, and which way it goes where that does not follow from the prototype
//!   NOTES: what is different here; a line that is indented by four goes on
//!   ERRORS: error classes besides those that follow from the prototype
//! ```
//!
//! `parameters.txt` says what parameters mean elsewhere. Variants of a function ([`form`]) need no text.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The files in the order of the overview.
const FILES: [&str; 9] =
    ["environment", "messages", "collectives", "datatypes", "objects", "windows", "files", "tools", "fortran"];

/// All of them.
pub struct ManualText {
    pub groups: Vec<ManualGroup>,
    /// What parameters mean elsewhere.
    pub parameters: Vec<ManualEntry>,
}

/// Functions that belong together.
#[derive(Default)]
pub struct ManualGroup {
    pub title: String,
    pub entries: Vec<ManualEntry>,
    pub calls: Vec<ManualCall>,
}

/// A function.
pub struct ManualCall {
    pub name: String,
    /// Sentences, the first of which has the name as its subject.
    pub says: String,
    pub entries: Vec<ManualEntry>,
}

/// A parameter, or a section of the page.
pub struct ManualEntry {
    pub name: String,
    pub direction: Option<String>,
    pub says: String,
}

/// What is said of a function.
#[derive(Clone, Copy)]
pub struct FoundText<'a> {
    pub group: &'a ManualGroup,
    pub call: &'a ManualCall,
    /// What the function has to do with the call, if it is a variant of it.
    pub form: Option<&'static str>,
}

/// Reads a folder.
pub fn read(folder: &Path) -> Result<ManualText> {
    let mut groups = Vec::new();
    for name in FILES {
        groups.extend(read_file(folder, name)?);
    }
    let parameters = read_file(folder, "parameters")?.into_iter().flat_map(|group| group.entries).collect();
    Ok(ManualText { groups, parameters })
}

fn read_file(folder: &Path, name: &str) -> Result<Vec<ManualGroup>> {
    let path = folder.join(name).with_extension("txt");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| format!("in {}", path.display()))
}

fn parse(text: &str) -> Result<Vec<ManualGroup>> {
    let mut groups: Vec<ManualGroup> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(title) = line.strip_prefix("# ") {
            groups.push(ManualGroup { title: title.to_owned(), ..ManualGroup::default() });
            continue;
        }
        let group = groups.last_mut().context("a file begins with the title of a group")?;
        let entries = group.calls.last_mut().map_or(&mut group.entries, |call| &mut call.entries);
        if let Some(more) = line.strip_prefix("    ") {
            let entry = entries.last_mut().with_context(|| format!("this goes on with nothing: {line}"))?;
            entry.says = format!("{}\n{more}", entry.says);
        } else if let Some(line) = line.strip_prefix("  ") {
            entries.push(entry(line)?);
        } else {
            let (name, says) = line.split_once(' ').with_context(|| format!("nothing is said of {line}"))?;
            group.calls.push(ManualCall { name: name.to_owned(), says: says.to_owned(), entries: Vec::new() });
        }
    }
    Ok(groups)
}

fn entry(line: &str) -> Result<ManualEntry> {
    let (head, says) = line.split_once(": ").with_context(|| format!("no entry (name: text): {line}"))?;
    let (name, direction) = head.split_once(' ').map_or((head, None), |(name, direction)| (name, Some(direction)));
    if direction.is_some_and(|direction| !["IN", "OUT", "INOUT"].contains(&direction)) {
        bail!("neither IN, OUT nor INOUT: {line}");
    }
    Ok(ManualEntry { name: name.to_owned(), direction: direction.map(str::to_owned), says: says.to_owned() })
}

impl ManualText {
    /// What is said of a function, or of the one that it is a variant of.
    pub fn of(&self, function: &str) -> Option<FoundText<'_>> {
        self.own(function)
            .or_else(|| form(function).and_then(|(of, form)| Some(FoundText { form: Some(form), ..self.own(&of)? })))
    }

    fn own(&self, function: &str) -> Option<FoundText<'_>> {
        self.groups.iter().find_map(|group| {
            let call = group.calls.iter().find(|call| call.name == function)?;
            Some(FoundText { group, call, form: None })
        })
    }

    /// What is said of a parameter.
    pub fn parameter<'a>(&'a self, told: FoundText<'a>, name: &str) -> Option<&'a ManualEntry> {
        let lists = [&told.call.entries, &told.group.entries, &self.parameters];
        lists.into_iter().find_map(|entries| entries.iter().find(|entry| entry.name == name))
    }
}

/// The function of which another one is a variant by its name, and what it does with that.
fn form(name: &str) -> Option<(String, &'static str)> {
    const BEGINS: &str = "begins what {} does, and returns at once; MPI_Wait(3) or another such call completes it";
    let ends = |end: &str, instead: &str| name.strip_suffix(end).map(|rest| format!("{rest}{instead}"));
    let capital = |rest: &str| format!("MPI_{}{}", rest[..1].to_uppercase(), &rest[1..]);
    let forms = [
        (ends("_init", ""), "makes a persistent request for what {} does, which MPI_Start(3) then begins each time"),
        (ends("_begin", ""), "begins what {} does; the call whose name ends with _end completes it"),
        (ends("_end", ""), "completes what {} does, and the call whose name ends with _begin has begun"),
        (ends("_c2f", "_toint"), "is {} for a handle that Fortran gets"),
        (ends("_f2c", "_fromint"), "is {} for a handle that comes from Fortran"),
        (name.strip_prefix("MPI_File_i").map(|rest| format!("MPI_File_{rest}")), BEGINS),
        (
            name.strip_prefix("MPI_I").filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase())).map(capital),
            BEGINS,
        ),
    ];
    forms.into_iter().find_map(|(of, says)| Some((of?, says)))
}
