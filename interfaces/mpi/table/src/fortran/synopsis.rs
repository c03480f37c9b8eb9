//! How a function is called with `use mpi_f08`, for people: what the module declares, in the words of programs.

use super::modules::{Module, declaration};
use super::rules::{Argument, ArgumentRule, IntegerWidth, arguments, forms_differ, has_fortran, is_old};
use crate::TableFunction;

/// The call, and a line for each of its arguments; with large counts only what is different. Empty where `mpi_f08` has
/// no such procedure.
pub fn synopsis(function: &TableFunction) -> Vec<String> {
    if !has_fortran(&function.name) || is_old(&function.name) {
        return Vec::new();
    }
    let (given, wide) = (arguments(function, false), arguments(function, true));
    let mut names: Vec<&str> = given.iter().map(|it| &*it.name).collect();
    let has_code = function.answer == "int" && !function.variadic;
    if has_code {
        names.push("ierror");
    }
    let answer = match &*function.answer {
        "int" => "",
        "double" => "double precision ",
        _ => "integer(KIND=MPI_ADDRESS_KIND) ",
    };
    let mut lines = vec![format!("{answer}{}({})", function.name, names.join(", "))];
    let declared = |it: &[Argument]| it.iter().map(|it| line(function, it)).collect::<Vec<_>>();
    let (short, long) = (declared(&given), declared(&wide));
    lines.extend(short.iter().cloned());
    if has_code {
        lines.push("    integer, optional, intent(out) :: ierror".to_owned());
    }
    if function.twin {
        let name = if forms_differ(function) { String::new() } else { format!("{}_c, ", function.name) };
        lines.push(format!("{name}with large counts:"));
        lines.extend(long.into_iter().filter(|line| !short.contains(line)));
    }
    lines
}

fn line(function: &TableFunction, argument: &Argument) -> String {
    let kind = match argument.what {
        ArgumentRule::Number(IntegerWidth::Count) | ArgumentRule::Numbers(IntegerWidth::Count) => "MPI_COUNT_KIND",
        ArgumentRule::Number(IntegerWidth::Offset) => "MPI_OFFSET_KIND",
        _ => "MPI_ADDRESS_KIND",
    };
    let line = declaration(function, argument, Module::F08, true);
    let line = line.replace("KIND=8", &format!("KIND={kind}")).replace(", target", "");
    format!(
        "    {}",
        if argument.what == ArgumentRule::Choice {
            line.replace("(*), dimension(*)", "(*), dimension(..)")
        } else {
            line
        }
    )
}
