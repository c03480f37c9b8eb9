//! Writes `mpi.h`.

use crate::table::{Constant, Section, Table};
use std::fmt::Write;

const OPENING: &str = "\
/* The C interface of MPI 5.0 with the types and values of the standard ABI.
 *
 * Generated from the table in interfaces/mpi/abi: change that one. */
#ifndef WEFT_MPI_H
#define WEFT_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5]; /* the library's own */
} MPI_Status;
";

const CLOSING: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

pub fn write(table: &Table) -> String {
    let mut text = OPENING.to_owned();
    for section in &table.constants {
        write_section(&mut text, section);
    }
    text.push_str("\n/* Functions that programs hand over. */\n");
    for line in &table.types {
        text.push_str(line);
        text.push('\n');
    }
    for chapter in &table.chapters {
        let (opening, closing) = chapter.guard();
        let _ = write!(text, "\n/* {} */\n{opening}", chapter.title);
        for function in &chapter.functions {
            for &wide in function.forms() {
                for prefix in ["", "P"] {
                    let name = format!("{prefix}{}", function.name_of(wide));
                    let _ = writeln!(text, "{};", function.declaration(&name, wide));
                }
            }
        }
        text.push_str(closing);
    }
    text + CLOSING
}

fn write_section(text: &mut String, section: &Section) {
    let _ = write!(text, "\n/* {} */\n", section.title);
    if let Some(handle) = &section.handle {
        let tag = handle.replacen("MPI_", "MPI_ABI_", 1);
        let _ = writeln!(text, "typedef struct {tag} *{handle};");
    }
    for Constant { name, cast, value } in &section.constants {
        let _ = match cast {
            Some(cast) if !value.starts_with("MPI_") => writeln!(text, "#define {name} (({cast}){value})"),
            None if value.starts_with('-') => writeln!(text, "#define {name} ({value})"),
            _ => writeln!(text, "#define {name} {value}"),
        };
    }
}
