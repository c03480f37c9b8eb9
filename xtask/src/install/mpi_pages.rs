//! The manual pages of MPI: one for each function, out of the table of the ABI and the texts of `interfaces/mpi/man`,
//! and an overview, `weft-mpi(7)`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use weft_mpi_table::{Parameter, TableFunction, chapter, entries, fortran};

use super::mpi_text::{FoundText, ManualEntry, ManualText, read};
use super::pages::escaped;
use crate::command::root;

/// What the headers declare by themselves, in the form of the table.
const STATUSES: &str = "# Statuses of Fortran
anytime int MPI_Status_c2f(const MPI_Status *from, MPI_Fint *to) = status::c2f
anytime int MPI_Status_c2f08(const MPI_Status *from, MPI_F08_status *to) = status::c2f08
anytime int MPI_Status_f2c(const MPI_Fint *from, MPI_Status *to) = status::f2c
anytime int MPI_Status_f2f08(const MPI_Fint *from, MPI_F08_status *to) = status::f2f08
anytime int MPI_Status_f082c(const MPI_F08_status *from, MPI_Status *to) = status::f082c
anytime int MPI_Status_f082f(const MPI_F08_status *from, MPI_Fint *to) = status::f082f
";

/// Functions that are called before MPI is started, and not afterwards.
const ONLY_BEFORE: [&str; 4] =
    ["MPI_Init", "MPI_Init_thread", "MPI_Abi_set_fortran_info", "MPI_Abi_set_fortran_booleans"];

/// The error class of a handle that is not valid.
const HANDLES: [(&str, &str); 11] = [
    ("MPI_Comm", "MPI_ERR_COMM"),
    ("MPI_Datatype", "MPI_ERR_TYPE"),
    ("MPI_Errhandler", "MPI_ERR_ERRHANDLER"),
    ("MPI_File", "MPI_ERR_FILE"),
    ("MPI_Group", "MPI_ERR_GROUP"),
    ("MPI_Info", "MPI_ERR_INFO"),
    ("MPI_Message", "MPI_ERR_REQUEST"),
    ("MPI_Op", "MPI_ERR_OP"),
    ("MPI_Request", "MPI_ERR_REQUEST"),
    ("MPI_Session", "MPI_ERR_SESSION"),
    ("MPI_Win", "MPI_ERR_WIN"),
];

/// The error class of a number that is not valid, by the end of its name.
const NUMBERS: [(&str, &str); 9] = [
    ("count", "MPI_ERR_COUNT"),
    ("counts", "MPI_ERR_COUNT"),
    ("dest", "MPI_ERR_RANK"),
    ("keyval", "MPI_ERR_KEYVAL"),
    ("rank", "MPI_ERR_RANK"),
    ("ranks", "MPI_ERR_RANK"),
    ("root", "MPI_ERR_ROOT"),
    ("source", "MPI_ERR_RANK"),
    ("tag", "MPI_ERR_TAG"),
];

const OVERVIEW: &str = "\
.SH NAME
weft\\-mpi \\- MPI 5.0 over user\\-level communication
.SH SYNOPSIS
.nf
weft cc program.c \\-o program       # mpicc
weft fc program.f90 \\-o program     # mpifort
weft run \\-n 4 ./program            # mpiexec
.fi
.SH DESCRIPTION
Each function has a page in section 3: C with the standard ABI and that of MPICH, and Fortran with the module mpi_f08.
There mpif.h and the module mpi have the same names, with handles that are integers. For a profiling tool each function
has a second name, with a P before it.
.PP
A rank that dies ends the job, unless it was started with weft run \\-\\-keep\\-going; then what needs that rank ends
with MPIX_ERR_PROC_FAILED.
";

/// A function, and what is said of it.
struct DocumentedFunction<'a> {
    function: TableFunction,
    /// It is of the standard of today, so that Fortran can have it, too.
    is_current: bool,
    told: FoundText<'a>,
}

/// Every function of the headers but those of failure mitigation, which are not of the standard.
fn documented(text: &ManualText) -> Result<Vec<DocumentedFunction<'_>>> {
    let mpi = root().join("interfaces/mpi");
    let more = mpi.join("mpich/abi/more.abi");
    let more = fs::read_to_string(&more).with_context(|| format!("cannot read {}", more.display()))?;
    let mut chapters = weft_mpi_table::read(&mpi.join("abi")).chapters;
    let current = chapters.len();
    chapters.extend([chapter(&more), chapter(STATUSES)]);
    let all = chapters
        .into_iter()
        .enumerate()
        .flat_map(|(at, chapter)| chapter.functions.into_iter().map(move |function| (function, at < current)));
    let of_the_standard = all.filter(|(function, _)| !function.name.starts_with("MPIX_"));
    of_the_standard
        .map(|(function, is_current)| {
            let told = text.of(&function.name);
            let told = told.with_context(|| format!("{} has no text in interfaces/mpi/man", function.name))?;
            Ok(DocumentedFunction { function, is_current, told })
        })
        .collect()
}

/// Writes all pages below the folder `man`.
pub fn write(man: &Path) -> Result<()> {
    let text = read(&root().join("interfaces/mpi/man"))?;
    let all = documented(&text)?;
    let put = |section: u8, name: &str, text: &str| {
        let folder = man.join(format!("man{section}"));
        fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{name}.{section}"));
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    for one in &all {
        let name = &one.function.name;
        put(3, name, &page(one, &text, &all)?)?;
        if one.function.twin {
            put(3, &one.function.name_of(true), &format!(".so man3/{name}.3\n"))?;
        }
    }
    put(7, "weft-mpi", &overview(&text, &all))
}

fn head(name: &str, section: u8) -> String {
    format!(".TH {} {section} \"\" \"Weft {}\" \"Weft\"\n.nh\n.ad l\n", name.to_uppercase(), env!("CARGO_PKG_VERSION"))
}

fn page(one: &DocumentedFunction, text: &ManualText, all: &[DocumentedFunction]) -> Result<String> {
    let (function, told) = (&one.function, one.told);
    let names = function.forms().iter().map(|&wide| function.name_of(wide)).collect::<Vec<_>>().join(", ");
    let mut page = head(&function.name, 3);
    let _ = write!(page, ".SH NAME\n{names} \\- {}\n", escaped(&phrase(told)));
    page.push_str(&synopsis(one));
    page.push_str(&parameters(function, told, text)?);
    page.push_str(&description(function, told));
    let in_fortran = if page.contains("\nuse mpi_f08\n") { ", which Fortran has in ierror" } else { "" };
    page.push_str(&errors(function, told, text, in_fortran));
    if let Some(notes) = section(told, "NOTES") {
        let _ = write!(page, ".SH NOTES\n{}\n", escaped(notes));
    }
    let group = told.group.calls.iter().map(|call| &*call.name);
    let also = variants(&told.call.name, all).chain(group).filter(|other| *other != function.name);
    let also: String = also.map(|name| format!("{name}(3), ")).collect();
    let _ = write!(page, ".SH SEE ALSO\n{also}weft\\-mpi(7)\n");
    Ok(page)
}

/// The first sentence, without its full stop.
fn phrase(told: FoundText) -> String {
    let first = told.call.says.split(". ").next().unwrap_or_default().trim_end_matches('.');
    match told.form {
        Some(form) => {
            let form = form.split([',', ';']).next().unwrap_or_default();
            format!("{}: {first}", form.replace("{}", &told.call.name))
        }
        None => first.to_owned(),
    }
}

fn section<'a>(told: FoundText<'a>, name: &str) -> Option<&'a str> {
    let lists = [&told.call.entries, &told.group.entries];
    let found = lists.into_iter().find_map(|entries| entries.iter().find(|entry| entry.name == name))?;
    Some(&found.says)
}

fn synopsis(one: &DocumentedFunction) -> String {
    let function = &one.function;
    let mut text = ".SH SYNOPSIS\n.nf\n#include <mpi.h>\n".to_owned();
    for &wide in function.forms() {
        text.push_str(&folded(&format!("{};", function.declaration(&function.name_of(wide), wide))));
    }
    let lines = if one.is_current { fortran::synopsis(function) } else { Vec::new() };
    if !lines.is_empty() {
        text.push_str("\nuse mpi_f08\n");
        lines.iter().for_each(|line| text.push_str(&folded(line)));
    }
    text + ".fi\n"
}

/// A declaration in lines that fit into a terminal.
fn folded(line: &str) -> String {
    let (mut text, mut length) = (String::new(), 0);
    for word in line.split_inclusive(", ") {
        if length > 0 && length + word.len() > 78 {
            text.truncate(text.trim_end().len());
            text.push_str("\n        ");
            length = 8;
        }
        text.push_str(word);
        length += word.len();
    }
    escaped(&text) + "\n"
}

fn parameters(function: &TableFunction, told: FoundText, text: &ManualText) -> Result<String> {
    let mut page = String::new();
    for parameter in &function.parameters {
        let name = &parameter.name;
        let of = &function.name;
        let entry = text.parameter(told, name).with_context(|| format!("nothing is said of {name} of {of}"))?;
        let direction = direction(parameter, entry);
        let _ = write!(page, ".TP\n\\fI{name}\\fR ({direction})\n{}\n", escaped(&entry.says));
    }
    if page.is_empty() { Ok(page) } else { Ok(format!(".SH PARAMETERS\n{page}")) }
}

/// The type without what makes it an array or a place.
fn base(parameter: &Parameter) -> &str {
    parameter.kind.trim_start_matches("const ").trim_end_matches(['*', ' '])
}

/// Whether a parameter goes in or out: as the text says, or as its type does.
fn direction<'a>(parameter: &Parameter, entry: &'a ManualEntry) -> &'a str {
    let is_value = !parameter.kind.contains('*') && parameter.array.is_empty();
    let is_function = base(parameter).trim_end_matches("[_c]").ends_with("_function");
    match &entry.direction {
        Some(direction) => direction,
        None if is_value || is_function || parameter.kind.starts_with("const ") => "IN",
        None => "OUT",
    }
}

fn description(function: &TableFunction, told: FoundText) -> String {
    let (name, call) = (&function.name, told.call);
    let mut text = match told.form {
        Some(form) => {
            format!("{name} {}.\n{} {}", form.replace("{}", &format!("{}(3)", call.name)), call.name, call.says)
        }
        None => format!("{name} {}", call.says),
    };
    if function.twin {
        let _ = write!(text, " {name}_c is the same with large counts.");
    }
    if function.anytime && !ONLY_BEFORE.contains(&name.as_str()) {
        let _ = write!(text, "\n.PP\nIt may also be called before MPI_Init(3) and after MPI_Finalize(3).");
    }
    let lines: Vec<String> =
        text.lines().map(|line| if line == ".PP" { line.to_owned() } else { escaped(line) }).collect();
    format!(".SH DESCRIPTION\n{}\n", lines.join("\n"))
}

fn errors(function: &TableFunction, told: FoundText, text: &ManualText, in_fortran: &str) -> String {
    if function.name.starts_with("MPI_T_") {
        return ".SH RETURN VALUE\nMPI_SUCCESS, or an error code MPI_T_ERR_*. No error handler is called.\n".to_owned();
    }
    if function.body.answers_value {
        return ".SH RETURN VALUE\nWhat the function tells. No error handler is called.\n".to_owned();
    }
    // A status takes any number.
    let is_checked = |it: &&Parameter| !(function.name.starts_with("MPI_Status_set_") && it.kind == "int");
    let checked = function.parameters.iter().filter(is_checked);
    let mut classes: Vec<&str> = checked.filter_map(|parameter| class(parameter, told, text)).collect();
    let of_a_request = classes.contains(&"MPI_ERR_REQUEST");
    classes.extend(section(told, "ERRORS").into_iter().flat_map(str::split_whitespace));
    classes.sort_unstable();
    classes.dedup();
    let object = entries::object(function);
    let handler = match object.split("On::").nth(1).and_then(|object| object.split('(').next()) {
        Some("File") => "of the file: by default MPI_ERRORS_RETURN, which returns the code",
        Some("Made") => "that is given",
        Some("Win") => "of the window: by default MPI_ERRORS_ARE_FATAL, which ends the job",
        Some("Session") => "of the session: by default MPI_ERRORS_ARE_FATAL, which ends the job",
        Some("Comm") => "of the communicator: by default MPI_ERRORS_ARE_FATAL, which ends the job",
        _ if of_a_request => "of what the request belongs to, such as a communicator",
        _ => "of MPI_COMM_SELF: by default MPI_ERRORS_ARE_FATAL, which ends the job",
    };
    let mut page = format!(
        ".SH RETURN VALUE\nMPI_SUCCESS, or an error code{in_fortran}; MPI_Error_string(3) says it in words.\nBefore that an \
         error goes to the error handler {handler}.\n"
    );
    if !classes.is_empty() {
        let _ = write!(page, ".SH ERRORS\nMost often: {}.\n", classes.join(", "));
    }
    page
}

/// The error class of a parameter that is not valid, if it goes in.
fn class(parameter: &Parameter, told: FoundText, text: &ManualText) -> Option<&'static str> {
    let entry = text.parameter(told, &parameter.name)?;
    if direction(parameter, entry) == "OUT" {
        return None;
    }
    let handle = HANDLES.iter().find(|(kind, _)| *kind == base(parameter));
    let is_number = ["int", "COUNT"].contains(&base(parameter));
    let number = NUMBERS.iter().find(|(name, _)| is_number && parameter.name.ends_with(name));
    handle.or(number).map(|(_, class)| *class)
}

/// The variants of a function that has a text.
fn variants<'a>(call: &'a str, all: &'a [DocumentedFunction]) -> impl Iterator<Item = &'a str> {
    let variants = all.iter().filter(move |one| one.told.form.is_some() && one.told.call.name == call);
    variants.map(|one| &*one.function.name)
}

fn overview(text: &ManualText, all: &[DocumentedFunction]) -> String {
    let mut page = head("weft-mpi", 7) + OVERVIEW;
    for group in &text.groups {
        let _ = writeln!(page, ".SH {}", escaped(&group.title.to_uppercase()));
        for call in &group.calls {
            let names: Vec<&str> = std::iter::once(&*call.name).chain(variants(&call.name, all)).collect();
            let told = FoundText { group, call, form: None };
            let _ = write!(page, ".TP\n\\fB{}\\fR(3)\n{}\n", names.join("\\fR(3), \\fB"), escaped(&phrase(told)));
        }
    }
    page + ".SH SEE ALSO\nweft(1), weft\\-cc(1), weft\\-fc(1), weft\\-run(1), weft\\-ps(1)\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn texts() -> ManualText {
        read(&root().join("interfaces/mpi/man")).unwrap()
    }

    /// What a header has for programs; `PMPI_` and `MPIX_` are no names of the standard. Conversions of handles may be
    /// macros.
    fn declared(header: &str) -> BTreeSet<String> {
        let text = fs::read_to_string(root().join("interfaces/mpi").join(header)).unwrap();
        let functions = text.lines().filter(|line| line.ends_with(");") && !line.starts_with(['t', '#']));
        let functions = functions.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next());
        let macros = text.lines().filter_map(|line| line.strip_prefix("#define ")?.split([' ', '(']).next());
        let macros = macros.filter(|name| name.ends_with("_c2f") || name.ends_with("_f2c"));
        functions.chain(macros).filter(|name| name.starts_with("MPI_")).map(str::to_owned).collect()
    }

    #[test]
    fn every_function_of_the_headers_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let pages = fs::read_dir(folder.path().join("man3")).unwrap().map(|entry| entry.unwrap().file_name());
        let pages: BTreeSet<String> =
            pages.map(|name| name.to_str().unwrap().trim_end_matches(".3").to_owned()).collect();
        let [ours, mpich] = ["include/mpi.h", "mpich/include/mpi.h"].map(declared);
        assert!(ours.len() > 650 && mpich.len() > 650, "{} {}", ours.len(), mpich.len());
        let both: BTreeSet<String> = ours.union(&mpich).cloned().collect();
        assert_eq!(pages.difference(&both).collect::<Vec<_>>(), Vec::<&String>::new());
        assert_eq!(both.difference(&pages).collect::<Vec<_>>(), Vec::<&String>::new());
    }

    /// Functions, parameters and error classes that a text names are there, and what is said of parameters is said
    /// somewhere.
    #[test]
    fn every_text_has_a_function() {
        let text = texts();
        let all = documented(&text).unwrap();
        let constants = weft_mpi_table::read(&root().join("interfaces/mpi/abi")).constants;
        let classes: BTreeSet<String> =
            constants.into_iter().flat_map(|section| section.constants).map(|constant| constant.name).collect();
        let has = |function: &TableFunction, name: &str| function.parameters.iter().any(|other| other.name == name);
        let mut wrong = Vec::new();
        for group in &text.groups {
            let own = |name: &str| {
                all.iter().filter(|one| one.told.group.title == group.title).any(|one| has(&one.function, name))
            };
            wrong.extend(unknown(&group.title, &group.entries, &classes, own));
            for call in &group.calls {
                if !all.iter().any(|one| one.function.name == call.name) {
                    wrong.push(format!("no function {}", call.name));
                }
                let own = |name: &str| {
                    all.iter().filter(|one| one.told.call.name == call.name).any(|one| has(&one.function, name))
                };
                wrong.extend(unknown(&call.name, &call.entries, &classes, own));
            }
        }
        let used = |name: &str| {
            all.iter().any(|one| {
                let entry = text.parameter(one.told, name).filter(|_| has(&one.function, name));
                entry.is_some_and(|entry| text.parameters.iter().any(|other| std::ptr::eq(other, entry)))
            })
        };
        wrong.extend(unknown("parameters", &text.parameters, &classes, used));
        assert_eq!(wrong, Vec::<String>::new());
    }

    /// Entries that are no section and that `has` does not know, and error classes that do not exist.
    fn unknown(
        of: &str,
        entries: &[ManualEntry],
        classes: &BTreeSet<String>,
        has: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let is_wrong = |entry: &&ManualEntry| match &*entry.name {
            "NOTES" => false,
            "ERRORS" => !entry.says.split_whitespace().all(|class| classes.contains(class)),
            name => !has(name),
        };
        entries.iter().filter(is_wrong).map(|entry| format!("{of}: {}", entry.name)).collect()
    }

    #[test]
    fn a_page_has_both_languages_parameters_and_errors() {
        let text = texts();
        let all = documented(&text).unwrap();
        let of = |name: &str| page(all.iter().find(|one| one.function.name == name).unwrap(), &text, &all).unwrap();
        let send = of("MPI_Send");
        for part in [
            ".SH NAME\nMPI_Send, MPI_Send_c \\- sends a message\n",
            "\nint MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest,\n",
            "\nMPI_Send(buf, count, datatype, dest, tag, comm, ierror)\n",
            "\n    type(*), dimension(..), intent(in) :: buf\n",
            "\nwith large counts:\n    integer(KIND=MPI_COUNT_KIND), intent(in) :: count\n.fi\n",
            ".TP\n\\fIbuf\\fR (IN)\nthe data to send\n",
            "MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_RANK, MPI_ERR_TAG, MPI_ERR_TYPE.\n",
            "\n.SH SEE ALSO\nMPI_Isend(3), MPI_Send_init(3), MPI_Bsend(3), ",
        ] {
            assert!(send.contains(part), "{part}\n{send}");
        }
        assert!(of("MPI_Ibcast").contains("MPI_Ibcast_c \\- begins what MPI_Bcast does: sends a buffer"));
        assert!(
            of("MPI_Wait").contains("\\fIrequest\\fR (INOUT)\n") && of("MPI_Isend").contains("\\fIrequest\\fR (OUT)\n")
        );
        assert!(of("MPI_T_cvar_read").contains("MPI_T_ERR_*") && !of("MPI_T_cvar_read").contains("use mpi_f08"));
        assert!(!of("MPI_Type_struct").contains("use mpi_f08"));
    }

    /// Pages begin lines with requests of these names alone, and references lead somewhere.
    #[test]
    fn pages_are_well_formed() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let pages = fs::read_dir(folder.path().join("man3")).unwrap().map(|entry| entry.unwrap().path());
        for path in pages.chain([folder.path().join("man7/weft-mpi.7")]) {
            let page = read(&path);
            let requests: BTreeSet<&str> =
                page.lines().filter(|line| line.starts_with('.')).map(|line| &line[..3]).collect();
            assert!(
                requests
                    .iter()
                    .all(|request| [".TH", ".nh", ".ad", ".SH", ".TP", ".PP", ".nf", ".fi", ".so"].contains(request))
            );
            assert_eq!(page.matches("\n.nf\n").count(), page.matches("\n.fi\n").count(), "{page}");
            assert_eq!(page.matches("\n\n").count(), page.matches("\n\nuse mpi_f08\n").count(), "{page}");
            for (at, _) in page.match_indices("(3)") {
                let name = page[..at].trim_end_matches("\\fR").rsplit([' ', '\n', '(']).next().unwrap_or_default();
                let name = name.trim_start_matches("\\fB");
                assert!(folder.path().join(format!("man3/{name}.3")).exists(), "{name}: {page}");
            }
        }
        for file in fs::read_dir(root().join("interfaces/mpi/man")).unwrap() {
            let path = file.unwrap().path();
            assert!(read(&path).lines().all(|line| line.chars().count() <= 120), "{}", path.display());
        }
    }
}
