//! Writes `mpi.h`.

use std::fmt::Write;
use weft_mpi_table::{AbiTable, Constant, ConstantSection};

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

/// What C needs beside the ABI to speak with Fortran. The names of conversions are objects of the preprocessor, so that
/// their addresses can be taken as well.
const FORTRAN_OPENING: &str = "
/* Fortran seen from C (MPI 5.0, section 19.3). The ABI leaves it out: here an INTEGER is an int, conversions of handles are
 * functions of the ABI by another name, and what is declared below is in libweft_mpifort, which weft fc links.
 * Who has these names from elsewhere defines WEFT_NO_FINT. */
#ifndef WEFT_NO_FINT
typedef int MPI_Fint;
typedef MPI_Status MPI_F08_status;
";

const FORTRAN_IGNORED: &str = "\
extern MPI_Fint *const MPI_F_STATUS_IGNORE;
extern MPI_Fint *const MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *const MPI_F08_STATUS_IGNORE;
extern MPI_F08_status *const MPI_F08_STATUSES_IGNORE;
";

/// Statuses of C, of Fortran, and of Fortran 2008.
const STATUSES: [(&str, &str); 3] = [("c", "MPI_Status"), ("f", "MPI_Fint"), ("f08", "MPI_F08_status")];

const CLOSING: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

pub fn write(table: &AbiTable) -> String {
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
    write_fortran(&mut text, table);
    text + CLOSING
}

fn write_fortran(text: &mut String, table: &AbiTable) {
    text.push_str(FORTRAN_OPENING);
    let functions = table.chapters.iter().flat_map(|chapter| &chapter.functions);
    for function in functions {
        let conversions = [("_toint", "_c2f"), ("_fromint", "_f2c")];
        for (ending, other) in conversions {
            if let Some(kind) = function.name.strip_suffix(ending) {
                let _ = writeln!(text, "#define {kind}{other} {}\n#define P{kind}{other} P{0}", function.name);
            }
        }
    }
    for (from, from_type) in STATUSES {
        for (to, to_type) in STATUSES.iter().filter(|other| other.0 != from) {
            for prefix in ["", "P"] {
                let _ = writeln!(text, "int {prefix}MPI_Status_{from}2{to}(const {from_type} *from, {to_type} *to);");
            }
        }
    }
    text.push_str(FORTRAN_IGNORED);
    text.push_str("#endif\n");
}

fn write_section(text: &mut String, section: &ConstantSection) {
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
