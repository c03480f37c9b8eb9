//! Writes how values of the two ABIs become each other: handles, and the integers of a section of the tables.

use std::fmt::Write;
use weft_mpi_table::{Constant, ConstantSection};

/// Sections of integers that become each other by a match, by their titles in the table.
const SECTIONS: &[(&str, &str, &[&str])] = &[
    ("thread_level", "Thread levels", &[]),
    ("class", "Error classes", &["MPI_ERR_LASTCODE"]),
    ("failure_class", "Error classes of failure mitigation, which are not of the standard", &[]),
    ("tool_class", "Error classes of the tool interface", &[]),
    ("comparison", "Results of comparisons", &[]),
    ("topology", "Kinds of topologies", &[]),
    ("splitting", "Kinds of splitting", &[]),
    ("key", "Predefined attributes", &[]),
    ("constructor", "Constructors of datatypes", &[]),
    ("order", "Orders and distributions of arrays", &[]),
    ("type_class", "Classes of Fortran types", &[]),
    ("window", "Windows: locks, flavors, models and assertions", &[]),
    ("file", "Files: modes and positions", &["MPI_DISPLACEMENT_CURRENT"]),
    ("verbosity", "Tool interface: verbosity", &[]),
    ("bound", "Tool interface: what a variable is bound to", &[]),
    ("scope", "Tool interface: scope of a control variable", &[]),
    ("variable_class", "Tool interface: class of a performance variable", &[]),
];

/// Sections that hold several sets: only the constants with these beginnings, as a match or bit by bit.
const PARTS: &[(&str, &str, &str, bool)] = &[
    ("lock", "window", "MPI_LOCK_", false),
    ("flavor", "window", "MPI_WIN_FLAVOR_", false),
    ("model", "window", "MPI_WIN_", false),
    ("assertion", "window", "MPI_MODE_", true),
    ("seek", "file", "MPI_SEEK_", false),
    ("file_mode", "file", "MPI_MODE_", true),
];

/// Handles without a name in the standard ABI: kind, name, theirs, and ours.
const EXTRA: &[(&str, &str, i64, i64)] = &[("Datatype", "MPIX_C_FLOAT16", 0x4c00_0246, 0x2f0)];

/// A constant with its value here and there.
struct ConstantPair {
    name: String,
    theirs: i64,
    ours: i64,
}

pub fn write(ours: &[ConstantSection], theirs: &[ConstantSection]) -> String {
    let mut text = String::new();
    for section in ours.iter().filter(|section| section.handle.is_some()) {
        let handle = section.handle.as_deref().unwrap_or_default().trim_start_matches("MPI_");
        let extra = EXTRA.iter().filter(|extra| extra.0 == handle);
        let extra = extra.map(|&(_, name, theirs, ours)| ConstantPair { name: name.to_owned(), theirs, ours });
        let pairs: Vec<ConstantPair> = pairs(section, theirs).into_iter().chain(extra).collect();
        if !handle.starts_with("T_") && handle != "File" {
            write_handles(&mut text, handle, &pairs);
        }
    }
    for (name, title, but) in SECTIONS {
        let section = ours.iter().find(|section| section.title == *title).expect("the section is there");
        let pairs: Vec<ConstantPair> =
            pairs(section, theirs).into_iter().filter(|pair| !but.contains(&&*pair.name)).collect();
        let parts: Vec<_> = PARTS.iter().filter(|part| part.1 == *name).collect();
        if parts.is_empty() {
            write_numbers(&mut text, name, pairs.iter());
        }
        for (part, _, start, bits) in parts {
            let but_flavor = |pair: &&ConstantPair| *part != "model" || !pair.name.contains("FLAVOR");
            let pairs = pairs.iter().filter(|pair| pair.name.starts_with(start)).filter(but_flavor);
            if *bits { write_bits(&mut text, part, pairs) } else { write_numbers(&mut text, part, pairs) }
        }
    }
    for section in theirs.iter().filter(|section| section.handle.is_none()) {
        for Constant { name, cast, value } in &section.constants {
            let name = name.trim_start_matches("MPI_");
            let _ = match cast.as_deref() {
                None => writeln!(text, "pub const {name}: i32 = {value};"),
                Some("MPI_Offset") => writeln!(text, "pub const {name}: i64 = {value};"),
                Some(_) => writeln!(text, "pub const {name}: usize = {value}isize as usize;"),
            };
        }
    }
    text
}

fn pairs(section: &ConstantSection, theirs: &[ConstantSection]) -> Vec<ConstantPair> {
    let there: Vec<&Constant> = theirs.iter().flat_map(|section| &section.constants).collect();
    let pair = |constant: &Constant| {
        let other = there.iter().find(|other| other.name == constant.name)?;
        let (ours, theirs) = (number(&constant.value)?, number(&other.value)?);
        Some(ConstantPair { name: constant.name.clone(), theirs, ours })
    };
    section.constants.iter().filter_map(pair).collect()
}

/// The value of a constant; `None` for one that is another's name.
fn number(text: &str) -> Option<i64> {
    let hex = |digits| i64::from_str_radix(digits, 16).ok();
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), hex)
}

fn write_handles(text: &mut String, handle: &str, pairs: &[ConstantPair]) {
    let list = |text: &mut String, pick: &dyn Fn(&ConstantPair) -> String| {
        for pair in pairs {
            let _ = writeln!(text, "        {}, // {}", pick(pair), pair.name);
        }
    };
    let _ = writeln!(text, "pub struct {handle};\n\nimpl PredefinedHandles for {handle} {{");
    let _ = writeln!(text, "    const PAIRS: &'static [(u32, u16)] = &[");
    list(text, &|pair| format!("({:#x}, {:#x})", pair.theirs, pair.ours));
    let _ = writeln!(text, "    ];\n    const KIND: HandleKind = HandleKind::{handle};");
    text.push_str("}\n");
}

fn write_numbers<'a>(text: &mut String, name: &str, pairs: impl Iterator<Item = &'a ConstantPair> + Clone) {
    for (direction, back) in [("ours", false), ("theirs", true)] {
        let _ = writeln!(text, "pub fn {name}_{direction}(value: i32) -> Option<i32> {{\n    Some(match value {{");
        for pair in pairs.clone() {
            let (from, to) = if back { (pair.ours, pair.theirs) } else { (pair.theirs, pair.ours) };
            let _ = writeln!(text, "        {} => {}, // {}", from as i32, to as i32, pair.name);
        }
        text.push_str("        _ => return None,\n    })\n}\n");
    }
}

/// Bits that become others; those without a meaning become one without a meaning there.
fn write_bits<'a>(text: &mut String, name: &str, pairs: impl Iterator<Item = &'a ConstantPair> + Clone) {
    for (direction, back) in [("ours", false), ("theirs", true)] {
        let pairs = || pairs.clone().map(|pair| if back { (pair.ours, pair.theirs) } else { (pair.theirs, pair.ours) });
        let known: i64 = pairs().map(|pair| pair.0).sum();
        let _ = writeln!(text, "pub fn {name}_{direction}(value: i32) -> Option<i32> {{");
        let _ = writeln!(text, "    let mut bits = if value & !{known} == 0 {{ 0 }} else {{ 1 << 30 }};");
        for (from, to) in pairs() {
            let _ = writeln!(text, "    bits |= if value & {from} != 0 {{ {to} }} else {{ 0 }};");
        }
        text.push_str("    Some(bits)\n}\n");
    }
}
