//! Writes `mpi.h` of the MPICH ABI.

use crate::pass::handle;
use std::fmt::Write;
use weft_mpi_table::{AbiTable, Chapter, Constant, ConstantSection, TableFunction};

const OPENING: &str = "\
/* The C interface of MPI 5.0 with the types and values of the MPICH ABI (libmpi.so.12).
 *
 * Generated from the tables in interfaces/mpi/abi and interfaces/mpi/mpich/abi: change those. */
#ifndef WEFT_MPI_H
#define WEFT_MPI_H

#ifdef __cplusplus
extern \"C\" {
#endif

typedef long MPI_Aint;
typedef long long MPI_Offset;
typedef long long MPI_Count;
typedef int MPI_Fint;

typedef struct {
    int count_lo;
    int count_hi_and_cancelled;
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
} MPI_Status;

/* A status of Fortran 2008: the same, with Fortran's integers. */
typedef struct {
    MPI_Fint count_lo;
    MPI_Fint count_hi_and_cancelled;
    MPI_Fint MPI_SOURCE;
    MPI_Fint MPI_TAG;
    MPI_Fint MPI_ERROR;
} MPI_F08_status;
";

const SYMBOLS: &str = "
/* Values that are the library's. */
extern int *const MPI_UNWEIGHTED;
extern int *const MPI_WEIGHTS_EMPTY;
extern MPI_Fint *MPI_F_STATUS_IGNORE;
extern MPI_Fint *MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *MPI_F08_STATUS_IGNORE;
extern MPI_F08_status *MPI_F08_STATUSES_IGNORE;
extern const MPI_T_pvar_handle MPI_T_PVAR_ALL_HANDLES;
int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra_state, void *value_in, void *value_out, int *flag);

/* Functions that programs hand over. */
typedef void MPI_Handler_function(MPI_Comm *comm, int *error_code, ...);
";

const CLOSING: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// What differs in the types of the standard ABI.
const OTHERWISE: &[(&str, &str)] = &[
    ("_copy_attr_function *)1)", "_copy_attr_function *)MPIR_Dup_fn)"),
    ("(MPI_Copy_function *)1)", "(MPI_Copy_function *)MPIR_Dup_fn)"),
    ("RESTRICTED = 3", "RESTRICTED = 1"),
    ("THREAD_SAFE = 15", "THREAD_SAFE = 2"),
    ("SIGNAL_SAFE = 63", "SIGNAL_SAFE = 3"),
    ("MPI_T_SOURCE_ORDERED = 1", "MPI_T_SOURCE_ORDERED = 0"),
    ("MPI_T_SOURCE_UNORDERED = 2", "MPI_T_SOURCE_UNORDERED = 1"),
];

pub fn write(table: &AbiTable, constants: &[ConstantSection], more: &Chapter) -> String {
    let mut text = OPENING.to_owned();
    for section in constants {
        write_section(&mut text, section);
    }
    text.push_str(SYMBOLS);
    for line in &table.types {
        let line = OTHERWISE.iter().fold(line.clone(), |line, (old, new)| line.replace(old, new));
        let _ = writeln!(text, "{line}");
    }
    for chapter in table.chapters.iter().chain([more]) {
        let (opening, closing) = chapter.guard();
        let _ = write!(text, "\n/* {} */\n{opening}", chapter.title);
        for function in &chapter.functions {
            write_function(&mut text, function);
        }
        text.push_str(closing);
    }
    for (from, from_type) in STATUSES {
        for (to, to_type) in STATUSES.iter().filter(|other| other.0 != from) {
            for prefix in ["", "P"] {
                let _ = writeln!(text, "int {prefix}MPI_Status_{from}2{to}(const {from_type} *from, {to_type} *to);");
            }
        }
    }
    text + CLOSING
}

/// Statuses of C, of Fortran, and of Fortran 2008.
const STATUSES: [(&str, &str); 3] = [("c", "MPI_Status"), ("f", "MPI_Fint"), ("f08", "MPI_F08_status")];

/// What MPI 1 wrote without `const`: whoever wraps one of these defines it as other headers of this ABI declare it.
const WITHOUT_CONST: [&str; 3] = ["MPI_Address", "MPI_Type_hindexed", "MPI_Type_struct"];

fn write_function(text: &mut String, function: &TableFunction) {
    let is_conversion = function.name.ends_with("_c2f") || function.name.ends_with("_f2c");
    for &wide in function.forms() {
        for prefix in ["", "P"] {
            let name = format!("{prefix}{}", function.name_of(wide));
            let mut declaration = function.declaration(&name, wide);
            if WITHOUT_CONST.contains(&&*function.name) {
                declaration = declaration.replace("const ", "");
            }
            let _ = writeln!(text, "{declaration};");
            // Macros besides, as in every header of this ABI: then a program that calls one needs no such function of
            // the library.
            if let ([only], true) = (&function.parameters[..], is_conversion && !function.name.contains("File")) {
                let _ = writeln!(text, "#define {name}({0}) (({1})({0}))", only.name, function.answer);
            }
        }
    }
}

fn write_section(text: &mut String, section: &ConstantSection) {
    let _ = write!(text, "\n/* {} */\n", section.title);
    if let Some(kind) = &section.handle {
        let is_integer = handle(kind).is_some_and(|handle| handle.1 == "i32");
        let tag = kind.replacen("MPI_", "MPI_ABI_", 1);
        let _ = if is_integer {
            writeln!(text, "typedef int {kind};")
        } else {
            writeln!(text, "typedef struct {tag} *{kind};")
        };
    }
    for Constant { name, cast, value } in &section.constants {
        let _ = match cast {
            Some(cast) if !value.starts_with("MPI_") => writeln!(text, "#define {name} (({cast}){value})"),
            None if value.starts_with('-') => writeln!(text, "#define {name} ({value})"),
            _ => writeln!(text, "#define {name} {value}"),
        };
    }
}
