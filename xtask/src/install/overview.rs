//! One manual page for a library whose calls are told elsewhere: all that its headers declare, a line each, under the
//! comments that stand before them there. A page of each call's name leads to it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::interfaces::InterfaceLibrary;
use super::pages::escaped;

/// A piece of a header.
#[derive(Debug, PartialEq, Eq)]
enum HeaderPiece {
    Comment(String),
    Call { name: String, line: String },
}

/// Writes the page of a library, whose headers are in the folder `include`, and those that lead to it.
pub fn write(library: &InterfaceLibrary, include: &Path, folder: &Path) -> Result<()> {
    let mut headers = Vec::new();
    for header in library.headers {
        let path = include.join(header);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        headers.push((*header, pieces(&text)));
    }
    let is_call = |piece: &&HeaderPiece| matches!(piece, HeaderPiece::Call { .. });
    headers.retain(|(_, pieces)| pieces.iter().any(|piece| is_call(&piece)));
    fs::create_dir_all(folder)?;
    let page = library.linked;
    let put = |name: &str, text: &str| {
        let path = folder.join(format!("{name}.3"));
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    put(page, &text(library, &headers))?;
    let all = headers.iter().flat_map(|(_, pieces)| pieces);
    let names: BTreeSet<&str> =
        all.filter_map(|piece| if let HeaderPiece::Call { name, .. } = piece { Some(&**name) } else { None }).collect();
    names.into_iter().filter(|name| *name != page).try_for_each(|name| put(name, &format!(".so man3/{page}.3\n")))
}

fn text(library: &InterfaceLibrary, headers: &[(&str, Vec<HeaderPiece>)]) -> String {
    let (page, package) = (library.linked, library.package);
    let mut text = format!(".TH {} 3 \"\" \"Weft {}\" \"Weft\"\n", page.to_uppercase(), env!("CARGO_PKG_VERSION"));
    let _ = write!(text, ".SH NAME\n{page} \\- {}\n.SH SYNOPSIS\n.nf\n", escaped(library.about));
    headers.iter().for_each(|(header, _)| _ = writeln!(text, "#include <{header}>"));
    let build = format!("cc program.c $(pkg-config --cflags --libs {package})");
    let _ = write!(text, ".PP\n{}\n.fi\n", escaped(&build));
    for (header, pieces) in headers {
        let _ = writeln!(text, ".SH {}", header.to_uppercase());
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                // Of comments only what tells of calls: the head of the header, and the last one before some.
                HeaderPiece::Comment(said)
                    if at == 0 || matches!(pieces.get(at + 1), Some(HeaderPiece::Call { .. })) =>
                {
                    said.split("\n\n").for_each(|part| _ = write!(text, ".PP\n{}\n", escaped(part)));
                }
                HeaderPiece::Comment(_) => {}
                HeaderPiece::Call { line, .. } => _ = write!(text, ".PD 0\n.HP 4\n{}\n.PD\n", escaped(line)),
            }
        }
    }
    let _ = write!(text, ".SH SEE ALSO\nweft(1), weft\\-run(1), weft\\-ps(1)\n");
    text
}

/// Comments, and what can be called: functions, and macros that stand for some.
fn pieces(header: &str) -> Vec<HeaderPiece> {
    let mut found = Vec::new();
    let mut rest = header.trim_start();
    while !rest.is_empty() {
        let end = if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").unwrap_or(comment.len());
            found.push(HeaderPiece::Comment(said(&comment[..end])));
            (end + 4).min(rest.len())
        } else if rest.starts_with('#') {
            let end = end_of_directive(rest);
            found.extend(macro_of(&rest[..end]));
            end
        } else if let Some(opened) = ["extern \"C\" {", "}", ";"].into_iter().find(|word| rest.starts_with(word)) {
            opened.len()
        } else {
            let end = rest.find([';', '{']).unwrap_or(rest.len() - 1);
            found.extend(function(&rest[..end]));
            if rest[end..].starts_with('{') { end + end_of_body(&rest[end..]) } else { end + 1 }
        };
        rest = rest[end..].trim_start();
    }
    calls_only(found)
}

/// Without macros that are no calls: those have the first word of a function's name. Of several for numbers of
/// arguments the one with one is left.
fn calls_only(mut found: Vec<HeaderPiece>) -> Vec<HeaderPiece> {
    // A macro's line begins with its name, a function's with a type.
    let macro_in = |piece: &HeaderPiece| matches!(piece, HeaderPiece::Call { name, line } if line.starts_with(&**name));
    let word = |piece: &HeaderPiece| match piece {
        HeaderPiece::Call { name, .. } => name.split('_').next().map(str::to_owned),
        HeaderPiece::Comment(_) => None,
    };
    let words: BTreeSet<String> = found.iter().filter(|piece| !macro_in(piece)).filter_map(word).collect();
    let is_one = |name: &str| {
        let number = &name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..];
        number.is_empty() || number == "1"
    };
    found.retain(|piece| match piece {
        HeaderPiece::Call { name, .. } if macro_in(piece) => {
            word(piece).is_some_and(|word| words.contains(&word)) && !name.ends_with('_') && is_one(name)
        }
        _ => true,
    });
    found
}

/// A comment's text: paragraphs, without stars at the beginnings of lines.
fn said(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches('*').trim());
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn end_of_directive(text: &str) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    end
}

/// What stands for a function with these arguments.
fn macro_of(directive: &str) -> Option<HeaderPiece> {
    let definition = directive.strip_prefix("#define ")?;
    let (name, arguments) = definition.split_once('(')?;
    let (arguments, _) = arguments.split_once(')')?;
    is_name(name).then(|| HeaderPiece::Call { name: name.to_owned(), line: format!("{name}({arguments})") })
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A function that is declared so.
fn function(declared: &str) -> Option<HeaderPiece> {
    let words: Vec<&str> = declared.split_whitespace().collect();
    let keywords = ["extern", "static", "inline", "P4_MAY_BE_UNUSED"];
    // A variable that holds a function has a name in parentheses, and a table's constants have none before theirs.
    let line = words.into_iter().skip_while(|word| keywords.contains(word)).collect::<Vec<_>>().join(" ");
    let (before, _) = line.split_once('(').filter(|_| line.ends_with(')') && !line.starts_with("typedef"))?;
    // One that answers a function has its name behind another parenthesis.
    let before = if before.ends_with(' ') { line.split('(').nth(1)? } else { before };
    let name = before.rsplit([' ', '*']).next().filter(|name| is_name(name))?.to_owned();
    Some(HeaderPiece::Call { name, line })
}

/// How long a body is, with its braces.
fn end_of_body(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::root;
    use crate::install::interfaces;

    const HEADER: &str = "/* A library.\n *\n * It is old. */\n#ifndef A_H\n#define A_ONE 1\nextern \"C\" {\nstruct a_b {\n    int c; /* no */\n};\n\n\
        /* Begin. */\nextern int a_init(int *argc,\n                  char **argv);\nint (*a_f(int (*of)(int, int)))(int);\n\
        extern void (*a_hook)(int code);\n#define a_send(to, what) \\\n    a_send_(to, what, 0)\n#define B_NOT(x) (x)\n#define a_call2(x, y) a_init(x, y)\n\
        typedef void (*a_t)(int);\nstatic inline void a_print(const char *format, ...)\n{\n    if (format) { a_init(0, 0); }\n}\n}\n#endif\n";

    #[test]
    fn functions_and_macros_are_found_with_what_is_said_of_them() {
        let found = pieces(HEADER);
        let lines: Vec<&str> = found
            .iter()
            .map(|piece| match piece {
                HeaderPiece::Comment(said) => &**said,
                HeaderPiece::Call { line, .. } => &**line,
            })
            .collect();
        let expected = [
            "A library.\n\nIt is old.",
            "Begin.",
            "int a_init(int *argc, char **argv)",
            "int (*a_f(int (*of)(int, int)))(int)",
            "a_send(to, what)",
            "void a_print(const char *format, ...)",
        ];
        assert_eq!(lines, expected);
        let names: Vec<&str> = found
            .iter()
            .filter_map(|piece| if let HeaderPiece::Call { name, .. } = piece { Some(&**name) } else { None })
            .collect();
        assert_eq!(names, ["a_init", "a_f", "a_send", "a_print"]);
    }

    #[test]
    fn every_library_has_its_calls_on_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let calls = [
            ("weft-pvm", "pvm_recvf", 110),
            ("weft-p4", "p4_sendr", 90),
            ("weft-tcgmsg", "NXTVAL_", 60),
            ("weft-am", "AM_Request1", 80),
            ("weft-fm", "FM_extract", 13),
            ("weft-panda", "pan_rpc_trans", 120),
        ];
        for (package, call, count) in calls {
            let library = interfaces::ALL.iter().find(|library| library.package == package).unwrap();
            let include = root().join("interfaces").join(package.trim_start_matches("weft-")).join("include");
            let folder = folder.path().join(package);
            write(library, &include, &folder).unwrap();
            let page = fs::read_to_string(folder.join(library.linked).with_extension("3")).unwrap();
            assert!(page.contains(&format!("{call}(")) && page.lines().all(|line| line.len() < 300), "{page}");
            assert_eq!(
                fs::read_to_string(folder.join(call).with_extension("3")).unwrap(),
                format!(".so man3/{}.3\n", library.linked)
            );
            let found = page.matches("\n.HP 4\n").count();
            assert!(found >= count, "{package}: {found}");
        }
    }
}
