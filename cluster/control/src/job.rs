//! What is to be started: the programs of a job and how its ranks are spread over them.

/// Most ranks that one job may have. Beyond it lies a slip of the keyboard, not a job.
pub const RANKS_MAX: usize = 4096;

/// One of the programs of a job (between two `:` on the command line).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Program {
    /// The program as the user named it: a path, or a name to be found in `PATH`.
    pub program: String,
    /// What follows the program's name.
    pub arguments: Vec<std::ffi::OsString>,
    /// How many ranks run it.
    pub ranks: usize,
    /// Variables set for its ranks on top of the launcher's own environment.
    pub environment: Vec<(String, String)>,
    /// Where its ranks start; the launcher's own directory when not given.
    pub directory: Option<std::path::PathBuf>,
}

/// Who gets what the launcher reads from its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinTo {
    Rank(usize),
    All,
    Nobody,
}

/// A description that cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    #[error("no program given")]
    NoProgram,
    #[error("number of ranks '{given}' is not a number from 1 to {RANKS_MAX}")]
    BadCount { given: String },
    #[error("the programs ask for {total} ranks together; a job may have 1 to {RANKS_MAX}")]
    TooMany { total: usize },
    #[error("standard input for '{given}': accepted are all, none and {}", ranks_to(*.last))]
    BadStdin { given: String, last: usize },
    #[error("environment '{given}' is neither NAME=VALUE nor NAME, with a NAME that is not empty")]
    BadEnvironment { given: String },
    #[error("environment variable '{name}' is not set here, so its value cannot be passed on; NAME=VALUE sets one")]
    UnsetEnvironment { name: String },
    #[error("environment variable '{name}' is set by the launcher for each rank and cannot be given")]
    ReservedEnvironment { name: String },
}

fn ranks_to(last: usize) -> String {
    if last == 0 { "rank 0".to_owned() } else { format!("a rank from 0 to {last}") }
}

/// Reads a number of ranks.
pub fn parse_count(given: &str) -> Result<usize, JobError> {
    let bad = || JobError::BadCount { given: given.to_owned() };
    let count: usize = given.parse().map_err(|_| bad())?;
    (1..=RANKS_MAX).contains(&count).then_some(count).ok_or_else(bad)
}

/// Reads who gets standard input, in a job of `size` ranks.
pub fn parse_stdin(given: &str, size: usize) -> Result<StdinTo, JobError> {
    match given {
        "all" => Ok(StdinTo::All),
        "none" => Ok(StdinTo::Nobody),
        rank => match rank.parse() {
            Ok(rank) if rank < size => Ok(StdinTo::Rank(rank)),
            _ => Err(JobError::BadStdin { given: given.to_owned(), last: size.saturating_sub(1) }),
        },
    }
}

/// Reads `NAME=VALUE`, or `NAME` whose value `inherited` knows.
pub fn parse_environment(
    given: &str,
    inherited: impl Fn(&str) -> Option<String>,
) -> Result<(String, String), JobError> {
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (given, None),
    };
    if name.is_empty() || given.contains('\0') {
        return Err(JobError::BadEnvironment { given: given.to_owned() });
    }
    if is_reserved(name) {
        return Err(JobError::ReservedEnvironment { name: name.to_owned() });
    }
    let value = value.or_else(|| inherited(name));
    value.map(|value| (name.to_owned(), value)).ok_or(JobError::UnsetEnvironment { name: name.to_owned() })
}

/// Whether the launcher alone decides about this variable: a rank with the variables of two process managers in its
/// environment would believe the wrong one.
pub fn is_reserved(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["PMI_", "PMIX_", "OMPI_COMM_WORLD_", "HYDI_"];
    const NAMES: [&str; 16] = [
        "WEFT_JOB",
        "WEFT_SEGMENT",
        "WEFT_JOB_MAP",
        "WEFT_PARENT",
        "WEFT_ORDER",
        "WEFT_DISTRESS",
        "WEFT_TCP_LISTENER",
        "WEFT_UDP_SOCKET",
        "WEFT_XDP_MEMORY",
        "WEFT_XDP_RECEIVER",
        "WEFT_XDP_SENDER",
        "MPI_LOCALRANKID",
        "MPI_LOCALNRANKS",
        "MPIR_CVAR_PMI_VERSION",
        "PRTE_LAUNCHED",
        "OMPI_UNIVERSE_SIZE",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name)
}

/// Checks that the programs together make a job that can be started, and answers its number of ranks.
pub fn size(programs: &[Program]) -> Result<usize, JobError> {
    if programs.is_empty() || programs.iter().any(|program| program.program.is_empty()) {
        return Err(JobError::NoProgram);
    }
    if let Some(program) = programs.iter().find(|program| program.ranks == 0) {
        return Err(JobError::BadCount { given: program.ranks.to_string() });
    }
    let total = programs.iter().fold(0usize, |sum, program| sum.saturating_add(program.ranks));
    (total <= RANKS_MAX).then_some(total).ok_or(JobError::TooMany { total })
}

/// The program number of each rank, in rank order.
pub fn programs_by_rank(programs: &[Program]) -> Vec<usize> {
    programs.iter().enumerate().flat_map(|(number, program)| std::iter::repeat_n(number, program.ranks)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(ranks: usize) -> Program {
        Program { program: "p".into(), ranks, ..Program::default() }
    }

    #[test]
    fn count_says_what_is_allowed() {
        assert_eq!(parse_count("3"), Ok(3));
        assert_eq!(parse_count("4096"), Ok(4096));
        for bad in ["0", "4097", "-1", "", "x", "2x", "99999999999999999999999"] {
            let text = parse_count(bad).unwrap_err().to_string();
            assert!(text.contains(&format!("'{bad}'")) && text.contains("1 to 4096"), "{text}");
        }
    }

    #[test]
    fn ranks_are_numbered_through_the_programs() {
        let programs = [program(2), program(1), program(3)];
        assert_eq!(size(&programs), Ok(6));
        assert_eq!(programs_by_rank(&programs), [0, 0, 1, 2, 2, 2]);
    }

    #[test]
    fn sum_of_the_programs_is_bounded_too() {
        assert_eq!(size(&[program(4096), program(1)]), Err(JobError::TooMany { total: 4097 }));
        assert_eq!(size(&[]), Err(JobError::NoProgram));
        assert!(size(&[program(0)]).is_err());
    }

    #[test]
    fn stdin_goes_to_a_rank_that_exists() {
        assert_eq!(parse_stdin("1", 2), Ok(StdinTo::Rank(1)));
        assert_eq!(parse_stdin("all", 2), Ok(StdinTo::All));
        assert_eq!(parse_stdin("none", 2), Ok(StdinTo::Nobody));
        assert!(parse_stdin("2", 2).unwrap_err().to_string().contains("0 to 1"));
    }

    #[test]
    fn environment_is_given_or_inherited() {
        let inherited = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        assert_eq!(parse_environment("A=b=c", inherited), Ok(("A".into(), "b=c".into())));
        assert_eq!(parse_environment("A=", inherited), Ok(("A".into(), String::new())));
        assert_eq!(parse_environment("HOME", inherited), Ok(("HOME".into(), "/h".into())));
        assert_eq!(parse_environment("NO", inherited), Err(JobError::UnsetEnvironment { name: "NO".into() }));
        assert!(matches!(parse_environment("=x", inherited), Err(JobError::BadEnvironment { .. })));
        assert!(matches!(parse_environment("PMI_RANK=1", inherited), Err(JobError::ReservedEnvironment { .. })));
    }
}
