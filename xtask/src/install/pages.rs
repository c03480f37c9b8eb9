//! Manual pages of a C library, out of its header: a comment that begins with two stars is the page of what it
//! declares.
//!
//! ```text
//! /** name, other_name - what they do
//!  *
//!  * Paragraphs; what is indented by four is an example.
//!  */
//! declarations, up to the first empty line
//! ```

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A page, and the names under which people look for it.
pub struct ManualPage {
    names: Vec<String>,
    text: String,
}

/// A header that has pages of its own, and what stands at the end of each.
pub struct PagedHeader {
    pub header: &'static str,
    /// What its errors are called, and what says them in words.
    errors: &'static str,
    says: &'static str,
    also: &'static str,
}

/// All that have.
pub const OWN: [PagedHeader; 2] = [
    PagedHeader {
        header: "weft.h",
        errors: "WEFT_ERR_*",
        says: "weft_error(3)",
        also: "weft_init(3), weft_send(3), weft_receive(3), weft_error(3), weft(1)",
    },
    PagedHeader {
        header: "weft_objects.h",
        errors: "WEFT_OBJECTS_ERR_*",
        says: "weft_objects_error(3)",
        also: "weft_objects_init(3), weft_object_share(3), weft_object_call(3), weft(1)",
    },
];

/// Writes the pages of a header with this text into a folder.
pub fn write(header: &PagedHeader, text: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for page in pages(header, text) {
        let [first, others @ ..] = &page.names[..] else { continue };
        let write = |name: &str, text: &str| {
            let file = folder.join(format!("{name}.3"));
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
        };
        write(first, &page.text)?;
        others.iter().try_for_each(|name| write(name, &format!(".so man3/{first}.3\n")))?;
    }
    Ok(())
}

fn pages(header: &PagedHeader, text: &str) -> Vec<ManualPage> {
    text.split("\n/** ").skip(1).filter_map(|part| page(header, part)).collect()
}

/// The page that a part of a header begins with.
fn page(header: &PagedHeader, part: &str) -> Option<ManualPage> {
    let (comment, declared) = part.split_once(" */\n")?;
    let declared = declared.split("\n\n").next()?;
    let (title, body) = comment.split_once('\n')?;
    let (names, about) = title.split_once(" - ")?;
    let names: Vec<String> = names.split(", ").map(str::to_owned).collect();
    let mut page = format!(".TH {} 3 \"\" \"Weft {}\" \"Weft\"\n", names[0], env!("CARGO_PKG_VERSION"));
    let _ = write!(page, ".SH NAME\n{} \\- {}\n", names.join(", "), escaped(about));
    let PagedHeader { header: name, errors, says, also } = header;
    let _ = write!(page, ".SH SYNOPSIS\n.nf\n#include <{name}>\n.PP\n{}\n.fi\n.SH DESCRIPTION\n", escaped(declared));
    let mut is_example = false;
    for line in body.lines().map(|line| line.trim_start_matches(" *")) {
        let indented = line.starts_with("     ");
        if indented != is_example && !line.trim().is_empty() {
            page.push_str(if indented { ".PP\n.RS 4\n.nf\n" } else { ".fi\n.RE\n" });
            is_example = indented;
        }
        match line.trim() {
            "" if is_example => page.push('\n'),
            "" if page.ends_with(".SH DESCRIPTION\n") => {}
            "" => page.push_str(".PP\n"),
            text if is_example => page.push_str(&(escaped(line.get(5..).unwrap_or(text)) + "\n")),
            text => page.push_str(&(escaped(text) + "\n")),
        }
    }
    if is_example {
        page.push_str(".fi\n.RE\n");
    }
    let _ = writeln!(page, ".SH RETURN VALUE\nWhat is negative is an error, {errors}; {says} says it in words.");
    let _ = writeln!(page, ".SH SEE ALSO\n{also}");
    Some(ManualPage { names, text: page })
}

/// As roff wants it.
pub fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "/* A header. */\n\n/** one, two - do -1 thing\n *\n * First.\n * .Dots are text.\n *\n *     example();\n *\n * Last.\n */\nint one(void);\nint two(void);\n\nint not_this(void);\n";

    #[test]
    fn a_comment_becomes_the_page_of_what_it_declares() {
        let folder = tempfile::tempdir().unwrap();
        write(&OWN[0], HEADER, folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("one.3")).unwrap();
        for part in ["one, two \\- do \\-1 thing\n", "int one(void);\nint two(void);\n.fi", "\n\\&.Dots are text.\n"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.contains(".nf\nexample();\n\n.fi\n.RE\nLast.\n") && !page.contains("not_this"), "{page}");
        assert_eq!(fs::read_to_string(folder.path().join("two.3")).unwrap(), ".so man3/one.3\n");
    }

    /// Every function that such a header declares has a page.
    #[test]
    fn headers_have_a_page_for_every_function() {
        for own in &OWN {
            let library = crate::install::interfaces::ALL.iter().find(|library| library.headers.contains(&own.header));
            let folder = library.expect("it belongs to a library").folder();
            let text =
                fs::read_to_string(crate::command::root().join(folder).join("include").join(own.header)).unwrap();
            let named: Vec<String> = pages(own, &text).into_iter().flat_map(|page| page.names).collect();
            let declared = text.lines().filter_map(|line| {
                let line = line.strip_prefix("int ").or(line.strip_prefix("const char *"))?;
                line.split_once('(').map(|(name, _)| name.to_owned())
            });
            let declared: Vec<String> = declared.collect();
            assert!(declared.len() > 20, "{declared:?}");
            let mut sorted = [named, declared];
            sorted.iter_mut().for_each(|names| names.sort());
            assert_eq!(sorted[0], sorted[1]);
        }
    }
}
