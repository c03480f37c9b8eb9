//! Named constants, and the variables that stand for something else, as all three interfaces have them.

use super::rules::functions;
use crate::{AbiTable, Constant, ConstantSection};
use std::fmt::Write;

/// An integer constant, in the kind of integer that it has.
pub struct NumberConstant {
    pub name: String,
    pub kind: Option<&'static str>,
    pub value: String,
}

/// Constants that Fortran alone has.
const OWN: &[(&str, &str)] = &[
    ("MPI_ADDRESS_KIND", "8"),
    ("MPI_COUNT_KIND", "8"),
    ("MPI_INTEGER_KIND", "4"),
    ("MPI_OFFSET_KIND", "8"),
    ("MPI_STATUS_SIZE", "8"),
    ("MPI_SOURCE", "1"),
    ("MPI_TAG", "2"),
    ("MPI_ERROR", "3"),
];

/// Variables whose address stands for something: name, type, shape and block.
pub const VARIABLES: &[(&str, &str, &str, &str)] = &[
    ("MPI_BOTTOM", "INTEGER", "", "weft_bottom"),
    ("MPI_IN_PLACE", "INTEGER", "", "weft_in_place"),
    ("MPI_BUFFER_AUTOMATIC", "INTEGER", "", "weft_buffer_automatic"),
    ("MPI_ERRCODES_IGNORE", "INTEGER", "(1)", "weft_errcodes_ignore"),
    ("MPI_ARGV_NULL", "CHARACTER(LEN=1)", "(1)", "weft_argv_null"),
    ("MPI_ARGVS_NULL", "CHARACTER(LEN=1)", "(1,1)", "weft_argvs_null"),
    ("MPI_UNWEIGHTED", "INTEGER", "(1)", "weft_unweighted"),
    ("MPI_WEIGHTS_EMPTY", "INTEGER", "(1)", "weft_weights_empty"),
];

/// The same for statuses, which are of another type in `mpi_f08`.
pub const OLD_STATUSES: &[(&str, &str, &str, &str)] = &[
    ("MPI_STATUS_IGNORE", "INTEGER", "(8)", "weft_status_ignore"),
    ("MPI_STATUSES_IGNORE", "INTEGER", "(8,1)", "weft_statuses_ignore"),
];
pub const NEW_STATUSES: &[(&str, &str, &str, &str)] = &[
    ("MPI_STATUS_IGNORE", "TYPE(MPI_Status)", "", "weft_f08_status_ignore"),
    ("MPI_STATUSES_IGNORE", "TYPE(MPI_Status)", "(1)", "weft_f08_statuses_ignore"),
];

/// Procedures that copy and delete attributes.
pub const OLD_FUNCTIONS: [&str; 3] = ["MPI_NULL_COPY_FN", "MPI_DUP_FN", "MPI_NULL_DELETE_FN"];
pub const NULL_CONVERSIONS: [&str; 2] = ["MPI_CONVERSION_FN_NULL", "MPI_CONVERSION_FN_NULL_C"];

/// All integer constants; handles among them where `with_handles` says so.
pub fn numbers(table: &AbiTable, with_handles: bool) -> Vec<NumberConstant> {
    let own = OWN.iter().map(|(name, value)| NumberConstant {
        name: (*name).to_owned(),
        kind: None,
        value: (*value).to_owned(),
    });
    let sections = table.constants.iter().filter(|section| with_handles || section.handle.is_none());
    own.chain(sections.flat_map(|section| section.constants.iter().filter_map(number))).collect()
}

fn number(constant: &Constant) -> Option<NumberConstant> {
    let name = &constant.name;
    let cast = constant.cast.as_deref();
    let is_pointer = cast.is_some_and(|cast| cast.contains('*'));
    if is_pointer || name.starts_with("MPI_T_") || name.starts_with("MPI_F_") {
        return None;
    }
    let kind = (cast == Some("MPI_Offset")).then_some("MPI_OFFSET_KIND");
    let value = &constant.value;
    let value = match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).expect("a number").to_string(),
        // Strings of Fortran have no zero at their end.
        None if name.starts_with("MPI_MAX_") => (value.parse::<i64>().expect("a length") - 1).to_string(),
        None => value.clone(),
    };
    Some(NumberConstant { name: name.clone(), kind, value })
}

/// Sections of handles that Fortran has.
pub fn handles(table: &AbiTable) -> impl Iterator<Item = (&str, &ConstantSection)> {
    let kinds = table.constants.iter().filter_map(|section| Some((section.handle.as_deref()?, section)));
    kinds.filter(|(kind, _)| !kind.starts_with("MPI_T_"))
}

/// The value of a handle constant.
pub fn handle_value(section: &ConstantSection, constant: &Constant) -> String {
    let named = section.constants.iter().find(|other| other.name == constant.value);
    number(named.unwrap_or(constant)).expect("a handle").value
}

pub fn mpif(table: &AbiTable) -> String {
    let mut text = "\
! The Fortran interface of MPI 5.0 with the values of the standard ABI,
! for sources in fixed and in free form.
!
! Generated from the table in interfaces/mpi/abi.
"
    .to_owned();
    for NumberConstant { name, kind, value } in numbers(table, true) {
        let kind = kind.map_or(String::new(), |kind| format!("(KIND={kind})"));
        let _ = writeln!(text, "      INTEGER{kind} {name}\n      PARAMETER ({name}={value})");
    }
    text.push_str(LOGICALS);
    for (name, kind, shape, block) in VARIABLES.iter().chain(OLD_STATUSES) {
        let _ = writeln!(text, "      {kind} {name}{shape}\n      COMMON /{block}/ {name}\n      SAVE /{block}/");
    }
    for name in attribute_functions().chain(NULL_CONVERSIONS.map(str::to_owned)) {
        let _ = writeln!(text, "      EXTERNAL {name}");
    }
    for function in functions(table).filter(|function| function.answer != "int") {
        let kind = if function.answer == "double" { "DOUBLE PRECISION" } else { "INTEGER(KIND=MPI_ADDRESS_KIND)" };
        for prefix in ["", "P"] {
            let _ = writeln!(text, "      {kind} {prefix}{}", function.name.to_uppercase());
            let _ = writeln!(text, "      EXTERNAL {prefix}{}", function.name.to_uppercase());
        }
    }
    text
}

const LOGICALS: &str = "      LOGICAL MPI_SUBARRAYS_SUPPORTED
      PARAMETER (MPI_SUBARRAYS_SUPPORTED=.FALSE.)
      LOGICAL MPI_ASYNC_PROTECTS_NONBLOCKING
      PARAMETER (MPI_ASYNC_PROTECTS_NONBLOCKING=.FALSE.)
";

/// Those of the older interfaces; `mpi_f08` has the ones with an object in their name.
pub fn attribute_functions() -> impl Iterator<Item = String> {
    let of_objects = ["COMM", "TYPE", "WIN"]
        .into_iter()
        .flat_map(|object| ["NULL_COPY_FN", "DUP_FN", "NULL_DELETE_FN"].map(|rest| format!("MPI_{object}_{rest}")));
    OLD_FUNCTIONS.into_iter().map(str::to_owned).chain(of_objects)
}
